"""Operations whose formulas are read from outputs, and the parts of these formulas, in words and as functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from posref import alibi_slopes
from posref.rotary.axial_table import ARRANGEMENTS, axes_of_pairs

from ..tools.deviation import Function, after, around
from . import row_formulas
from .axial import with_axes

ROTATION, FREQUENCIES, ANGLES, SLOPES = "apply_rope", "rope_frequencies", "rope_table", "alibi_slopes"
Parts = Sequence[Mapping[str, Any]]  # of each part the words, and what stands there; the definition's words come first
Integers = Any  # a NumPy array of integers


class Waves(NamedTuple):
    """The options of a call of sinusoids: see `waves_asked`."""

    dim: int
    base: float
    endpoint: bool  # whether the last frequency is 1/base
    layout: str
    of_positions: float  # factors on positions and on waves
    of_waves: float


def _sinusoidal(o: Mapping[str, Any]) -> Waves:
    return Waves(
        o["dim"], float(o.get("base", 1e4)), bool(o.get("endpoint", False)), o["layout"], 1.0, float(o.get("scale", 1.0))
    )


def _timestep(o: Mapping[str, Any]) -> Waves:
    layout = "cos_sin" if o["flip"] else "sin_cos"
    return Waves(o["dim"], float(o.get("base", 1e4)), o["freq_shift"] == 1, layout, float(o["scale"]), 1.0)


SINUSOIDS: dict[str, tuple[Callable[[Mapping[str, Any]], Waves], dict[str, Any]]] = {
    # what a call asks for, and the options with which the operation gives the sine and the cosine of its positions
    "sinusoidal": (_sinusoidal, {"layout": "sin_cos"}),
    "timestep": (_timestep, {"flip": False, "freq_shift": 0, "scale": 1.0}),
}


# ---- positions ---------------------------------------------------------------------------------------------------------------
def _arange(m: Integers) -> Integers:
    return np.broadcast_to(np.arange(m.shape[-1]), m.shape)


COUNTS: dict[str, Callable[[Integers], Integers]] = {
    "the tokens up to its own": lambda m: np.cumsum(m, axis=-1), "all places up to its own": lambda m: _arange(m) + 1,
    "its place less the number of padding tokens of the row": lambda m: _arange(m) + 1 - np.sum(1 - m, axis=-1, keepdims=True),
    "its place less the first token's": lambda m: _arange(m) + 1 - np.argmax(m, axis=-1)[..., None],
    "the padding tokens up to its own": lambda m: np.cumsum(1 - m, axis=-1),
    "the tokens from its own on": lambda m: np.cumsum(m[..., ::-1], axis=-1)[..., ::-1],
    "the tokens of all rows up to its own": lambda m: np.cumsum(m).reshape(m.shape),
}  # fmt: skip
LESS = {", less 1": 1, "": 0, ", plus 1": -1, ", less 2": 2}
FILLS: dict[str, Callable[[Integers, Integers, int], Integers]] = {
    "padding has what is asked": lambda p, m, padding: np.where(m, p, padding), "padding counts too": lambda p, m, padding: p,
    "nothing is below 0": lambda p, m, padding: np.maximum(p, 0), "padding has 0": lambda p, m, padding: p * m,
    "padding has 1": lambda p, m, padding: np.where(m, p, 1), "padding has -1": lambda p, m, padding: np.where(m, p, -1),
    "all are multiplied by the mask before 1 is subtracted": lambda p, m, padding: (p + 1) * m - 1,
    "padding is 0 and tokens are at least 1": lambda p, m, padding: np.maximum(p, 1) * m,
}  # fmt: skip


def _positions(count: Any, less: int, fill: Any) -> Any:
    def made(mask: Any, /, *, padding: int, **rest: Any) -> Integers:
        m = (np.asarray(mask) != 0).astype(np.int64)
        return fill(count(m) - less, m, padding)

    return lambda _: made


MORE = {"": 0, ", less 1": 1, ", plus 1": -1}
ROWS_OF_PADDING: dict[str, Callable[[Integers, Integers, int], Integers]] = {
    "padding has padding_idx": lambda p, m, padding: np.where(m, p, padding), "padding counts too": lambda p, m, padding: p,
    "padding has 0": lambda p, m, padding: p * m,
}  # fmt: skip


def _rows(count: Any, less: int, fill: Any) -> Any:
    def made(tokens: Any, /, *, padding_idx: int, **rest: Any) -> Integers:
        m = (np.asarray(tokens) != padding_idx).astype(np.int64)
        return fill(padding_idx + count(m) - less, m, padding_idx)

    return lambda _: made


# ---- windows -----------------------------------------------------------------------------------------------------------------
NEAR = {
    "0 <= ": lambda w: 0, "-window < ": lambda w: 1 - w, "-window <= ": lambda w: -w, "-(window // 2) <= ": lambda w: -(w // 2),
    "0 < ": lambda w: 1, "-1 <= ": lambda w: -1, "any ": lambda w: -(2**62),
}  # fmt: skip
FAR: dict[str, Callable[[int, Integers], Any]] = {  # of the window and the query
    "< window": lambda w, q: w - 1, "<= window": lambda w, q: w, "<= window + 1": lambda w, q: w + 1,
    "< window - 1": lambda w, q: w - 2, "<= window // 2": lambda w, q: w // 2, "< window // 2": lambda w, q: w // 2 - 1,
    "< 2 window": lambda w, q: 2 * w - 1, "<= 2 window": lambda w, q: 2 * w, "is anything": lambda w, q: 2**62,
    "<= 0": lambda w, q: 0, "<= q mod window (in blocks of a window, the query's own)": lambda w, q: q % max(w, 1),
    "<= window + q mod window (in blocks of a window, the query's own and the one before)": lambda w, q: w + q % max(w, 1),
}  # fmt: skip


def _window(near: Any, far: Any) -> Any:
    def made(q: Any, k: Any, /, *, window: int, **rest: Any) -> Any:
        q, k = np.asarray(q)[..., :, None], np.asarray(k)[..., None, :]
        return (near(window) <= q - k) & (q - k <= far(window, q))

    return lambda _: made


# ---- buckets -----------------------------------------------------------------------------------------------------------------
ARGUMENTS = {  # of the distance n and the number e of exact buckets
    "n/e": lambda n, e: n / e, "1 + n/e": lambda n, e: 1 + n / e, "n": lambda n, e: n, "n + 1": lambda n, e: n + 1,
    "(n + 1)/e": lambda n, e: (n + 1) / e, "n - e + 1": lambda n, e: n - e + 1,
}  # fmt: skip
RANGES = {  # of the largest distance D, e, and the numbers of buckets: N of one side, B in all
    "ln(D/e)": lambda d, e, n, b: np.log(d / e), "ln(D)": lambda d, e, n, b: np.log(d),
    "ln(N/e)": lambda d, e, n, b: np.log(n / e), "ln(B/e)": lambda d, e, n, b: np.log(b / e),
    "ln(D/N)": lambda d, e, n, b: np.log(d / n), "ln((D - 1)/e)": lambda d, e, n, b: np.log((d - 1) / e),
    "ln((D + 1)/e)": lambda d, e, n, b: np.log((d + 1) / e), "ln(D - e)": lambda d, e, n, b: np.log(d - e),
    "ln(1 + D/e)": lambda d, e, n, b: np.log(1 + d / e), "(ln(2) ln(D/e))": lambda d, e, n, b: np.log(2) * np.log(d / e),
    "log2(D/e)": lambda d, e, n, b: np.log2(d / e),
}  # fmt: skip
TIMES = {"N - e": lambda n, e: n - e, "N - e - 1": lambda n, e: n - e - 1, "N": lambda n, e: n}
ENDS = {"N - 1": lambda n, both: n - 1, "the last of both sides": lambda n, both: both - 1, "N - 2": lambda n, both: n - 2}


CAUSAL: dict[str, Callable[[Integers], Integers]] = {  # of key minus query
    "keys after the query have distance 0 where buckets are causal": lambda r: np.maximum(-r, 0),
    "keys after the query have their distance too where buckets are causal": np.abs,
    "keys before the query have distance 0 where buckets are causal, not keys after it": lambda r: np.maximum(r, 0),
}  # fmt: skip


SECOND: dict[str, Callable[[Integers], Any]] = {  # where buckets are bidirectional
    "keys after the query use the second half": lambda r: r > 0, "keys before the query use the second half": lambda r: r < 0,
    "keys after the query, and its own position, use the second half": lambda r: r >= 0,
    "keys before the query, and its own position, use the second half": lambda r: r <= 0,
    "no key uses the second half": lambda r: 0 * r,
}  # fmt: skip


def _buckets(argument: Any, span: Any, times: Any, end: Any, causal: Any, second: Any) -> Any:
    def made(relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128, **rest: Any) -> Integers:
        r, size = np.asarray(relative), num_buckets // 2 if bidirectional else num_buckets
        n, exact = np.abs(r) if bidirectional else causal(r), size // 2
        share = np.log(argument(np.maximum(n, 1).astype(np.float64), exact)) / span(max_distance, exact, size, num_buckets)
        far = np.where(np.isfinite(share), exact + np.floor(share * times(size, exact) + 1e-12), 0).astype(np.int64)
        buckets = np.where(n < exact, n, np.minimum(far, end(size, num_buckets)))
        return buckets + (size * second(r) if bidirectional else 0)

    return lambda _: made


# ---- distances ---------------------------------------------------------------------------------------------------------------
DISTANCES: dict[str, Callable[[Any, Any, Any], Any]] = {  # of the distance n, queries and keys
    "n": lambda n, q, k: n, "ln(1 + n)": lambda n, q, k: np.log1p(n), "log2(1 + n)": lambda n, q, k: np.log2(1 + n),
    "sqrt(n)": lambda n, q, k: np.sqrt(n), "n^2": lambda n, q, k: n * n, "n + 1": lambda n, q, k: n + 1,
    "n - 1": lambda n, q, k: n - 1, "2 n": lambda n, q, k: 2 * n, "n/2": lambda n, q, k: n / 2,
    "1": lambda n, q, k: np.where(n > 0, 1.0, 0.0), "k": lambda n, q, k: k + 0 * n, "q": lambda n, q, k: q + 0 * n,
    "(K - k), K the last key": lambda n, q, k: np.max(k, axis=-1, keepdims=True, initial=-np.inf) - k + 0 * n,
    "(Q - k), Q the last query": lambda n, q, k: np.max(q, axis=-2, keepdims=True, initial=-np.inf) - k + 0 * n,
    "(k - K), K the first key": lambda n, q, k: k - np.min(k, axis=-1, keepdims=True, initial=np.inf) + 0 * n,
}  # fmt: skip
SIGNS = {"-": -1.0, "": 1.0}


def _distance(sign: float, of: Any) -> Any:
    def changed(out: Any, q: Any, k: Any, /, *, heads: int, **options: Any) -> Any:
        options_of_slopes = {name: options[name] for name in ("max_bias", "first", "count") if name in options}
        slopes = alibi_slopes(heads, **options_of_slopes)[:, None, None]
        q, k = np.asarray(q, dtype=np.float64)[..., None, :, None], np.asarray(k, dtype=np.float64)[..., None, None, :]
        return sign * slopes * of(np.abs(np.asarray(out) / slopes), q, k)

    return after(changed)


# ---- axes of pairs -----------------------------------------------------------------------------------------------------------
def _exchanged(axes: list[int], sections: list[int], one: int, other: int) -> list[int]:
    return [{one: other, other: one}.get(axis, axis) for axis in axes] if len(sections) > other else axes


AXES: dict[str, Callable[[list[int], list[int]], Sequence[int]]] = {  # of the right axes and the sections, for all n pairs
    "as is asked": lambda axes, s: axes, "i mod A, to the last pair": lambda axes, s: [i % len(s) for i in range(len(axes))],
    "A - 1 - i mod A": lambda axes, s: [len(s) - 1 - i % len(s) for i in range(len(axes))],
    "(i + 1) mod A": lambda axes, s: [(i + 1) % len(s) for i in range(len(axes))],
    "floor(i A/n)": lambda axes, s: [i * len(s) // len(axes) for i in range(len(axes))],
    "1 where 2 is asked, and conversely": lambda axes, s: _exchanged(axes, s, 1, 2),
    "0 where 1 is asked, and conversely": lambda axes, s: _exchanged(axes, s, 0, 1),
    "0 where 2 is asked, and conversely": lambda axes, s: _exchanged(axes, s, 0, 2),
    "that of pair n - 1 - i": lambda axes, s: axes[::-1],
    "that of the axes in order of their sections": lambda axes, s: [k for k in np.argsort(s) for _ in range(s[k])],
    "the axis before, from the second on": lambda axes, s: [max(axis - 1, 0) for axis in axes],
}  # fmt: skip
WHERE = {"": ARRANGEMENTS, **{f", where the arrangement is {word!r}": (word,) for word in ARRANGEMENTS}}


ORDERS: dict[str, Callable[[list[int], list[int]], Any]] = {  # of the axes of pairs and the sections: which pair stands where
    "pairs are in order": lambda axes, s: np.arange(len(axes)),
    "the pairs of the last axis come first, each with its frequency": lambda axes, s: np.argsort(
        -np.asarray(axes), kind="stable"
    ),
    "pairs are in reverse order, each with its axis and frequency": lambda axes, s: np.arange(len(axes))[::-1],
}


def _axes(of: Any, where: Sequence[str], order: Any) -> Any:
    wrap = with_axes(lambda axes, sections, word: list(of(axes, sections)) if word in where else axes)

    def reordered(function: Function, positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, **rest: Any) -> Any:
        tables = wrap(function)(positions, inv_freq, sections=sections, arrangement=arrangement, **rest)
        pairs = order(axes_of_pairs("axial_table", sections, arrangement), list(sections))
        return tuple(table[..., pairs] for table in tables)

    return around(reordered)


# ---- scales of XPos ----------------------------------------------------------------------------------------------------------
EXPONENTS: dict[str, Callable[[Any, float, float, float], Any]] = {  # of positions, centre, scale base, and the role's sign
    "(p - c)/S": lambda p, c, s, sign: sign * (p - c) / s,
    "(p - c)/S for queries and keys alike": lambda p, c, s, sign: (p - c) / s,
    "(c - p)/S": lambda p, c, s, sign: sign * (c - p) / s, "p - c": lambda p, c, s, sign: sign * (p - c),
    "|p - c|/S": lambda p, c, s, sign: sign * np.abs(p - c) / s, "(p + c)/S": lambda p, c, s, sign: sign * (p + c) / s,
}  # fmt: skip
TOPS: dict[str, Callable[[Any, int, float], Any]] = {  # of the pair i, d and gamma
    "2i + gamma d": lambda i, d, g: 2 * i + g * d, "i + gamma d": lambda i, d, g: i + g * d,
    "2i + gamma": lambda i, d, g: 2 * i + g, "2i + gamma (d - 2)": lambda i, d, g: 2 * i + g * (d - 2),
    "2i + 2 + gamma d": lambda i, d, g: 2 * i + 2 + g * d, "i + gamma d/2": lambda i, d, g: i + g * d / 2,
}  # fmt: skip
BELOWS: dict[str, Callable[[int, float], float]] = {
    "(1 + gamma) d": lambda d, g: (1 + g) * d, "d + gamma": lambda d, g: d + g, "d - 2 + gamma d": lambda d, g: d - 2 + g * d,
    "(1 + gamma) (d - 2)": lambda d, g: (1 + g) * (d - 2), "d": lambda d, g: d, "1 + gamma": lambda d, g: 1 + g,
    "(1 + gamma) d/2": lambda d, g: (1 + g) * d / 2, "1.4 d": lambda d, g: 1.4 * d,
}  # fmt: skip


def _scales(exponent: Any, top: Any, below: Any) -> Any:
    def made(
        positions: Any, dim: int, /, *, role: str, centre: int, scale_base: float = 512.0, gamma: float = 0.4, **rest: Any
    ) -> Any:
        zeta = top(np.arange(dim // 2), dim, gamma) / below(dim, gamma)
        p = np.asarray(positions, dtype=np.float64)[..., None]
        return zeta ** exponent(p, centre, scale_base, 1 if role == "query" else -1)

    return lambda _: made


# ---- functions of logits -----------------------------------------------------------------------------------------------------
def _softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=-1, keepdims=True)


OF_LOGITS: dict[str, Callable[[Any], Any]] = {
    "the logits": lambda x: x, "softmax over the keys, of the logits": _softmax,
    "softmax over the queries, of the logits": lambda x: np.swapaxes(_softmax(np.swapaxes(x, -1, -2)), -1, -2),
    "the logarithm of the softmax of the logits": lambda x: np.log(_softmax(x)), "tanh of the logits": np.tanh,
    "exp of the logits": np.exp, "the sigmoid of the logits": lambda x: 1 / (1 + np.exp(-x)),
    "the logits where they are positive, else 0": lambda x: np.maximum(x, 0), "the absolute value of the logits": np.abs,
    "the logits less the largest of the query": lambda x: x - np.max(x, axis=-1, keepdims=True, initial=-np.inf),
}  # fmt: skip
BIASES = {"": True, " without the bias, which is added after": False}


def _of_logits(of: Any, biased: bool) -> Any:
    def changed(out: Any, *args: Any, bias: Any = None, **options: Any) -> Any:
        apart = 0.0 if bias is None or biased else np.asarray(bias, dtype=np.float64)
        return of(np.asarray(out) - apart) + apart

    return after(changed)


# ---- sinusoids of several axes -----------------------------------------------------------------------------------------------
BLOCKS: dict[str, Callable[[list[int]], list[int]]] = {  # of the axes: which axis, with its width, each block encodes
    "blocks are in the order of the axes": lambda axes: axes, "the block of the last axis comes first": lambda axes: axes[::-1],
}  # fmt: skip
SHARES: dict[str, Callable[[Any, float, int, int], Any]] = {  # of pair i, the divisor, the pairs before, and all
    "i/h": lambda i, h, before, every: i / h, "2i/h": lambda i, h, before, every: 2 * i / h,
    "i/(2h)": lambda i, h, before, every: i / (2 * h), "(i + 1)/h": lambda i, h, before, every: (i + 1) / h,
    "(i + the pairs of the blocks before)/the pairs of all blocks": lambda i, h, before, every: (i + before) / every,
    "i/the pairs of all blocks": lambda i, h, before, every: i / every,
}  # fmt: skip


def _blocks(order: Any, share: Any) -> Any:
    def made(
        positions: Any, /, *, dims: Sequence[int], layout: str, arrangement: str, base: float = 1e4, endpoint: bool = False,
        **rest: Any,
    ) -> Any:  # fmt: skip
        before, every, pairs = 0, sum(dims) // 2, []
        for axis in order(list(range(len(dims)))):
            h = dims[axis] // 2
            exponent = share(np.arange(h), h - 1.0 if endpoint and h > 1 else h, before, every)
            angles = np.asarray(positions[axis], dtype=np.float64)[..., None] * base**-exponent
            waves = (np.sin(angles), np.cos(angles))
            pairs.append(waves[::-1] if layout == "cos_sin" else waves)
            before += h
        if layout == "interleaved":
            return np.concatenate([np.stack(both, axis=-1).reshape(*both[0].shape[:-1], -1) for both in pairs], axis=-1)
        halves = (
            [both[k] for k in (0, 1) for both in pairs] if arrangement == "outer" else [half for both in pairs for half in both]
        )
        return np.concatenate(halves, axis=-1)

    return lambda _: made


# what gives the values, in clauses that are apart by "; ", how it is made, and its parts
KNOWN: dict[str, tuple[str, Callable[..., Any], Parts]] = {
    "positions_from_mask": ("a token's position counts {0}{1}, and {2}", _positions, (COUNTS, LESS, FILLS)),
    "positions_from_tokens": ("a token's row is padding_idx plus {0}{1}, and {2}", _rows, (COUNTS, MORE, ROWS_OF_PADDING)),
    "sliding_window": ("a key is seen where {0}q - k {1}", _window, (NEAR, FAR)),
    "t5_buckets": (
        "the bucket of distance n is e + floor(ln({0})/{1} ({2})), at most {3}, from e on, the number of exact buckets, with N "
        "buckets for a side, B in all, and D the largest distance; {4}; {5}",
        _buckets,
        (ARGUMENTS, RANGES, TIMES, ENDS, CAUSAL, SECOND),
    ),
    "axial_table": ("pair i of n, with A axes, rotates with axis {0}{1}; {2}", _axes, (AXES, WHERE, ORDERS)),
    "alibi": ("the bias is {0}m {1}, for query q and key k at distance n", _distance, (SIGNS, DISTANCES)),
    "xpos_scales": (
        "the scale of a query is (({1})/({2}))^({0}) with centre c and scale_base S",
        _scales,
        (EXPONENTS, TOPS, BELOWS),
    ),
    "attention_logits": ("the result is {0}{1}", _of_logits, (OF_LOGITS, BIASES)),
    "sinusoidal_nd": ("{0}; pair i of a block of h has the exponent {1}", _blocks, (BLOCKS, SHARES)),
    **row_formulas.KNOWN,
}

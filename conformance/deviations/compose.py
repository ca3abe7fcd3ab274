"""A deviation, and the reference's operations composed by name, so that a deviating stage deviates everything built on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import posref
from posref.backends.rounding import round_to
from posref.rotary.axial_rope import in_turn
from posref.rotary.axial_table import axes_of_pairs
from posref.spec import REGISTRY

Function = Callable[..., Any]
Operations = dict[str, Function]
Wrap = Callable[[Function], Function]
Real = Any  # a NumPy array of reals

LEAVES = (
    "sinusoidal", "learned", "rope_frequencies", "apply_rope", "alibi_slopes", "t5_buckets", "shaw_scores",
    "shaw_values", "attention_logits", "permute_qk_weights", "axial_frequencies", "axial_table", "xpos_scales",
    "sliding_window", "chunked_window", "lambda_window", "logn_scale", "attention_temperature",
    "rerope_distances", "leaky_rerope_distances", "self_extend_distances", "dual_chunk_distances",
    "streaming_llm_distances", "rotated_values", "mla_logits", "rotary_linear_attention",
    "pope", "fope", "mixed_table", "liere_rotations", "cayley", "circulant_string",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Deviation:
    """A named way to be wrong: what it does to which operations, what to look at, and where one was seen."""

    name: str
    text: str
    wraps: Mapping[str, Wrap]
    hint: str = ""
    seen_in: str = ""
    stateful: bool = False  # what it gives depends on the calls before

    def operations(self, jitter: float = 0.0) -> Operations:
        """Return operations that deviate in this way, composed ones through their stages; state begins anew."""
        stages = {op: self._wrapped(op, function) for op, function in leaves(jitter).items()}
        return stages | composed(stages, self._wrapped)

    def _wrapped(self, op: str, function: Function) -> Function:
        return self.wraps[op](function) if op in self.wraps else function

    def touches(self, op: str) -> bool:
        """Return whether an operation may deviate, itself or through its stages."""
        return bool(set(self.wraps) & {op, *PARTS.get(op, ())})


def together(*deviations: Deviation) -> Deviation:
    """
    Return several deviations at once, under their names joined by " + ".

    Where two change the same operation, the one named later is outside: it changes the arguments first and the result last.
    """

    def nested(inner: Wrap, outer: Wrap) -> Wrap:
        return lambda function: outer(inner(function))

    wraps: dict[str, Wrap] = {}
    for deviation in deviations:
        for op, wrap in deviation.wraps.items():
            wraps[op] = nested(wraps[op], wrap) if op in wraps else wrap
    name, text = (joint.join(getattr(d, field) for d in deviations) for joint, field in ((" + ", "name"), (", and ", "text")))
    return Deviation(name, text, wraps, stateful=any(d.stateful for d in deviations))


EXTENSIONS = ("rerope", "leaky_rerope", "self_extend", "dual_chunk", "streaming_llm")
PARTS = {  # what a composed operation is made of
    "rope_table": ("angles",),
    "rope": ("rope_frequencies", "angles", "rope_table", "apply_rope"),
    "rotation_matrix": ("rope_frequencies", "angles", "rope_table", "apply_rope"),
    "mrope": ("rope_frequencies", "axial_table", "apply_rope"),
    "xpos": ("rope_frequencies", "angles", "rope_table", "xpos_scales", "apply_rope"),
    "axial_rope": ("axial_frequencies", "axial_turns", "axial_table", "apply_rope"),
    "mixed_rope": ("mixed_table", "apply_rope"),
    "liere": ("liere_rotations",),
    "cayley_string": ("cayley", "mixed_table", "apply_rope"),
    "alibi": ("alibi_slopes", "alibi_product"),
    "t5_bias": ("t5_buckets", "t5_rows"),
    "attention": ("attention_logits", "softmax"),
} | {op: (f"{op}_distances", "turned_products") for op in EXTENSIONS}


def leaves(jitter: float = 0.0) -> Operations:
    """
    Return the operations that are not composed, and the parts of composed ones that have no name outside.

    With `jitter`, angles and what is made of them are larger by that fraction, as an honest rounding might have made them: it
    shows how far a hypothesis may be from an implementation in lower precision, and which narrow roundings are near a tie.
    Logits move apart, since a softmax forgives what they have in common.
    """
    found: Operations = {name: getattr(posref, name) for name in LEAVES}
    found |= {"angles": angles, "alibi_product": alibi_product, "t5_rows": t5_rows, "softmax": softmax}
    found["turned_products"] = turned_products
    found["axial_turns"] = axial_turns
    if not jitter:
        return found

    def larger(x: Any) -> Any:
        return tuple(larger(part) for part in x) if isinstance(x, tuple) else np.asarray(x, dtype=np.float64) * (1 + jitter)

    found["sinusoidal"] = after(lambda result, *args, **options: larger(result))(argument(0, larger)(found["sinusoidal"]))
    for op, parameter in {"axial_table": 1, "mixed_table": 1, "liere_rotations": 1, "cayley": 0, "circulant_string": 2}.items():
        found[op] = argument(parameter, larger)(found[op])
    for op, first in (("rotated_values", 2), ("mla_logits", 4), ("rotary_linear_attention", 3)):
        found[op] = argument(first, larger)(argument(first + 1, larger)(found[op]))
    reals = (
        "xpos_scales",
        "pope",
        "fope",
        "logn_scale",
        "attention_temperature",
        "leaky_rerope_distances",
        "self_extend_distances",
    )
    for op in ("rope_frequencies", "axial_frequencies", "angles", "alibi_slopes", "apply_rope", *reals):
        found[op] = after(lambda result, *args, **options: larger(result))(found[op])
    for op in ("attention_logits", "turned_products"):
        found[op] = after(lambda logits, *args, **options: logits * (1 + jitter * _spread(logits.shape[-1])))(found[op])
    return found


def _spread(count: int) -> Real:
    """Return numbers of alternating sign, no two alike, between 1/2 and 1 in size."""
    n = np.arange(count)
    return (-1.0) ** n * (0.5 + 0.5 * (n * 0.618034 % 1))


def composed(f: Operations, wrapped: Callable[[str, Function], Function]) -> Operations:
    """Return the composed operations, built from the stages `f`, each wrapped."""

    def rope_table(p: Any, inv_freq: Any, /, *, attention_factor: float = 1.0, dtype: Any = None) -> Any:
        angle = f["angles"](p, inv_freq)
        return np.cos(angle) * attention_factor, np.sin(angle) * attention_factor

    rope_table = wrapped("rope_table", rope_table)

    def rope(
        x: Any, positions: Any, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Any = None,
        length: int | None = None, inverse: bool = False, lanes: str = "leading",
    ) -> Any:  # fmt: skip
        dim = rotary_dim or x.shape[-1]
        inv_freq, factor = f["rope_frequencies"](dim, base=base, scaling=scaling, length=length)
        cos, sin = rope_table(positions, inv_freq, attention_factor=factor)
        return f["apply_rope"](x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)

    def rotation_matrix(position: Any, dim: int, /, *, dtype: Any = None, **options: Any) -> Any:
        lanes = np.broadcast_to(np.eye(dim), (*position.shape, dim, dim)).copy()  # row j is where lane j goes
        return np.swapaxes(rope(lanes, position[..., None], **options), -1, -2)

    def mrope(
        x: Any, positions: Any, /, *, sections: Any, arrangement: str, layout: str, base: float, scaling: Any = None,
        length: int | None = None, inverse: bool = False,
    ) -> Any:  # fmt: skip
        inv_freq, factor = f["rope_frequencies"](2 * sum(sections), base=base, scaling=scaling, length=length)
        options = {"sections": sections, "arrangement": arrangement, "attention_factor": factor}
        cos, sin = f["axial_table"](positions, inv_freq, dtype=np.float64, **options)
        return f["apply_rope"](x, cos, sin, layout=layout, inverse=inverse)

    def xpos(
        x: Any, positions: Any, /, *, role: str, layout: str, base: float, centre: int, rotary_dim: int | None = None,
        scale_base: float = 512.0, gamma: float = 0.4,
    ) -> Any:  # fmt: skip
        dim = rotary_dim or x.shape[-1]
        inv_freq, factor = f["rope_frequencies"](dim, base=base)
        cos, sin = rope_table(positions, inv_freq, attention_factor=factor)
        scales = f["xpos_scales"](positions, dim, role=role, centre=centre, scale_base=scale_base, gamma=gamma)
        return f["apply_rope"](x, cos * scales, sin * scales, layout=layout)

    def axial_rope(
        x: Any, positions: Any, /, *, dims: Any, base: float, allocation: str, arrangement: str, layout: str,
        unit: str = "radians", inverse: bool = False,
    ) -> Any:  # fmt: skip
        inv_freq = f["axial_frequencies"](dims, base=base, allocation=allocation, unit=unit)
        options = {"sections": [dim // 2 for dim in dims], "arrangement": arrangement}
        inv_freq = f["axial_turns"](inv_freq, **options)
        cos, sin = f["axial_table"](positions, inv_freq, dtype=np.float64, **options)
        if layout != "half_by_axis":
            return f["apply_rope"](x, cos, sin, layout=layout, inverse=inverse)
        parts, end = [], 0
        for dim in dims:
            start, end = end, end + dim
            own = (..., slice(start // 2, end // 2))
            parts.append(f["apply_rope"](x[..., start:end], cos[own], sin[own], layout="half", inverse=inverse))
        return np.concatenate([*parts, x[..., end:]], axis=-1)

    def mixed_rope(
        x: Any, positions: Any, frequencies: Any, /, *, layout: str, inverse: bool = False
    ) -> Any:  # fmt: skip
        cos, sin = f["mixed_table"](positions, frequencies, dtype=np.float64)
        return f["apply_rope"](x, cos, sin, layout=layout, inverse=inverse)

    def liere(x: Any, positions: Any, generators: Any, /, *, inverse: bool = False) -> Any:
        turns = f["liere_rotations"](positions, generators, dtype=np.float64)
        turns = np.swapaxes(turns, -1, -2) if inverse else turns
        blocks, n = turns.shape[-3:-1]
        turned = turns @ x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n, 1)
        return np.concatenate([turned.reshape(*x.shape[:-1], blocks * n), x[..., blocks * n :]], axis=-1)

    def cayley_string(x: Any, positions: Any, skew: Any, frequencies: Any, /, *, form: str) -> Any:
        basis = f["cayley"](skew, dtype=np.float64)
        first = np.swapaxes(basis, -1, -2) if form == "conjugate" else basis
        cos, sin = f["mixed_table"](positions, frequencies, dtype=np.float64)
        turned = f["apply_rope"]((first @ x[..., None])[..., 0], cos, sin, layout="interleaved")
        return (basis @ turned[..., None])[..., 0] if form == "conjugate" else turned

    def alibi(q_positions: Any, k_positions: Any, /, *, heads: int, form: str, dtype: Any = None) -> Any:
        return f["alibi_product"](q_positions, k_positions, f["alibi_slopes"](heads), form=form)

    def t5_bias(q_positions: Any, k_positions: Any, table: Any, /, *, bidirectional: bool, max_distance: int = 128) -> Any:
        relative = k_positions[..., None, :] - q_positions[..., :, None]
        options = {"bidirectional": bidirectional, "num_buckets": table.shape[0], "max_distance": max_distance}
        return f["t5_rows"](table, f["t5_buckets"](relative, **options))

    def attention(
        q: Any, k: Any, v: Any, /, *, bias: Any = None, mask: Any = None, scale: float | None = None, sinks: Any = None
    ) -> Any:
        return f["softmax"](f["attention_logits"](q, k, bias=bias, scale=scale), v, mask, sinks=sinks)

    return {
        "rope_table": rope_table,
        "rope": wrapped("rope", rope),
        "rotation_matrix": wrapped("rotation_matrix", rotation_matrix),
        "mrope": wrapped("mrope", mrope),
        "xpos": wrapped("xpos", xpos),
        "axial_rope": wrapped("axial_rope", axial_rope),
        "mixed_rope": wrapped("mixed_rope", mixed_rope),
        "liere": wrapped("liere", liere),
        "cayley_string": wrapped("cayley_string", cayley_string),
        "alibi": wrapped("alibi", alibi),
        "t5_bias": wrapped("t5_bias", t5_bias),
        "attention": wrapped("attention", attention),
        **{op: wrapped(op, _extension(op, f)) for op in EXTENSIONS},
    }


def _extension(op: str, f: Operations) -> Function:
    """Return the scores of a length extension, built from its map of relative positions."""
    parameters = REGISTRY[f"{op}_distances"].domains

    def extension(q: Any, k: Any, q_positions: Any, k_positions: Any, /, **options: Any) -> Any:
        own = {name: options.pop(name) for name in parameters if name in options}
        apart = f[f"{op}_distances"](q_positions, k_positions, **own)
        return f["turned_products"](q, k, apart, **options)

    return extension


def angles(p: Any, inv_freq: Any, /) -> Any:
    """Return angles in radians."""
    return np.asarray(p, dtype=np.float64)[..., None] * inv_freq


def axial_turns(inv_freq: Real, /, *, sections: Any, arrangement: str) -> Any:
    """Return frequencies that stand one axis after the other in the order of pairs."""
    return inv_freq[in_turn(axes_of_pairs("axial_rope", sections, arrangement))]


def alibi_product(q: Any, k: Any, slopes: Any, /, *, form: str) -> Any:
    """Return ALiBi's bias from its slopes."""
    slopes = slopes[:, None, None]
    if form == "key":
        return slopes * k[..., None, None, :]
    apart = (q[..., :, None] - k[..., None, :])[..., None, :, :]
    return -slopes * (np.abs(apart) if form == "distance" else apart)


def t5_rows(table: Real, buckets: Any) -> Any:
    """Return T5's bias from its buckets."""
    return np.moveaxis(table[buckets], -1, -3)


def turned_products(
    q: Real, k: Real, apart: Any, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Any = None,
    length: int | None = None,
) -> Real:  # fmt: skip
    """Return the products of queries with keys that are turned back by `apart`, which has an entry for every two."""
    rotation = {"layout": layout, "base": base, "rotary_dim": rotary_dim, "scaling": scaling, "length": length}
    keys = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if k.ndim > 2 and k.shape[-3] else k
    pairs = np.broadcast_shapes((*q.shape[:-1], 1), (*keys.shape[:-2], 1, keys.shape[-2]))
    turned = posref.rope(
        np.broadcast_to(keys[..., None, :, :], (*pairs, k.shape[-1])), np.broadcast_to(-apart, pairs), **rotation
    )
    unturned = posref.rope(q, np.zeros(q.shape[:-1]), **rotation)  # the factor, and the lanes of the layout
    return np.sum(unturned[..., :, None, :] * turned, axis=-1)


def softmax(logits: Real, v: Real, mask: Any, masked: float = -np.inf, sinks: Any = None) -> Any:
    """Return the mean of values weighted by the softmax, of which sinks take a share; a row with nothing allowed is zero."""
    if mask is not None:
        logits = np.where(mask, logits, masked)
    sink = np.asarray(-np.inf) if sinks is None else np.asarray(sinks)[:, None, None][(0 if logits.ndim == 2 else ...)]
    top = np.maximum(np.max(logits, axis=-1, keepdims=True), sink)
    top = np.where(np.isfinite(top), top, 0.0)
    exps = np.exp(logits - top)
    total = np.sum(exps, axis=-1, keepdims=True) + np.exp(sink - top)
    return (exps / np.where(total == 0, 1.0, total)) @ spread_heads(v, logits)


def spread_heads(v: Real, logits: Real) -> Real:
    """Return values with every head repeated in a block, so that there are as many as of `logits`."""
    return np.repeat(v, logits.shape[-3] // v.shape[-3], axis=-3) if v.ndim > 2 and v.shape[-3] else v


# ---- ways to wrap an operation --------------------------------------------------------------------------------------------
def before(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> Wrap:
    """Return a wrap that changes the arguments."""

    def wrap(function: Function) -> Function:
        def deviating(*args: Any, **options: Any) -> Any:
            args, options = change(*args, **options)
            return function(*args, **options)

        return deviating

    return wrap


def after(change: Callable[..., Any]) -> Wrap:
    """Return a wrap that changes the result: `change` takes it and the call's arguments."""
    return lambda function: lambda *args, **options: change(function(*args, **options), *args, **options)


def argument(index: int, change: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes one positional argument."""
    return before(lambda *args, **options: ((*args[:index], change(args[index]), *args[index + 1 :]), options))


def option(**changes: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes options that are given, each by a function of its value."""
    return before(lambda *args, **options: (args, options | {n: c(options[n]) for n, c in changes.items() if n in options}))


def narrowed(dtype: str) -> Callable[[Any], Any]:
    """Return a function that sends numbers through a narrower dtype."""
    return lambda x: round_to(np.asarray(x, dtype=np.float64), dtype)


def always(value: Any) -> Callable[[Any], Any]:
    """Return a function of one constant value."""
    return lambda _: value

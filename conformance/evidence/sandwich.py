"""Sandwich: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.relative import K_OFFSETS, Q_OFFSETS
from .tools import Case, Function, Real, after, argument, around, cases_of, deviations_of, held, option, pairs
from .tools.hints import ARANGE, FROM_ZERO, INTEGERS, KEEP_FLOAT32

OP = "sandwich"
USUAL: dict[str, Any] = {"heads": 3, "dim": 8}
KERNEL = ({"heads": 33, "dim": 16},)

FAR = (0, 1, 255, 257, 2047, 2049, 65537, 131071)

_cases = cases_of(OP)


def _case(name: str, q: Any, k: Any, heads: int, dim: int, comment: str = "", **rest: Any) -> Case:
    """Return a case of sandwich."""
    base = {"base": rest.pop("base")} if "base" in rest else {}
    name = name if "/" in name else f"cosines/{name}"
    return _cases(name, {"heads": heads, "dim": dim, **base}, {"q_positions": q, "k_positions": k}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", (2, 3), (0, 2, 1, 3, 6), 4, 8, tier="smoke"),
        _case("rows", Q_OFFSETS, K_OFFSETS, 3, 20, "(B, Q) and (B, K)"),
        _case("nemo", (1023, 5), (0, 1, 5, 100, 700, 1023), 12, 64, "12 heads of size 64"),
        _case("width-128", (511,), (0, 1, 200, 410, 510, 511), 12, 128),
        _case("far", (0, 2049), FAR, 3, 16),
        _case("two-channels", (3, 4), (0, 4, 9), 2, 2, "one frequency: 1/base"),
        _case("base-100", (3, 90), (0, 4, 9, 80), 3, 8, base=100.0),
        _case("fractional", (0.5, 7.25), (1.75, 0.25, 3.0), 4, 8),
        _case("refused/odd", (2, 3), (0, 1, 2), 3, 7, "a sine and a cosine for each frequency", kind="reject"),
        _case("refused/no-heads", (2, 3), (0, 1, 2), 0, 8, "at least one head", kind="reject"),
        *pairs(OP, USUAL),
    )


def _linear(q: Any, k: Any, frequencies: Real, /, **options: Any) -> Real:
    """Return the sum of distance times frequency."""
    return (q[..., :, None] - k[..., None, :])[..., None] @ np.sum(frequencies, keepdims=True)


@around
def _future_zero(function: Function, q: Any, k: Any, frequencies: Real, /, **options: Any) -> Real:
    apart = np.maximum(q[..., :, None] - k[..., None, :], 0)
    return np.sum(np.cos(apart[..., None] * frequencies), axis=-1)


def _ratio(change: Any) -> Any:
    """Return a wrap that changes the bias of head h of H, which was divided by 8h/H."""

    def changed(out: Real, *args: Any, heads: int, **options: Any) -> Real:
        h = np.arange(1, heads + 1)[:, None, None]
        return change(out, h, heads)

    return after(changed)


_deviation = deviations_of(OP)
_frequencies = deviations_of("sandwich_frequencies")
_cosines = deviations_of("sandwich_cosines")
RATIO = "Divide by 8h/H, with h counted from 1 and H the number of heads of the whole model."
FIRST = "The exponents are 2k/d with k from 1 to d/2."

DEVIATIONS = (
    _cosines("sandwich-linear", "the cosine is left out: the bias is linear in the distance", lambda f: _linear,
             hint="Take the cosine of distance times frequency before the sum."),
    _cosines("sandwich-sines", "sines are left out: the product is of the cosines alone",
             lambda f: lambda q, k, w, /, **o: np.cos(q[..., None] * w) @ np.swapaxes(np.cos(k[..., None] * w), -1, -2),
             hint="A sinusoidal encoding has a sine and a cosine for each frequency."),
    _cosines("sandwich-future-zero", "keys after the query have distance 0", _future_zero,
             hint="A cosine is the same on both sides: look for a tril.", seen_in="NVIDIA/NeMo@000b931"),
    _frequencies("sandwich-from-one", "frequencies begin with 1, as those of a sinusoidal encoding",
                 lambda f: lambda d, b, c, /: np.power(float(b), -np.arange(0, d, 2) / d), hint=FIRST),
    _frequencies("sandwich-one-fewer", "the last frequency is missing",
                 lambda f: lambda d, b, c, /: np.power(float(b), -np.arange(2, d, 2) / d), hint=FIRST),
    _frequencies("sandwich-base-fixed", "the base is always 10000",
                 lambda f: lambda d, b, c, /: np.power(1e4, -np.arange(2, d + 1, 2) / d), hint="Pass the base on."),
    _deviation("sandwich-unshifted", "d/2 is not subtracted: at distance 0 the bias is not 0",
               lambda f: lambda *a, heads, dim, **o: f(*a, heads=heads, dim=dim, **o)
               + dim / 2 * heads / (8 * np.arange(1, heads + 1)[:, None, None]),
               hint="Subtract d/2 from the sum. A softmax hides this."),
    _deviation("sandwich-multiplied", "the ratio 8h/H multiplies the bias",
               _ratio(lambda out, h, heads: out * (8 * h / heads) ** 2), hint=RATIO),
    _deviation("sandwich-ratio-from-zero", "heads are counted the other way round",
               _ratio(lambda out, h, heads: out * h / (heads + 1 - h)), hint=RATIO),
    _deviation("sandwich-uncompressed", "all heads have the bias of the ratio 1",
               _ratio(lambda out, h, heads: out * 8 * h / heads), hint=RATIO),
    _deviation("sandwich-width-of-heads", "the width is twice that of the caller", option(dim=lambda d: 2 * d),
               hint="d is the number of channels, of which there are d/2 pairs."),
    _deviation("sandwich-off-by-one", "distances are one too large on the left", argument(0, lambda q: q + 1), hint=FROM_ZERO),
    _deviation("sandwich-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), hint=ARANGE),
    _deviation("sandwich-positions-bfloat16", "positions are held in bfloat16", held("bfloat16", 0, 1), hint=INTEGERS),
    _deviation("sandwich-bfloat16", "the result is held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32),
)  # fmt: skip

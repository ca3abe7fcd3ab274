"""Sinusoidal position encoding: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, Step, after, always, around, deviations_of, held, option, places
from .tools.hints import BRANCH, DEFAULT, KEEP_FLOAT32, ORDER

USUAL: dict[str, Any] = {"dim": 6, "layout": "interleaved"}
WITH_OPTION = {"odd": {"dim": 7, "odd": "zeros"}}
KERNEL = tuple({"dim": 96, "layout": layout} for layout in ("interleaved", "sin_cos", "cos_sin"))

NEAR = (0, 1, 2, 7, 63)
FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 1048575)
UNSORTED = (5, 0, 0, 9, 2)
OFFSETS = ((3, 4, 5, 6, 7), (257, 258, 259, 260, 261), (0, 1, 2, 3, 4))  # a row each


def _case(
    name: str, positions: Any, dim: int, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of sinusoidal."""
    return Case(f"sinusoidal/{name}", {"dim": dim, **params}, {"positions": positions}, comment, kind, tier)


def _sequence(name: str, comment: str, *calls: tuple[dict[str, Any], Any]) -> Case:
    """Return a case of several calls of sinusoidal."""
    steps = tuple(Step(params, {"positions": positions}) for params, positions in calls)
    return Case(f"sinusoidal/sequence/{name}", comment=comment, kind="sequence", steps=steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("interleaved/small", (0, 1, 5), 8, tier="smoke", layout="interleaved"),
        _case("interleaved/far", FAR, 10, layout="interleaved"),
        _case("interleaved/endpoint", NEAR, 20, layout="interleaved", endpoint=True),
        _case("interleaved/scalar", 77, 14, "a position without axes", layout="interleaved"),
        _case("sin-cos/small", UNSORTED, 6, layout="sin_cos"),
        _case("sin-cos/far", FAR, 12, layout="sin_cos", base=1e6),
        _case("sin-cos/tensor2tensor", (0, 7, 255), 512, layout="sin_cos", endpoint=True),
        _case("sin-cos/whisper", (0, 7, 1499), 384, "Whisper tiny: 1500 rows", layout="sin_cos", endpoint=True),
        _case("cos-sin/timesteps-endpoint", (999.5, 0.125, 3.0), 48, layout="cos_sin", endpoint=True),
        _case("positions/negative-halves", (-2, 0, -63, -4096, 1), 12, layout="sin_cos"),
        _sequence("short-after-long", "a long call, a short one, a long one",
                  *(({"dim": 10, "layout": "interleaved"}, tuple(range(n))) for n in (21, 3, 21))),
        _sequence("offset", "the same number of positions, elsewhere; then another width",
                  ({"dim": 6, "layout": "sin_cos"}, NEAR), ({"dim": 6, "layout": "sin_cos"}, (7, 8, 9, 10, 11)),
                  ({"dim": 8, "layout": "sin_cos"}, NEAR)),
        _case("odd/diffusers", (999.5, 20.25, 3.0), 11, layout="cos_sin", odd="zeros", base=500.0),
        _case("odd/zeros-three", (0, 1, 40), 3, "one pair and a column of zeros", layout="sin_cos", odd="zeros"),
        _case("odd/truncated-cos-sin", (0, 2, 9), 5, "the last sine is cut", layout="cos_sin", odd="truncated"),
        _case("odd/truncated-endpoint", NEAR, 13, layout="interleaved", endpoint=True, odd="truncated"),
        _case("odd/roformer-far", FAR, 15, layout="sin_cos", odd="extra_sine", base=2e4),
        _case("odd/even", (0, 3, 70), 10, "without effect", layout="sin_cos", odd="extra_sine"),
        _case("scale/mlx", NEAR, 18, "sqrt(2/18)", layout="sin_cos", endpoint=True, scale=0.3333333333333333),
        _case("scale/x-transformers", (0, 1, 511, 2049), 20, layout="sin_cos", scale=20**-0.5),
        _case("scale/interleaved", (0.5, 2.75, 63.25), 12, layout="interleaved", scale=2.5),
        _case("scale/odd", OFFSETS, 9, layout="cos_sin", odd="zeros", scale=8.0),
        _case("refused/odd-word", (0, 1, 5), 7, "no such rule", kind="reject", layout="sin_cos", odd="pad"),
        _case("refused/scale", (0, 1, 5), 6, "zero would erase", kind="reject", layout="sin_cos", scale=0.0),
        _case("refused/odd-endpoint-three", (0, 1, 5), 3, "d/2 - 1 divides by zero", kind="reject",
              layout="sin_cos", endpoint=True, odd="zeros"),
        _case("refused/odd", (0, 1, 5), 7, "libraries pad, slice or add a sine", kind="reject", layout="sin_cos"),
        _case("refused/layout", (0, 1, 5), 6, "no such layout", kind="reject", layout="concat"),
        _case("refused/endpoint-pair", (0, 1, 5), 2, "d/2 - 1 divides by zero", kind="reject", layout="sin_cos", endpoint=True),
        *places("sinusoidal", "positions", USUAL),
    )  # fmt: skip


def _pairs_swapped(out: Real, *args: Any, layout: str, **options: Any) -> Real:
    half = out.shape[-1] // 2
    if layout == "interleaved":
        pairs = out[..., : 2 * half].reshape(*out.shape[:-1], half, 2)[..., ::-1]
        return np.concatenate([pairs.reshape(*out.shape[:-1], 2 * half), out[..., 2 * half :]], axis=-1)
    return np.concatenate([out[..., half:], out[..., :half]], axis=-1)


def _halves_swapped(out: Real, *args: Any, layout: str, **options: Any) -> Real:
    return out if layout == "interleaved" else _pairs_swapped(out, layout=layout)


@around
def _cos_exponent(
    function: Function, p: Any, dim: int, /, *, layout: str, base: float = 10_000.0, endpoint: bool = False, **rest: Any
) -> Any:
    """Every column has its own exponent."""
    if dim % 2:
        return function(p, dim, layout=layout, base=base, endpoint=endpoint, **rest)
    half, step = dim // 2, 1 / (dim // 2 - 1) if endpoint else 2 / dim
    options = {"layout": "sin_cos", "base": base, "endpoint": endpoint, "scale": rest.get("scale", 1.0), "dtype": np.float64}
    sin, cos = function(p, dim, **options)[..., :half], function(p * base ** (-step / 2), dim, **options)[..., half:]
    if layout == "interleaved":
        return np.stack([sin, cos], axis=-1).reshape(*sin.shape[:-1], dim)
    return np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)


def _zero_first(out: Real, p: Any, dim: int, /, *, odd: str = "refused", **options: Any) -> Real:
    """The first column holds the zeros that belong in the last."""
    return np.roll(out, 1, axis=-1) if dim % 2 and odd == "zeros" else out


@around
def _angle_scaled(function: Function, p: Any, dim: int, /, *, scale: float = 1.0, **options: Any) -> Any:
    return function(p if scale == 1 else p * scale, dim, **options)


_deviation = deviations_of("sinusoidal")

DEVIATIONS = (
    _deviation("sin-cos-exchanged", "sines and cosines are exchanged", after(_pairs_swapped), hint=ORDER,
               seen_in="flashinfer#3819, diffusers#1369", one_of="sinusoid"),
    _deviation("sinusoid-halves-exchanged", "the half with sines and the half with cosines are exchanged",
               after(_halves_swapped), hint=ORDER, seen_in="flashinfer#3819", one_of="sinusoid"),
    _deviation("sinusoid-interleaved", "sines and cosines are always interleaved", option(layout=always("interleaved")),
               hint=BRANCH, seen_in="multidim-positional-encoding#20", one_of="sinusoid"),
    _deviation("sinusoid-concatenated", "sines always come first, then cosines", option(layout=always("sin_cos")), hint=BRANCH,
               seen_in="tensor2tensor#1423", one_of="sinusoid"),
    _deviation("sinusoid-cos-exponent", "the cosine of a pair has the exponent (2i + 1)/d", _cos_exponent,
               hint="The code lacks 2 * (i // 2).", seen_in="the TensorFlow tutorial's slip"),
    _deviation("endpoint-always", "the exponent is always i/(d/2 - 1)",
               lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": dim > 3})), hint=BRANCH,
               seen_in="hojonathanho/diffusion#15", one_of="endpoint"),
    _deviation("endpoint-never", "the exponent is always 2i/d",
               lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": False})), hint=BRANCH, one_of="endpoint"),
    _deviation("sinusoid-base-10000", "the base is always 10000",
               lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"base": 10000.0})), hint=DEFAULT, seen_in="croco#44"),
    _deviation("odd-as-zeros", "an odd width always gets a column of zeros", option(odd=always("zeros")), hint=BRANCH),
    _deviation("odd-truncated", "an odd width is always cut from the next even one", option(odd=always("truncated")),
               hint=BRANCH),
    _deviation("odd-extra-sine", "an odd width always keeps its own exponents and has one more sine",
               option(odd=always("extra_sine")), hint=BRANCH),
    _deviation("odd-zero-first", "the column of zeros is the first", after(_zero_first), hint="Pad after the last column."),
    _deviation("sinusoid-unscaled", "the result is not scaled", option(scale=always(1.0)), hint=DEFAULT),
    _deviation("sinusoid-angle-scaled", "the scale multiplies positions, not the result", _angle_scaled,
               hint="Multiply sines and cosines, not the positions."),
    _deviation("sinusoid-bfloat16", "the table is held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32,
               seen_in="keras-hub's compute_dtype"),
)  # fmt: skip

"""Shift matrix of sinusoids: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, after, always, argument, cases_of, deviations_of, held, option, places
from .tools.hints import BRANCH, DEFAULT, FRACTIONS, INTEGERS

USUAL: dict[str, Any] = {"dim": 4, "layout": "sin_cos"}
KERNEL: tuple[dict[str, Any], ...] = ({"dim": 16, "layout": "sin_cos"},)
KERNEL_SIZES: dict[str, Any] = {}

_shift = cases_of("sinusoidal_shift")


def _case(name: str, offsets: Any, dim: int, layout: str, comment: str = "", **rest: Any) -> Case:
    kept = {key: rest.pop(key) for key in ("base", "endpoint") if key in rest}
    return _shift(name, {"dim": dim, "layout": layout, **kept}, {"offsets": offsets}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("interleaved/small", (2, 1, 5), 6, "interleaved", tier="smoke"),
        _case("interleaved/transformer", (40,), 64, "interleaved", "a head's width"),
        _case("interleaved/endpoint", (1, 7), 8, "interleaved", endpoint=True),
        _case("sin-cos/base", (3, 20), 10, "sin_cos", base=500.0),
        _case("sin-cos/endpoint", (3, 20), 6, "sin_cos", endpoint=True, base=2e4),
        _case("cos-sin/scalar", 7, 6, "cos_sin", "one offset, without axes"),
        _case("cos-sin/one-pair", (1, 40), 2, "cos_sin"),
        _case("refused/odd", (0, 1, 5), 7, "sin_cos", "a sine without its cosine", kind="reject"),
        _case("refused/endpoint", (0, 1, 5), 2, "sin_cos", "d/2 - 1 divides by zero", kind="reject", endpoint=True),
        *places("sinusoidal_shift", "offsets", {"dim": 4, "layout": "interleaved"}),
    )


_deviation = deviations_of("sinusoidal_shift")

DEVIATIONS = (
    _deviation("sinusoidal-shift-back", "the matrix is transposed: it shifts by -k",
               after(lambda out, *args, **options: np.swapaxes(out, -1, -2)),
               hint="With sin_cos the sine stands to the right of the cosine."),
    _deviation("sinusoidal-shift-sin-cos", "sines always come first, then cosines", option(layout=always("sin_cos")),
               hint=BRANCH),
    _deviation("sinusoidal-shift-interleaved", "columns are always interleaved", option(layout=always("interleaved")),
               hint=BRANCH),
    _deviation("sinusoidal-shift-base-10000", "the base is always 10000", option(base=always(10000.0)), hint=DEFAULT),
    _deviation("sinusoidal-shift-endpoint-never", "the exponent is always 2i/d", option(endpoint=always(False)), hint=BRANCH),
    _deviation("sinusoidal-shift-truncated", "offsets are truncated to integers", argument(0, np.trunc), hint=FRACTIONS),
    _deviation("sinusoidal-shift-distance", "negative offsets lose their sign", argument(0, np.abs),
               hint="Offsets may be negative: look for an abs()."),
    _deviation("sinusoidal-shift-bfloat16", "offsets are held in bfloat16", held("bfloat16", 0), hint=INTEGERS),
    _deviation("sinusoidal-shift-identity", "offsets are zero", argument(0, lambda k: 0 * k),
               hint="The offset does not reach the angles."),
)  # fmt: skip

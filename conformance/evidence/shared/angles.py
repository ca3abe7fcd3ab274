"""Known mistakes of angles, wherever an operation takes cosines and sines of them (`posref.core.angles`)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tools.deviation import Deviation, Function, Real, Wrap, narrowed, tf32
from ..tools.hints import TENSOR_CORES

AUTOCAST = "Multiply position and frequency in float32, also under autocast."
REDUCTION = "A fast sine (fast-math, __sinf) reduces angles coarsely: use the accurate one, or reduce them in higher precision."
Change = Callable[[Any], Real]


def _wide(x: Any) -> Real:
    return np.asarray(x, dtype=np.float64)


def _angles(angle: Change, factor: Change = _wide, *, sums: bool = True) -> dict[str, Wrap]:
    """
    Return wraps in which angles are changed by `angle`, and what is multiplied to make them by `factor`.

    Without `sums` only angles of one product are meant.
    """

    def made(product: Callable[[Any, Any], Real]) -> Wrap:
        def deviating(x: Any, y: Any, /, *, phases: Any = 0.0, **rest: Any) -> tuple[Real, Real]:
            angles = angle(product(factor(x), factor(y)) + (0.0 if phases is None else factor(phases)))
            return np.cos(angles), np.sin(angles)

        def wrap(_: Function) -> Function:
            return deviating

        return wrap

    wraps = {"cos_sin_of_pairs": made(lambda p, f: p * f)}
    others = {
        "cos_sin_of_sums": made(lambda p, f: np.sum(p * f, axis=0)),
        "cos_sin_of_half_turns": made(lambda p, f: np.pi * np.sum(p * f, axis=0)),
    }
    return wraps | others if sums else wraps


def _reduced(*, fused: bool) -> Change:
    """Return the loss of whole turns in float32, by one constant: a - round(a / 2 pi) 2 pi."""
    single = narrowed("float32")
    turn = float(single(2 * np.pi))

    def change(angle: Any) -> Real:
        angle = single(angle)
        whole = np.rint(single(angle * float(single(1 / (2 * np.pi)))))
        return single(angle - (whole * turn if fused else single(whole * turn)))

    return change


DEVIATIONS = (
    Deviation("angles-bfloat16", "angles are formed in bfloat16", _angles(narrowed("bfloat16")), hint=AUTOCAST,
              seen_in="MLX#2791"),
    Deviation("angles-autocast", "positions, frequencies and their products are held in bfloat16",
              _angles(narrowed("bfloat16"), narrowed("bfloat16")), hint=AUTOCAST),
    Deviation("angles-float16", "angles are formed in float16", _angles(narrowed("float16")), hint=AUTOCAST,
              seen_in="keras-hub#1508"),
    Deviation("angles-tf32", "positions and frequencies are multiplied in TensorFloat-32", _angles(_wide, tf32),
              hint=TENSOR_CORES, seen_in="transformers#48428"),
    Deviation("angles-reduced", "angles lose their whole turns in float32, by one constant 2 pi",
              _angles(_reduced(fused=False), narrowed("float32"), sums=False), hint=REDUCTION),
    Deviation("angles-reduced-fused", "angles lose their whole turns in float32, by one constant 2 pi and a fused product",
              _angles(_reduced(fused=True), narrowed("float32"), sums=False), hint=REDUCTION),
)  # fmt: skip

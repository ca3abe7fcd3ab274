"""Positions from a padding mask: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.position_ids import counts, id_forms
from .tools import Case, Function, after, around, cases_of, deviations_of

USUAL: dict[str, Any] = {"padding": 0}
KERNEL: tuple[dict[str, Any], ...] = ({"padding": 0},)
KERNEL_SIZES: dict[str, Any] = {}

LEFT = ((0, 0, 1, 1, 1), (0, 1, 1, 1, 1), (1, 1, 1, 1, 1))


def _mask(values: Any) -> dict[str, Any]:
    return {"mask": np.asarray(values) > 0}


_case = cases_of("positions_from_mask")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("left/zero", {"padding": 0}, _mask(LEFT), "transformers' generation", tier="smoke"),
        _case("all/padding", {"padding": 3}, _mask(np.zeros((2, 4)))),
        _case("refused/float", {"padding": 0}, {"mask": np.ones((2, 3))}, "a mask of reals", kind="reject"),
        *id_forms("positions_from_mask", "mask", ((0, 0, 1, 1, 1, 1), (0, 1, 1, 1, 0, 0)), USUAL),
    )


@around
def _first_row(function: Function, x: Any, /, **options: Any) -> Any:
    """Return the result of the first row for every row."""
    out = function(x, **options)
    return np.broadcast_to(out[..., :1, :], out.shape).copy() if out.ndim > 1 and out.size else out


FILL = "Padding has the position that was asked for."
_deviation = deviations_of("positions_from_mask")

DEVIATIONS = (
    _deviation("ids-padding-counted", "padding is counted: positions are indices in the row",
               after(lambda out, mask, **options: np.broadcast_to(np.arange(out.shape[-1]), out.shape).copy()),
               hint="Count the tokens of the mask; a plain arange is right without padding alone."),
    _deviation("ids-from-one", "positions begin at 1", after(lambda out, mask, **options: out + (np.asarray(mask) != 0)),
               hint="The sum includes the token itself: subtract 1."),
    _deviation("ids-from-one-not-filled", "positions begin at 1, and padding has the position of the token before it",
               after(lambda out, mask, **options: counts(mask)), hint="The sum includes the token itself: subtract 1. " + FILL),
    _deviation("ids-padding-not-filled", "padding has the position of the token before it",
               after(lambda out, mask, **options: counts(mask) - 1), hint=FILL),
    _deviation("ids-padding-clamped", "padding has the position of the token before it, at least 0",
               after(lambda out, mask, **options: np.maximum(counts(mask) - 1, 0)),
               hint=FILL),
    _deviation("ids-padding-one", "padding always has position 1",
               after(lambda out, mask, **options: np.where(np.asarray(mask) != 0, out, 1)), hint="Look for a fixed fill of 1."),
    _deviation("ids-first-row", "all rows have the positions of the first", _first_row, hint="Each row has its own padding."),
)  # fmt: skip

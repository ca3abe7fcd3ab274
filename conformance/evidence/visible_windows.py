"""Compressed windows that a query sees: cases and known mistakes."""

from typing import Any

from .shared.position_ids import id_forms
from .tools import Case, after, cases_of, deviations_of

USUAL: dict[str, Any] = {"rate": 4}
KERNEL: tuple[dict[str, Any], ...] = ({"rate": 4}, {"rate": 16})
KERNEL_SIZES: dict[str, Any] = {"Q": 257}

_case = cases_of("visible_windows")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("four/small", {"rate": 4}, {"q_positions": (0, 2, 3, 4, 7, 8, 11)}, tier="smoke"),
        _case("deepseek-v4/far", {"rate": 128}, {"q_positions": (126, 127, 128, 131071, 131072, 1048575)}),
        _case("three/decode", {"rate": 3}, {"q_positions": (8,)}),
        _case("refused/rate", {"rate": 0}, {"q_positions": (8,)}, "a window of no tokens", kind="reject"),
        *id_forms("visible_windows", "q_positions", ((0, 3, 4, 7, 9, 11), (1, 2, 6, 8, 10, 15)), USUAL),
    )


_deviation = deviations_of("visible_windows")

DEVIATIONS = (
    _deviation("windows-begun", "the query sees its own window before that is complete",
               after(lambda out, p, *, rate: p // rate + 1), hint="A window is compressed once its last token is there."),
    _deviation("windows-late", "the last token of a window does not see it", after(lambda out, p, *, rate: p // rate),
               hint="Query m has seen m + 1 tokens."),
)  # fmt: skip

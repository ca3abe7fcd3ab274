"""Relative position values (Shaw et al.): cases and known mistakes."""

from typing import Any

from ..model import Case
from .shared.relative import WINDOW, shaw_cases, shaw_forms, shaw_gradients

USUAL: dict[str, Any] = WINDOW
KERNEL: tuple[dict[str, Any], ...] = ({"left": 16, "right": 16, "order": "key_minus_query"},)

VALUE_AXES = {"weights": "qk", "v": "kd", "value_table": "nd"}


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *shaw_cases("shaw_values", VALUE_AXES),
        *shaw_forms("shaw_values", {"weights": "qk", "v": "kd", "value_table": "nd"}),
        *shaw_gradients("shaw_values", {"weights": "qk", "v": "kd", "value_table": "nd"}, "qd"),
    )

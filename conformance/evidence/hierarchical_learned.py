"""Hierarchical learned positions: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, around_with, cases_of, deviations_of, places, reals
from .tools.hints import DEFAULT

USUAL: dict[str, Any] = {"alpha": 0.375}
SIZES: dict[str, Any] = {"N": 13}
KERNEL: tuple[dict[str, Any], ...] = ({"alpha": 0.375},)
KERNEL_SIZES: dict[str, Any] = {"N": 64, "d": 96}

_hierarchical = cases_of("hierarchical_learned")


def _case(
    name: str, positions: Any, table: tuple[int, int], alpha: float | None = None, comment: str = "", *,
    bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    params = {} if alpha is None else {"alpha": alpha}
    inputs = {"positions": np.asarray(positions), "table": reals(f"hierarchical {name}", *table, bits=bits)}
    return _hierarchical(name, params, inputs, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("default/small", (4, 0, 8, 3, 7, 2), (3, 2), tier="smoke"),
        _case("default/bert", (0, 1, 257, 511, 512, 1023, 1025, 131071, 262143), (512, 6),
              comment="512 rows, narrower; up to the last of 262144 positions"),
        _case("alpha/quarter", (0, 5, 9, 24, 17), (5, 4), 0.25),
        _case("alpha/large", (1, 10, 24, 35, 6), (6, 3), 0.75, "the quotient's row weighs more"),
        _case("alpha/scalar", 11, (4, 12), 0.2, "a position without axes"),
        _case("alpha/one-row", (0, 0), (1, 5), 0.7, "a table of one row has one position"),
        _case("refused/half", (0, 1), (5, 6), 0.5, "in + j and jn + i would be one", kind="reject"),
        _case("refused/one", (0, 1), (5, 6), 1.0, "a division by zero", kind="reject"),
        _case("refused/no-rows", (0, 1), (0, 6), 0.4, "there is no row", kind="reject"),
        _case("refused/fraction", (0.5, 1.0), (5, 6), 0.4, "positions are rows", kind="reject"),
        _case("gradient/default", (5, 0, 7), (3, 2), kind="vjp", cotangents={"out": reals("hierarchical default", 3, 2) / 2}),
        _case("gradient/alpha", ((3, 15), (9, 1)), (4, 2), 0.3, bits=24, kind="vjp",
              cotangents={"out": reals("hierarchical alpha", 2, 2, 2, bits=24) / 2}),
        *places("hierarchical_learned", "positions", USUAL, table=reals("hierarchical", 4, 6)),
    )  # fmt: skip


@around_with
def _mixed(change: Any, function: Function, positions: Any, table: Any, /, *, alpha: float = 0.4) -> Any:
    """The formula is another: `change` takes the rows of quotients, of remainders, row 0, and alpha."""
    i, j = np.divmod(positions, len(table))
    return change(table[i], table[j], table[0], alpha)


_deviation = deviations_of("hierarchical_learned")

DEVIATIONS = (
    _deviation("hierarchical-exchanged", "quotient and remainder of a position are exchanged",
               _mixed(lambda x, y, o, a: a * (y - a * o) / (1 - a) + (x - a * o)),
               hint="Position m < n is row m of the table."),
    _deviation("hierarchical-raw-rows", "rows are mixed without first subtracting row 0's share, so trained rows change",
               _mixed(lambda x, y, o, a: a * x + (1 - a) * y), hint="Subtract the share of row 0 first."),
    _deviation("hierarchical-undivided", "the rows, less their share of row 0, are not divided by 1 - alpha",
               _mixed(lambda x, y, o, a: a * (x - a * o) + (1 - a) * (y - a * o)), hint="Divide by 1 - alpha."),
    _deviation("hierarchical-repeated", "positions beyond the table begin at its first row again",
               _mixed(lambda x, y, o, a: y), hint="Row m // n counts as well as row m mod n."),
    _deviation("hierarchical-alpha-fixed", "alpha is always 0.4", lambda f: lambda p, t, /, **o: f(p, t), hint=DEFAULT),
)  # fmt: skip

"""Documents of a packed row: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.position_ids import id_forms
from .tools import Case, Function, after, around_with, cases_of, deviations_of

KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {}

PACKED = ((0, 1, 2, 0, 1, 0, 1, 2, 3), (0, 0, 0, 1, 2, 3, 0, 1, 2))
FORWARD = (5, 6, 7, 9, 10, 300, 301, 302)
_case = cases_of("packed_documents")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("packed/small", {}, {"positions": PACKED}, tier="smoke"),
        _case("packed/forward", {}, {"positions": FORWARD}, "a jump forward begins one too"),
        _case("packed/down", {}, {"positions": (7, 8, 3, 4, 5, 2, 3)}, "no sequence begins at 0"),
        _case("packed/padded", {}, {"positions": PACKED[1]}, "padding at one position breaks up"),
        _case("packed/long", {}, {"positions": np.arange(257) % 64}),
        _case("packed/many", {}, {"positions": np.arange(40) % 3}, "14 documents, more than a small integer counts"),
        _case("packed/far", {}, {"positions": (131070, 131071, 131072, 131072, 1048575, 1048576)}),
        _case("refused/float", {}, {"positions": np.ones((2, 3)) / 2}, "positions of reals", kind="reject"),
        *id_forms("packed_documents", "positions", ((0, 1, 2, 0, 1, 0), (5, 6, 0, 1, 2, 9)), {}),
    )


@around_with
def _begins(change: Any, function: Function, p: Any, /) -> Any:
    """Documents begin where `change` of a position and the one before is true."""
    begins = np.zeros(np.shape(p), dtype=np.int64)
    begins[..., 1:] = change(p[..., 1:], p[..., :-1])
    return np.cumsum(begins, axis=-1)


_deviation = deviations_of("packed_documents")

DEVIATIONS = (
    _deviation("documents-from-one", "sequences are counted from 1", after(lambda out, p: out + 1), hint="The first is 0."),
    _deviation("documents-at-zero", "a sequence begins only at position 0", _begins(lambda p, before: p == 0),
               hint="A chunk may begin at any position; a jump begins a sequence."),
    _deviation("documents-at-decrease", "a sequence begins where positions decrease", _begins(lambda p, before: p < before),
               hint="Equal positions and jumps forward begin a sequence too."),
)  # fmt: skip

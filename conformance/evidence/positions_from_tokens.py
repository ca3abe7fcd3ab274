"""RoBERTa's positions from token ids: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.position_ids import counts, id_forms
from .tools import Case, after, cases_of, deviations_of

USUAL: dict[str, Any] = {"padding_idx": 1}
KERNEL: tuple[dict[str, Any], ...] = ({"padding_idx": 1},)
KERNEL_SIZES: dict[str, Any] = {}

TOKENS = ((0, 42, 7, 9, 1, 1), (1, 1, 0, 5, 33, 2), (0, 1, 5, 1, 6, 2))
_case = cases_of("positions_from_tokens")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("roberta/small", {"padding_idx": 1}, {"tokens": TOKENS}, tier="smoke"),
        _case("roberta/far", {"padding_idx": 1}, {"tokens": (250001, 1, 131072, 65537, 1)}, "ids of XLM-R"),
        _case("other/absent", {"padding_idx": 77}, {"tokens": TOKENS}, "no padding at all"),
        _case("refused/float", {"padding_idx": 1}, {"tokens": np.ones((2, 3)) / 2}, "tokens of reals", kind="reject"),
        *id_forms("positions_from_tokens", "tokens", ((0, 42, 7, 9, 1, 1), (1, 1, 0, 5, 33, 2)), USUAL),
    )


_deviation = deviations_of("positions_from_tokens")

DEVIATIONS = (
    _deviation("rows-from-padding", "the first token has the padding's own row",
               after(lambda out, tokens, *, padding_idx: np.where(np.asarray(tokens) != padding_idx, out - 1, out)),
               hint="Tokens begin one row after the padding's."),
    _deviation("rows-from-one", "the padding's index is not added",
               after(lambda out, tokens, *, padding_idx: out - padding_idx), hint="Tokens begin at padding_idx + 1, not at 1."),
    _deviation("rows-padding-counts", "padding takes the row of the token before it",
               after(lambda out, tokens, *, padding_idx: counts(np.asarray(tokens) != padding_idx) + padding_idx),
               hint="Multiply the sum by the mask before padding_idx is added."),
    _deviation("rows-all-counted", "padding is counted: rows are indices in the sequence",
               after(lambda out, tokens, *, padding_idx: np.broadcast_to(np.arange(out.shape[-1]),
               out.shape) + padding_idx + 1), hint="Sum over tokens that are not padding."),
)  # fmt: skip

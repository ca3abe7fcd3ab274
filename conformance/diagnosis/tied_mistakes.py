"""Makes fresh calls on which tied mistakes differ: those that give the same values in all stored cases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from posref.backends.rounding import round_to

from ..errors import PosrefError
from ..evidence.tools.deviation import Deviation
from ..model import Answer, LoadedCase
from .hypotheses import Hypothesis, Meter, Question, predict, predicted_by, quiet
from .search import orders

Ties = Sequence[Sequence[Deviation]]
LEAST = 2  # mistakes of which one may be refuted; of a single one the definition is the other
FEWEST = 1e-4  # of the largest value: below such a difference rounding may decide


def fitting(ties: Ties, question: Question) -> list[Sequence[Deviation]]:
    """Return the mistakes that give what was found in one case."""
    return [several for several in ties if any(Hypothesis(one, [question]).fits() for one in orders(several))]


def parted(op: str, case: LoadedCase, ties: Ties, claim: str, dtype: str) -> bool:
    """
    Return whether a call tells mistakes apart: if one of them were the implementation's, it would fit and another would not.

    A single mistake is told from the definition. The call needs no expected values; what the definition gives stands for them.
    """
    [call] = case.calls
    with quiet():
        expected = predicted_by(op, call)
        predictions = [predict(orders(several)[0], op, [call])[0] for several in ties]
        others = predictions if len(predictions) > 1 else [expected]
        if (
            not expected
            or any(not _alike(expected, outputs) for outputs in predictions)
            or not _differ([predictions[0], *others])
        ):
            return False
        case = replace(case, calls=(replace(call, expected=expected, widths={}, computed={}),))
        for outputs in predictions:  # no tolerance of a stored call holds here
            rounded = {n: np.asarray(round_to(x, dtype)) if x.dtype.kind == "f" else x for n, x in outputs.items()}
            question = Question(op, Answer(case, dtype, [rounded]), Meter(), failed=True, claim=claim)
            with suppress(PosrefError):  # a decision may be open in this class
                if 0 < len(fitting(ties, question)) < max(len(ties), LEAST):
                    return True
    return False


def _alike(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> bool:
    """Return whether results have the shapes that are expected, and are finite."""
    return all(n in found and found[n].shape == x.shape and np.all(np.isfinite(found[n])) for n, x in expected.items())


def _differ(given: Sequence[dict[str, np.ndarray]]) -> bool:
    """Return whether results differ by more than a rounding."""
    first, *others = given
    return any(
        np.any(np.abs(x - other[n]) > FEWEST * np.max(np.abs(x), initial=0.0)) if x.dtype.kind == "f" else np.any(x != other[n])
        for other in others
        for n, x in first.items()
    )

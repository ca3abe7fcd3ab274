"""
Finds two mistakes in different places: some values match the first, the others the second.

Two mistakes of one function cannot always be nested, as where each replaces it. But what each gives alone is known: where only
one of them would change a value it must be that mistake's, and where both would, either's or that of one within the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evidence.tools.deviation import Deviation, contradict, together
from .hypotheses import Budget, Outputs, Predict, Question, distances, score

PROBES = 12  # failing cases by which mistakes are looked for: small and large ones
LARGEST = 4096  # values of a case that is one of them
CANDIDATES = 32  # mistakes of which pairs are made: those that give most of the wrong values
LEAST = 3  # wrong values that each of two mistakes must give and the other must not
Array = npt.NDArray[Any]
Pair = tuple[Deviation, Deviation]


def side_by_side(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> list[Pair]:
    """Return pairs of mistakes that explain all cases, each by itself some of the wrong values."""
    failing = [q for q in questions if q.failed and q.size <= LARGEST]
    probes = failing[:: max(len(failing) // PROBES, 1)][:PROBES]
    if not probes:
        return []
    wrong = np.concatenate([o.wrong.ravel() for q in probes for o in q.observations])
    flat = [(d, *_flat(d, probes)) for d in budget.within(deviations) if not d.stateful]
    likely = sorted(flat, key=lambda one: -int(np.sum(wrong & one[1] & one[2])))[:CANDIDATES]
    pairs = [
        (a, b) for (a, *of_a), (b, *of_b) in combinations(likely, 2) if not contradict((a, b)) and _share(wrong, of_a, of_b)
    ]
    return [pair for pair in budget.within(pairs) if all(_fits(pair, q) for q in questions)]


def _flat(deviation: Deviation, probes: Sequence[Question]) -> tuple[Array, Array]:
    """Return of all values of some cases which a mistake would change, and which are as it gives them."""
    moved, near = [], []
    for question in probes:
        outputs = question.outputs(deviation.operations()[question.op])
        for observation in question.observations:
            value = outputs[observation.call].get(observation.name)
            moved.append(moves(value, observation.expected, observation.width))
            near.append(distances(question, observation, [value]) <= 1)
    return tuple(np.concatenate([mask.ravel() for mask in masks]) for masks in (moved, near))  # type: ignore[return-value]


def moves(value: Any, expected: Array, width: Array) -> Array:
    """Return which expected values a mistake changes by more than rounding may do."""
    if value is None or np.shape(value) != expected.shape:
        return np.ones(expected.shape, dtype=bool)
    return np.asarray((value != expected) & ~(np.abs(np.asarray(value, dtype=np.float64) - expected) <= width))


def _share(wrong: Array, of_a: Sequence[Array], of_b: Sequence[Array]) -> bool:
    """Return whether two mistakes give all values that only one of them changes, and some wrong ones each alone."""
    (moved_a, given_a), (moved_b, given_b) = of_a, of_b
    alone_a, alone_b = moved_a & ~moved_b, moved_b & ~moved_a
    if np.any(wrong & ~(moved_a | moved_b)) or np.any(alone_a & ~given_a) or np.any(alone_b & ~given_b):
        return False
    return min(int(np.sum(wrong & given_a & ~given_b)), int(np.sum(wrong & given_b & ~given_a))) >= LEAST


def _fits(pair: Pair, question: Question) -> bool:
    return score(question, question.observations, _predicted(pair, question)) <= 1


def _predicted(pair: Pair, question: Question) -> Predict:
    """Return the values of two mistakes together: if both change a value, the nearest of the two orders."""

    def outputs(deviation: Deviation, jitter: float) -> Outputs:
        return question.outputs(deviation.operations(jitter)[question.op])

    def predicted(jitter: float) -> Outputs:
        first, second = (outputs(d, jitter) for d in pair)
        nested = [outputs(together(*way), jitter) for way in (pair, pair[::-1])]
        outputs_of_both: Outputs = [{} for _ in question.calls]
        for o in question.observations:
            values = (w[o.call].get(o.name) for w in (first, second, *nested))
            ways: list[Array] = [w for w in values if w is not None and np.shape(w) == o.expected.shape]
            if len(ways) < 2:
                continue
            moved = [moves(w, o.expected, o.width) for w in ways[:2]]
            off = np.abs(np.stack(ways).astype(np.float64) - o.observed)
            nearest = np.take_along_axis(np.stack(ways), np.argmin(off, axis=0)[None], axis=0)[0]
            outputs_of_both[o.call][o.name] = np.where(moved[0] & moved[1], nearest, np.where(moved[0], ways[0], ways[1]))
        return outputs_of_both

    return cache(predicted)

"""
Sines and cosines of low accuracy: the class with a declared error of the trigonometry that all cases are within.

The stored sensitivities say how far a result moves with such an error. An error that is a share of every value, or grows with
the position as that of an angle does, is none of the trigonometry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import judge
from ..accuracy import TRIG, with_trig
from ..suite.axes import places
from .hypotheses import Question

ERRORS = tuple(2.0**-k for k in range(22, 6, -1))  # from binary32's own to a table of some hundred steps
NEAR = 64.0  # positions below which angles are accurate whatever they are formed in
GROWTH = 8.0  # times that the error may be larger beyond
ALIGNED = 0.9  # correlation of error and value above which it is a gain, not the trigonometry
LEAST = 3  # failing cases


def inaccurate(questions: Sequence[Question], claim: str) -> str:
    """Return in words that the trigonometry is inaccurate, and the class that passes; nothing where it is not that."""
    if TRIG.search(claim) or sum(q.failed for q in questions) < LEAST:
        return ""
    if any("trig" not in call.widths for q in questions if q.failed for call in q.calls):
        return ""
    error = next((e for e in ERRORS if _within(questions, with_trig(claim, e))), None)
    if error is None or _near(questions, claim) * GROWTH < error or _is_gain(questions):
        return ""
    size = f"2^{np.log2(error):.0f}"
    return (
        f"the trigonometry is inaccurate: sines and cosines that are off by up to {size} explain every failure. "
        f"All cases pass in class {with_trig(claim, error)} (--trig {error!r})."
    )


def _within(questions: Sequence[Question], accuracy: str) -> bool:
    """Return whether all failing cases are within a class."""
    return all(
        judge.compare(q.op, call, outputs, accuracy, q.dtype) is None
        for q in questions
        if q.failed
        for call, outputs in zip(q.calls, q.answer.outputs, strict=True)
    )


def _near(questions: Sequence[Question], claim: str) -> float:
    """Return the error of sines and cosines that the values at near positions show."""
    largest = 0.0
    for q in questions:
        for call, outputs in zip(q.calls, q.answer.outputs, strict=True):
            for name, output in outputs.items():
                where = places(q.op, call, name)
                found, width = judge.errors(q.op, call, name, output, claim, q.dtype)
                reach = call.widths.get("trig", {}).get(name)
                if where is None or reach is None:
                    continue
                chosen = (where < NEAR) & (reach > 0) & (found > width)
                largest = max(largest, float(np.max((found - width)[chosen] / reach[chosen], initial=0.0)))
    return largest


def _is_gain(questions: Sequence[Question]) -> bool:
    """Return whether errors go along with the values, as those of a gain do."""
    pairs = [(o.wanted - o.expected, o.expected) for q in questions if q.failed for o in q.found]
    error, value = (np.concatenate([np.ravel(p[k]).astype(np.float64) for p in pairs]) for k in (0, 1))
    if not np.all(np.isfinite(error)) or not np.any(value):
        return True
    size = np.linalg.norm(error) * np.linalg.norm(value)
    return bool(abs(error @ value) > ALIGNED * size)

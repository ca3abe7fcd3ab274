"""
Reads buckets, windows and positions from outputs, by formulas of few parts; each part has several known forms.

Combinations that differ from the definition in a few parts are compared with the smallest failing cases. Those that give them
are judged on all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from posref.core.composition import reaches

from ..evidence.shared.formulas import KNOWN
from ..evidence.tools.deviation import Deviation
from .hypotheses import Hypothesis, Question, plausible

PROBES = 3  # failing cases that a formula must give, before it is tried on all
OTHERS = 3  # parts of a formula that are others, at most
SHOWN = 2  # formulas that are said, where stored cases do not tell them apart


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the formulas that all cases show, as mistakes; none if they show none."""
    probes = [q for q in questions if q.failed and q.size][:PROBES]
    touched = [name for name in KNOWN if name in {questions[0].op, *reaches(questions[0].op)}]
    every = (one for name in touched for one in _formulas(name))
    fitting = ((n, d) for n, d in every if _shows(d, probes) and Hypothesis(d, questions).fits())
    shown = list(islice(fitting, SHOWN))
    return [d for n, d in shown if n == shown[0][0]]


def _shows(deviation: Deviation, probes: Sequence[Question]) -> bool:
    hypothesis = Hypothesis(deviation, probes)
    return bool(probes) and all(plausible(q, hypothesis.predicted(n)) for n, q in enumerate(probes)) and hypothesis.fits()


def _formulas(op: str) -> Iterator[tuple[int, Deviation]]:
    """Yield the formulas of an operation, each with how many of its parts are others, those of fewest first."""
    _, make, parts = KNOWN[op]
    every = ((sum(a != b for a, b in zip(words, _right(op), strict=True)), words) for words in product(*parts))
    for departures, words in sorted((one for one in every if one[0] <= OTHERS), key=lambda one: one[0]):
        values = [part[w] for w, part in zip(words, parts, strict=True)]
        yield departures, Deviation("", in_words(op, words), {op: make(*values)})


def _right(op: str) -> list[str]:
    """Return the parts of the definition."""
    return [next(iter(part)) for part in KNOWN[op][2]]


def in_words(op: str, words: Sequence[str]) -> str:
    """Return a formula in words: its clauses that are not those of the definition."""
    clauses = KNOWN[op][0].split("; ")
    changed = [clause.format(*words) for clause in clauses if clause.format(*words) != clause.format(*_right(op))]
    return ", and ".join(changed)

"""
Reads buckets, windows and positions from outputs, by formulas of few parts; each part has several known forms.

All combinations of the parts are compared with the smallest failing cases. Those that give them are judged on all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from posref.core.composition import reaches

from ..evidence.shared.formulas import KNOWN
from ..evidence.tools.deviation import Deviation
from .hypotheses import Hypothesis, Question, plausible

PROBES = 3  # failing cases that a formula must give, before it is tried on all
SHOWN = 2  # formulas that are said, where stored cases do not tell them apart


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the formulas that all cases show, as mistakes; none if they show none."""
    probes = [q for q in questions if q.failed and q.size][:PROBES]
    touched = [name for name in KNOWN if name in {questions[0].op, *reaches(questions[0].op)}]
    fitting = (d for name in touched for d in _formulas(name) if _shows(d, probes) and Hypothesis(d, questions).fits())
    return list(islice(fitting, SHOWN))


def _shows(deviation: Deviation, probes: Sequence[Question]) -> bool:
    hypothesis = Hypothesis(deviation, probes)
    return bool(probes) and all(plausible(q, hypothesis.predicted(n)) for n, q in enumerate(probes)) and hypothesis.fits()


def _formulas(op: str) -> Iterator[Deviation]:
    """Yield the formulas of an operation, those of fewest other parts first."""
    text, make, parts = KNOWN[op]
    every = sorted(product(*parts), key=lambda words: sum(w != next(iter(part)) for w, part in zip(words, parts, strict=True)))
    for words in every:
        values = [part[w] for w, part in zip(words, parts, strict=True)]
        yield Deviation("", text.format(*words), {op: make(*values)})

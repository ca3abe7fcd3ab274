"""What the stored vectors say about an operation: the bounds of each accuracy class, and the cases by option and mistake."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.conformance.accuracy import BASE
from posref.conformance.evidence.catalogue import mistakes
from posref.conformance.model import LoadedCase
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.spec import REGISTRY, Flag, OneOf


@cache
def cases(op: str) -> tuple[LoadedCase, ...]:
    """Return the core cases of an operation."""
    return tuple(case for group in load_groups(INSTALLED, ops={op}) for case in group.cases)


known_mistakes = cache(mistakes)


def accuracy(op: str) -> list[str]:
    """Return the section that says how far results may be off: the median and the largest bound of each class."""
    widths = {name: np.concatenate(bounds) for name in BASE if (bounds := list(_widths(op, name)))}
    if not widths:
        return []
    if not any(width.any() for width in widths.values()):
        exact = "Results must be exact in every class. Storing them in a narrower dtype may round them once."
        return ["## Accuracy", "", exact, ""]
    lines = ["## Accuracy", "", f"How far a result may be from the true value, over {len(widths[BASE[0]])} values of the core"]
    lines += ["cases, in each [class](../scoreboard.md). Bounds are largest for far positions and large values.", ""]
    rows = [f"| {name} | {np.median(width):.2g} | {width.max():.2g} |" for name, width in widths.items()]
    return [*lines, "| class | median | largest |", "|---|---|---|", *rows, ""]


def asked(op: str) -> list[str]:
    """Return the number of cases, a list of them by option, and how many catch each mistake, as measured."""
    stored = cases(op)
    kinds = Counter(case.kind for case in stored)
    said = ", ".join(f"{kinds[kind]} {text}" for kind, text in KINDS.items() if kinds[kind])
    lines = [f"{len(stored)} cases check this operation: {said}.", "", ":::{dropdown} Cases by option, and what they catch", ""]
    for option, domain in REGISTRY[op].domains.items():
        if isinstance(domain, OneOf | Flag):
            values = [{call.params.get(option) for call in case.calls} for case in stored if case.kind != "reject"]
            words = Counter(str(word) for each in values for word in each if word is not None)
            known = [f"`{word}` {number}" for word, number in words.most_common()]
            lines += [f"- {option}: {', '.join(known)}"] if known else []
    caught = {name: said["cases"][op] for name, said in known_mistakes().items() if op in said["cases"]}
    for name, number in sorted(caught.items(), key=lambda pair: -pair[1]):
        lines.append(f"- {name} ({number}): {_plain(known_mistakes()[name]['catches'])}")
    return [*lines, "", ":::", ""]


KINDS = {"value": "with values", "vjp": "with gradients", "sequence": "with several calls", "reject": "that must raise errors"}


def _widths(op: str, name: str) -> Iterable[npt.NDArray[Any]]:
    for case in cases(op):
        for call in case.calls if case.kind == "value" else ():
            yield from (np.ravel(width) for width in call.widths.get(name, {}).values())


def _plain(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;").replace("$", "\\$")

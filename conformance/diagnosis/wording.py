"""The sentences of a diagnosis that names deviations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..evidence.tools.deviation import Deviation

SHOWN = 4  # ties that the text spells out; the record has them all


def words(explanations: Sequence[Sequence[Deviation]]) -> str:
    """Return ties in words, each of one deviation or of several at once."""
    shown = [", and ".join(_named(d) for d in together) for together in explanations[:SHOWN]]
    more = len(explanations) - SHOWN
    return " or: ".join(shown) + (f" (or {more} more)" if more > 0 else "")


def _named(deviation: Deviation) -> str:
    return f"{deviation.text} ({deviation.name})" if deviation.name else deviation.text


def same(explanations: Sequence[Sequence[Deviation]], claim: str, where: str = "") -> str:
    """Return what the values equal, everywhere or only in some cases."""
    tie = " These give the same values on every case asked." if len(explanations) > 1 else ""
    some = f"{where}, " if where else ""
    return f"{some}your output equals the definition, within {claim}, if {words(explanations)}.{tie}"


def apart(parts: Iterable[tuple[Sequence[Deviation], Sequence[str], str]], claim: str) -> str:
    """Return deviations in words, each with the cases that it explains, and the trait of those where it is told by one."""
    said = []
    for ties, cases, where in parts:
        trait = f" with {where}" if where else ""
        said.append(f"in {len(cases)} cases{trait} ({ids(cases)}) {words([(d,) for d in ties])}")
    many = f"{len(said)} mistakes: your" if len(said) > 1 else "your"
    return f"{many} output equals the definition, within {claim}, if " + "; ".join(said) + "."


def ids(cases: Sequence[str]) -> str:
    """Return the first ids of cases."""
    return f"{', '.join(cases[:2])}{', ...' * (len(cases) > 2)}"


def count(number: int) -> str:
    """Return a number of cases in words."""
    return f"{number} case{'s' * (number > 1)}"

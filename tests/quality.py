"""How well the diagnosis does: how it names implementations with a planted defect, and the registry's own mutants."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from every_encoding.written import plain_file
from planting import Defect, defects

from posref.conformance import check
from posref.conformance.checks.scope_result import RECORD
from posref.conformance.diagnosis import explanation, strength
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.evidence.tools.deviation import together
from posref.conformance.model import Answer, Arrays, LoadedCase
from posref.conformance.reports.report import Report
from posref.conformance.targets.python import load_python
from posref.scaling import RECORDS
from posref.spec import REGISTRY

DEFECTS = defects("defects")
VERDICTS = ("named", "partly named", "told", "unexplained", "wrong")
TOLD = ("the reference if", "nly ", "xactly the", "All ")  # a number, cases, or places


@dataclass(frozen=True)
class Row:
    """One defect: what was planted (each set is one way to say it), and what it was called."""

    name: str
    defect: str
    planted: tuple[frozenset[str], ...]
    found: bool
    called: dict[str, tuple[frozenset[str], ...]]  # ties by operation; none where it is unexplained
    told: bool = False  # whether a number that explains it was found, or else the cases or the places that are wrong

    @property
    def verdict(self) -> str:
        """
        Return how right the diagnosis is.

        Ties give the same values on every case asked, so that one of them must be right. An operation may show a part of what
        was planted; together the operations must show all of it to count as named.
        """
        said = [ties for ties in self.called.values() if ties]
        right = [[names for names in ties if any(names <= planted for planted in self.planted)] for ties in said]
        if not all(right):
            return "wrong"
        if not said:
            return "told" if self.told else "unexplained"
        shown = frozenset[str]().union(*(names for ties in right for names in ties))
        return "named" if any(planted <= shown for planted in self.planted) else "partly named"


def operations(defect: type[Defect]) -> list[str]:
    """Return the operations that an implementation with a defect has."""
    implementation = defect()
    return [op for op in REGISTRY if callable(getattr(implementation, op, None))]


@cache
def report_on(defect: type[Defect]) -> Report:
    """Return the report on a defect, made once; of one operation where it has no more, which spares reading all the suite."""
    has = operations(defect)
    return check(defect(), op=has[0] if len(has) == 1 else None)


def named(name: str) -> type[Defect]:
    """Return the defect of a name."""
    return next(defect for defect in DEFECTS if defect.__name__ == name)


def row(defect: type[Defect]) -> Row:
    """Return how the diagnosis does on one defect."""
    planted = tuple(frozenset((names,) if isinstance(names, str) else names) for names in defect.NAMES)
    report = report_on(defect)
    diagnoses = {op.op: op.diagnosis for op in report.operations if op.diagnosis is not None}
    called = {op: tuple(map(frozenset, d.get("explanations", ()))) for op, d in diagnoses.items()}
    told = any(word in d["text"].removeprefix("Only gradients") for d in diagnoses.values() for word in TOLD)
    return Row(defect.__name__, defect.DEFECT, planted, bool(report.failures) and not report.conformant, called, told)


def totals(rows: Iterable[Row]) -> Counter[str]:
    """Return how many were found, and how many have each verdict."""
    rows = list(rows)
    return Counter(row.verdict for row in rows) + Counter(defects=len(rows), found=sum(row.found for row in rows))


# ---- registered mistakes as implementations ---------------------------------------------------------------------------------
@cache
def plain_code(op: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the code of an operation as people write it, on arrays of NumPy, and what its file states."""
    target = load_python(str(plain_file(op)))
    library, function = target.backend, getattr(target.implementation, op)
    states = {name: value for name, value in vars(target.implementation).items() if name in ("scalings", "supports")}

    def there(value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            return value
        return library.from_numpy(np.asarray(value), "float32" if value.dtype.kind == "f" else None, None)

    def back(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(back, result))
        return library.to_numpy(result) if hasattr(result, "shape") else result

    @wraps(function)
    def bridged(*arrays: Any, **options: Any) -> Any:
        for name, make in (("dtype", lambda dtype: library.dtype(np.dtype(dtype).name)), ("xp", lambda _: library.namespace())):
            if options.get(name) is not None:
                options[name] = make(options[name])
        return back(function(*map(there, arrays), **{name: there(value) for name, value in options.items()}))

    return bridged, states


def mistaken(name: str, *, plain: bool) -> tuple[str, SimpleNamespace]:
    """Return the operation where a mistake sits, and the reference or plain code with it, in float32, as an implementation."""
    deviation, op = DEVIATIONS[name], strength.stage(name)
    code, states = plain_code(op) if plain else (REGISTRY[op].function, {"scalings": [kind.__name__ for kind in RECORDS]})
    wrong = deviation.wraps[op](code) if plain else deviation.operations()[op]

    def narrow(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(narrow, result))
        return np.asarray(result, dtype=np.float32) if REGISTRY[op].returns == "real" else result

    @wraps(code)
    def function(*arrays: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return narrow(wrong(*arrays, **options))

    return op, SimpleNamespace(**{op: function, "__name__": name}, **states)


# ---- the registry's own mutants -------------------------------------------------------------------------------------------
PAIRS_EVERY = 797  # one pair in so many is counted on the page, of those that change an operation together


@cache
def cases(op: str) -> list[LoadedCase]:
    """Return the core cases of an operation with values that are asked in float32."""
    return strength.cases(ops=(op,))[0][op]


@lru_cache(2)  # those of one comparison: all would not fit in memory
def answers(deviation: Deviation, op: str) -> dict[str, list[Arrays]]:
    """Return what a mutant gives in float32, by case; a call that makes no sense for it gives nothing."""
    return {case.id: strength.outputs(deviation, case) for case in cases(op)}


@cache
def caught(deviation: Deviation, op: str) -> frozenset[str]:
    """Return the cases of one operation that a mutant fails."""
    return frozenset(case.id for case in cases(op) if strength.fails(case, answers(deviation, op)[case.id]))


@cache
def record() -> dict[str, dict[str, Any]]:
    """Return the record of which cases catch which deviations, by operation, as the package has it."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


@cache
def recorded(name: str, op: str) -> frozenset[str]:
    """Return the cases of one operation that a deviation fails, by the record."""
    bits = int(record()[op]["caught"].get(name, "0"), 16)
    return frozenset(id_ for k, id_ in enumerate(record()[op]["cases"]) if bits >> k & 1)


@cache
def diagnosed(deviation: Deviation, op: str) -> dict[str, Any]:
    """Return the diagnosis of a mutant."""
    asked = []
    for case in cases(op):
        answer = Answer(case, strength.DTYPE, answers(deviation, op)[case.id])
        if all(len(o) == len(c.expected) for o, c in zip(answer.outputs, case.calls, strict=True)):
            asked.append((answer, case.id in caught(deviation, op)))
    return explanation.diagnose(op, asked, strength.CLASS)


def pairs(every: int = PAIRS_EVERY) -> list[tuple[Deviation, str]]:
    """Return some pairs of deviations at once, each with an operation that both change, spread evenly over the registry."""
    found = [(a, b, op) for op in REGISTRY for a, b in combinations([n for n, d in DEVIATIONS.items() if d.touches(op)], 2)]
    return [(together(DEVIATIONS[a], DEVIATIONS[b]), op) for a, b, op in found[::every]]


def registry() -> str:
    """Return in words how the diagnosis does on definitions with one or two mistakes of the registry."""
    single = {name: diagnosed(deviation, strength.stage(name)) for name, deviation in DEVIATIONS.items()}
    alone = sum(found["explanations"] == [[name]] for name, found in single.items())
    tied = sum([name] in found["explanations"] for name, found in single.items()) - alone
    twice = {(pair.name, op): diagnosed(pair, op) for pair, op in pairs() if caught(pair, op)}
    both = sum(any(sorted(n) == sorted(name.split(" + ")) for n in f["explanations"]) for (name, _), f in twice.items())
    fewer = sum(any(len(names) == 1 for names in found["explanations"]) for found in twice.values())
    return (
        f"Of {len(single)}, posref names {alone} by exactly their mistake, and {tied} by it and by others that give the\n"
        f"same values. Of {len(twice)} with two mistakes, it names {both} by both, {fewer} by one that gives the\n"
        f"same values, and {len(twice) - both - fewer} by neither."
    )

"""Conclusions from a report's JSON that its forms share: the order of operations and of failing cases, and lines."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from posref.spec import REGISTRY

from ..accuracy import TRIG, UNIT
from ..calls import returns_reals
from ..model import BAD, ENDED, STANDINGS, VIEWS, decides
from ..targets.base import PROCESSES

NAMED = 4  # operations named in one line, at most
NOTEWORTHY = 1e-3  # of the size of a result: an error, not of half precision, from which on a report tells of it
LARGE = 1e6  # times the bound: how much more says nothing
SHOWN = 3  # failing cases spelled out for each operation


def state(document: Mapping[str, Any]) -> str:
    """Return the overall verdict of a report's JSON in words; incomplete if any part of it is missing."""
    totals = {"operations": len(document["operations"]), "cases": len(document["cases"])}
    if not document["complete"] or document["totals"] != totals:
        return "incomplete"
    holds = document["conformant"] and all(op["conformant"] for op in document["operations"])
    if document["schema"] == 1 or not holds:
        return "conformant" if holds else "not conformant"
    return str(document["verdict"])


def contradiction(document: Mapping[str, Any]) -> str:
    """Return where a report contradicts itself, in words: its verdict, its counts and its cases must say the same."""
    cases = document["cases"]
    counts = Counter(case["verdict"] for case in cases if case["kind"] != "reject")
    stated = {word: n for word, n in document["counts"].items() if n and word != "missing"}
    if stated != {word: n for word, n in counts.items() if n}:
        return f"its counts are {stated}, and its cases give {dict(counts)}"
    failing = sum(decides(case["kind"], case["verdict"]) for case in cases)
    bad = sum(not operation["conformant"] for operation in document["operations"])
    some = counts["pass"] or any(scope["drawn"] for scope in document.get("scopes", ()))  # or fresh calls did
    if document["schema"] > 1 and document["conformant"] and (failing or bad or not some or not document["complete"]):
        return f"it says conformant, with {failing} failing cases, {bad} failing operations and {counts['pass']} passed"
    word = document.get("verdict")
    if word is not None and document["conformant"] == (word in ("not conformant", "incomplete")):
        return f"its verdict is {word!r}, and conformant is {document['conformant']}"
    return ""


def shown(word: str) -> str:
    """Return the overall verdict as it is printed, in capitals."""
    return word.upper().replace("IN ITS SCOPE", "in its scope")


def verdict_text(document: Mapping[str, Any]) -> str:
    """Return the printed verdict of a report, with its model and its declared error."""
    declared = {float(match[1]) for match in map(TRIG.search, document["target"]["claims"].values()) if match}
    allowed = f" with sines and cosines off by up to {max(declared):.2g} (trig)" if declared else ""
    return shown(state(document)) + (f" for {document['for']}" if document.get("for") else "") + allowed


def process(document: Mapping[str, Any]) -> str:
    """Return in which process the implementation computed, in words; nothing where an older report does not say it."""
    return PROCESSES.get(document["target"].get("process", ""), "")


def ordered(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's JSON with keys in the order of the file, so that what is made of it depends on content alone."""
    in_order: dict[str, Any] = json.loads(json.dumps(document, sort_keys=True))
    return in_order


def standing(op: Mapping[str, Any]) -> str:
    """Return the verdict on an operation in one dtype in a word; reports of older versions only have conformant."""
    older = "fail" if not op["conformant"] else "in scope" if op["counts"].get("unsupported") else "pass"
    return str(op.get("standing", older))


def failing(cases: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the cases that prevent conformance: the gravest verdict first, and of one verdict the smallest plain call."""
    bad = [case for case in cases if decides(case["kind"], case["verdict"])]
    return sorted(bad, key=lambda case: (BAD.index(case["verdict"]), plainness(case)))


def samples(bad: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[Mapping[str, Any], int]], int]:
    """
    Return the failing cases that a short report spells out, each with how many others fail in the same words, and how many
    are left. A case that was not asked says nothing of the code.
    """
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for case in bad:
        if case["verdict"] != "not-run" or case is bad[0]:
            alike.setdefault((case["verdict"], case["message"]), []).append(case)
    shown = [(cases[0], len(cases) - 1) for cases in alike.values()]
    return shown[:SHOWN], sum(1 + others for _, others in shown[SHOWN:])


def by_operation(document: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Return every operation in one dtype, with its cases: the gravest verdict first."""
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for case in document["cases"]:
        cases.setdefault((case["op"], case["dtype"]), []).append(case)
    operations = sorted(document["operations"], key=lambda op: STANDINGS.index(standing(op)))
    return [(op, cases.get((op["op"], op["dtype"]), [])) for op in operations]


def ratio(op: Mapping[str, Any]) -> str:
    """Return the worst error over the bound as text; nothing if there is none, or some cases did not run."""
    if any(op["counts"].get(verdict) for verdict in ENDED):
        return ""
    if op["worst_ratio"] is None:
        return "exact" if op["counts"].get("pass") and not op["counts"].get("fail") else ""
    worst = float(op["worst_ratio"])
    return f"{worst:.2g}" if worst < LARGE else f"> {LARGE:.0e}".replace("+0", "")


def plainness(case: Mapping[str, Any]) -> tuple[bool, bool, bool, int, int]:
    """Return a key of a case in a report's JSON: one call of values before others, few options, and few values."""
    is_view = not {*VIEWS}.isdisjoint(case.get("flags", ()))
    call = case.get("call", "")
    return case["kind"] != "value", is_view, not case.get("values", 0), call.count("="), case.get("values", 0)


def class_names(op: str, achieved: str | None, claim: str) -> tuple[str, str]:
    """Return the classes achieved and claimed as they are shown: integers and masks are exact, or they are wrong."""
    if op in REGISTRY and not returns_reals(op):
        return "exact" if achieved else "none", "exact"
    return achieved or "none", claim


def scope_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the scope of every operation in a line, and first what the array library lacks in all of them."""
    computed = {op["op"] for op in document["operations"] if {"pass", "fail"} & op["counts"].keys() or op["conformant"]}
    scopes = [row for row in document.get("scopes", ()) if row["op"] in computed and row["answered"] < row["asked"]]
    lacking = [scope for scope in scopes if scope["library"]]
    lines = []
    if len(lacking) > 1:
        cases = sum(scope["library"] for scope in lacking)
        library = document["target"]["backend"]
        lines.append(f"{library} has no gradients: {cases} cases of {len(lacking)} operations are outside")
    for scope in scopes:
        shared = len(lacking) > 1 and scope["library"]
        limits = [limit for limit in scope["limits"] if not (shared and limit["axis"] == "gradient")]
        if limits or scope["wrong"]:
            limits_in_words = "; ".join(limit.get("line", f"{limit['text']} [{limit['cases']}]") for limit in limits)
            line = str(scope.get("line", f"{scope['answered']} of {scope['asked']}"))
            count, _, calls = line.partition(":")[0].partition(" and ")  # fresh calls, if there are any
            count = f"{count} cases" + (f" and {calls}" if calls else "")
            lines.append(f"scope of {scope['op']}: {count}" + (f": {limits_in_words}" if limits_in_words else ""))
    return lines


def _beyond(ratio: float) -> str:
    return f" (error/bound {ratio:.2g})" if math.isfinite(ratio) else ""


def batch_lines(document: Mapping[str, Any]) -> list[str]:
    """Return the text on batch invariance, if the check measured it: a line, and one for each operation whose rows differ."""
    if "batch_invariance" not in document:
        return []
    measured = document["batch_invariance"]
    broken = [operation for operation in measured if operation["broken"]]
    compared = sum(operation["compared"] for operation in measured)
    ops = f"{len(measured) - len(broken)} of {len(measured)} operations and dtypes"
    line = (
        f"batch invariance: {ops} give a row the same bits alone as in a batch ({compared} rows; does not decide conformance)"
    )
    return [
        line,
        *(f"not batch-invariant: {operation['op']} {operation['dtype']}: {operation['broken']}" for operation in broken),
    ]


def meanings(document: Mapping[str, Any]) -> list[str]:
    """Return how accurate operations that conform are: what a class means at the longest position, and what misses fused."""
    conforming = [op for op in document["operations"] if op["conformant"]]
    noteworthy = [
        op for op in conforming if op["dtype"] not in UNIT and (op.get("meaning") or {}).get("error", 0.0) > NOTEWORTHY
    ]
    worst = max(
        noteworthy,
        key=lambda op: (op["dtype"] == noteworthy[0]["dtype"], op["meaning"]["position"], op["meaning"]["error"]),
        default=None,
    )
    lines = [] if worst is None else [f"{worst['op']} {worst['dtype']}: {worst['meaning']['text']}"]
    for dtype in dict.fromkeys(op["dtype"] for op in conforming):
        loose = [op for op in conforming if op["dtype"] == dtype and op["achieved"] in ("mixed", "low") and op.get("missed")]
        for missed in dict.fromkeys(op["missed"]["class"] for op in loose):
            low = [op for op in loose if op["missed"]["class"] == missed]
            by = [op["op"] + _beyond(float(op["missed"]["ratio"])) for op in low[:NAMED]]
            more = f" and {len(low) - NAMED} more" if len(low) > NAMED else ""
            lines.append(f"{dtype}: class {missed} is not reached by {', '.join(by)}{more}")
    return lines

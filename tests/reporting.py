"""Reports that several tests read, and documents: one with every verdict, and text that tries to be more than text."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

from posref.conformance import Report, check

HOSTILE = (
    '<script>document.title="owned"</script>"><img src=x onerror=alert(1)>\'\x1b[31m\x00\x9b\u202e]]>--><![CDATA[&amp;{{7*7}}'
)
MARKED = HOSTILE + " `code` ``| a | b | **bold** [link](https://evil.example) ![i](x) www.evil.example\n# Heading\n- item"


@cache
def of_reference(**options: Any) -> Report:
    """Return the report on the reference, made once in a process."""
    return check("posref", **options)


@cache
def of_the_example() -> Report:
    """Return the report on the example that is wrong, made once in a process."""
    return check(str(Path(__file__).parents[1] / "examples" / "broken_rope.py"))


def case(name: str, verdict: str, op: str = "rope", dtype: str = "float32", **fields: Any) -> dict[str, Any]:
    """Return one case of a document."""
    plain = {
        "id": f"{op}/half/{name}", "op": op, "kind": "value", "dtype": dtype, "verdict": verdict, "achieved": None,
        "message": f"why {name}", "worst": None, "flags": ["far-position"],
        "reproduce": f"posref check me --case {op}/half/{name}",
    }  # fmt: skip
    return plain | fields


def operation(op: str = "rope", dtype: str = "float32", **fields: Any) -> dict[str, Any]:
    """Return one operation of a document."""
    plain = {
        "op": op, "dtype": dtype, "conformant": True, "reason": "", "claim": "angle32", "achieved": "angle32",
        "counts": {"pass": 1}, "worst_ratio": 0.5, "first_failing_position": None, "achieved_below": None, "bands": [],
        "curve": [], "heat": None, "diagnosis": None,
    }  # fmt: skip
    return plain | fields


def document(operations: list[dict[str, Any]], cases: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return a complete document."""
    counts: dict[str, int] = {}
    for entry in cases:
        if entry["kind"] != "reject":
            counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
    refusals = [c["verdict"] == "rejected" for c in cases if c["kind"] == "reject"]
    plain = {
        "schema": 1, "complete": True, "posref": "0.1.0", "suite": {"version": "0.1.0", "sha256": "ab" * 32}, "tier": "core",
        "target": {
            "name": "me", "kind": "python", "backend": "numpy", "dtypes": ["float32"], "claims": {"float32": "angle32"},
            "versions": {"numpy": "2.4"}, "notes": [], "reproduce": "posref check me",
        },
        "conformant": all(op["conformant"] for op in operations), "counts": counts, "missing": [],
        "validation": {"rejected": sum(refusals), "asked": len(refusals)}, "operations": operations, "cases": cases,
        "totals": {"operations": len(operations), "cases": len(cases)},
    }  # fmt: skip
    return plain | fields


def every_verdict() -> dict[str, Any]:
    """Return a document in which every verdict there is occurs."""
    verdicts = ("pass", "fail", "error", "crash", "timeout", "protocol", "not-run", "unsupported")
    cases = [case(verdict, verdict) for verdict in verdicts]
    cases += [case("refused", "rejected", kind="reject"), case("let-in", "fail", kind="reject")]
    cases += [case("ok", "pass", op="alibi"), *(case(f"no-{k}", "unsupported", op="alibi") for k in range(3))]
    rope = operation(
        conformant=False, reason="6 of 8 cases fail", counts=dict.fromkeys(verdicts, 1), first_failing_position=257.0,
        diagnosis={"text": "positions are held in bfloat16", "names": ["positions-bfloat16"], "hint": "257", "seen_in": "here"},
    )  # fmt: skip
    few = operation("alibi", conformant=False, reason="only 1 of 4 cases passed", counts={"pass": 1, "unsupported": 3})
    return document(
        [rope, few], cases, missing=["sinusoidal"], counts=dict.fromkeys(verdicts, 1) | {"unsupported": 4, "pass": 2}
    )


def hostile() -> dict[str, Any]:
    """Return a document with `MARKED` in every field that holds free text."""
    names = {"id": f"rope/half/{MARKED}", "message": MARKED, "flags": [MARKED], "reproduce": MARKED}
    worst = {
        "output": MARKED, "index": [0], "position": 3.0, "expected": 1.0, "got": "nan", "error": "nan", "tolerance": 1e-7,
        "ratio": "inf",
    }  # fmt: skip
    heat = {
        "case": MARKED, "call": 0, "output": MARKED, "rows": "position", "columns": MARKED, "row_labels": [MARKED, "1"],
        "column_labels": ["0", MARKED], "values": [[0.0, 0.5], [2.0, "inf"]],
    }  # fmt: skip
    point = {"position": 3.0, "error": 0.5, "ratio": 5e6, "bounds": {"angle32": 1e-7, MARKED: 1e-9}, "case": MARKED}
    op = operation(
        conformant=False, reason=MARKED, claim="angle32", achieved=None, counts={"fail": 1}, curve=[point], heat=heat,
        first_failing_position=3.0, diagnosis={"text": MARKED, "names": [MARKED], "hint": MARKED, "seen_in": MARKED},
        bands=[{"from": 0, "to": 64, "achieved": MARKED}],
    )  # fmt: skip
    found = document([op], [case("x", "fail", worst=worst, **names)], posref=MARKED, missing=[MARKED])
    found["suite"] = {"version": MARKED, "sha256": MARKED}
    found["target"] |= {
        "name": MARKED, "backend": MARKED, "versions": {MARKED: MARKED}, "notes": [MARKED], "reproduce": MARKED,
        "claims": {"float32": MARKED},
    }  # fmt: skip
    return found


def unfinished(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conformant document in every way in which one may be incomplete, all else in order."""
    stopped, short, lost = (copy.deepcopy(found) for _ in range(3))
    stopped["complete"] = False
    short["cases"].pop()
    lost["operations"].pop()
    return [stopped, short, lost]

"""Short forms of a report's JSON: Markdown for a CI summary, JUnit XML, and a badge in SVG."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..accuracy import OF_DTYPE, TRIG
from ..errors import printable
from ..model import BAD, decides
from .document import (
    batch_lines,
    by_operation,
    class_names,
    failing,
    ordered,
    process,
    ratio,
    samples,
    scope_lines,
    standing,
    state,
    verdict_text,
)

INCOMPLETE = "This report has no verdict: it ended before all cases were judged, or a part of it is missing."
GOOD, BROKEN, OPEN = "#1e7a4f", "#b3261e", "#855300"
COLOURS = dict.fromkeys(("conformant", "conformant in its scope", "passed"), GOOD) | {
    "not conformant": BROKEN,
    "incomplete": OPEN,
}
NARROW, WIDE = "fijlrt.,:;|!'()[] ", "mwMWQOG@%"  # for the widths of letters in a badge

Json = Mapping[str, Any]


def markdown(document: Json) -> str:
    """Return a summary in Markdown: the verdict, a table of operations, and why any of them is not conformant."""
    document = ordered(document)
    suite, target = document["suite"], document["target"]
    versions = "".join(f", {_prose(name)} {_prose(number)}" for name, number in target["versions"].items())
    computed = f"; computed {process(document)}" if process(document) else ""
    part = f", only {_prose(document['part'])}" if document.get("part") else ""
    wrong = [(op, cases) for op, cases in by_operation(document) if not op["conformant"]]
    reasons = [line for op, cases in wrong for line in (*_reasons(op, failing(cases)), "")]
    lines = [
        f"# posref: {_code(target['name'])}", "",
        f"**{_prose(verdict_text(document))}**: {_tally(document['counts'])}{part}", "",
        *([INCOMPLETE, ""] if state(document) == "incomplete" else []), *reasons,
        f"Vectors {_prose(suite['version'])}, tier {document['tier']}, sha256 {_code(suite['sha256'])}; "
        f"posref {_prose(document['posref'])}; {_prose(target['backend'])}{versions}{computed}.", "",
        "| operation | dtype | verdict | achieved | claimed | error/bound | cases |",
        "|---|---|---|---|---|---:|---|",
        *(_row(op) for op in document["operations"]), "",
    ]  # fmt: skip
    scopes = [f"- {_prose(line)}" for line in scope_lines(document)]
    scopes += [f"- Required: {_prose(text)}" for text in document.get("unmet", ())]
    lines += [*scopes, ""] if scopes else []
    lines += [f"{_prose(line)}\n" for line in batch_lines(document)]
    refused = document["validation"]
    if refused["asked"]:
        lines += [f"Invalid calls rejected: {refused['rejected']} of {refused['asked']} (informational).", ""]
    if document.get("missing"):
        lines += [f"Not offered: {', '.join(map(_prose, document['missing']))}.", ""]
    lines += [f"Note: {_prose(note)}\n" for note in target.get("notes", ())]
    return "\n".join(lines).rstrip() + "\n"


def junit(document: Json) -> str:
    """
    Return JUnit XML: one suite for each operation and dtype, one for invalid calls, and one for missing operations.

    A fail and what is selective are failures; error, crash, timeout, protocol and not-run are errors; what lies outside the
    scope and what is missing are skipped. An invalid call that was not refused is skipped too, since it never decides
    conformance. An operation that is not conformant although no case failed gets a test of its own, and so do an incomplete
    report and a scope that was required and is lacking. So JUnit is green exactly when posref is.
    """
    document = ordered(document)
    target = document["target"]
    root = ET.Element("testsuites", name=printable(f"posref check {target['name']}"))
    if state(document) == "incomplete":
        suite = _suite(root, "report", {})
        ET.SubElement(_case(suite, "report", "complete"), "error", type="incomplete", message=f"INCOMPLETE: {INCOMPLETE}")
    for op, cases in by_operation(document):
        about = {n: op[n] for n in ("conformant", "achieved", "claim", "worst_ratio", "first_failing_position")}
        about["diagnosis"] = (op["diagnosis"] or {}).get("text")
        suite = _suite(root, f"{op['op']} {op['dtype']}", about)
        for case in cases:
            if case["kind"] != "reject" or decides(case["kind"], case["verdict"]):
                _outcome(_case(suite, f"{op['op']}.{op['dtype']}", case["id"]), case)
        if not op["conformant"] and not failing(cases):
            broken = _case(suite, f"{op['op']}.{op['dtype']}", "its scope")
            ET.SubElement(broken, "failure", type=standing(op), message=printable(op["reason"]))
    for text in document.get("unmet", ()):
        broken = _case(_suite(root, "required scope", {}), "required", text)
        ET.SubElement(broken, "failure", type="required", message=printable(text))
    _add_invalid_calls(root, document)
    if document.get("missing"):
        suite = _suite(root, "missing", {})
        for name in document["missing"]:
            ET.SubElement(_case(suite, "missing", name), "skipped", message="the target does not offer this operation")
    _count(root)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_invalid_calls(root: ET.Element, document: Json) -> None:
    """Add the suite of invalid calls, if any were made."""
    calls = [case for case in document["cases"] if case["kind"] == "reject"]
    suite = _suite(root, "invalid calls (these do not decide conformance)", document["validation"]) if calls else root
    for case in calls:
        element = _case(suite, f"refuse.{case['op']}.{case['dtype']}", case["id"])
        if case["verdict"] != "rejected" and not decides(case["kind"], case["verdict"]):
            ET.SubElement(element, "skipped", message=printable(f"{case['verdict']}: {case['message']}"))


def workflow_commands(document: Json) -> str:
    """Return commands that a workflow of GitHub shows as errors: one for each operation that does not conform."""
    document = ordered(document)
    wrong = {
        f"{op['op']} {op['dtype']}": ". ".join((op["reason"], *([op["diagnosis"]["text"]] if op["diagnosis"] else [])))
        for op in document["operations"]
        if not op["conformant"]
    }
    unmet = [f"required: {text}" for text in document.get("unmet", ())]
    unmet += [INCOMPLETE] if state(document) == "incomplete" else []
    lines = [*wrong.items(), *((verdict_text(document), text) for text in unmet)]
    return "".join(f"::error title=posref {_of_command(title, ':,')}::{_of_command(text)}\n" for title, text in lines)


def _of_command(text: str, more: str = "") -> str:
    """Return text for a command of a workflow, in which some characters have a meaning."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in printable(text))


def badge(document: Json) -> str:
    """
    Return a badge in SVG: the loosest class achieved, and cases passed. Its title also says in which process it was computed.

    ``posref 0.1.0 core | angle32 | 412/412``; with cases outside the scope ``in scope 138/226``.
    """
    word = state(document)
    passed = document["counts"].get("pass", 0)
    asked = sum(n for verdict, n in document["counts"].items() if verdict != "missing")
    scope = "in scope " if word == "conformant in its scope" else ""
    left = printable(f"posref {document['suite']['version'].partition('+')[0]} {document['tier']}")
    parts = [
        (left, "#41474d"),
        (_loosest(document) if word.startswith("conformant") else word, COLOURS[word]),
        (f"{scope}{passed}/{asked}", COLOURS[word]),
    ]
    label = escape(" | ".join(text for text, _ in parts))
    title = label + (f"; computed {process(document)}" if process(document) else "")
    boxes, texts, x = [], [], 0
    for text, colour in parts:
        wide = 12 + round(sum(3.9 if c in NARROW else 9.3 if c in WIDE else 6.9 for c in text))
        boxes.append(f'<rect x="{x}" width="{wide}" height="20" fill="{colour}"/>')
        boxes.append(f'<rect x="{x}" width="1" height="20" fill="#fff" opacity="{0.3 if x else 0}"/>')
        texts.append(f'<text x="{x + wide / 2:g}" y="14" textLength="{wide - 12}">{escape(text, quote=False)}</text>')
        x += wide
    font = 'font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="20" role="img" aria-label="{label}">
<title>{title}</title>
<clipPath id="round"><rect width="{x}" height="20" rx="3"/></clipPath>
<g clip-path="url(#round)">{"".join(boxes)}</g>
<g fill="#fff" {font} text-anchor="middle">{"".join(texts)}</g>
</svg>
"""


def _loosest(document: Json) -> str:
    """Return the loosest class that an operation achieved. A class widened by `trig` is looser than the same without."""
    order = OF_DTYPE["bfloat16"]
    classes = {op["achieved"] for op in document["operations"] if op["achieved"]}
    return printable(max(classes, key=lambda name: (order.index(TRIG.sub("", name)), name), default="no class"))


def _row(op: Json) -> str:
    achieved, claim = class_names(op["op"], op["achieved"], op["claim"])
    cells = [op["op"], op["dtype"], standing(op), achieved, claim]
    return f"| {' | '.join(_prose(cell) for cell in (*cells, ratio(op), _tally(op['counts'])))} |"


def _reasons(op: Json, bad: Sequence[Json]) -> Iterator[str]:
    """Yield why an operation is not conformant."""
    yield f"**{_prose(op['op'])} {_prose(op['dtype'])}**: {_prose(op['reason'])}"
    if op["diagnosis"]:
        yield f"- Diagnosis: {_prose(op['diagnosis']['text'])}"
        for key, title in (("hint", "Look at"), ("seen_in", "Seen in")):
            if op["diagnosis"].get(key):
                yield f"- {title}: {_prose(op['diagnosis'][key])}"
    shown, left = samples(bad)
    for case, others in shown:
        alike = f" (and {others} more like it)" if others else ""
        yield f"- {_code(case['id'])} {case['verdict']}: {_prose(case['message'])}{alike}"
    if left:
        yield f"- and {left} more"
    if bad and bad[0].get("reproduce"):
        yield f"- Repeat: {_code(bad[0]['reproduce'])}"


def _tally(counts: Mapping[str, int]) -> str:
    """Return the number of cases with each verdict, and the number of missing operations."""
    names = {"missing": "operations not offered", "unsupported": "outside", "pass": "passed"}
    words = [f"{counts[v]} {names.get(v, v)}" for v in ("pass", *BAD, "unsupported", "missing") if counts.get(v)]
    return ", ".join(words) or "no cases"


def _suite(root: ET.Element, name: str, about: Json) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", name=printable(name))
    stated = {n: v for n, v in about.items() if v is not None}
    if stated:
        properties = ET.SubElement(suite, "properties")
        for key, value in stated.items():
            text = value if isinstance(value, str) else json.dumps(value)
            ET.SubElement(properties, "property", name=key, value=printable(text))
    return suite


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=printable(group), name=printable(name))


def _outcome(element: ET.Element, case: Json) -> None:
    """Add the verdict of a case to its test."""
    verdict = case["verdict"]
    if verdict == "pass":
        return
    kind = "failure" if verdict in ("fail", "selective") else "error" if verdict in BAD else "skipped"
    outcome = ET.SubElement(element, kind, message=printable(case["message"]))
    if kind != "skipped":
        outcome.set("type", verdict)
        outcome.text = printable(f"repeat: {case.get('reproduce', '')}")


def _count(root: ET.Element) -> None:
    """Write the numbers of tests, failures, errors and skipped tests on every suite, and their sums on the root."""
    sums: Counter[str] = Counter()
    for suite in root:
        tests = suite.findall("testcase")
        counts = {f"{kind}s": sum(t.find(kind) is not None for t in tests) for kind in ("failure", "error")}
        counts = {"tests": len(tests), **counts, "skipped": sum(t.find("skipped") is not None for t in tests)}
        sums.update(counts)
        for name, n in counts.items():
            suite.set(name, str(n))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sums[name]))


def _prose(text: str) -> str:
    """Return third-party text, escaped so that Markdown shows it as it is: no markup, HTML, links, formulas or columns."""
    return re.sub(r"([\\`*_\[\]<>&|~!@$]|:(?=//)|(?<=www)\.)", r"\\\1", printable(text))


def _code(text: str) -> str:
    """Return third-party text as Markdown code, fenced by more backticks than it contains."""
    text = printable(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"

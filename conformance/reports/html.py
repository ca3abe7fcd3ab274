"""The HTML report: one page from a report's JSON. It needs no network and no scripts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from ..errors import PosrefError, printable
from ..model import BAD, STANDINGS
from . import figures
from .document import (
    batch_lines,
    by_operation,
    class_names,
    failing,
    ordered,
    process,
    ratio,
    scope_lines,
    standing,
    state,
    verdict_text,
)

ORDER = ("pass", *BAD, "unsupported")
TEMPLATES = Path(__file__).parent / "templates"
SNIPPET = """\
import numpy as np
from posref.conformance import suite
from posref.conformance.targets.python import load_python

implementation = load_python({name!r}, backend={backend!r}, dtype={dtype!r})
[group] = suite.load_groups(suite.INSTALLED, group={group!r})
[case] = [c for c in group.cases if c.id == {case!r}]
for call in case.calls:
    print(case.op, dict(call.params), {{name: x.shape for name, x in call.inputs.items()}})
    outputs = implementation.run(case, call, {dtype!r})
    for name, expected in call.expected.items():
        got = np.broadcast_to(outputs[name], expected.shape)
        error = np.abs(got - expected)
        at = tuple(map(int, np.unravel_index(np.argmax(error), error.shape)))
        print(f"{{name}}{{list(at)}}: expected {{expected[at]!r}}, got {{got[at]!r}}, off by {{error[at]:.2g}}")
"""


def render(document: Mapping[str, Any]) -> str:
    """Return the page of a report, given its JSON. Raise PosrefError if jinja2 is not installed."""
    document = ordered(document)
    return page(
        "report.html.j2", process=process(document),
        document=document, target=document["target"], title=_title(document["target"]), state=state(document),
        shown=verdict_text(document), marks=figures.MARKS, drawn=figures.DRAWN,
        scopes=scope_lines(document), batch=batch_lines(document), operations=_operations(document),
        counts=_counts(document["counts"]), standings=STANDINGS, standings_of_cases=BAD,
        legend=figures.LEGEND,
    )  # fmt: skip


def page(template: str, **values: Any) -> str:
    """
    Return the page that a template gives with values, and with the style and the script that all pages have.

    Raise PosrefError if jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        msg = "an HTML report needs jinja2: pip install 'posref[html]'"
        raise PosrefError(msg) from error
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    environment.filters |= {
        "sentence": lambda text: text[:1].upper() + text[1:],
        "short": _short,
        "svg": Markup,
        "lines": lambda text: Markup(Markup.escape(text)),
    }
    inline = {name: Markup((TEMPLATES / f"report.{name}").read_text(encoding="utf-8").strip()) for name in ("css", "js")}
    digests = {name: hashlib.sha256(text.encode()).digest() for name, text in inline.items()}
    hashes = {
        name: f"'sha256-{base64.b64encode(digest).decode()}'" for name, digest in digests.items()
    }  # for the page's policy
    return environment.get_template(template).render(inline=inline, hashes=hashes, **values)


def _operations(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the page shows of every operation, failing ones first."""
    return [_operation(op, cases, document["target"]) for op, cases in by_operation(document)]


def _operation(op: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation with its figures and its cases: failing ones first, the smallest plain call before the others."""
    bad = failing(cases)
    chosen = {id(c) for c in bad}
    curve, heat, rows = op.get("curve") or [], op.get("heat"), op.get("coverage") or []
    axes = [None, *(row["axis"] for row in rows)]  # an axis is named in its first row alone
    coverage = [{**row, "axis": "" if row["axis"] == before else row["axis"]} for row, before in zip(rows, axes, strict=False)]
    whole = f"{target.get('reproduce', '')} --op {op['op']} --dtype {op['dtype']}".strip()
    return {
        **op,
        "anchor": re.sub(r"[^A-Za-z0-9]+", "-", f"{op['op']}-{op['dtype']}"),
        "standing": standing(op),
        "counts": _counts(op["counts"]),
        "ratio": ratio(op),
        "classes": class_names(op["op"], op["achieved"], op["claim"]),
        "parts": _parts(bad, [c for c in cases if id(c) not in chosen]),
        "coverage": coverage,
        "asked": sum(op["counts"].values()),
        "curve": figures.curve(curve, op["claim"], op["first_failing_position"]) if curve else "",
        "map": figures.heat(heat) if heat and len(heat["values"]) * len(heat["values"][0]) > 1 else "",
        "ratios": "" if heat is None else ";".join(",".join(_short(v) for v in row) for row in heat["values"]),
        "reproduce": bad[0].get("reproduce", "") if bad else whole,
        "snippet": _snippet(bad[0], target) if bad and target.get("kind", "python") == "python" else "",
    }


def _parts(bad: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cases in parts: those that fail, which are open, then those that pass, invalid calls, and those outside."""
    outside = [c for c in others if c["verdict"] == "unsupported"]
    invalid = [c for c in others if c["verdict"] != "unsupported" and c["kind"] == "reject"]
    passing = [c for c in others if c["verdict"] != "unsupported" and c["kind"] != "reject"]
    parts = (("failing", bad), ("passing", passing), ("invalid calls", invalid), ("outside the scope", outside))
    return [
        {
            "name": name,
            "look": name.replace(" ", "-"),
            "open": name == "failing",
            "cases": [{**case, "shown": _shown(case)} for case in cases],
        }
        for name, cases in parts
        if cases
    ]


def _title(target: Mapping[str, Any]) -> str:
    """Return the name of a target without the folders in which it lies."""
    name = str(target["name"])
    if target.get("kind", "python") == "python":
        return PurePath(name).stem if name.endswith(".py") else name
    return " ".join(PurePath(word).name or word for word in name.split())


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of cases with each verdict, in the order of verdicts."""
    return {verdict: counts[verdict] for verdict in ORDER if counts.get(verdict)}


def _shown(case: Mapping[str, Any]) -> str:
    """Return a case's verdict. An invalid call that was not refused does not count as a failure, since it decides nothing."""
    return "not refused" if case["kind"] == "reject" and case["verdict"] == "fail" else str(case["verdict"])


def _snippet(case: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Return Python code that asks the implementation one case again, and prints its largest error."""
    group = case["id"].rsplit("/", maxsplit=1)[0]
    return SNIPPET.format(name=target["name"], backend=target["backend"], dtype=case["dtype"], group=group, case=case["id"])


def _short(value: float | str | None) -> str:
    """Return a number of a report's JSON in two digits, and nothing for null."""
    return "" if value is None else figures.plain(float(value))

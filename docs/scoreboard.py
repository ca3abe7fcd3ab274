"""
Write docs/scoreboard.md from the reports in docs/scoreboard and the findings about their failures.

    python docs/scoreboard.py add REPORT...    summarise reports of posref check in docs/scoreboard, then write the page
    python docs/scoreboard.py                  write the page
    python docs/scoreboard.py prove ADAPTER    run the snippets of an adapter's findings; its library must be installed
"""

import fnmatch
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("scoreboard")
PAGE = FOLDER.with_suffix(".md")
PAGES = "findings"  # the folder of a page for each defect: docs/findings.py
BAD = ("fail", "error", "crash", "timeout", "protocol", "not-run")
KEPT = ("op", "dtype", "claim", "achieved", "counts")
HEAD = """\
# Scoreboard

What `posref check` finds in released libraries. `nox -s scoreboard` installs each library, in the version named here, into its
own environment. It asks the library's own code the core cases of the vectors, through an adapter in `conformance/adapters`.
Every row comes from such a report.

{suites}

The [accuracy classes](guides/check.md#accuracy-classes), from the tightest: **float64**; **angle64** (angles in float64, the
rest in float32); **frequency32** (frequencies as accurate as a float32 power) and **product32** (the angle rounded to float32
too); **angle32** (all in float32); **low** (half precision at every operation, angles in float32). In every class but low, a
bfloat16 or float16 result is rounded once. If a library does not offer something (a layout, an option, explicit positions),
its cases are counted as "not offered", and never as failed. A class in brackets holds for all cases except the findings.

Every failure was confirmed by hand against the source of that version. It is one of two things:

- a **convention**: the library differs on purpose and says so, or follows the model that the code was written for;
- a **defect**: it contradicts the paper, the library's own documentation, or the model that it implements.

This does not rank libraries. They differ in how much they offer, and some of these findings cannot occur with the models that
they ship. Corrections are welcome, and so are adapters for other libraries.
"""


def summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page needs from a report: the number of cases with each verdict, and every failure."""
    from posref.conformance.calls import ladder
    from posref.conformance.targets.python import package_of

    if not report["complete"]:
        raise ValueError(f"scoreboard: the report of {report['target']['name']} must be complete.")
    adapter, asked = report["target"]["name"], [c for c in report["cases"] if c["kind"] != "reject"]
    operations = []
    for operation in report["operations"]:
        mine = [c for c in asked if (c["op"], c["dtype"]) == (operation["op"], operation["dtype"])]
        passed = [c["achieved"] for c in mine if c["verdict"] == "pass"]
        order = ladder(operation["op"], operation["dtype"], operation["claim"])
        kept = {name: operation[name] for name in KEPT} | {"passed": max(passed, key=order.index, default=None)}
        kept["diagnosis"] = (operation["diagnosis"] or {}).get("text")
        operations.append(kept)
    package = package_of(adapter).split("[")[0]
    of_groups = {"groups": groups(o["op"] for o in operations)} if report["suite"]["sha256"] == suite()["sha256"] else {}
    return {
        "adapter": adapter, "package": package, "versions": report["target"]["versions"],
        "suite": report["suite"] | of_groups, "operations": operations,
        "failures": [{n: c[n] for n in ("id", "op", "dtype", "verdict", "message")} for c in asked if c["verdict"] in BAD],
    }  # fmt: skip


def load() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the summaries, by name of the package, and the findings."""
    files = [path for path in FOLDER.glob("*.json") if path.name != "findings.json"]
    summaries = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    findings = json.loads((FOLDER / "findings.json").read_text(encoding="utf-8"))
    return sorted(summaries, key=lambda s: (str(s["package"]).lower(), s["adapter"])), findings


def page(
    summaries: Iterable[Mapping[str, Any]], findings: Iterable[Mapping[str, Any]], today: Mapping[str, str] | None = None
) -> str:
    """Return the page. A failure that no finding covers is shown as unconfirmed, and a row of another suite is marked."""
    summaries, findings, today = list(summaries), list(findings), today or suite()
    current = sum(is_of(s, today) for s in summaries)
    said = f"All rows are of today's suite, {today['version']}."
    if current < len(summaries):
        said = f"{current} of {len(summaries)} rows are of today's suite, {today['version']}. The others, marked\n"
        said += "**older suite**, may have been asked other cases: their numbers of cases cannot be compared."
    lines = [
        HEAD.format(suites=said),
        "| library | version | suite | operations | cases passed | findings |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_overview(s, findings, "today's" if is_of(s, today) else "**older suite**") for s in summaries]
    for s in summaries:
        lines += ["", *_library(s, findings)]
    return "\n".join(lines) + "\n"


def groups(ops: Iterable[str]) -> str:
    """Return a hash of the installed suite's groups of some operations: a row stays as it is while these do."""
    from posref.conformance.suite import INSTALLED, load_manifest

    asked = {*ops}
    files = [sorted(entry["files"].items()) for entry in load_manifest(INSTALLED)["groups"] if entry["op"] in asked]
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def suite() -> dict[str, str]:
    """Return the version and the hash of the installed suite, as reports have them."""
    from posref.conformance.suite import INSTALLED, load_manifest

    sha256 = hashlib.sha256((INSTALLED / "SUITE.json").read_bytes()).hexdigest()
    return {"version": load_manifest(INSTALLED)["suite"], "sha256": sha256}


def is_of(s: Mapping[str, Any], today: Mapping[str, str]) -> bool:
    """
    Return whether a summary was asked the cases of a suite.

    That is so if the version is the same, or the hash where a report has the release alone, or the groups of its operations.
    """
    alike = s["suite"]["version"] == today["version"] or s["suite"]["sha256"] == today["sha256"]
    return alike or s["suite"].get("groups") == groups(op["op"] for op in s["operations"])


def matching(finding: Mapping[str, Any], s: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a library's failures with a finding."""
    if (finding["adapter"], finding["version"]) != (s["adapter"], version(s)):
        return []
    return [
        failure
        for failure in s["failures"]
        if failure["dtype"] in finding.get("dtypes", [failure["dtype"]])
        and any(fnmatch.fnmatch(failure["id"], pattern) for pattern in finding["cases"])
    ]


def page_of(finding: Mapping[str, Any]) -> str:
    """Return the name of a defect's page."""
    return f"{finding['adapter'].replace('_', '-')}-{finding['name']}.md"


def unconfirmed(s: Mapping[str, Any], findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a library's failures without a finding."""
    explained = [failure for finding in findings for failure in matching(finding, s)]
    return [failure for failure in s["failures"] if failure not in explained]


def version(s: Mapping[str, Any]) -> str:
    """Return the version of a summary's library."""
    return str(s["versions"][s["package"]])


def _overview(s: Mapping[str, Any], findings: Iterable[Mapping[str, Any]], of: str) -> str:
    shown = _shown(s)
    passed, asked = (sum(_count(o, *verdicts) for o in shown) for verdicts in (("pass",), ("pass", *BAD)))
    kinds = [f["kind"] for f in findings if matching(f, s)]
    counted = [f"{kinds.count(k)} {k}{'s' * (kinds.count(k) > 1)}" for k in ("defect", "convention") if k in kinds]
    counted += [f"**{len(open_)} unconfirmed**"] if (open_ := unconfirmed(s, findings)) else []
    operations = ", ".join(dict.fromkeys(o["op"] for o in shown))
    title = _title(s)
    anchor = title.lower().replace(" ", "-")
    cells = (f"[{title}](#{anchor})", version(s), of, operations, f"{passed} of {asked}", ", ".join(counted) or "none")
    return f"| {' | '.join(cells)} |"


def _title(s: Mapping[str, Any]) -> str:
    """Return the name of the package, with its part if a second adapter covers it."""
    part = s["adapter"].removeprefix(s["package"].lower().replace("-", "_")).strip("_")
    return f"{s['package']} {part}".strip()


def _library(s: Mapping[str, Any], findings: Iterable[Mapping[str, Any]]) -> list[str]:
    others = ", ".join(f"{name} {number}" for name, number in s["versions"].items() if name != s["package"])
    lines = [f"## {_title(s)}", "", f"Version {version(s)}, with {others}. Suite {s['suite']['version']}.", ""]
    lines += ["| operation | dtype | achieved | passed | failed | not offered |", "|---|---|---|---|---|---|"]
    for o in _shown(s):
        achieved = o["achieved"] or (f"({o['passed']})" if o["passed"] else "none")
        numbers = (_count(o, "pass"), _count(o, *BAD), _count(o, "unsupported", "selective"))
        lines.append(f"| {o['op']} | {o['dtype']} | {achieved} | {' | '.join(map(str, numbers))} |")
    for finding in findings:
        if failures := matching(finding, s):
            lines += ["", *_finding(s, finding, failures)]
    if failures := unconfirmed(s, findings):
        lines += ["", "### Unconfirmed", ""]
        lines += [f"- `{f['id']}` in {f['dtype']}: {f['verdict']}: {f['message']}" for f in failures]
    return lines


def _finding(s: Mapping[str, Any], finding: Mapping[str, Any], failures: list[dict[str, Any]]) -> list[str]:
    """Return one finding: what happens, why it is a defect or a convention, where, and how to see it."""
    cases = ", ".join(f"`{case}`" for case in dict.fromkeys(f["id"] for f in failures))
    dtypes = list(dict.fromkeys(f["dtype"] for f in failures))
    operations = ", ".join(dict.fromkeys(f["op"] for f in failures))
    first = next(f for f in failures if f["dtype"] == dtypes[0])
    said = next(o["diagnosis"] for o in s["operations"] if (o["op"], o["dtype"]) == (first["op"], first["dtype"]))
    lines = [
        f"### {finding['title']}",
        "",
        f"**{finding['kind'].capitalize()}**, {operations}, {', '.join(dtypes)}. {finding['evidence']}",
        "",
    ]
    lines += [f"- Source: {finding['source']}"]
    if finding["kind"] == "defect":
        lines.append(f"- [What should happen, a fix and a test]({PAGES}/{page_of(finding)})")
    lines += [f"- Upstream: {finding['upstream']}"] if finding.get("upstream") else []
    lines += [
        f"- Cases: {cases}",
        f"- First failure: {first['message']}",
        *([f"- Diagnosis of {first['op']} in {first['dtype']}: {said}"] if said else []),
    ]
    lines += ["", "```sh", f"posref check {s['adapter']} --case {first['id']} --dtype {first['dtype']}", "```"]
    return [*lines, "", "```python", *finding["snippet"], *(f"# {line}" for line in finding["prints"]), "```"]


def _shown(s: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the operations that the library offers, at least in part, in that dtype."""
    return [o for o in s["operations"] if _count(o, "pass", *BAD)]


def _count(operation: Mapping[str, Any], *verdicts: str) -> int:
    return sum(operation["counts"].get(verdict, 0) for verdict in verdicts)


def add(paths: Iterable[str]) -> None:
    """Write the summary of every report."""
    for path in paths:
        s = summary(json.loads(Path(path).read_text(encoding="utf-8")))
        (FOLDER / f"{s['adapter']}.json").write_text(
            json.dumps(s, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
        )


def prove(adapter: str) -> None:
    """Run the snippets of an adapter's findings, each in a process of its own. They must print what the page says."""
    for finding in load()[1]:
        if finding["adapter"] != adapter:
            continue
        from posref.conformance.targets.python import package_of

        installed = importlib.metadata.version(package_of(adapter).split("[")[0])
        command = [sys.executable, "-P", "-c", "\n".join(finding["snippet"])]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if (ran.returncode, installed, ran.stdout.splitlines()) != (0, finding["version"], finding["prints"]):
            msg = f"{adapter} {installed}: {finding['title']}: must print {finding['prints']}; got {ran.stdout or ran.stderr!r}"
            raise SystemExit(msg)
        print(f"{adapter} {installed}: {finding['title']}: as said")


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    if arguments[:1] == ["prove"]:
        prove(*arguments[1:])
        return
    if arguments[:1] == ["add"]:
        add(arguments[1:])
    PAGE.write_text(page(*load()), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

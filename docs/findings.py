"""
Write docs/findings: a page for every defect of docs/scoreboard/findings.json, which a person can file as it stands.

    python docs/findings.py                    write the pages
    python docs/findings.py patched ADAPTER    prove the fixes of an adapter's defects; its library must be installed

For each defect `patched` runs the snippet with its fix alone, and the cases of all of the library's defects with all fixes. The
files that a fix changes are copied; the installed library stays as it is. A fix of compiled code is not repeated here: the
library has to be built with it.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import scoreboard

FOLDER = Path(__file__).with_name("findings")


def defects(adapter: str | None = None) -> list[dict[str, Any]]:
    """Return the confirmed defects, all or those of one adapter."""
    confirmed = [finding for finding in scoreboard.load()[1] if finding["kind"] == "defect"]
    return [finding for finding in confirmed if adapter in (None, finding["adapter"])]


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file."""
    summaries = {summary["adapter"]: summary for summary in scoreboard.load()[0]}
    return {scoreboard.page_of(finding): _page(finding, summaries[finding["adapter"]]) for finding in defects()}


def _page(finding: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    package, failures = summary["package"], scoreboard.matching(finding, summary)
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    upstream = finding.get("upstream") or "we know of no report."
    lines = [f"# {package}: {finding['title']}", "", f"Versions: {versions}, on a CPU.", ""]
    lines += ["## What happens", "", finding["evidence"], "", "```python", *finding["snippet"], "```", ""]
    lines += ["prints", "", "```text", *finding["prints"], "```", "", "## What should happen", "", finding["should"], ""]
    lines += ["## Where", "", f"{finding['source']}.", "", "## A fix", "", *_diff(finding["fix"]), ""]
    prints = ["prints", "", "```text", *finding["after"], "```"] if finding["after"] else ["raises nothing."]
    lines += ["## A test", "", f"With the fix alone the snippet {prints[0]}", *prints[1:], ""]
    lines += ["## Elsewhere", "", f"Upstream: {upstream}", ""]
    many = (
        "One case of posref fails for this reason"
        if len(failures) == 1
        else f"{len(failures)} cases of posref fail for this reason. One of them"
    )
    lines += [
        f"{many}: `posref check {summary['adapter']} --case "
        f"{failures[0]['id']} --dtype {failures[0]['dtype']}`. With the fixes of all findings about {package} "
        f"{'it passes' if len(failures) == 1 else 'all of them pass'}{_but(summary, failures)}."
    ]
    return "\n".join(lines) + "\n"


def _but(summary: Mapping[str, Any], failures: Sequence[Mapping[str, Any]]) -> str:
    """Return that some cases also meet a convention, which no fix changes."""
    meant = [finding for finding in scoreboard.load()[1] if finding["kind"] == "convention"]
    both = [f["title"] for f in meant if any(failure in failures for failure in scoreboard.matching(f, summary))]
    return f", except those that a convention changes too ({'; '.join(both)})" if both else ""


def _diff(fix: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the changes as a diff, without the lines that both sides begin and end with but for one."""
    lines = ["```diff"]
    for change in fix:
        old, new = list(change["old"]), list(change["new"])
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        kept = 0
        while kept < min(len(old), len(new)) - same and old[-1 - kept] == new[-1 - kept]:
            kept += 1
        lines += [f"--- {change['file']}"] if lines[-1] != f"--- {change['file']}" else []
        lines += [f" {line}" for line in old[max(0, same - 1) : same]]
        lines += [f"-{line}" for line in old[same : len(old) - kept]] + [f"+{line}" for line in new[same : len(new) - kept]]
        lines += [f" {line}" for line in old[len(old) - kept :][:1]]
    return [*lines, "```"]


def patched(adapter: str) -> None:
    """Run the snippets with their fixes, and the check with all of them; leave with an error at what is not as said."""
    mine = []
    for finding in defects(adapter):
        if all(change["file"].endswith(".py") for change in finding["fix"]):
            mine.append(finding)
        else:
            print(f"{adapter}: {finding['title']}: the fix is in compiled code; build the library with it")
    if not mine:
        return
    for finding in mine:
        with tempfile.TemporaryDirectory() as folder:
            _overlay(Path(folder), finding["fix"])
            printed = _run([sys.executable, "-P", "-c", "\n".join(finding["snippet"])], folder).splitlines()
        if printed != finding["after"]:
            raise SystemExit(f"{adapter}: {finding['title']}: with the fix must print {finding['after']}; got {printed}")
        print(f"{adapter}: {finding['title']}: with the fix as said")
    with tempfile.TemporaryDirectory() as folder:
        _overlay(Path(folder), [change for finding in mine for change in finding["fix"]])
        report = Path(folder) / "report.json"
        ops = sorted({case.split("/", maxsplit=1)[0] for finding in mine for case in finding["cases"]})
        words = [word for op in ops for word in ("--op", op)]
        _run([sys.executable, "-P", "-m", "posref", "check", adapter, *words, "--json", str(report)], folder)
        summary = scoreboard.summary(json.loads(report.read_text(encoding="utf-8")))
    meant = [c for c in scoreboard.load()[1] if c["kind"] == "convention"]
    chosen = {(f["id"], f["dtype"]) for convention in meant for f in scoreboard.matching(convention, summary)}
    left = {
        finding["title"]: [f for f in scoreboard.matching(finding, summary) if (f["id"], f["dtype"]) not in chosen]
        for finding in mine
    }
    for title, failures in left.items():
        print(f"{adapter}: {title}: {'green' if not failures else [f['id'] + ' ' + f['dtype'] for f in failures]}")
    if any(left.values()):
        raise SystemExit(1)


def _overlay(folder: Path, fix: Iterable[Mapping[str, Any]]) -> None:
    """Make a copy of the packages in `folder` that links to all files but those that a fix changes."""
    for change in fix:
        parts = Path(change["file"]).parts
        spec = importlib.util.find_spec(parts[0])
        if spec is None:
            raise SystemExit(f"patched: {parts[0]} is not installed.")
        here, there = Path(next(iter(spec.submodule_search_locations or ()))), folder / parts[0]
        for part in parts[1:]:
            there.mkdir(exist_ok=True)
            for child in here.iterdir():
                if child.name not in (part, "__pycache__") and not (there / child.name).exists():
                    (there / child.name).symlink_to(child)
            here, there = here / part, there / part
            if there.is_symlink():
                there.unlink()
        text = (there if there.exists() else here).read_text(encoding="utf-8")
        old, new = "\n".join(change["old"]), "\n".join(change["new"])
        if text.count(old) != 1:
            msg = f"patched: {change['file']} must have these lines once, and has them {text.count(old)} times: {old}"
            raise SystemExit(msg)
        there.write_text(text.replace(old, new), encoding="utf-8")


def _run(command: list[str], folder: str) -> str:
    """Return what a command prints in which the changed packages come first."""
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(done.stderr or done.stdout)
    return done.stdout


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    if arguments[:1] == ["patched"]:
        patched(*arguments[1:])
        return
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for file in FOLDER.glob("*.md"):
        if file.name not in wanted:
            file.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

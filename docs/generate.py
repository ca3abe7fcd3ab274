"""
Write what the documentation takes from the code: the page of deviations, and the output blocks of the README.

    python docs/generate.py
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from posref.conformance.deviations import DEVIATIONS, Deviation
from posref.conformance.deviations.compose import PARTS
from posref.spec import REGISTRY

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "deviations.md", ROOT / "README.md"
OUTPUT = re.compile(r"(<!-- output of: posref (.*?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", re.DOTALL)
HEAD = """\
# Deviations

The ways to be wrong that posref knows: {count} named transformations of the reference. `posref check` tries them as
explanations of a failure, and the suite is measured with them: every one must fail at least two cases. A failure that none of
them explains is reported as unexplained.

"Seen in" names an issue, pull request or commit where a defect like it was found. This page is written by
`python docs/generate.py` from `posref.conformance.deviations`.
"""


def operations(deviation: Deviation) -> list[str]:
    """Return the operations that a deviation changes itself; a part without a name outside counts as what it is part of."""
    found: dict[str, None] = {}
    for name in deviation.wraps:
        found |= dict.fromkeys([name] if name in REGISTRY else [op for op, parts in PARTS.items() if name in parts])
    return sorted(found, key=list(REGISTRY).index)


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    for mark in "\\|*_<[":
        text = text.replace(mark, f"\\{mark}")
    return text


def deviations() -> str:
    """Return the page of deviations, by the operations that they change."""
    sections: dict[str, list[Deviation]] = {}
    for deviation in DEVIATIONS.values():
        sections.setdefault(", ".join(operations(deviation)), []).append(deviation)
    order = list(REGISTRY)
    lines = [HEAD.format(count=len(DEVIATIONS))]
    for title in sorted(sections, key=lambda t: [order.index(op) for op in t.split(", ")]):
        lines += [f"## {title}\n", "| name | what it does | look at | seen in |", "|---|---|---|---|"]
        lines += [f"| `{d.name}` | {cell(d.text)} | {cell(d.hint)} | {cell(d.seen_in)} |" for d in sections[title]]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def run(command: str, text: str) -> str:
    """Return what a posref command prints where the examples and the files shown in `text` are."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "examples", Path(scratch, "examples"))
        for name, content in FILE.findall(text):
            Path(scratch, name).write_text(content, encoding="utf-8")
        call = [sys.executable, "-m", "posref", *command.split()]
        done = subprocess.run(call, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(done.stderr)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def readme(text: str) -> str:
    """Return the README with every output block as it is now."""
    return OUTPUT.sub(lambda block: block[1] + run(block[2], text) + block[4], text)


if __name__ == "__main__":
    PAGE.write_text(deviations(), encoding="utf-8", newline="\n")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")

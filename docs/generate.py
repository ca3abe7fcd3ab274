"""Write the pages of docs/ that are made from the registries: python docs/generate.py [--check]."""

import sys
from pathlib import Path

from posref.conformance.deviations import DEVIATIONS, Deviation
from posref.conformance.deviations.compose import PARTS

from posref.spec import REGISTRY

PAGE = Path(__file__).parent / "deviations.md"
HEAD = """\
# Deviations

The ways to be wrong that posref knows: {count} named transformations of the reference. `posref check` tries them as
explanations of a failure, and the suite is measured with them: every one must fail at least one case. A failure that none of
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


if __name__ == "__main__":
    if "--check" in sys.argv:
        current = PAGE.read_text(encoding="utf-8") == deviations()
        sys.exit(0 if current else f"{PAGE} is out of date: python docs/generate.py")
    PAGE.write_text(deviations(), encoding="utf-8", newline="\n")

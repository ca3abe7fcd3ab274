"""The pages of known mistakes: one for each family, with links to symptoms, and a first page that keeps older anchors."""

import re
from pathlib import Path

import symptoms

from posref.spec import FAMILIES, REGISTRY

PAGE = Path(__file__).parents[1] / "deviations.md"


def sections() -> dict[str, dict[str, str]]:
    """Return the sections of docs/deviations.md by family and title. A section belongs to the family of its first operation."""
    families: dict[str, dict[str, str]] = {family: {} for family in FAMILIES}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        families[REGISTRY[title.split(", ")[0]].family][title] = text.strip()
    return {family: texts for family, texts in families.items() if texts}


def places() -> dict[str, str]:
    """Return the file and anchor that has each mistake, below the first folder of the site."""
    return {
        name: f"deviations/{family}.md#{symptoms.slug(title)}"
        for family, texts in sections().items()
        for title, text in texts.items()
        for name in re.findall(r"^\| `([\w.-]+)` \|", text, re.MULTILINE)
    }


def first() -> str:
    """Return the first page: the text about mistakes, and the sections of each family under their older anchors."""
    lines = [PAGE.read_text(encoding="utf-8").split("\n## ")[0].strip(), ""]
    for family, texts in sections().items():
        lines += [f"## {family.capitalize()}", "", f"[All of this family](deviations/{family}.md):", "", ":::{div} names"]
        for title in texts:
            anchor = symptoms.slug(title)
            lines.append(f'- <span id="{anchor}"></span>[{title}](deviations/{family}.md#{anchor})')
        lines += [":::", ""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", *(f"deviations/{family}" for family in sections()), "```", ""])


def page(family: str) -> str:
    """Return the page of one family. A mistake links to its symptom."""
    behind = symptoms.of_mistakes()
    lines = [f"# Mistakes: {family}", ""]
    for title, text in sections()[family].items():
        lines += [f"## {title}", ""]
        for line in text.splitlines():
            name = re.match(r"\| `([\w.-]+)` \| (.*)$", line)
            seen = behind.get(name[1], []) if name else []
            links = ", ".join(f'["{s.title}"](../symptoms.md#{symptoms.slug(s.title)})' for s in seen)
            lines.append(f"| `{name[1]}` | Symptom: {links}: {name[2]}" if name and links else line)
        lines.append("")
    return "\n".join(lines)

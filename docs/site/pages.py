"""
Write the source of the site: a page for each encoding, generated, and those pages of docs that stand on their own.

    python docs/site/pages.py FOLDER && sphinx-build -W --keep-going FOLDER/source FOLDER/html

Everything is read from the registry, the docstrings, the mistakes, the presets and the suite. Nothing is written twice.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import choose
import families
import first
import lessons
import mistakes
import notebooks
import ranking
import rules
import slim
import snippets
import speed
import stored
import symptoms
from trackers import references

from posref import plots, rope, sinusoidal
from posref.about import ABOUT
from posref.conformance.comparison.table import operations
from posref.conformance.comparison.variants import PAGE, variants
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.core.composition import stages
from posref.plots.pictures import PICTURES
from posref.presets import presets
from posref.spec import FAMILIES, REGISTRY

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
PITFALLS = 10  # shown; the rest is folded
MODULES = ("scaling", "positions", "analysis", "plots", "testing", "conformance", "backends")
FUNCTIONS = ("rope_from_config", "mrope_from_config", "rope_from_gguf", "from_config", "from_gguf")
BEYOND = (  # the pictures of the gallery: a page, its title and what it has
    ("variants", "Named variants", "Variants such as VideoRoPE, GRAPE or clipped RoPE: one line each, with its equation."),
    ("choose", "Choose your encoding", "A recommendation for your data, and a table of what each encoding does."),
)
GRAPHS = ("laplacian_eigenvalues", "laplacian_projectors")


def write(folder: Path) -> None:
    """Write all pages and pictures below a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("encodings", "guides", "findings", "pictures", "api", "models", "deviations", "notebooks"):
        (folder / part).mkdir(parents=True)
    for name in ("conf.py", "formulas.py", "slim.py", "scorer.js"):
        shutil.copy(HERE / name, folder / name)
    shutil.copytree(HERE / "_static", folder / "_static")
    (folder / "_static" / "symptom-index.js").write_text(ranking.script(), encoding="utf-8")
    (folder / "proved.md").write_text((HERE / "proved.md").read_text().replace("{worked}", _worked()), encoding="utf-8")
    page = (HERE / "tolerances.md").read_text(encoding="utf-8")
    (folder / "tolerances.md").write_text(
        page.replace("{units}", rules.units()).replace("{kinds}", rules.kinds()), encoding="utf-8"
    )
    (folder / "index.md").write_text(_front(), encoding="utf-8")
    shutil.copy(HERE / "play.md", folder / "play.md")
    (folder / "variants.md").write_text(_variants(), encoding="utf-8")
    (folder / "speed.md").write_text(speed.page(), encoding="utf-8")
    for name in ("diagnosis.md", "scoreboard.md"):
        shutil.copy(DOCS / name, folder / name)
    (folder / "deviations.md").write_text(mistakes.first(), encoding="utf-8")
    for family in mistakes.sections():
        (folder / "deviations" / f"{family}.md").write_text(mistakes.page(family), encoding="utf-8")
    _findings(folder / "findings")
    _guides(folder / "guides")
    shutil.copytree(HERE / "course", folder / "course")
    _pictures(folder / "pictures")
    for op in REGISTRY:
        (folder / "encodings" / f"{op}.md").write_text(_encoding(op), encoding="utf-8")
    (folder / "encodings" / "index.md").write_text(_families(), encoding="utf-8")
    (folder / "gallery.md").write_text(_gallery(), encoding="utf-8")
    (folder / "choose.md").write_text(choose.page(families.links("models/")), encoding="utf-8")
    (folder / "models" / "index.md").write_text(families.index(), encoding="utf-8")
    (folder / "models" / "types.md").write_text(choose.types(), encoding="utf-8")
    for family in families.families():
        (folder / "models" / f"{families.slug(family)}.md").write_text(families.page(family), encoding="utf-8")
    for name in notebooks.NAMES:
        (folder / "notebooks" / f"{name}.md").write_text(notebooks.page(name), encoding="utf-8")
    _api(folder / "api")
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}
    firsts = {path: next(line for line in text.splitlines() if line.startswith("# ")) for path, text in texts.items()}
    titles = {path.relative_to(folder).with_suffix("").as_posix(): line.removeprefix("# ") for path, line in firsts.items()}
    (folder / "symptoms.md").write_text(symptoms.page(titles), encoding="utf-8")


def _variants() -> str:
    """Return the page of named variants, each followed by links to the operations that its line calls."""
    page = PAGE.read_text(encoding="utf-8")
    first, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    pages = (", ".join(f"[{ABOUT[op].title}](encodings/{op}.md)" for op in row["operations"]) for row in variants())
    return first + "".join(
        f"{text.rstrip()}\n\n" + (f"See {links}.\n\n" if links else "") for text, links in zip(sections, pages, strict=True)
    )


def _front() -> str:
    """Return the first page, with the code and the check that the README shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, check = (re.search(rf"```{kind}\n.*?```", readme, re.DOTALL) for kind in ("python", "text"))
    page = (HERE / "index.md").read_text(encoding="utf-8")
    return page.replace("{code}", code[0]).replace("{check}", check[0]) if code and check else page


# ---- a page for each encoding -----------------------------------------------------------------------------------------------
def _encoding(op: str) -> str:
    record, about = REGISTRY[op], ABOUT[op]
    chart, said = plots.chart(op), _says(op)
    lines = [f"# {about.title}", "", about.idea, "", f":Function: `posref.{op}`", f":Family: {record.family}"]
    lines += [f":Source: {record.source}"]
    lines += [f":Models: {', '.join(record.models)}"] if record.models else []
    below = stages(op)
    lines += [":Calls: " + ", ".join(f"[{name}]({name}.md)" if name in REGISTRY else name for name in below)] if below else []
    guides = _mentions(op)
    lines += [f":Guides: {', '.join(guides)}"] if guides else []
    lines += [
        "",
        f"![{said}](../pictures/{op}.svg){{.picture}}",
        "",
        said if chart.seen == said else f"{said} {chart.seen}",
        "",
        *snippets.tabs(op),
        "## Reference",
        "",
        "```{eval-rst}",
        f".. autofunction:: posref.{op}",
        "```",
        "",
    ]
    lines += _words(op) + _pitfalls(op) + stored.accuracy(op) + rules.section(op) + _users(op)
    lines += ["## Check yours", "", *stored.asked(op), "```console"]
    lines += [
        f"$ posref check TARGET --op {op}",
        f"$ posref vectors copy DIR --op {op}",
        f"$ posref plot {op} --kind all",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _says(op: str) -> str:
    """Return what the picture of an operation shows. A test asks every operation for that; a page can do without."""
    return PICTURES[op].says if op in PICTURES else plots.chart(op).seen


def _mentions(op: str) -> list[str]:
    """Return links to the guides and notebooks that name or call this operation."""
    texts = {f"guides/{path.name}": path.read_text(encoding="utf-8") for path in sorted((DOCS / "guides").glob("*.md"))}
    texts |= {f"notebooks/{name}.md": notebooks.page(name) for name in notebooks.NAMES}
    named = re.compile(rf"`{op}`|posref\.{op}\b|plots\.chart\(\"{op}\"")
    pages = {
        name: text
        for name, text in texts.items()
        if name not in ("guides/arguments.md", "guides/operations.md") and named.search(text)
    }
    return [f"[{text.splitlines()[0][2:]}](../{name})" for name, text in pages.items()]


def _words(op: str) -> list[str]:
    """Return what each word of each option means, and who uses it."""
    lines = []
    for option, words in ABOUT[op].words.items():
        lines += [f"### {option}", ""]
        for word, said in words.items():
            users = f" *{said.told}.*" if said.users else ""
            lines += [f"`{word}`", f": {said.meaning}{users}", ""]
    return ["## Where libraries differ", "", *lines] if lines else []


def _pitfalls(op: str) -> list[str]:
    """Return the known mistakes in this operation, then those in what it calls."""
    below = {op, *stages(op)}
    direct = [d for d in DEVIATIONS.values() if op in d.wraps]
    other = [d for d in DEVIATIONS.values() if op not in d.wraps and below & set(d.wraps)]
    if not direct + other:
        return []
    lines = [_pitfall(d.text, d.hint, d.seen_in) for d in direct + other]
    shown, folded = lines[:PITFALLS], lines[PITFALLS:]
    more = [f":::{{dropdown}} {len(folded)} more", *folded, ":::", ""] if folded else []
    return ["## Pitfalls", "", "Mistakes that `posref check` names:", "", *shown, "", *more]


def _pitfall(text: str, hint: str, seen_in: str) -> str:
    links = ", ".join(f"[{name}]({address})" for name, address in references(seen_in))
    text = f"- {text[:1].upper()}{text[1:]}. {hint}" + (f" Seen in {links}." if links else "")
    return text.replace("*", "\\*").replace("<", "&lt;").replace("$", "\\$")


def _users(op: str) -> list[str]:
    """Return the presets that call this operation."""
    users = [p for p in presets.values() if p.op == op]
    pages = {p.name: families.slug(family) for family, members in families.families().items() for p in members}
    return ["## Presets", "", ", ".join(f"[{p.name}](../models/{pages[p.name]}.md)" for p in users) + ".", ""] if users else []


# ---- other pages ------------------------------------------------------------------------------------------------------------
def _families() -> str:
    lines = ["# Encodings", ""]
    for family in FAMILIES:
        names = _members(family)
        if names:
            lines += [f"## {family.capitalize()}", ""]
            lines += [f"[{ABOUT[op].title}]({op}.md) ({op})\n: {ABOUT[op].idea}\n" for op in names]
            lines += ["```{toctree}", ":hidden:", *names, "```", ""]
    return "\n".join(lines)


def _members(family: str) -> list[str]:
    """Return a family's operations, as `posref list` orders them."""
    return [op for op in operations() if REGISTRY[op].family == family]


def _gallery() -> str:
    lines = [
        "---",
        "hide-toc: true",
        "---",
        "# Gallery",
        "",
        "One picture of each encoding, with what it shows. `posref plot NAME --kind all` draws the others.",
        "",
    ]
    lines += ["::::{grid} 1 2 3 3", ":class-container: gallery"]
    shown = [op for family in FAMILIES for op in _members(family)]
    for op in shown:
        lines += [":::{grid-item-card} " + ABOUT[op].title, f":link: encodings/{op}", ":link-type: doc"]
        lines += [f"![{op}](pictures/{op}.svg){{.picture loading=lazy}}", "", _says(op), ":::"]
    for page, title, text in BEYOND[: -len(shown) % 3]:  # the last row of the grid is full
        lines += [":::{grid-item-card} " + title, f":link: {page}", ":link-type: doc", text, ":::"]
    return "\n".join([*lines, "::::", ""])


def _findings(folder: Path) -> None:
    names = sorted(path.name for path in (DOCS / "findings").glob("*.md"))
    for name in names:
        text = (DOCS / "findings" / name).read_text(encoding="utf-8")
        seen = [s for s in symptoms.symptoms() if f"findings/{name.removesuffix('.md')}" in s.see]
        links = [f"[{s.title}](../symptoms.md#{symptoms.slug(s.title)})" for s in seen]
        more = f"\nSymptom: {', '.join(links)}.\n" if links else ""
        (folder / name).write_text(text + more, encoding="utf-8")
    lines = ["# Findings", "", "Confirmed defects of released libraries. Each page is a report that you can file.", ""]
    titles = [(DOCS / "findings" / name).read_text(encoding="utf-8").splitlines()[0][2:] for name in names]
    lines += [f"- [{title}]({name})" for title, name in zip(titles, names, strict=True)]
    lines += ["", "```{toctree}", ":hidden:", *(name.removesuffix(".md") for name in names), "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _guides(folder: Path) -> None:
    """Copy the guides, with links to the operations that they name; links outside docs become names."""

    def linked(name: re.Match[str]) -> str:
        return f"[{name[0]}](../encodings/{name[1]}.md)" if name[1] in REGISTRY else name[0]

    for path in (DOCS / "guides").glob("*.md"):
        text = re.sub(r"\[([^\]]+)\]\(\.\./\.\./[^)]+\)", r"`\1`", path.read_text(encoding="utf-8"))
        parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)  # prose, code, prose, ...
        parts[::2] = [re.sub(r"(?<!\[)`(?:posref\.)?(\w+)`", linked, part) for part in parts[::2]]
        (folder / path.name).write_text("".join(parts), encoding="utf-8")
    (folder / "operations.md").write_text(_operations(), encoding="utf-8")


def _operations() -> str:
    """Return a list of all operations with links: what `posref list` prints, in a form that fits a phone."""
    lines = ["# Operations", "", "`posref list` prints this list. `posref show NAME` prints a specification.", ""]
    for op, record in ((op, REGISTRY[op]) for op in operations()):
        models = f" Models: {', '.join(record.models)}." if record.models else ""
        lines += [f"[`{op}`](../encodings/{op}.md) ({record.family})", f": {ABOUT[op].title}.{models}", ""]
    return "\n".join(lines)


def _pictures(folder: Path) -> None:
    for op in REGISTRY:
        _both(plots.chart(op), folder / f"{op}.svg")
    _both(first.chart(), folder / "first.svg")
    _both(lessons.chart(), folder / "course-additions.svg")
    for function, kind in ((sinusoidal, "distance"), (rope, "bound"), (rope, "scaling")):
        _both(plots.chart(function.__name__, kind), folder / f"course-{kind}.svg")
    for notebook in notebooks.NAMES:
        for name, chart in notebooks.charts(notebook):
            _both(chart, folder / f"{name}.svg")


def _both(chart: Any, path: Path) -> None:
    """Draw one picture for both themes; matplotlib writes the colour of a text only where it is not black."""
    import matplotlib as mpl

    drawn = []
    for dark in (False, True):
        with mpl.rc_context(dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), "#010101")):
            plots.save([chart], path, dark=dark)
        drawn.append(path.read_text(encoding="utf-8"))
    path.write_text(slim.picture(*drawn), encoding="utf-8")


def _worked() -> str:
    """Return one value as balls, as the second witness and as bounds have it."""
    from mpmath import mp, mpf

    with mp.workdps(40):
        true = mp.sin(mpf(3) / mpf(10000) ** (mpf(2) / mpf(4)))
        text = mp.nstr(true, 30)
    nearest = float(true)
    return (
        "The sinusoidal encoding of position 3 with 4 channels has the value sin(3 / 10000^(2/4)) in channel 2 of layout\n"
        f'"interleaved". In arbitrary precision it is {text}... The nearest float64 is\n'
        f"`{nearest!r}`. Both ends of the ball round to it, and the second witness has the same bits. In class\n"
        "angle32 the frequency may have the error of a float32 power, the angle also that of a float32 product, and the sine\n"
        "one of two units in the last place. Their sum is the tolerance that is stored with the value."
    )


def _api(folder: Path) -> None:
    """Write a page for each module, and one for the readers of configurations."""
    for name in MODULES:
        lines = [f"# posref.{name}", "", "```{eval-rst}", f".. automodule:: posref.{name}", "   :members:", "```", ""]
        (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    lines = ["# API", "", "Each operation has [its own page](../encodings/index.md).", ""]
    lines += ["```{toctree}", *MODULES, "```", "", "## Configurations", "", "```{eval-rst}"]
    lines += [f".. autofunction:: posref.{name}" for name in FUNCTIONS] + ["```", ""]
    lines += ["## Graphs", "", "```{eval-rst}", *(f".. autofunction:: posref.{name}" for name in GRAPHS), "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Write the source into the folder that is given."""
    write(Path(arguments[0]) / "source")


if __name__ == "__main__":
    main(sys.argv[1:])

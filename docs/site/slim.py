"""Smaller pages with the same look: paths of few digits, each glyph once, and links to the open section only."""

import re
from pathlib import Path
from typing import Any

STEPS = re.compile(r"([MLQCZz])|(-?\d+(?:\.\d+)?(?:e-?\d+)?)")
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
LETTER = re.compile(r'\bd="([^"]*)"\s+transform="scale\(0\.015625\)"')
ENDS = {"M": 2, "L": 2, "Q": 4, "C": 6}  # numbers of each command
PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
LINK = re.compile(r'<a class="reference (?:external|internal)"')
REFERENCE = re.compile(
    r'<span class="std std-(?:doc|ref)">([^<]*|<code[^>]*>(?:<span class="pre">[^<]*</span>\s*)*</code>)</span>'
)
WHOLE = re.compile(r'<span class="pre">([\w.=(),\[\]]+)</span>')  # a word that no line can break
LETTERS = re.compile(r'<g id="(?:text|xtick|ytick|legend)_\d+">')
SMALL = "@media(max-width:340px){.t{display:none}}"  # a picture this narrow, as in the gallery, has no letters and no ticks
KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)  # where every space counts
BOX = re.compile(r'viewBox="([^"]*)"')
SYMBOL = re.compile(r'<symbol id="([^"]+)".*?</symbol>', re.DOTALL)


def picture(light: str, dark: str) -> str:
    """Return one picture of matplotlib for both themes, where light and dark differ by colours only."""
    light, dark = _short(light), _short(dark)
    pairs = list(zip(COLOUR.findall(light), COLOUR.findall(dark), strict=True))
    if COLOUR.sub("", light) != COLOUR.sub("", dark):
        raise ValueError("the light and the dark picture must differ by colours only.")
    names = {pair: f"--{number}" for number, pair in enumerate(dict.fromkeys(pairs)) if pair[0] != pair[1]}
    each = iter(pairs)
    merged = COLOUR.sub(lambda found: f"var({names[pair]})" if (pair := next(each)) in names else found[0], light)
    days, nights = ("".join(f"{name}:{pair[k]};" for pair, name in names.items()) for k in (0, 1))
    rules = f":root{{{days}}}@media(prefers-color-scheme:dark){{:root{{{nights}}}}}{SMALL}"
    return merged.replace("</style>", f"{rules}</style>", 1)


def _short(svg: str) -> str:
    """Return a picture with a tenth of a point for its lines, a 512th of an em for its letters, and short names."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE[^>]*>", "", svg, flags=re.DOTALL)
    svg = LETTERS.sub('<g class="t">', svg)
    used = set(re.findall(r"#([\w-]+)", svg))
    names = {name: f"a{n}" for n, name in enumerate(name for name in re.findall(r' id="([^"]+)"', svg) if name in used)}
    svg = re.sub(r' id="([^"]+)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    svg = re.sub(r"(?:xlink:)?(href=\"|url\()#([\w-]+)", lambda found: f"{found[1]}#{names[found[2]]}", svg)
    svg = re.sub(r'\bd="([^"]*)"(?!\s+transform="scale)', lambda found: _drawn(found[1], 10, unit=10), svg)
    svg = re.sub(LETTER, lambda found: f'{_drawn(found[1], 0.125, unit=1)} transform="scale(.125)"', svg)
    svg = re.sub(r'style="[^"]*"', lambda found: found[0].replace(": ", ":").replace("; ", ";"), svg)
    svg = re.sub(r"\b(\d+\.\d\d)\d+", r"\1", svg)
    return re.sub(r">\s+<", "><", svg)


def formula(svg: str) -> str:
    """Return a formula of ziamath; its colour is the page's affair."""
    svg = SYMBOL.sub(lambda found: _hundredths(found[0]), svg)
    svg = svg.replace("STIXTwoMathRegular_", "m").replace(' xmlns="http://www.w3.org/2000/svg"', "")
    return re.sub(r"(\.\d\d)\d+", r"\1", svg).replace(' fill="currentColor"', "").replace(" />", "/>")


def _hundredths(symbol: str) -> str:
    """Return a glyph in whole hundredths of its unit: its box and its path are 100 times larger, its size is the same."""
    symbol = BOX.sub(lambda found: f'viewBox="{" ".join(str(round(float(n) * 100)) for n in found[1].split())}"', symbol)
    return re.sub(r'\bd="([^"]*)"', lambda found: _drawn(found[1], 100, unit=1), symbol)


def once(page: str) -> str:
    """Return a page that defines each glyph at its first use, and has no marks without a style."""
    page = REFERENCE.sub(r"\1", LINK.sub("<a", PLAIN.sub(r"\1", page)))
    page = WHOLE.sub(r"\1", page).replace("docutils literal", "literal")
    page = page.replace('<tr class="row-odd">', "<tr>").replace('<tr class="row-even">', "<tr>")
    seen: set[str] = set()

    def first(found: re.Match[str]) -> str:
        known = found[1] in seen
        seen.add(found[1])
        return "" if known else found[0]

    return SYMBOL.sub(first, page)


def _drawn(path: str, scale: float, *, unit: float) -> str:
    """Return a path's attribute in relative steps of 1/scale, whose rounding does not add up; `unit` steps are written as 1."""
    if set(re.findall(r"[A-Za-df-z]", path)) - set("MLQCZz"):
        return f'd="{path}"'
    out: list[str] = []
    numbers: list[int] = []
    command = ""
    here = start = (0, 0)
    for letter, number in STEPS.findall(path):
        if letter in "Zz" and letter:
            out.append("z")
            here = start
        elif letter:
            command = letter
        else:
            numbers.append(round(float(number) * scale))
        if command and len(numbers) == ENDS[command]:
            steps = [value - here[k % 2] for k, value in enumerate(numbers)]
            here = (numbers[-2], numbers[-1])
            if command == "M":
                start = here
            if command != "L" or any(steps):
                out.append(command.lower() + "".join(_number(step, unit, first=k == 0) for k, step in enumerate(steps)))
            numbers = []
    return f'd="{"".join(out)}"'


def _number(step: int, scale: float, *, first: bool) -> str:
    text = re.sub(r"^(-?)0\.", r"\1.", f"{step / scale:.15g}")
    return text if first or text.startswith("-") else f" {text}"


def _page(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Define each glyph once; list the pages of the section that is open, and of no other."""
    context["body"] = once(context.get("body", ""))
    whole = context.get("toctree")
    if whole is not None:
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True}).replace(' internal"', '"')


def without_unused_icons(page: str) -> str:
    """Return a page without the theme's icons that nothing on it shows."""
    shown = set(re.findall(r'href="#([^"]+)"', page))
    return SYMBOL.sub(lambda found: found[0] if found[1] in shown else "", page)


def unindented(page: str) -> str:
    """Return a page whose lines begin at the margin, but where spaces count."""
    kept = [match[0] for match in KEPT.finditer(page)]
    parts = [re.sub(r"\s*\n\s*", "\n", part) for part in KEPT.sub("\0", page).split("\0")]
    return "".join(part + code for part, code in zip(parts, [*kept, ""], strict=True))


def _finished(app: Any, error: Exception | None) -> None:
    """Take the indentation out of the pages, and remove what only a debugger of the theme's own scripts and styles reads."""
    for path in Path(app.outdir).rglob("*.map"):
        path.unlink()
    for path in Path(app.outdir).rglob("*.html"):
        page = without_unused_icons(path.read_text(encoding="utf-8"))
        path.write_text(unindented(page), encoding="utf-8", newline="\n")


def setup(app: Any) -> dict[str, Any]:
    """Add this to Sphinx, before the theme makes its list of pages."""
    app.connect("html-page-context", _page, priority=100)
    app.connect("build-finished", _finished)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""A renderer of formulas for Sphinx: LaTeX as SVG inside the page, by ziamath, so that a reader needs no script and no font."""

import html
import re
from typing import Any

import slim
import ziamath
from docutils.nodes import SkipNode

SIZE = {"inline": 16, "block": 19}  # pixels


def svg(latex: str, kind: str) -> str:
    """Return a formula as SVG in the colour of the text, with its LaTeX for those who hear the page."""
    latex = " ".join(latex.split()).replace(r"\bmod", r"\;\text{mod}\;")  # whose spaces ziamath forgets
    drawn: str = ziamath.Latex(latex, size=SIZE[kind], color="currentColor", inline=kind == "inline").svg()
    return slim.formula(drawn).replace("<svg ", f'<svg role="img" aria-label="{html.escape(latex, quote=True)}" ', 1)


def _inline(page: Any, node: Any) -> None:
    page.body.append(f'<span class="math">{svg(node.astext(), "inline")}</span>')
    raise SkipNode


def _block(page: Any, node: Any) -> None:
    page.body.append('<div class="math">' + "".join(f"<p>{svg(part, 'block')}</p>" for part in parts(node.astext())) + "</div>")
    raise SkipNode


def parts(latex: str) -> list[str]:
    """Return a formula as lines that fit a phone: it is cut at wide spaces and, outside environments, at line breaks."""
    plain = "\\begin" not in latex
    if plain:
        latex = latex.replace("&&", "\\quad ").replace("&", "")  # marks of alignment
    cut = re.split(r"\\qquad|\\\\\s" if plain else r"\\qquad", latex)
    return [part.rstrip(", \n") for part in cut if part.strip()]


def setup(app: Any) -> dict[str, Any]:
    """Add the renderer to Sphinx."""
    app.add_html_math_renderer("svg", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

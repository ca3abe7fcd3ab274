"""Sphinx's settings for the pages that `pages.py` writes; nothing is loaded from a network, here or by a reader."""

import sys
from pathlib import Path
from typing import Any

from posref.about import without_words

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project, author, copyright = "posref", "The posref authors", "The posref authors"
extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design", "sphinx_copybutton", "formulas", "slim",
]  # fmt: skip
html_theme, html_title = "furo", "posref"
html_math_renderer = "svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "scorer.js")
html_show_sourcelink, html_copy_source, html_show_sphinx = False, False, False
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
default_role = "py:obj"
autodoc_typehints, autodoc_member_order = "none", "bysource"
napoleon_google_docstring = False
copybutton_prompt_text, copybutton_prompt_is_regexp = r"\$ |>>> |\.\.\. ", True
suppress_warnings = ["myst.xref_missing", "myst.header"]


def setup(app: Any) -> None:
    """Leave the words of options to the section that `pages.py` writes on them; before napoleon reads a docstring, at 500."""
    app.connect("autodoc-process-docstring", _without_words, priority=400)


def _without_words(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = without_words("\n".join(lines)).split("\n")

"""The report of a check: its record, and the files it can be written to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..model import Record
from ..suite.safe_files import whole_file


class Report(Record):
    """Everything a check found, which can be written as JSON, HTML, Markdown, JUnit XML and a badge."""

    def write_json(self, path: Path) -> None:
        """Write the report whole: an interruption leaves the old file or none."""
        whole_file(path, self.json_text())

    def json_text(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n"

    def write_html(self, path: Path) -> None:
        """Write the report as one page; PosrefError if jinja2 is not installed."""
        whole_file(path, rendered(self.to_json(), "html"))

    def write_markdown(self, path: Path) -> None:
        """Write a summary in Markdown."""
        whole_file(path, rendered(self.to_json(), "markdown"))

    def write_junit(self, path: Path) -> None:
        """Write the report as JUnit XML."""
        whole_file(path, rendered(self.to_json(), "junit"))

    def write_badge(self, path: Path) -> None:
        """Write a badge in SVG."""
        whole_file(path, rendered(self.to_json(), "badge"))


def rendered(document: Mapping[str, Any], form: str) -> str:
    """Return a report's JSON in another form: html, markdown, junit or badge. Its writer is loaded when it is used."""
    if form == "html":
        from .html import render

        return render(document)
    from . import summaries

    text: str = getattr(summaries, form)(document)
    return text

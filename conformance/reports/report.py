"""The report of a check: its record, and the files it can be written to. Each writer is loaded when it is used."""

import json
from pathlib import Path

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
        from . import html

        whole_file(path, html.render(self.to_json()))

    def write_markdown(self, path: Path) -> None:
        """Write a summary in Markdown."""
        from . import summaries

        whole_file(path, summaries.markdown(self.to_json()))

    def write_junit(self, path: Path) -> None:
        """Write the report as JUnit XML."""
        from . import summaries

        whole_file(path, summaries.junit(self.to_json()))

    def write_badge(self, path: Path) -> None:
        """Write a badge in SVG."""
        from . import summaries

        whole_file(path, summaries.badge(self.to_json()))

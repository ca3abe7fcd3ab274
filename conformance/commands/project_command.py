"""A command with defaults from `[tool.posref]` in pyproject.toml, and options in groups in its help."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..checks.project_settings import settings
from .console import errors, say

SECTIONS = {  # of the help, by the flags
    "What to check": ("command", "outputs", "model", "trust-remote-code", "op", "case", "tier", "suite"),
    "Where it runs": ("backend", "dtype", "device", "timeout", "memory", "jobs", "scheduler"),
    "What it must meet": ("claim", "trig", "require", "for", "component", "layer", "layout"),
    "Drawn calls": ("seconds", "examples", "seed", "experiments", "batch-invariant", "print-scope"),
    "Reports": ("output", "json", "html", "markdown", "junit", "badge", "github"),
}
ONE_OF = ("target", "command", "outputs", "model")  # what is checked: a command line that says it needs no other


class ProjectCommand(click.Command):
    """A command that begins with the settings of the project in the current folder."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take what the command line leaves out from the project's settings, and name it."""
        flags = self._flags()
        with errors():
            known = {} if ctx.resilient_parsing else settings(Path())
        ctx.default_map = {str(flags[key].name): _listed(flags[key], known[key]) for key in known if key in flags}
        rest = super().parse_args(ctx, args)
        sources = {key: ctx.get_parameter_source(str(param.name)) for key, param in flags.items()}
        used = [key for key, source in sources.items() if source is ParameterSource.DEFAULT_MAP]
        if ParameterSource.COMMANDLINE in (sources.get(key) for key in ONE_OF):
            ctx.params |= {str(flags[key].name): None for key in used if key in ONE_OF}
            used = [key for key in used if key not in ONE_OF]
        if used:
            say(f"from pyproject.toml: {', '.join(f'{key}={known[key]}' for key in used)}")
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their groups."""
        flags = {**self._flags(), "help": self.get_help_option(ctx)}
        options = {key: param for key, param in flags.items() if isinstance(param, click.Option)}
        records = {key: record for key, param in options.items() if (record := param.get_help_record(ctx)) is not None}
        grouped = {title: [records.pop(name) for name in names if name in records] for title, names in SECTIONS.items()}
        for title, rows in {**grouped, "Other": [*records.values()]}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _flags(self) -> Mapping[str, click.Parameter]:
        return {param.opts[0].lstrip("-"): param for param in self.params}


def _listed(param: click.Parameter, value: Any) -> Any:
    return [value] if param.multiple and isinstance(value, str) else value

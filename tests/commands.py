"""The command line, in this process."""

from typing import Any

from click.testing import CliRunner, Result

from posref.cli import cli


def run(*arguments: object, **options: Any) -> Result:
    """Return what `posref` prints when it is given these arguments, and its exit code."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="posref", **options)

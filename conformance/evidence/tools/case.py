"""Makes cases of one operation, which is named once, and cases of several calls."""

from collections.abc import Callable, Mapping
from typing import Any

from ...model import Case, Step

Options = Mapping[str, Any]


def cases_of(op: str, prefix: str = "") -> Callable[..., Case]:
    """
    Return what makes cases of one operation: ``cases_of("alibi", "alibi-")("plain/small", "sign far", {...}, {...})``.

    Its arguments are the rest of the id, the rest of every flag, options, inputs, a comment, and what else a `Case` has.
    """

    def case(name: str, flags: str, params: Options, inputs: Options | None = None, comment: str = "", **rest: Any) -> Case:
        return Case(f"{op}/{name}", params, inputs or {}, tuple(prefix + flag for flag in flags.split()), comment, **rest)

    return case


def sequence(name: str, flags: str, comment: str, steps: tuple[Step, ...]) -> Case:
    """Return a case of several calls on one instance."""
    return Case(name, flags=tuple(flags.split()), comment=comment, kind="sequence", steps=steps)

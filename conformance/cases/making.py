"""Cases of one operation, which is named once."""

from collections.abc import Callable, Mapping
from typing import Any

from ..model import Case

Options = Mapping[str, Any]


def cases_of(op: str, prefix: str = "") -> Callable[..., Case]:
    """
    Return what makes cases of one operation: ``cases_of("alibi", "alibi-")("plain/small", "sign far", {...}, {...})``.

    Its arguments are the rest of the id, the rest of every flag, options, inputs, a comment, and what else a `Case` has.
    """

    def case(name: str, flags: str, params: Options, inputs: Options | None = None, comment: str = "", **rest: Any) -> Case:
        return Case(f"{op}/{name}", params, inputs or {}, tuple(prefix + flag for flag in flags.split()), comment, **rest)

    return case

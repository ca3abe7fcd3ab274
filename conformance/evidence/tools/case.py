"""Makes cases of one operation, which is named once, and cases of several calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...model import Case, Step

Options = Mapping[str, Any]


def cases_of(op: str) -> Callable[..., Case]:
    """
    Return what makes cases of one operation: ``cases_of("alibi")("plain/small", {...}, {...})``.

    Its arguments are the rest of the id, options, inputs, a comment, and what else a `Case` has.
    """

    def case(name: str, params: Options, inputs: Options | None = None, comment: str = "", **rest: Any) -> Case:
        return Case(f"{op}/{name}", params, inputs or {}, comment, **rest)

    return case


def sequence(name: str, comment: str, steps: tuple[Step, ...]) -> Case:
    """Return a case of several calls on one instance."""
    return Case(name, comment=comment, kind="sequence", steps=steps)


@dataclass(frozen=True)
class Make:
    """
    What makes calls of one operation from the axes that the registry states: the argument of ``more`` in its evidence.

    ``one(name, comment, params, **how)`` and ``several(name, comment, *calls)`` return a case of one call and one
    of several; ``call(name, params, **how)`` returns options and arrays alone. `every.made_calls.call` says what `how` may be.
    """

    one: Callable[..., Case]
    several: Callable[..., Case]
    call: Callable[..., tuple[dict[str, Any], dict[str, Any]]]

"""An operation under test: what its parts share, found once, and what failed in them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from sample import sample, smoke, stored

from posref.conformance.diagnosis import strength
from posref.conformance.diagnosis.gradients import as_rotation
from posref.conformance.evidence.catalogue import cases_of
from posref.conformance.model import Call, Case, LoadedCase
from posref.spec import REGISTRY
from posref.spec import Encoding as Record

Part = Callable[["Encoding"], None]
Holds = Callable[[str], bool]
PARTS: dict[str, tuple[Part, Holds]] = {}  # by name, in the order in which they are run
DEAR: set[str] = set()  # parts that take most of the time


def part(of: Holds = lambda op: True, *, dear: bool = False) -> Callable[[Part], Part]:
    """Return a decorator for a part of the test: of every operation, or of those for which `of` holds."""

    def add(function: Part) -> Part:
        assert function.__name__ not in PARTS, function.__name__
        PARTS[function.__name__] = (function, of)
        DEAR.update([function.__name__] if dear else [])
        return function

    return add


class Encoding:
    """One operation, its stored cases, and the failures of the parts that were run."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.record: Record = REGISTRY[op]
        self.function: Callable[..., Any] = self.record.function
        self.failures: list[tuple[str, AssertionError]] = []
        self._where: list[str] = []

    # ---- cases, each found once ---------------------------------------------------------------------------------------
    @cached_property
    def stored(self) -> tuple[LoadedCase, ...]:
        """Every case of the installed suite."""
        found = stored(self.op)
        assert found, f"{self.op} has no case in the suite: posref vectors build conformance/vectors --op {self.op}"
        return found

    @cached_property
    def built(self) -> list[Case]:
        """Every case as its source states it, before values are proved."""
        return list(cases_of(self.op))

    @cached_property
    def sample(self) -> tuple[LoadedCase, ...]:
        """A few value cases that have every trait between them; the smoke case is the first."""
        return sample(self.op)

    @cached_property
    def smoke(self) -> LoadedCase:
        return smoke(self.op)

    @cached_property
    def measured(self) -> list[LoadedCase]:
        """The cases in which deviations are measured, a gradient of a rotation as the rotation that it is."""
        return [as_rotation(case) or case for case in self.stored if not strength.apart(case)]

    def of_kind(self, *kinds: str) -> list[LoadedCase]:
        return [case for case in self.stored if case.kind in kinds]

    def calls(self, *kinds: str) -> list[Call]:
        return [call for case in self.of_kind(*kinds) for call in case.calls]

    def largest(self, kind: str, most: int) -> list[LoadedCase]:
        """Return the largest cases of a kind, at most so many."""
        return sorted(self.of_kind(kind), key=lambda c: -sum(x.size for x in c.calls[0].expected.values()))[:most]

    # ---- parts --------------------------------------------------------------------------------------------------------
    def run(self, name: str) -> None:
        """Run one part, where it is of this operation."""
        function, holds = PARTS[name]
        if holds(self.op):
            with self.at(name):
                function(self)

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Collect what fails inside, with the place where it did; what follows is tried all the same."""
        self._where.append(where)
        try:
            yield
        except Exception as error:
            told = " | ".join(self._where)
            failure = AssertionError(f"{told}: {error}" if isinstance(error, AssertionError) else f"{told}: {error!r}")
            failure.__cause__ = error
            self.failures.append((self._where[0], failure))
        finally:
            self._where.pop()

    def finish(self) -> None:
        """Raise all failures at once, if any, under the names of the parts that failed."""
        if self.failures:
            names = list(dict.fromkeys(name for name, _ in self.failures))
            msg = f"{self.op}: {', '.join(names)} ({len(self.failures)} failures)"
            raise ExceptionGroup(msg, [failure for _, failure in self.failures])

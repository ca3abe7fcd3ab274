"""Replies to calls, and the rules for every target that computes: inputs unchanged, and the same bits twice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..errors import Failure, Stopped, Unsupported, shown
from ..model import Arrays, Call, LoadedCase
from . import invocation
from .base import Target

CHANGED = "changed its input {}"
OVERWRITING = ("smoke", "kernel")  # tiers whose calls are followed by one with other numbers


@dataclass(frozen=True)
class Reply:
    """The reply to one call: its results with the names of their dtypes, and which arrays the call should not have written."""

    status: str  # ok, unsupported, rejected or error
    message: str = ""
    outputs: Mapping[str, invocation.Result] = field(default_factory=dict)
    changed: tuple[str, ...] = ()  # inputs
    overwrote: tuple[str, ...] = ()  # results of earlier calls of the case


class CalledTarget(Target):
    """An implementation that computes on request, judged by its replies. Calls that `repeated` leaves out are made but once."""

    @abstractmethod
    def reply(self, case: LoadedCase, step: int, dtype: str, calls: int = 1, *, again: bool = False) -> Reply:
        """
        Return the reply to a call of a case, which is made for this many times with it; `Stopped` if there is none.

        With `again` the same call is asked next, if this one succeeds.
        """

    def repeats(self) -> bool:
        """Return whether it keeps the results of a case, and says which of them a later call overwrote."""
        return True

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Return what it gives, twice where calls are repeated, and does not overwrite in a call with other numbers."""
        step = next(k for k, candidate in enumerate(case.calls) if candidate is call)
        self.expect_gradients(case)
        again = self.repeated is None or self.repeated(case, dtype)
        first = self._outputs(case, step, dtype, self.reply(case, step, dtype, again=again))
        if again:
            invocation.expect_same(first, self._outputs(case, step, dtype, self.reply(case, step, dtype, 2)))
        if case.tier in OVERWRITING and not call.cotangents and self.repeats():
            later = replace(case, calls=(*case.calls, _with_other_numbers(case.op, call)))
            _expect_kept(self.reply(later, len(case.calls), dtype))
        return first

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the message with which it refuses the case."""
        self.expect_gradients(case)
        reply = self.reply(case, 0, dtype)
        _expect_supported(reply)
        if reply.status == "ok":
            raise invocation.not_refused(case)
        return reply.message or reply.status

    def judged(self, case: LoadedCase, step: int, dtype: str, reply: Reply) -> Arrays:
        """Return the outputs of a reply by name; `Failure` for what is wrong with them whatever their values."""
        for name in reply.changed:
            raise Failure(CHANGED.format(shown(name)))
        _expect_kept(reply)
        return self.accepted(case, case.calls[step], dtype, reply.outputs, reply.message)

    def _outputs(self, case: LoadedCase, step: int, dtype: str, reply: Reply) -> Arrays:
        """Return the outputs of a reply, of the right shape and dtype."""
        _expect_supported(reply)
        if reply.status == "ok":
            return self.judged(case, step, dtype, reply)
        said = "rejected a valid call" if reply.status == "rejected" else ""
        raise Stopped(verdict="error", message=": ".join(filter(None, (said, reply.message))) or "error")


def _expect_supported(reply: Reply) -> None:
    if reply.status == "unsupported":
        raise Unsupported(reply.message or "unsupported")


def _expect_kept(reply: Reply) -> None:
    for name in reply.overwrote:
        raise Failure(invocation.OVERWRITTEN.format(shown(name)))


def _with_other_numbers(op: str, call: Call) -> Call:
    """
    Return a call whose numbers are moved by one along the first axis that has two: reals, or positions if there are none.

    Only whether it overwrites an earlier result counts, and nothing else that comes of it.
    """
    arrays = REGISTRY[op].arrays
    reals = [name for name in call.inputs if arrays[name].kind in ("real", "wide")]
    moved = {n: _moved(x, ordered=arrays[n].ordered) if n in reals or not reals else x for n, x in call.inputs.items()}
    return replace(call, inputs=moved)


def _moved(x: npt.NDArray[Any], *, ordered: bool) -> npt.NDArray[Any]:
    """Return an array whose values are moved along its first axis with several; the last axis of an `ordered` one stays."""
    axis = next((k for k, size in enumerate(x.shape[: x.ndim - ordered]) if size > 1), None)
    return x if axis is None else np.roll(x, 1, axis)

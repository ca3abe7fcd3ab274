"""Chooses the cases of a check: a tier of a suite, some operations, one case, or the calls of one model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posref.spec import REGISTRY

from ..errors import TargetError, no_operation, shown
from ..model import Call, Case, LoadedCase
from ..proof.evaluation import askable, plain
from ..suite.reader import INSTALLED, load_group, load_manifest, smoke_cases, withdrawn_cases
from .case_run import TIER

if TYPE_CHECKING:
    from ..evidence.every.for_model import Model

TIERS = ("smoke", "core", "kernel")
WITNESSES = 2


@dataclass(frozen=True)
class Choice:
    """The choice of cases. Without names it has all operations of the suite, or of the model."""

    suite: Path = INSTALLED
    tier: str = "core"
    op: str | Sequence[str] | None = None
    case: str | None = None
    model: Model | None = None

    @property
    def is_whole(self) -> bool:
        """Whether enough cases of an operation run to know its scope."""
        return self.case is None and self.tier != "smoke" and self.model is None

    @property
    def part(self) -> str:
        """The choice in words, unless it is a whole tier of the installed suite: only such a tier shows conformance."""
        parts = [f"case {self.case}"] if self.case else ["one case of each operation"] if self.tier == "smoke" else []
        if self.model is not None and self.model.is_still:
            parts.append(f"layer {self.model.layer} of {self.model.name}, which does not rotate")
        index = b"" if self.suite == INSTALLED else (self.suite / "SUITE.json").read_bytes()
        if index and index != (INSTALLED / "SUITE.json").read_bytes():
            parts.append(f"custom suite {self.suite}, sha256 {sha256(index).hexdigest()[:12]}")
        return ", ".join(parts)

    def operations(self) -> list[str]:
        """Return the operations to ask, or raise for a name that is none."""
        op = self.case.split("/", maxsplit=1)[0] if self.op is None and self.case is not None else self.op
        wanted = None if op is None else [op] if isinstance(op, str) else list(op)
        unknown = [name for name in wanted or () if name not in REGISTRY]
        if unknown:
            raise TargetError(no_operation("check: op", shown(unknown[0])))
        if self.tier not in TIERS:
            of = "smoke, core or kernel (full is built on demand: posref vectors build DIR --tier full)"
            msg = f"check: tier must be {of}; got {self.tier!r}."
            raise TargetError(msg)
        held = dict.fromkeys(entry["op"] for entry in load_manifest(self.suite)["groups"])
        lacking = [name for name in wanted or () if name not in held]
        if lacking:
            build = f"In a checkout, build them: posref vectors build {self.suite} --op {lacking[0]}"
            msg = f"check: the suite in {self.suite} has no cases of {lacking[0]!r}. {build}"
            raise TargetError(msg)
        if self.model is not None:
            held = {name: None for name in held if name in self._of_model(self.model, wanted)}
        return [name for name in held if wanted is None or name in wanted]

    def _of_model(self, model: Model, wanted: Sequence[str] | None) -> tuple[str, ...]:
        """Return the operations that a model asks, or raise for one that it does not."""
        strange = [name for name in wanted or () if name not in model.operations]
        if strange:
            msg = f"check: for {model.name} op must be one of {', '.join(model.operations)}; got {strange[0]!r}."
            raise TargetError(msg)
        if self.tier == "smoke":
            msg = f"check: for {model.name} tier must be core or kernel; got 'smoke'."
            raise TargetError(msg)
        return model.operations

    def sizes(self, ops: Sequence[str]) -> dict[str, int]:
        """Return how many stored cases there are of some operations, of which no file is read."""
        listed = load_manifest(self.suite)["groups"]
        one = self.tier == "smoke"
        return {op: 1 if one else sum(len(entry["cases"]) for entry in listed if entry["op"] == op) for op in ops}

    def cases(self, ops: Sequence[str]) -> list[LoadedCase]:
        """Return the cases of some operations, or raise if there is not the one asked for; other files are not read."""
        withdrawn = withdrawn_cases(self.suite)
        if self.case in withdrawn:
            msg = f"check: case {self.case!r} was withdrawn: {withdrawn[self.case]}"
            raise TargetError(msg)
        if self.model is not None:
            return self._cases_of_model(self.model, ops)
        if self.case is not None and f"/{TIER}/" in self.case:
            return list(load(ops, self.case))
        smoke = smoke_cases(self.suite) if self.tier == "smoke" else frozenset()
        entries = [entry for entry in load_manifest(self.suite)["groups"] if entry["op"] in ops and self._holds(entry, smoke)]
        chosen = [c for entry in entries for c in self._proved(entry) if c.id not in withdrawn]
        if self.case is not None or self.tier == "smoke":
            chosen = [c for c in chosen if (c.tier == "smoke" if self.case is None else c.id == self.case)]
        chosen += load(ops) if self.tier == TIER and self.case is None else []
        if self.case is not None and ops and not chosen:
            msg = f"check: no case {self.case!r} in the {self.tier} tier; posref list --cases {ops[0]} lists them."
            raise TargetError(msg)
        return chosen

    def _cases_of_model(self, model: Model, ops: Sequence[str]) -> list[LoadedCase]:
        """Return the calls that the layers of a model make, and no others."""
        from ..evidence.every import model_cases  # with what reads models

        if model.is_still:
            chosen = list(model_cases.still(model))
        else:
            asked = (case for op in ops for case in model_cases.cases(model, op))
            chosen = list(made(case for case in asked if self.case in (None, case.id)))
        chosen = [case for case in chosen if self.case in (None, case.id)]
        if self.case is not None and ops and not chosen:
            msg = f"check: {model.name} makes no call {self.case!r}; leave out --case to see its calls."
            raise TargetError(msg)
        return chosen

    def _proved(self, entry: Mapping[str, Any]) -> tuple[LoadedCase, ...]:
        """Return the cases of a group, or raise if it has but one witness."""
        group = load_group(self.suite, entry, own=self.suite == INSTALLED)
        if len(group.manifest["provenance"]["witnesses"]) < WITNESSES:
            one = f"group {group.id} of {self.suite} has one"
            msg = f"check: values need two witnesses to judge by; {one}. Write it without --witnesses 1."
            raise TargetError(msg)
        return group.cases

    def _holds(self, entry: Mapping[str, Any], smoke: Collection[str]) -> bool:
        """Return whether a group may hold a chosen case: the named one, or one of `smoke`. Files of others are not read."""
        if self.case is not None:
            return self.case in entry["cases"]
        listed = any(case.startswith(f"{entry['op']}/") for case in smoke)
        return not listed or any(case in smoke for case in entry["cases"])


# ---- the kernel tier -------------------------------------------------------------------------------------------------------
def load(ops: Sequence[str], only: str | None = None) -> Iterator[LoadedCase]:
    """Yield the cases of some operations, or `only` one of them. What is expected is near the truth: it is not judged by."""
    from ..evidence.every import kernel_cases, rules  # the other tiers do not need them
    from ..experiments import covering

    makers = (kernel_cases.kernel, rules.kernel, covering.cases)
    cases = made(case for op in ops for make in makers for case in make(op, only))
    first = next(cases, None)
    if first is None and only is not None and ops:
        msg = f"check: no case {only!r} in the kernel tier; posref list --cases {ops[0]} --tier kernel lists them."
        raise TargetError(msg)
    if first is not None:
        yield first
    yield from cases


def made(cases: Iterable[Case]) -> Iterator[LoadedCase]:
    """Yield cases that are judged live."""
    for case in cases:
        inputs = {name: np.asarray(value) for name, value in case.inputs.items()}
        near = {n: x.astype(np.int64) if x.dtype.kind in "bi" else x for n, x in plain(case.op, inputs, case.params).items()}
        call = Call(case.params, inputs, near)
        dtypes = tuple(askable(case.op, inputs, near))
        yield LoadedCase(case.id, case.op, case.kind, TIER, case.comment, dtypes, (call,), case.form, case.state)

"""What is to be searched, and what was found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from ..checking.asking import asked_dtypes
from ..errors import TargetError
from ..targets.base import Target
from ..targets.loader import load
from .drawn_case import Asking, Tally
from .hunt import Find

Pair = tuple[str, str]  # operation, dtype
Options = Mapping[str, Any]
Task = tuple[str, str, int, int]  # operation, dtype, first draw, the draw after the last


@dataclass(frozen=True)
class Plan:
    """What is to be searched: the target as messages call it, and the operations and dtypes that it is asked in."""

    name: str
    reproduce: str
    pairs: tuple[Pair, ...]


@dataclass
class Findings:
    """What a run found."""

    plan: Plan
    seed: int
    tallies: dict[Pair, Tally]
    finds: list[Find] = field(default_factory=list)
    complete: bool = True
    folder: Path | None = None

    @property
    def tally(self) -> Tally:
        """All draws together."""
        return sum(self.tallies.values(), Tally())

    @property
    def exit_code(self) -> int:
        """0 nothing found; 1 found; 2 interrupted before anything was found, or nothing could be judged."""
        if self.finds:
            return 1
        judged = self.tally.verdicts.total() - self.tally.verdicts["unsupported"]
        return 0 if self.complete and judged else 2


def opened(options: Options) -> Asking:
    """Return a target that can be opened again."""

    def opener() -> Target:
        return load(**options)

    return Asking(opener, opener())


def plan_of(target: Target, ops: Collection[str] | None) -> Plan:
    """Return what there is to search."""
    wanted = [name for name in REGISTRY if (ops is None or name in ops) and target.has(name)]
    if not wanted:
        msg = f"{target.name}: has no {'operation' if ops is None else ', '.join(ops)}."
        raise TargetError(msg)
    return Plan(target.name, target.reproduce, tuple((n, d) for n in wanted for d in asked_dtypes(target, n)))

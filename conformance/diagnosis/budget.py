"""The time that a diagnosis may take: what is not tried by its end is left out, and the text says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import process_time
from typing import TypeVar

SECONDS = 4.5  # of CPU time, for all operations of a report together
LEAST = 0.25  # seconds that are kept for each operation that is still to come, as long as there are so many
T = TypeVar("T")


class Budget:
    """CPU time for hypotheses; `short` says whether some were not tried for want of it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.end = process_time() + seconds
        self.short = False

    def part(self, others: int) -> Budget:
        """Return the time for one operation: all but a little for each of the others, or an equal share if they are many."""
        left = self.end - process_time()
        return Budget(max(left - LEAST * others, left / (others + 1)))

    def but_for(self, seconds: float) -> Budget:
        """Return the time that is left, but for some seconds."""
        return Budget(self.end - process_time() - seconds)

    def spent(self) -> bool:
        """Return whether the time is over; then something is left out."""
        self.short |= process_time() >= self.end
        return self.short

    def within(self, hypotheses: Iterable[T]) -> Iterator[T]:
        """Yield hypotheses while there is time."""
        for one in hypotheses:
            if self.spent():
                return
            yield one

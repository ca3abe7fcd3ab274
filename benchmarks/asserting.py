"""
The time of `posref.testing.assert_conforms`, as ratios to the call that it judges: posref's own, in NumPy.

Everything runs in one process, the two sides of a ratio in turn. Up to 2^20 values are all judged; of more some rows, after a
look at all of them; `rows=None` judges all.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Literal

import numpy as np

from posref import rope
from posref.testing import assert_conforms

OPTIONS: dict[str, Any] = {"layout": "half", "base": 10_000.0}
CALLS: tuple[tuple[tuple[int, ...], Literal["some"] | None], ...] = (
    ((1, 32, 256, 128), "some"),
    ((1, 32, 4096, 128), "some"),
    ((1, 32, 4096, 128), None),
)


def seconds(function: Callable[[], Any]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    for shape, rows in CALLS:
        x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        positions = np.arange(shape[-2])
        call = partial(rope, x, positions, **OPTIONS)
        judge = partial(assert_conforms, "rope", call(), x, positions, rows=rows, **OPTIONS)
        judging, calling = [], []
        for _ in range(repeat):
            judging.append(seconds(judge))
            calling.append(seconds(call))
        ratio = median(judging) / median(calling)
        print(f"{shape}, rows={rows!r}: {ratio:.1f} times the call ({median(judging):.2f} s)")


if __name__ == "__main__":
    main()

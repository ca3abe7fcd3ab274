"""Rows of DeBERTa's relative table: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, Function, Step, argument, around_with, cases_of, deviations_of, narrowed, places
from .tools.hints import DEFAULT, INTEGERS, LOG_BUCKETS, ROW_OF_ZERO, SIGN

OP = "deberta_rows"

V3: dict[str, Any] = {"num_buckets": 256, "max_distance": 512}
V1: dict[str, Any] = {"num_buckets": None, "max_distance": 512}
USUAL: dict[str, Any] = {"num_buckets": 8, "max_distance": 20}
OTHER_VALUES = {"max_distance": 40}
KERNEL: tuple[dict[str, Any], ...] = (V3,)

EDGES = (127, 128, 129, 130, 131, 132, 200, 256, 257, 300, 400, 509, 510, 511, 512, 513)
NEAR = (-9, -5, -4, -3, -1, 0, 1, 3, 4, 5, 9)
FIRST_OF_EACH = (16, 17, 19, 22, 25, 28, 32, 37, 43, 49, 56, 64, 74, 84, 97, 111, 128)  # of buckets of 32 and 128
BEYOND = (1048575, -1048575, 131071, -65537, 2049, -2049)

_case = cases_of(OP)


def _rows(name: str, params: dict[str, Any], relative: Any, comment: str = "", **rest: Any) -> Case:
    return _case(name, params, {"relative_positions": relative}, comment, **rest)


def _sequence(name: str, params: dict[str, Any], *calls: Any) -> Case:
    """Return calls after each other: nothing is kept from one to the next."""
    steps = tuple(Step(params, {"relative_positions": relative}) for relative in calls)
    return Case(f"{OP}/sequence/{name}", kind="sequence", steps=steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    both = tuple(sign * n for n in EDGES for sign in (1, -1))
    ends = tuple(sign * (n + step) for n in FIRST_OF_EACH for step in (-1, 0) for sign in (1, -1))
    return (
        _rows("buckets/small", USUAL, (*NEAR, -20, 19), tier="smoke"),
        _rows("buckets/thresholds", {"num_buckets": 32, "max_distance": 128}, ends, "both sides of each threshold"),
        _rows("buckets/far", {"num_buckets": 64, "max_distance": 5000}, (257, -1000, 2049, 4099, -4998, 4999, 5001)),
        _rows("buckets/bfloat16", {"num_buckets": 512, "max_distance": 4096}, (257, 259, -511, 1027, -2049, 4093, 4095)),
        _rows("buckets/6-50", {"num_buckets": 6, "max_distance": 50}, (*range(-12, 13), 49, 50, -49, -50)),
        _rows("buckets/4-9", {"num_buckets": 4, "max_distance": 9}, range(-12, 13), "the fewest buckets"),
        _rows("buckets/100-300", {"num_buckets": 100, "max_distance": 300}, both),
        _rows("buckets/256-1024", {"num_buckets": 256, "max_distance": 1024}, both),
        _rows("buckets/128-512", {"num_buckets": 128, "max_distance": 512}, both),
        _rows("single/small", {"num_buckets": None, "max_distance": 4}, NEAR),
        _rows("single/one", {"num_buckets": None, "max_distance": 1}, (-2, -1, 0, 1, 2)),
        _rows("single/beyond", {"num_buckets": None, "max_distance": 100000}, BEYOND),
        _rows("shapes/scalar", V3, -300),
        _sequence("grown", USUAL, NEAR, (*NEAR, 50), (-50, 7)),
        _sequence("other", V1, NEAR, (600, -600)),
        _rows("refused/odd", {"num_buckets": 7, "max_distance": 50}, NEAR, "half the buckets for each side", kind="reject"),
        _rows("refused/near", {"num_buckets": 16, "max_distance": 9}, NEAR, "no distance for the last bucket", kind="reject"),
        *places(OP, "relative_positions", USUAL),
    )


@around_with
def _other(change: Any, _: Function, relative: Any, /, *, num_buckets: int | None, max_distance: int) -> Any:
    """Buckets are others: `change` takes distances, half the buckets and the largest distance."""
    if num_buckets is None:
        return np.clip(relative + max_distance, 0, 2 * max_distance - 1)
    return np.clip(change(np.asarray(relative), num_buckets // 2, max_distance) + num_buckets, 0, 2 * num_buckets - 1)


def _log(r: Any, mid: int, last: float, rounding: Callable[[Any], Any]) -> Any:
    size = np.maximum(np.abs(r), mid)
    share = np.log(size / mid) / np.log(last / mid) * (mid - 1)
    return np.where(np.abs(r) <= mid, r, np.sign(r) * (mid + rounding(share).astype(np.int64)))


_deviation = deviations_of(OP)
ROUND_UP = "The logarithm is rounded up: ceil, not floor or round."

DEVIATIONS = (
    _deviation("deberta-key-minus-query", "the relative position is key minus query", argument(0, lambda r: -r), hint=SIGN,
               seen_in="nntrainer#3982"),
    _deviation("deberta-no-log", "buckets stay one token wide, up to their number", _other(lambda r, mid, d: r),
               hint=LOG_BUCKETS),
    _deviation("deberta-floor", "the logarithm is rounded down",
               _other(lambda r, mid, d: _log(r, mid, d - 1, lambda x: np.floor(x + 1e-9))), hint=ROUND_UP),
    _deviation("deberta-nearest", "the logarithm is rounded to the nearest",
               _other(lambda r, mid, d: _log(r, mid, d - 1, np.rint)), hint=ROUND_UP),
    _deviation("deberta-whole-distance", "the logarithm ends at the largest distance, not one before",
               _other(lambda r, mid, d: _log(r, mid, d, lambda x: np.ceil(x - 1e-9))), hint="Divide by ln((D - 1) / m)."),
    _deviation("deberta-twice-as-far", "the largest distance is that of another text",
               _other(lambda r, mid, d: _log(r, mid, 2 * d - 1, lambda x: np.ceil(x - 1e-9))),
               hint="D is an option of the model, not the length of the text.", seen_in="NVIDIA/TensorRT #3370"),
    _deviation("deberta-row-minus-1", "each row is the one before the right one",
               lambda f: lambda r, /, **o: np.maximum(f(r, **o) - 1, 0), hint=ROW_OF_ZERO),
    _deviation("deberta-from-0", "distance 0 has row 0", lambda f: lambda r, /, **o: np.abs(
                   f(r, **o) - (o["max_distance"] if o["num_buckets"] is None else o["num_buckets"])),
               hint="Distance 0 has row S: add S before the clip."),
    _deviation("deberta-symmetric-clip", "the first row is never used",
               lambda f: lambda r, /, **o: np.maximum(f(r, **o), 1), hint="Clip to 0 and 2S - 1."),
    _deviation("deberta-256", "the number of buckets is always 256",
               lambda f: lambda r, /, *, num_buckets, max_distance: f(
                   r, num_buckets=num_buckets and 256, max_distance=max_distance if num_buckets is None else max(max_distance,
                                                                                                                 130)),
               hint=DEFAULT),
    _deviation("deberta-bfloat16", "distances are held in bfloat16",
               argument(0, lambda r: narrowed("bfloat16")(r).astype(np.int64)), hint=INTEGERS),
)  # fmt: skip

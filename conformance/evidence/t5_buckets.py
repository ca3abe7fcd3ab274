"""T5 distance buckets: cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .shared.relative import BOTH_DIRECTIONS, BUCKETS
from .tools import Case, Function, Make, after, always, argument, around, around_with, deviations_of, option, places
from .tools.hints import BRANCH, DEFAULT, LOG_BUCKETS, ROUND_DOWN, SIGN

USUAL: dict[str, Any] = BUCKETS
OTHER_VALUES = {"max_distance": 40}
KERNEL = BOTH_DIRECTIONS

CLOSE = tuple(range(-24, 25))
EDGES = (-129, -128, -127, -64, -63, -33, -32, -31, 31, 32, 33, 63, 64, 127, 128, 129)  # where a power of two begins a bucket
SPARSE = tuple(range(-300, 301, 7))
BEYOND = (-1048575, -65537, -2049, -1000, 1000, 4097, 131071)


def _case(
    name: str, relative_positions: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of t5_buckets."""
    return Case(f"t5_buckets/{name}", params, {"relative_positions": relative_positions}, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("bidirectional/small", (-9, -1, 0, 1, 2, 40), tier="smoke", bidirectional=True),
        _case("causal/t5", EDGES + SPARSE, bidirectional=False),
        _case("settings/16-77", SPARSE, bidirectional=True, num_buckets=16, max_distance=77),
        _case("settings/40-1000", SPARSE + BEYOND, bidirectional=True, num_buckets=40, max_distance=1000),
        _case("settings/64-256", SPARSE, bidirectional=False, num_buckets=64, max_distance=256),
        _case("settings/20-50", CLOSE + BEYOND, bidirectional=True, num_buckets=20, max_distance=50),
        _case("settings/128-5000", (291, -469, 549, -1030, 1413, -2266, 3643),
              "bfloat16 moves each across a threshold", bidirectional=True, num_buckets=128, max_distance=5000),
        _case("settings/32-64", SPARSE, bidirectional=False, num_buckets=32, max_distance=64),
        _case("settings/7-30", CLOSE, "an odd number, one side", bidirectional=False, num_buckets=7, max_distance=30),
        _case("shapes/scalar", -50, bidirectional=False),
        _case("refused/odd", (-1, 0, 1), "half the buckets for each side", kind="reject", bidirectional=True, num_buckets=31),
        _case("refused/near", (-1, 0, 1), "max_distance leaves the logarithmic half empty", kind="reject",
              bidirectional=False, max_distance=16),
        *places("t5_buckets", "relative_positions", BUCKETS),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a sequence in which rows are added."""
    yield make.several("rows", "one row, then two", {"T": 6}, {"T": 6, "R": (2,)})


SECOND_HALF = "The second half is for keys after the query: r > 0, with r = key - query."

LAST_BUCKET = "Limit the bucket to the last one."
SHARE = "The share is ln(n / e) / ln(D / e) with e exact buckets."
_deviation = deviations_of("t5_buckets")


def _log_buckets(n: Any, sided: int, max_distance: float, rounding: Callable[[Any], Any], limit: bool = True) -> Any:
    exact = sided // 2
    log = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (sided - exact)
    far = exact + rounding(log + 1e-12).astype(np.int64)
    return np.where(n < exact, n, np.minimum(far, sided - 1) if limit else far)


def _whole_logarithm(n: Any, sided: int, max_distance: float) -> Any:
    """Return buckets by the logarithm of the distance itself, as a share of that of the largest one."""
    exact = sided // 2
    far = exact + np.floor(np.log(np.maximum(n, 1)) / np.log(max_distance) * (sided - exact) + 1e-12).astype(np.int64)
    return np.where(n < exact, n, np.minimum(far, sided - 1))


def _range_of_distance(n: Any, sided: int, max_distance: float) -> Any:
    """Return buckets by the logarithm of n / e as a share of that of the largest distance, not of D / e."""
    exact = sided // 2
    log = np.log(np.maximum(n, exact) / exact) / np.log(max_distance) * (sided - exact)
    return np.where(n < exact, n, np.minimum(exact + np.floor(log + 1e-12).astype(np.int64), sided - 1))


@around_with
def _buckets(
    change: Any, _: Any, relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> Any:
    """Buckets are computed in another way, from distances."""
    if not bidirectional:
        return change(np.maximum(-relative, 0), num_buckets, max_distance)
    sided = num_buckets // 2
    return change(np.abs(relative), sided, max_distance) + sided * (relative > 0)


def _wrong_half(buckets: Any, relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Any:
    return np.where(relative != 0, (buckets + num_buckets // 2) % num_buckets, buckets) if bidirectional else buckets


def _zero_is_after(
    buckets: Any, relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> Any:
    return np.where(relative == 0, num_buckets // 2, buckets) if bidirectional else buckets


@around
def _unsigned(function: Function, relative: Any, /, *, bidirectional: bool, **options: Any) -> Any:
    """The relative position of a key after the query wraps at 2^32: it is as far before it."""
    far = relative if bidirectional else -((-np.asarray(relative)) % 2**32)
    return function(far, bidirectional=bidirectional, **options)


DEVIATIONS = (
    _deviation("t5-sign", "the relative position is query minus key", argument(0, lambda r: -r), hint=SIGN,
               seen_in="like aprender#2143"),
    _deviation("t5-causal", "buckets are always causal", option(bidirectional=always(False)), hint=BRANCH),
    _deviation("t5-bidirectional", "buckets are always bidirectional", option(bidirectional=always(True)), hint=BRANCH),
    _deviation("t5-max-distance-128", "max_distance is always 128",
               lambda f: lambda r, /, **o: f(r, **(o | {"max_distance": 128})), hint=DEFAULT, seen_in="llama.cpp"),
    _deviation("t5-no-log", "buckets stay one token wide", _buckets(lambda n, sided, far: np.minimum(n, sided - 1)),
               hint=LOG_BUCKETS),
    _deviation("t5-rounded", "the logarithm is rounded to the nearest",
               _buckets(lambda n, s, d: _log_buckets(n, s, d, np.rint)), hint=ROUND_DOWN),
    _deviation("t5-ceil", "the logarithm is rounded up",
               _buckets(lambda n, s, d: _log_buckets(n, s, d, lambda x: np.ceil(x - 2e-12))), hint=ROUND_DOWN),
    _deviation("t5-whole-logarithm", "the logarithm is that of the distance, not divided by the number of exact buckets",
               _buckets(_whole_logarithm), hint=SHARE),
    _deviation("t5-range-of-distance", "the share is of ln D, the largest distance, not of ln(D / e)",
               _buckets(_range_of_distance), hint=SHARE),
    _deviation("t5-range-of-buckets", "the share is of ln(N / e), N the number of buckets, not of ln(D / e)",
               _buckets(lambda n, s, d: _log_buckets(n, s, s, np.floor)), hint=SHARE),
    _deviation("t5-not-limited", "distances beyond the last bucket are not limited to it",
               _buckets(lambda n, s, d: _log_buckets(n, s, d, np.floor, limit=False)),
               hint=LAST_BUCKET),
    _deviation("t5-last-bucket-unused", "the last bucket is not used: distances are limited to the one before",
               _buckets(lambda n, s, d: np.minimum(_log_buckets(n, s, d, np.floor), s - 2)),
               hint=LAST_BUCKET),
    _deviation("t5-halves-exchanged", "keys before the query use the second half of the buckets", after(_wrong_half),
               hint=SECOND_HALF),
    _deviation("t5-zero-after", "the query's own position uses the second half of the buckets", after(_zero_is_after),
               hint=SECOND_HALF),
    _deviation("t5-unsigned", "keys after the query are 2^32 tokens away where buckets are causal", _unsigned,
               hint="Distances are unsigned: limit them to 0 before the cast."),
    _deviation("t5-num-buckets-32", "num_buckets is always 32", lambda f: lambda r, /, **o: f(r, **(o | {"num_buckets": 32})),
               hint=DEFAULT),
)  # fmt: skip

"""T5 relative position bias: cases and known mistakes."""

from typing import Any
from zlib import crc32

from .shared.relative import BOTH_DIRECTIONS, BUCKETS, last_of_keys
from .tools import Case, Deviation, Function, Real, argument, around, before, deviations_of, floats, gradient, pairs, reals
from .tools.hints import LAST_QUERIES, WEIGHT_CONVERTER

USUAL: dict[str, Any] = BUCKETS
SIZES: dict[str, Any] = {"N": 16}
WITH_OPTION: dict[str, dict[str, Any]] = {"max_distance": {"Q": 8, "K": 9}}
KERNEL = BOTH_DIRECTIONS
EVERY_SIZE = True


def _case(
    name: str, q_positions: Any, k_positions: Any, table: tuple[int, int], comment: str = "", *,
    bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of t5_bias with a table of this shape."""
    table_of = floats(*table, seed=crc32(name.encode()), bits=bits)
    inputs = {"q_positions": q_positions, "k_positions": k_positions, "table": table_of}
    return Case(f"t5_bias/{name}", params, inputs, comment, kind, tier)


KEYS = (0, 1, 2, 3, 7, 12, 30, 50, 90, 200, 1000)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("bidirectional/small", (0, 2, 9), (0, 1, 2, 7), (32, 2), tier="smoke", bidirectional=True),
        _case("causal/t5", (40, 300, 1000), KEYS, (32, 12), bidirectional=False),
        _case("settings/16-77", (0, 60), KEYS, (16, 3), bidirectional=True, max_distance=77),
        _case("settings/20-50", (30, 55, 5), KEYS, (20, 7), bidirectional=False, max_distance=50),
        _case("settings/40-1000", (500, 3), KEYS, (40, 5), bits=24, bidirectional=True, max_distance=1000),
        _case("settings/32-64", (70, 33), KEYS, (32, 3), bidirectional=False, max_distance=64),
        _case("refused/odd", (0, 2), (0, 1, 2), (31, 5), "half the buckets for each side", kind="reject", bidirectional=True),
        *pairs("t5_bias", BUCKETS, table=reals("t5_bias", 16, 3)),
        gradient("t5_bias", "bidirectional",
                 {"q_positions": (0, 2, 9), "k_positions": (0, 1, 2, 7), "table": reals("t5", 16, 2)}, {"out": (2, 3, 4)},
                 bidirectional=True, max_distance=20),
        gradient("t5_bias", "causal",
                 {"q_positions": (40, 300), "k_positions": (0, 1, 30, 39, 41), "table": reals("t5 causal", 12, 3)},
                 {"out": (3, 2, 5)}, bidirectional=False, max_distance=50),
        gradient("t5_bias", "rows",
                 {"q_positions": ((4, 6), (260, 261)), "k_positions": ((0, 2, 5), (262, 260, 250)),
                 "table": reals("t5 rows", 8, 2)}, {"out": (2, 2, 2, 3)}, bidirectional=True, max_distance=12),
    )  # fmt: skip


@around
def _heads_mixed(function: Function, table: Real, buckets: Any, /) -> Real:
    rows = table[buckets]
    return rows.reshape(*rows.shape[:-3], rows.shape[-1], *rows.shape[-3:-1])


def _last_of_keys(q: Any, k: Any, table: Any, /, **options: Any) -> Any:
    (q, k), options = last_of_keys(q, k, **options)
    return (q, k, table), options


_deviation = deviations_of("t5_rows")

DEVIATIONS = (
    Deviation("t5-bottom-right", "queries are the last of the keys, whatever their positions",
              {"t5_bias": before(_last_of_keys)}, hint=LAST_QUERIES),
    _deviation("t5-table-reshaped", "the table is reshaped to (heads, buckets) where it should be transposed",
               argument(0, lambda t: t.reshape(t.shape[::-1]).T), hint=WEIGHT_CONVERTER),
    _deviation("t5-heads-mixed", "the bias is reshaped where its axes should be moved", _heads_mixed,
               hint="Move the head axis with a transpose, not with a reshape."),
)  # fmt: skip

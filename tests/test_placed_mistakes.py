"""A known mistake is named with its place: the channels, rows, heads and outputs in which it acts."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.conformance import check
from posref.conformance.diagnosis import places
from posref.conformance.evidence.index import deviations_touching
from posref.spec import REGISTRY
from posref.testing import assert_conforms

ROTATION = {"layout": "half", "base": 10_000.0}
Where = Callable[..., Any]


def along(axis: int, test: Where) -> Where:
    """Return which values lie in a place along an axis of an output, none where it lacks the axis."""

    def where(out: Any) -> Any:
        if out.ndim < -axis:
            return np.zeros(out.shape, dtype=bool)
        size = out.shape[axis]
        return test(np.arange(size), size).reshape(size, *[1] * (-axis - 1))

    return where


def tail(m: int) -> Where:
    return along(-1, lambda i, n: i >= n - n % m)


def rows(test: Where) -> Where:
    def where(out: Any) -> Any:
        count = int(np.prod(out.shape[:-1]))
        return test(np.arange(count)).reshape(*out.shape[:-1], 1)

    return where


def diagnosis(op: str, name: str, where: Where | str) -> dict[str, Any]:
    """Return the diagnosis of an operation with a registered mistake in a place of its outputs, or in one output."""
    right = REGISTRY[op].function
    wrong = next(d for d in deviations_touching(op) if d.name == name).operations()[op]

    def placed(*args: Any, dtype: Any = None, **options: Any) -> Any:
        both = zip(REGISTRY[op].outputs, *(_outputs(f(*args, **options)) for f in (wrong, right)), strict=True)
        found = [np.where(output == where if isinstance(where, str) else where(r), w, r) for output, w, r in both]
        found = [x.astype(dtype or np.float32) if x.dtype.kind == "f" else x for x in found]
        return tuple(found) if len(found) > 1 else found[0]

    def _outputs(result: Any) -> list[Any]:
        return list(map(np.asarray, result)) if isinstance(result, tuple) else [np.asarray(result)]

    report = check(SimpleNamespace(**{op: placed}), op=op, dtype="float32", experiments=0)
    return dict(report.operations[0].diagnosis or {})


@few(
    1,
    ("op", "name", "where", "place"),
    [
        ("rms_norm", "norm-weight-missing", tail(4), "channels after the last full block of 4 (n mod 4 of them)"),
        (
            "rms_norm",
            "norm-weight-missing",
            tail(32),
            "channels after the last full block of 16 (n mod 16 of them) (a block of 32",
        ),
        ("apply_rope", "both-sums", rows(lambda i: i % 8 != 0), "7 of every 8 rows counted through all axes"),
        ("t5_bias", "t5-sign", along(-2, lambda i, n: i == n - 1), "the last query"),
        ("alibi", "alibi-off-by-one", along(-3, lambda i, n: i % 2 == 1), "odd-numbered heads"),
        ("rope_table", "cos-sin-exchanged", "sin", "the output sin"),
        ("sliding_window", "window-ignored", along(-1, lambda i, n: i >= 2), "keys from 2 on"),
    ],
)
def test_a_known_mistake_in_a_place_is_named_with_it(op: str, name: str, where: Where | str, place: str) -> None:
    said = diagnosis(op, name, where)
    assert said["text"].startswith(f"Only {place}"), said["text"]
    assert name in said["names"]


@pytest.mark.thorough
def test_a_mistake_that_is_right_in_some_values_of_its_place_is_no_mistake_in_that_place() -> None:
    """Every third channel of the tail is right: no place holds the others alone."""
    said = diagnosis("rms_norm", "norm-weight-missing", along(-1, lambda i, n: (i >= n - n % 8) & (i % 3 != 0)))
    assert not str(said["text"]).startswith("Only channels after the last full block of 8 (n mod 8 of them) are wrong. There")


@pytest.mark.thorough
def test_a_block_of_tokens_of_one_call_is_said() -> None:
    x = np.random.default_rng(0).standard_normal((2, 24, 8)).astype(np.float32)
    y = posref.rope(x, np.arange(24), **ROTATION)
    y[:, 6:17] = posref.rope(x, np.arange(24) + 3, **ROTATION)[:, 6:17]
    with pytest.raises(AssertionError, match=r"Only tokens 6 to 16 are wrong\. There .* positions are offset by 3"):
        assert_conforms("rope", y, x, np.arange(24), **ROTATION)


def test_calls_are_counted_from_1_and_the_last_is_the_last() -> None:
    second = places.UnitCounts("case", failed=True, values=np.arange(3), size=3, wrong=np.asarray([False, True, False]))
    holding = [p.words for p in places._places("call", [second]) if p.holds(np.asarray([1]), np.asarray([3]))[0]]
    assert "call 2" in holding
    assert "the last call" not in holding


@pytest.mark.thorough
def test_places_leave_work_for_numbers_in_a_large_call() -> None:
    x = np.random.default_rng(0).standard_normal((8, 300, 128)).astype(np.float32)
    with pytest.raises(AssertionError, match="positions are offset by 5"):
        assert_conforms("rope", posref.rope(x, np.arange(300) + 5, **ROTATION), x, np.arange(300), **ROTATION)


@pytest.mark.thorough(dear=True)
def test_two_mistakes_of_which_one_acts_with_a_word_alone_are_named_by_word() -> None:
    def sinusoidal(positions: Any, dim: int, /, *, layout: str, **options: Any) -> Any:
        found = np.array(posref.sinusoidal(np.asarray(positions) + 1, dim, layout=layout, **options))
        if layout == "interleaved":
            pairs = found[..., : dim // 2 * 2]
            pairs[..., ::2], pairs[..., 1::2] = pairs[..., 1::2].copy(), pairs[..., ::2].copy()
        return found.astype(np.float32)

    report = check(SimpleNamespace(sinusoidal=sinusoidal), op="sinusoidal", dtype="float32", experiments=0)
    text = dict(report.operations[0].diagnosis or {})["text"]
    assert "with layout=interleaved if sines and cosines are exchanged" in text
    assert "with layout=sin_cos or layout=cos_sin if positions are one too large (positions-plus-1)." in text


def test_a_place_of_most_failing_cases_is_told() -> None:
    def pairs(case: int, wrong: int) -> places.UnitCounts:
        return places.UnitCounts(str(case), failed=True, values=np.arange(6), size=6, wrong=np.arange(6) == wrong)

    lines = {"pair": [pairs(case, 1 if case == 4 else 3) for case in range(10)]}
    assert places._of_most(lines, set(map(str, range(10)))) == " In 9 of 10 failing cases, only pair 3 is wrong."
    lines = {"pair": [pairs(case, 1 if case % 2 else 3) for case in range(10)]}
    assert not places._of_most(lines, set(map(str, range(10))))


def test_a_remainder_is_a_place_though_most_failing_cases_have_nothing_else() -> None:
    """Eleven of fifteen outputs are so narrow that all their channels are wrong; those of whole blocks are right."""
    sizes = [*range(1, 8), *range(1, 5), 8, 9, 13, 16, 20, 24]
    tails = [places.UnitCounts(str(k), n % 8 > 0, np.arange(n), n, np.arange(n) >= n // 8 * 8) for k, n in enumerate(sizes)]
    place = next(p for p in places._places("pair", tails) if "full block of 8 (" in p.words)
    assert places._judged(place, places._Units.of(tails), sum(line.failed for line in tails)) is not None


@pytest.mark.parametrize(("blocks", "told"), [(1, False), (3, True)])
def test_half_of_a_block_is_no_place_where_only_the_first_block_is_wrong(blocks: int, told: bool) -> None:
    """Few keys are all in the first half of a block of 8, whatever is wrong."""
    lines = [places.UnitCounts(str(n), True, np.arange(n), n, np.arange(n) % 8 < 4) for n in (8 * blocks - 3, 8 * blocks - 1)]
    place = next(p for p in places._places("key", lines) if "first half of a block of 8" in p.words)
    assert (places._judged(place, places._Units.of(lines), 2) is not None) == told

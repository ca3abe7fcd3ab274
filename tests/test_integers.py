"""Positions in every integer dtype, with small and very large options: the values of int64, or a refusal in a sentence."""

import sys
from collections.abc import Iterator
from functools import wraps
from inspect import getsource
from typing import Any

import numpy as np
import pytest
from conftest import Library, opened
from sample import smoke
from sampling import few, share

import posref
from posref.bias.t5_buckets import one_sided
from posref.conformance.calls import bind, takes_dtype
from posref.conformance.vocabulary.axes import alternatives, arranged, limits, names_in
from posref.conformance.vocabulary.traits import defaults
from posref.spec import REGISTRY, Axes, Encoding, Integer, Real

DTYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
LARGE = (20_000, 2**31 - 1)
OPS = [op for op, record in REGISTRY.items() if any(axes.kind in ("integer", "position") for axes in record.arrays.values())]
REFUSED = ("must be signed integers; got", "must be integers that int")  # of unsigned ones
SLOW = ("jax", "array_api_strict")
LIBRARIES = ("numpy", "torch", *SLOW)


def places_of(op: str) -> list[str]:
    """Return the arguments of a smoke case that are integers, or positions that may be."""
    inputs = smoke(op).calls[0].inputs
    return [n for n, axes in REGISTRY[op].arrays.items() if axes.kind in ("integer", "position") and n in inputs]


def sizes_in(record: Encoding) -> set[str]:
    """Return the options that say how much is computed."""
    shapes = [*(axes.shape for axes in record.arrays.values()), *record.result]
    tokens = [token.lstrip("~*") for shape in shapes for way in alternatives(shape) for token in way]
    return {"dim"}.union(*(names_in(token) for token in tokens if not token.startswith("=")))  # sums are of so many terms too


def options_of(op: str) -> Iterator[dict[str, Any]]:
    """Yield the options of the smoke case, as they are and with each integer among them at its least and very large."""
    params, record = dict(smoke(op).calls[0].params), REGISTRY[op]
    yield params
    for name, domain in record.domains.items():
        if isinstance(domain, Integer) and name not in sizes_in(record):
            for value in (domain.low, *LARGE):
                most = value if domain.high is None else min(value, domain.high)
                yield params | {name: most - (most - domain.low) % domain.step}


def sizes_of(op: str, inputs: dict[str, np.ndarray]) -> dict[str, int]:
    """Return the sizes of the axes that are a letter, the last axes first."""
    found: dict[str, int] = {}
    for name, array in inputs.items():
        tokens = alternatives(REGISTRY[op].arrays[name].shape)[-1]
        found |= {t: n for t, n in zip(reversed(tokens), reversed(array.shape), strict=False) if len(t) == 1}
    return found


def numbers(values: np.ndarray, axes: Axes, dtype: str, known: dict[str, Any]) -> list[np.ndarray]:
    """Return the integers of a case within the dtype and the domain, and the same with the ends of both among them."""
    info, (low, high) = np.iinfo(dtype), limits(axes, known)
    least = max(info.min, -(2**63) if low is None else int(np.ceil(low)))
    most = min(info.max, info.max if high is None else int(high))
    if least > most:
        return []
    plain = np.clip(values.astype(np.int64), max(least, -(2**62)), min(most, 2**62)).astype(dtype)
    ends = plain.copy().reshape(-1)
    ends[-1:], ends[:1] = least, most
    return [plain, arranged(ends.reshape(plain.shape), axes)]


def computed(library: Library, op: str, inputs: dict[str, Any], params: dict[str, Any]) -> list[np.ndarray] | str:
    """Return the results on the host, or the sentence with which the call is refused."""
    arrays = {n: library.array(x, None if x.dtype.kind in "biu" else "float32") for n, x in inputs.items()}
    positional, keywords = bind(op, arrays, params)
    if takes_dtype(op):
        keywords["dtype"] = library.dtype("float32")
    try:
        results = REGISTRY[op].function(*positional, **keywords)
    except (ValueError, TypeError) as error:
        if str(error).startswith((f"{op}: ", f"{posref._SHORTER.get(op, op)}: ")):
            return str(error)
        raise
    return [library.host(x) for x in (results if isinstance(results, tuple) else (results,))]


def equal(got: list[np.ndarray] | str, want: list[np.ndarray] | str) -> bool:
    """Return whether two results have the same numbers, or the same sentence."""
    if isinstance(got, str) or isinstance(want, str):
        return got == want
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True))


def wrong(library: Library, op: str) -> Iterator[str]:
    """Yield the calls that are neither the values of int64 nor refused for their dtype."""
    record, places, call = REGISTRY[op], places_of(op), smoke(op).calls[0]
    for params in options_of(op):
        known = {**defaults(op), **sizes_of(op, call.inputs), **params}
        for dtype in DTYPES:
            some = [numbers(call.inputs[n], record.arrays[n], dtype, known) for n in places]
            for moved in zip(*some, strict=True):
                narrow = call.inputs | dict(zip(places, moved, strict=True))
                got = computed(library, op, narrow, params)
                if isinstance(got, str) and dtype[0] == "u" and any(words in got for words in REFUSED):
                    continue
                wide = {n: x.astype(np.int64) if n in places else x for n, x in narrow.items()}
                want = computed(library, op, wide, params)
                if not equal(got, want):
                    yield f"{op} of {dtype} with {params}: {got}, not {want}"


@few(1, ("op", "name"), share([(op, name) for name in LIBRARIES for op in OPS]))
def test_every_integer_dtype_has_the_values_of_int64(op: str, name: str) -> None:
    with opened(name) as library:
        assert not list(wrong(library, op))


@pytest.mark.parametrize("op", ["t5_buckets", "rope", "sliding_window"])
def test_arithmetic_in_the_dtype_of_the_positions_would_be_seen(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that adds to its integers in their own dtype."""
    right = REGISTRY[op].function

    @wraps(right)
    def narrow(*arrays: Any, **options: Any) -> Any:
        moved = [x + (x.dtype.type(100) if x.dtype.kind in "iu" else 0) for x in arrays]
        return right(*moved, **options)

    monkeypatch.setitem(REGISTRY.registered, op, type(REGISTRY[op])(**{**vars(REGISTRY[op]), "function": narrow}))
    with opened("numpy") as library:
        assert list(wrong(library, op))


REFUSED_NUMBERS: dict[type, tuple[object, ...]] = {
    Integer: (2**63, -(2**63) - 1, 10**5000, "4", {}),
    Real: (10**5000, "4", {}),
}


def test_options_that_no_library_holds_are_refused() -> None:
    """In every option that is a number; a length is read by those scalings alone that depend on it."""
    with opened("numpy") as library:
        for op, record in REGISTRY.items():
            call = smoke(op).calls[0]
            for name, domain in record.domains.items():
                for value in REFUSED_NUMBERS.get(type(domain), ()) if name != "length" else ():
                    said = computed(library, op, dict(call.inputs), {**call.params, name: value})
                    assert isinstance(said, str), (op, name)
                    assert name in said


@pytest.mark.parametrize("dtype", ["uint64"])
def test_the_upper_half_of_unsigned_integers_is_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match=f"rope: positions must be integers that int64 can hold; got {dtype}. Convert them"):
        posref.rope(np.ones((2, 4)), np.asarray([0, 2**63], dtype=dtype), layout="half", base=10000.0)


@pytest.mark.parametrize(("buckets", "distance"), [(8, 128), (16, 128), (2, 3), (3, 9), (16, 9), (32, 5000), (5, 3)])
def test_buckets_are_those_of_one_distance_after_another(buckets: int, distance: int) -> None:
    exact = buckets // 2
    wide, of_one = buckets - exact, []
    for n in range(distance + 1):
        reached = [k for k in range(1, wide) if n**wide * exact**k >= distance**k * exact**wide]
        of_one.append(n if n < exact else exact + len(reached))
    assert one_sided(buckets, distance) == of_one


def test_the_largest_distance_of_buckets() -> None:
    near = np.asarray([-3, 0, 3], dtype=np.int8)
    assert posref.t5_buckets(near, bidirectional=True, max_distance=2**20).tolist() == [3, 0, 19]
    with pytest.raises(ValueError, match="t5_buckets: max_distance must be at most 1048576"):
        posref.t5_buckets(near, bidirectional=True, max_distance=2**20 + 1)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_narrow_integers_in_place_of_reals_are_taken_or_refused_as_wide_ones(library: str) -> None:
    """The ends of int8 among them, so that a sum or a double in its own dtype would not fit."""
    taken = []
    with opened(library) as opened_library:
        for op, record in REGISTRY.items():
            call = smoke(op).calls[0]
            for name in [
                n for n, axes in record.arrays.items() if axes.kind == "wide" and call.inputs.get(n, np.empty(0)).size
            ]:
                whole = np.round(call.inputs[name])
                whole.reshape(-1)[[0, -1]] = 127, -128
                odd = {n: x * 0.37 if record.arrays[n].kind == "position" else x for n, x in call.inputs.items()}
                pair = [odd | {name: whole.astype(dtype)} for dtype in ("int8", "int64")]
                got, want = (computed(opened_library, op, inputs, dict(call.params)) for inputs in pair)
                taken += [] if isinstance(want, str) else [op]
                assert isinstance(got, str) if isinstance(want, str) else equal(got, want), (op, name)
    assert {"rope_table", "random_fourier"} <= set(taken)


def test_a_row_that_a_table_lacks_is_said_of_integers_in_the_other_byte_order() -> None:
    tables = np.ones((3, 2)), np.ones((3, 2))
    with pytest.raises(IndexError, match="axial_learned: positions must be rows that the table has"):
        posref.axial_learned(np.asarray([[0], [7]], dtype=">i4"), *tables, combine="concat")


FAR = "Integers must be below 2^53 in magnitude"


def takes_angles(record: Encoding) -> bool:
    """Return whether a definition takes the cosine of positions."""
    return record.family in ("absolute", "rotary") or "cos_sin(" in getsource(sys.modules[record.function.__module__])


@pytest.mark.parametrize("op", [op for op, record in REGISTRY.items() if takes_angles(record)])
def test_operations_that_take_angles_say_how_far_integers_may_lie(op: str) -> None:
    """One line for each argument of positions that become floats."""
    record = REGISTRY[op]
    positions = [name for name, axes in record.arrays.items() if axes.kind == "position"]
    assert (record.function.__doc__ or "").count(FAR) == len(positions)

"""
Every definition on every array library: the values of the balls within derived bounds, and the caller's library, device
and dtype.

A tolerance is the half-width that the definition itself has on error bounds of the class, for these inputs; nothing is
chosen.
"""

import math
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from array_api_compat import device as device_of
from calls import CALLS, as_tuple, assert_within, expected, given, is_real
from conftest import LIBRARIES, Library

import posref
from posref import arrays, backends
from posref.backends.rounding import BITS, LARGEST, round_to
from posref.spec import REGISTRY


def test_real_inputs_of_every_call_are_exact_in_bfloat16() -> None:
    """What the tests above rely on: no input is rounded on its way in (but frequencies, which stay on the host)."""
    for name, call in CALLS.items():
        for x in call.inputs[: 1 if name == "rope_table" else None]:
            if is_real(x):
                np.testing.assert_array_equal(round_to(x, "bfloat16"), x)


@pytest.mark.parametrize("name", CALLS)
def test_float32_is_within_the_bounds_of_its_class(library: Library, name: str) -> None:
    """Angle64 also where there is no float64: there angles are exact fractions of a turn."""
    call = CALLS[name]
    outputs = as_tuple(call.function(*given(call, library, "float32"), dtype=library.dtype("float32")))
    for i, out in enumerate(outputs):
        assert_within(library.host(out), name, "angle64", i)


@pytest.mark.parametrize("name", CALLS)
def test_float64_is_within_the_bounds_of_its_class(library: Library, name: str) -> None:
    if "float64" not in library.dtypes:
        assert library.name == "jax"
        return
    call = CALLS[name]
    outputs = as_tuple(call.function(*given(call, library, "float64"), dtype=library.dtype("float64")))
    for i, out in enumerate(outputs):
        assert_within(library.host(out), name, "float64", i)


@pytest.mark.parametrize("name", CALLS)
def test_half_precision_has_one_rounding(library: Library, name: str) -> None:
    """The value in float32, within its bound t, then rounded: t + u(|y| + t) + floor (DESIGN, section 4)."""
    for dtype in set(library.dtypes) & {"float16", "bfloat16"}:
        call = CALLS[name]
        outputs = as_tuple(call.function(*given(call, library, dtype), dtype=library.dtype(dtype)))
        for i, out in enumerate(outputs):
            value, bound = expected(name, "angle64")[i]
            if is_real(value):
                assert out.dtype == library.dtype(dtype)
                smallest = 2.0**-25 if dtype == "float16" else 2.0**-134
                bound = bound + 2.0 ** -BITS[dtype] * (np.abs(value) + bound) + smallest
                beyond = np.abs(value) > LARGEST[dtype]
                got = library.host(out)
                assert np.all((np.abs(got - value) <= bound) | beyond), f"{name} in {dtype}"


@pytest.mark.parametrize("name", CALLS)
def test_namespace_device_and_dtype_are_the_callers(library: Library, name: str) -> None:
    for dtype in library.dtypes:
        call = CALLS[name]
        inputs = given(call, library, dtype)
        for out in as_tuple(call.function(*inputs, dtype=library.dtype(dtype))):
            assert arrays.namespace(out) is arrays.namespace(inputs[0])
            assert device_of(out) == device_of(inputs[0])
            returned = REGISTRY[name.split(maxsplit=1)[0]].returns
            if returned == "real":
                assert out.dtype == library.dtype(dtype)
            else:
                assert library.xp.isdtype(out.dtype, "integral" if returned == "integer" else "bool")


@pytest.mark.parametrize("name", CALLS)
def test_inputs_are_left_alone_and_bits_repeat(library: Library, name: str) -> None:
    call = CALLS[name]
    inputs = given(call, library, "float32")
    twice = [as_tuple(call.function(*inputs, dtype=library.dtype("float32"))) for _ in range(2)]
    for one, two in zip(*twice, strict=True):
        np.testing.assert_array_equal(library.host(one), library.host(two))
    for x, before in zip(inputs, call.inputs, strict=True):
        now = x if isinstance(x, np.ndarray) else library.host(x)
        np.testing.assert_array_equal(now, before.astype(np.float32) if is_real(before) and now is not before else before)


# ---- devices and flags of array-api-strict ---------------------------------------------------------


@pytest.mark.parametrize("device", ["device1", "no_float64"])
@pytest.mark.parametrize("name", CALLS)
def test_results_stay_on_the_device(name: str, device: str) -> None:
    """`no_float64` stands in for hardware without float64, where nothing in it may be created."""
    library = Library("array_api_strict", backends.load("array_api_strict"), strict.Device(device))
    call = CALLS[name]
    for i, out in enumerate(as_tuple(call.function(*given(call, library, "float32"), dtype=strict.float32))):
        assert out.device == library.device
        assert_within(library.host(out), name, "angle64", i)


@pytest.fixture
def strictest() -> Iterator[None]:
    strict.set_array_api_strict_flags(boolean_indexing=False, data_dependent_shapes=False, enabled_extensions=())
    yield
    strict.reset_array_api_strict_flags()


@pytest.mark.usefixtures("strictest")
@pytest.mark.parametrize("name", CALLS)
def test_no_shape_depends_on_data(name: str) -> None:
    library = Library("array_api_strict", backends.load("array_api_strict"))
    call = CALLS[name]
    for i, out in enumerate(as_tuple(call.function(*given(call, library, "float32"), dtype=strict.float32))):
        assert_within(library.host(out), name, "angle64", i)


@pytest.mark.usefixtures("strictest")
@pytest.mark.parametrize("version", ["2023.12", "2024.12", "2025.12"])
def test_2023_12_is_the_floor(version: str) -> None:
    strict.set_array_api_strict_flags(api_version=version)
    library = Library("array_api_strict", backends.load("array_api_strict"))
    for call in CALLS.values():
        call.function(*given(call, library, "float32"), dtype=strict.float32)


# ---- Dask ---------------------------------------------------------


@pytest.mark.parametrize("name", CALLS)
def test_dask_computes_nothing_while_the_graph_is_built(name: str) -> None:
    import dask

    def never(*_: Any, **__: Any) -> None:
        msg = "a graph was computed"
        raise AssertionError(msg)

    library, call = Library("dask", backends.load("dask")), CALLS[name]
    with dask.config.set(scheduler=never):
        outputs = as_tuple(call.function(*given(call, library, "float32"), dtype=np.dtype("float32")))
    assert all(type(out).__name__ == "Array" and type(out).__module__.startswith("dask") for out in outputs)


def test_dask_keeps_the_chunks_of_tokens() -> None:
    import dask.array as da

    x = da.ones((2, 3, 8, 12), chunks=(1, 3, 2, 12), dtype=np.float32)
    turned = posref.rope(x, da.arange(8, chunks=2), layout="half", base=10000.0)
    assert turned.chunks[:3] == x.chunks[:3]


# ---- what a backend states ---------------------------------------------------------


def test_float64_trigonometry_is_what_the_backend_states(library: Library) -> None:
    """Within an ulp of the C library's sine, or float32 in disguise; `arrays.has_float64` says the same."""
    points = np.asarray([0.1, 0.7, 1.3, 2.9, 1e5])
    if "float64" in library.dtypes:
        x = library.array(points, "float64")
        sines = library.host(library.xp.sin(x))
        real = all(abs(s - math.sin(p)) <= math.ulp(math.sin(p)) for s, p in zip(sines, points, strict=True))
    else:
        x, real = library.array(points, "float32"), False
    assert real == ("float64" in library.dtypes and library.backend.float64_trigonometry) == arrays.has_float64(x)


def test_the_device_without_float64_is_known() -> None:
    x = strict.asarray([1.0], dtype=strict.float32, device=strict.Device("no_float64"))
    assert not arrays.has_float64(x)


def test_round_trips(library: Library) -> None:
    x = np.asarray([[0.0, -0.0, 1.5], [2.0**-14, -65504.0, np.inf]])
    for dtype in library.dtypes:
        back = library.host(library.array(x, dtype))
        np.testing.assert_array_equal(back, round_to(x, dtype))
        np.testing.assert_array_equal(np.signbit(back), np.signbit(x))
        assert back.dtype == np.float64
    for whole in (np.asarray([3, -1], dtype=np.int64), np.asarray([True, False])):
        np.testing.assert_array_equal(library.host(library.array(whole)), whole)
    for empty in (np.zeros((0, 3)), np.asarray(1.5)):
        assert library.host(library.array(empty, "float32")).shape == empty.shape


def test_narrowing_rounds_once(library: Library) -> None:
    """Through float32 this would be 1.0: the tail is lost first, and then a tie goes to even."""
    x = np.asarray([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40])
    exact = {"bfloat16": [1.0078125, 1.0], "float16": [1 + 2.0**-8, 1 + 2.0**-10]}
    for dtype in set(library.dtypes) & set(exact):
        assert library.host(library.array(x, dtype)).tolist() == exact[dtype]


def test_round_to_is_ieee() -> None:
    """
    Against NumPy's own conversions, which round once to float16 and float32, subnormal numbers and overflow included.
    """
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.standard_normal(4000), rng.integers(-160, 135, 4000))
    for dtype in ("float16", "float32"):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(round_to(x, dtype), x.astype(dtype).astype(np.float64))


# ---- constants ---------------------------------------------------------


def test_constants_are_host_float64_unless_asked_for(library: Library) -> None:
    for host in (posref.rope_frequencies(8, base=10000.0)[0], posref.alibi_slopes(6)):
        assert isinstance(host, np.ndarray)
        assert host.dtype == np.float64
    there = posref.rope_frequencies(8, base=10000.0, xp=library.xp, dtype=library.dtype("float32"))[0]
    assert there.dtype == library.dtype("float32")
    assert arrays.namespace(there) is arrays.namespace(library.array([1.0], "float32"))


def test_the_factor_is_a_python_float() -> None:
    factor = posref.rope_frequencies(8, base=10000.0, scaling=posref.scaling.YaRN(4.0, 64))[1]
    assert type(factor) is float


def test_default_dtype_of_integer_positions(library: Library) -> None:
    default = {"torch": "float32", "jax": "float32"}.get(library.name, "float64")
    positions = library.array(np.asarray([1, 2]))
    for out in (
        posref.sinusoidal(positions, 4, layout="sin_cos"),
        posref.rope_table(positions, np.asarray([1.0]))[0],
        posref.alibi(positions, positions, heads=2, form="causal"),
    ):
        assert out.dtype == library.dtype(default)


def test_a_float64_table_widens_float32_no_further_than_its_result(library: Library) -> None:
    if "float64" in library.dtypes:
        x = library.array(np.ones((2, 4)), "float32")
        cos, sin = (library.array(np.full((2, 2), c), "float64") for c in (0.6, 0.8))
        assert posref.apply_rope(x, cos, sin, layout="half").dtype == library.dtype("float32")


# ---- shapes ---------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (2, 0, 8), (2, 3, 1, 8), (0, 3, 5, 8), (5, 2, 2, 1, 8)])
def test_rope_keeps_every_shape(library: Library, shape: tuple[int, ...]) -> None:
    x = library.array(np.ones(shape), "float32")
    turned = posref.rope(x, library.array(np.arange(shape[-2])), layout="half", base=10000.0, rotary_dim=6)
    assert turned.shape == shape
    assert library.host(turned).shape == shape


@pytest.mark.parametrize("queries", [0, 1, 3])
def test_biases_of_empty_and_single_rows(library: Library, queries: int) -> None:
    q, k = library.array(np.arange(queries)), library.array(np.arange(4))
    table = library.array(np.ones((8, 5)), "float32")
    assert posref.alibi(q, k, heads=5, form="distance").shape == (5, queries, 4)
    if (library.name, queries) != ("dask", 0):  # Dask cannot split an axis of length 0
        assert posref.t5_bias(q, k, table, bidirectional=False).shape == (5, queries, 4)
    assert posref.sinusoidal(q, 6, layout="interleaved").shape == (queries, 6)


def test_batches_of_positions(library: Library) -> None:
    q, k = library.array(np.arange(6).reshape(2, 3)), library.array(np.arange(8).reshape(2, 4))
    table = library.array(np.ones((8, 5)), "float32")
    assert posref.alibi(q, k, heads=5, form="distance").shape == (2, 5, 3, 4)
    assert posref.alibi(q, k, heads=5, form="key").shape == (2, 5, 1, 4)
    assert posref.t5_bias(q, k, table, bidirectional=True).shape == (2, 5, 3, 4)
    x = library.array(np.ones((2, 7, 3, 8)), "float32")
    assert posref.rope(x, q[:, None, :], layout="interleaved", base=10000.0).shape == x.shape


def test_a_position_without_axes(library: Library) -> None:
    x = library.array(np.ones((3, 4)), "float32")
    position = library.array(np.asarray(5))
    assert posref.rope(x, position, layout="half", base=10000.0).shape == (3, 4)
    assert posref.rotation_matrix(position, 4, layout="half", base=10000.0).shape == (4, 4)
    assert posref.sinusoidal(position, 4, layout="sin_cos").shape == (4,)


# ---- the loader ---------------------------------------------------------


def test_every_backend_under_test_is_one_of_posref() -> None:
    assert {name.removesuffix("_x64") for name in LIBRARIES} <= set(backends.names())


def test_a_missing_library_is_an_error_with_its_command() -> None:
    """CuPy needs a GPU's libraries to import; where it is not installed the message says how to."""
    try:
        backends.load("cupy")
    except backends.BackendMissing as error:
        assert str(error) == "backend 'cupy' needs cupy: pip install 'posref[cupy]'"  # noqa: PT017

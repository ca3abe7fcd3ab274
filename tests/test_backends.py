"""
Every definition on every array library: right within derived bounds, and in the caller's library, device and dtype.

Calls and bounds are those of a few stored cases of every operation (`sample`); the thorough tests ask every case.
"""

import functools
import inspect
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from array_api_compat import device as device_of
from conftest import LIBRARIES, Library
from sample import cases, sample, smoke, traits

import posref
from posref import backends
from posref.backends.rounding import round_to
from posref.conformance.calls import makes_constants, returns_reals
from posref.conformance.errors import Failure, Stopped
from posref.conformance.judge import compare, errors
from posref.conformance.model import LoadedCase
from posref.conformance.target.python import load_python
from posref.core import arrays
from posref.spec import REGISTRY

FEW = ("jax", "jax_x64", "dask")  # the smoke cases in one dtype: thorough tests ask every case of every operation
EVERY = 7  # of so many operations one is asked here on JAX and Dask
DEVICES = ("device1", "no_float64")  # of array-api-strict; the second stands in for hardware without float64


@pytest.mark.thorough
def test_the_sample_has_every_trait_of_the_cases() -> None:
    """So that no word of an option, and no rank of an array, is tried on NumPy and PyTorch alone."""
    for op in REGISTRY:
        every = frozenset[Any]().union(*(traits(op, case.calls[0]) for case in cases(op)))
        assert every == frozenset[Any]().union(*(traits(op, case.calls[0]) for case in sample(op))), op
        assert smoke(op).tier == "smoke"


def never(*_: Any, **__: Any) -> None:
    msg = "a graph was computed"
    raise AssertionError(msg)


def building(library: Library) -> AbstractContextManager[Any]:
    """Return a context in which nothing may be computed, where the library is lazy."""
    if library.name != "dask":
        return nullcontext()
    import dask

    return dask.config.set(scheduler=never)


def assert_right(library: Library, case: LoadedCase, dtype: str) -> None:
    """Assert all that must be true of one call in one dtype: values, dtype, namespace, device, inputs, bits that repeat."""
    op, where = case.op, f"{case.id} in {dtype} on {library.name}"
    function, results = REGISTRY[op].function, []

    @functools.wraps(function)
    def noted(*given: Any, **options: Any) -> Any:
        if makes_constants(op):
            made = {"xp": library.xp, "dtype": library.dtype(dtype), "device": library.device}
            options |= {name: value for name, value in made.items() if name in inspect.signature(function).parameters}
        with building(library):
            found = function(*given, **options)
        results.extend(found if isinstance(found, tuple) else (found,))
        return found

    target = load_python(SimpleNamespace(**{op: noted}), backend=library.backend.name, device=library.device)
    here = library.array(np.asarray([1.0]), "float32")
    (call,) = case.calls
    try:
        outputs = target.run(case, call, dtype)
    except (Failure, Stopped) as error:
        pytest.fail(f"{where}: {error}")
    for result in results:
        if not isinstance(result, float):
            assert arrays.namespace(result) is arrays.namespace(here), where
            assert device_of(result) == device_of(here), where
    accuracy = "float64" if dtype == "float64" else "angle64"
    if makes_constants(op) and dtype == "float32":  # the vectors ask for what they are before they are stored
        for name, value in outputs.items():
            error, width = errors(op, call, name, value, accuracy, dtype)
            assert np.all(error <= width + 2.0**-24 * (np.abs(call.expected[name]) + width)), f"{where}: {name} {value}"
        return
    worst = compare(op, call, outputs, accuracy, dtype)
    assert worst is None, f"{where}: {worst}"


def asked_dtypes(library: Library, op: str) -> tuple[str, ...]:
    """Return the dtypes in which an operation is tried: integers and masks are the same in all, constants never narrow."""
    if not returns_reals(op):
        return ("float32",)
    wanted = ("float64", "float32") if makes_constants(op) else ("float64", "float32", "float16", "bfloat16")
    if library.name in FEW:
        wanted = ("float64",) if library.name == "jax_x64" else ("float32",)
    return tuple(dtype for dtype in wanted if dtype in library.dtypes)


@contextmanager
def strictest(version: str = "2023.12") -> Iterator[None]:
    """Have array-api-strict refuse whatever the standard leaves open: 2023.12 is the floor, and no shape depends on data."""
    import array_api_strict as strict

    strict.set_array_api_strict_flags(boolean_indexing=False, data_dependent_shapes=False, enabled_extensions=())
    strict.set_array_api_strict_flags(api_version=version)
    try:
        yield
    finally:
        strict.reset_array_api_strict_flags()


def asked() -> Iterator[Any]:
    """Yield the libraries and operations of the next test: a plain run asks few operations of the slow libraries."""
    for name in LIBRARIES:
        for k, op in enumerate(REGISTRY):
            plain = name not in FEW or (name != "jax_x64" and k % EVERY == 0)
            yield pytest.param(name, op, marks=() if plain else pytest.mark.thorough)


@pytest.mark.parametrize(("library", "op"), list(asked()), indirect=["library"])
def test_every_operation_is_right(library: Library, op: str) -> None:
    with ExitStack() as stack:
        if library.name == "array_api_strict":
            stack.enter_context(strictest())
        for case in (smoke(op),) if library.name in FEW else sample(op):
            for dtype in asked_dtypes(library, op):
                assert_right(library, case, dtype)


# ---- devices and versions of array-api-strict ---------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", REGISTRY)
def test_results_stay_on_the_device(op: str, device: str) -> None:
    import array_api_strict as strict

    library = Library("array_api_strict", backends.load("array_api_strict"), strict.Device(device))
    for case in sample(op):
        assert_right(library, case, "float32")


@pytest.mark.parametrize("version", ["2024.12", "2025.12"])
def test_newer_versions_of_the_standard_do_too(version: str) -> None:
    library = Library("array_api_strict", backends.load("array_api_strict"))
    with strictest(version):
        for op in REGISTRY:
            assert_right(library, smoke(op), "float32")


# ---- Dask ---------------------------------------------------------


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
    import array_api_strict as strict

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
    real = library.dtype("float64" if "float64" in library.dtypes and library.name != "jax" else "float32")
    for widest in (
        posref.rope_frequencies(8, base=10000.0, xp=library.xp)[0],
        posref.axial_frequencies((4, 4), base=100.0, allocation="own", xp=library.xp),
        posref.alibi_slopes(6, xp=library.xp),
    ):
        assert widest.dtype == real
    assert library.host(posref.rope_frequencies(8, base=10.0, xp=library.xp)[0]).dtype == np.float64


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

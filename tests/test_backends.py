"""
What holds of every array library: dtypes, rounding, shapes, and what its backend states.

That every operation is right on each of them is a part of `every_encoding`; the thorough tests ask the slow libraries too.
"""

import math
from typing import Any

import numpy as np
import pytest
from conftest import LIBRARIES, Library, opened
from every_encoding.libraries import FEW, assert_smoke_is_right
from sample import cases, sample, smoke, traits
from sampling import few, share

import posref
from posref import backends
from posref.backends.rounding import round_to
from posref.core import arrays
from posref.spec import REGISTRY


@pytest.mark.thorough
def test_the_sample_has_every_trait_of_the_cases() -> None:
    """So that no word of an option, and no rank of an array, is tried on NumPy and PyTorch alone."""
    for op in REGISTRY:
        every = frozenset[Any]().union(*(traits(op, case.calls[0]) for case in cases(op)))
        assert every == frozenset[Any]().union(*(traits(op, case.calls[0]) for case in sample(op))), op
        assert smoke(op).tier == "smoke"


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
@pytest.mark.parametrize("name", FEW)
def test_every_operation_is_right_on_slow_libraries(name: str, op: str) -> None:
    """Those that a plain run asks too: all operations, where that asks a few."""
    with opened(name) as library:
        assert_smoke_is_right(library, op)


# ---- Dask ---------------------------------------------------------


def test_dask_keeps_the_chunks_of_tokens() -> None:
    import dask.array as da

    x = da.ones((2, 3, 8, 12), chunks=(1, 3, 2, 12), dtype=np.float32)
    turned = posref.rope(x, da.arange(8, chunks=2), layout="half", base=10000.0)
    assert turned.chunks[:3] == x.chunks[:3]


def test_dask_takes_rows_of_a_table_block_by_block() -> None:
    """A bias has the chunks of its queries and keys, and those of the table's heads."""
    import dask.array as da

    table = np.random.default_rng(3).normal(size=(32, 5))
    q, k = np.arange(9), np.arange(12)
    tiled = posref.t5_bias(da.arange(9, chunks=4), da.arange(12, chunks=6), da.from_array(table, (7, 3)), bidirectional=True)
    assert tiled.chunks == ((3, 2), (4, 4, 1), (6, 6))
    np.testing.assert_array_equal(tiled.compute(scheduler="sync"), posref.t5_bias(q, k, table, bidirectional=True))


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
    assert type(posref.rope_frequencies(8, base=10000.0, scaling=posref.scaling.YaRN(4.0, 64))[1]) is float  # the factor


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


@few(2, "shape", [(0, 8), (1, 8), (2, 0, 8), (2, 3, 1, 8), (0, 3, 5, 8), (5, 2, 2, 1, 8)])
def test_rope_keeps_every_shape(library: Library, shape: tuple[int, ...]) -> None:
    x = library.array(np.ones(shape), "float32")
    turned = posref.rope(x, library.array(np.arange(shape[-2])), layout="half", base=10000.0, rotary_dim=6)
    assert turned.shape == shape
    assert library.host(turned).shape == shape


@few(2, "queries", [0, 1, 3])
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

"""
The stand-in for CuPy refuses what CuPy does not take, also in a definition, and keeps the calls that it bound.

That no definition makes such a call is a thorough test (test_gpu_code.py): it runs tests/gpu with the stand-in.
"""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import Library, opened
from every_encoding.libraries import assert_right
from sample import smoke

import posref.backends
from posref.core.arrays import namespace

GPU = Path(__file__).with_name("gpu")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import standin

    return standin


@pytest.fixture
def cupy(standin: ModuleType) -> Iterator[Library]:
    """The library as posref's backend has it, with the stand-in for `import cupy`."""
    with standin.installed(), opened("cupy") as library:
        yield library


X = np.asarray([[3.0, 1.0], [2.0, 5.0]], dtype=np.float32)
REFUSED: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "a function": (lambda cp, x: cp.unstack(x), "'cupy' has no attribute 'unstack'"),
    "a function of linear algebra": (lambda cp, x: cp.linalg.vecdot(x, x), "has no attribute 'vecdot'"),
    "a keyword": (lambda cp, x: cp.sort(x, stable=True), r"sort\(a, axis=-1, kind=None\) does not take these arguments"),
    "another keyword": (lambda cp, x: cp.sum(x, where=x > 1), "sum.* unexpected keyword argument 'where'"),
    "the words of NumPy": (lambda cp, x: cp.clip(x, min=0.0, max=1.0), "clip.* missing a required argument: 'a_min'"),
    "a keyword of a ufunc": (lambda cp, x: cp.sin(x, order="C"), "sin takes no order"),
    "a keyword of a method": (lambda cp, x: x.argsort(stable=True), "argsort.* unexpected keyword argument 'stable'"),
    "a method": (lambda cp, x: x.to_device("cpu"), "'ndarray' object has no attribute 'to_device'"),
    "an attribute": (lambda cp, x: x.__array_namespace__, "no attribute '__array_namespace__'"),
    "a dtype": (lambda cp, x: cp.exp(cp.asarray([1], dtype=np.longdouble)), "exp has no loop for "),
    "a dtype of an operator": (lambda cp, x: cp.asarray([1], dtype=np.longdouble) + x, "add has no loop for "),
    "another dtype than NumPy's": (lambda cp, x: cp.sinc(cp.asarray([1], dtype=np.int8)), "float16, where NumPy gives float64"),
    "an array of NumPy": (lambda cp, x: cp.concatenate([x, X]), "concatenate is given an array of numpy"),
    "an array of NumPy after an operator": (lambda cp, x: x * X, "multiply is given an array of numpy"),
    "an array of NumPy before an operator": (lambda cp, x: X * x, "multiply is given an array of numpy"),
    "an index of NumPy": (lambda cp, x: x[np.asarray([0])], "an index of type ndarray"),
    "a value of NumPy": (lambda cp, x: x.__setitem__(0, X[0]), "an array of NumPy is written into one of CuPy"),
    "a conversion": (lambda cp, x: np.asarray(x), "implicit conversion to a NumPy array is not allowed"),
    "NumPy's function": (lambda cp, x: np.concatenate([x, x]), "numpy.concatenate of an array of CuPy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cupy_lacks_is_refused(standin: ModuleType, name: str) -> None:
    call, message = REFUSED[name]
    cp = standin.module()
    with pytest.raises((TypeError, AttributeError), match=message):
        call(cp, cp.asarray(X))


def test_what_cupy_has_is_computed(standin: ModuleType) -> None:
    cp = standin.module()
    x, i = cp.asarray(X), cp.asarray([1, 0])
    for found, expected in (
        (x + 1, X + 1), (2.0 / x, 2.0 / X), (x @ x.T, X @ X.T), (-abs(x) ** 2, -abs(X) ** 2), (i // 2 % 3, np.asarray([0, 0])),
        (cp.take(x, i, axis=0), X[[1, 0]]), (x[..., None, ::-1], X[..., None, ::-1]), (x.sum(axis=1), X.sum(axis=1)),
        ((x > 1) & (x < 4) | (x == 5), (X > 1) & (X < 4) | (X == 5)), (cp.where(x > 2, x, 0.0), np.where(X > 2, X, 0)),
        (np.sin(x), np.sin(X)), (np.float64(2.0) * x, np.float64(2.0) * X), (cp.clip(x, 1, 2), X.clip(1, 2)),
        (cp.argmax(x), np.asarray(0 + 3)), (x.astype(np.float16, copy=False), X.astype(np.float16)),
    ):  # fmt: skip
        host = cp.asnumpy(found)
        assert host.dtype == expected.dtype
        np.testing.assert_array_equal(host, expected)
    assert (x.ndim, x.shape, x.dtype, x.mT.shape, x.device) == (2, (2, 2), np.float32, (2, 2), standin.DEVICE)


def test_a_value_that_the_host_reads_is_counted(standin: ModuleType) -> None:
    cp = standin.module()
    x, before = cp.asarray(X), dict(standin.HOST)
    assert x[0, 0] > 2
    assert float(x[0, 1]) == 1.0
    x + cp.asarray(1.0)
    assert {name: count - before[name] for name, count in standin.HOST.items()} == {"reads": 2, "copies": 1}


def test_a_definition_that_cupy_would_refuse_is_found(cupy: Library) -> None:
    case = smoke("alibi")

    def asked(change: Callable[[Any, Any], Any]) -> None:
        @functools.wraps(posref.alibi)
        def planted(*arrays: Any, **options: Any) -> Any:
            return change(namespace(arrays[0]), posref.alibi(*arrays, **options))

        assert_right(cupy, case, "float32", planted)

    asked(lambda xp, bias: bias)
    asked(lambda xp, bias: xp.where(bias > 0, bias, bias))
    for change, message in (
        (lambda xp, bias: xp.take(bias, xp.arange(bias.shape[0]), axis=0, mode="clip"), "unexpected keyword argument 'mode'"),
        (lambda xp, bias: bias + np.zeros(1, dtype=np.float32), "add is given an array of numpy"),
        (lambda xp, bias: xp.nancumsum(xp.ediff2d(bias)), "has no attribute 'ediff2d'"),
        (lambda xp, bias: xp.maximum(bias, bias, where=True, subok=True), "maximum takes no subok"),
        (lambda xp, bias: bias + 0 * xp.astype(bias, np.longdouble), "has no loop for"),
    ):  # type: ignore[misc]
        with pytest.raises(AssertionError, match=message):
            asked(change)


def test_the_calls_of_definitions_are_kept_with_their_dtypes(standin: ModuleType, cupy: Library) -> None:
    standin.CALLS.clear()
    x, positions = cupy.array(np.ones((2, 3, 4)), "float32"), cupy.array(np.arange(3))
    posref.rope(x, positions, layout="half", base=10000.0)
    posref.attention(x, x, x)
    posref.t5_bias(positions, positions, cupy.array(np.ones((32, 2)), "float32"), bidirectional=True)
    kept = {call[0] for call in standin.CALLS}
    assert kept >= {"asarray", "cos", "multiply", "stack", "reshape", "matmul", "exp", "take", "ndarray.astype"}
    assert {("matmul", "float32", "float32"), ("exp", "float32"), ("cos", "float64")} <= standin.CALLS


def test_the_stand_in_leaves_nothing_behind(standin: ModuleType) -> None:
    before = standin.of_cupy()
    with standin.installed() as made:
        import cupy

        assert cupy is made
        with opened("cupy") as library:
            assert library.backend.cp is made
    assert standin.of_cupy() == before
    assert not hasattr(posref.backends, "cupy")

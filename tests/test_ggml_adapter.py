"""The adapter of ggml: what it gives to the library's functions and reads back, tried on a library that is written here."""

import ctypes
import math
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import posref
from posref.conformance import Unsupported
from posref.conformance.errors import TargetError
from posref.conformance.targets.python import load_python
from posref.scaling import Linear, Llama3, LongRoPE, YaRN

NAME = "posref.conformance.adapters.ggml"
RNG = np.random.default_rng(7)
X, POSITIONS = RNG.standard_normal((2, 3, 16)).astype(np.float32), np.asarray([0, 5, 1000])
GRID = np.stack((POSITIONS, POSITIONS + 3, POSITIONS + 7))
LONG = LongRoPE((1.0, 1.5) * 4, (2.0, 3.0) * 4, 100, max_length=800)
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "half": ("rope", {"layout": "half", "base": 1e4}),
    "interleaved": ("rope", {"layout": "interleaved", "base": 5e5}),
    "partial": ("rope", {"layout": "half", "base": 1e4, "rotary_dim": 10}),
    "trailing": ("rope", {"layout": "half", "base": 1e4, "rotary_dim": 10, "lanes": "trailing"}),
    "inverse": ("rope", {"layout": "half", "base": 1e4, "inverse": True}),
    "linear": ("rope", {"layout": "half", "base": 1e4, "scaling": Linear(4.0)}),
    "yarn": ("rope", {"layout": "half", "base": 1e4, "scaling": YaRN(8.0, 100)}),
    "yarn below 1": ("rope", {"layout": "half", "base": 1e4, "scaling": YaRN(0.75, 100)}),
    "yarn mscale": ("rope", {"layout": "half", "base": 1e4, "scaling": YaRN(8.0, 100, mscale=1.5, mscale_all_dim=0.5)}),
    "yarn given": ("rope", {"layout": "half", "base": 1e4, "scaling": YaRN(8.0, 100, attention_factor=1.25)}),
    "long": ("rope", {"layout": "half", "base": 1e4, "scaling": LONG, "length": 1001}),
    "short": ("rope", {"layout": "half", "base": 1e4, "scaling": LONG, "length": 100}),
    "sections": ("mrope", {"layout": "half", "base": 1e4, "sections": (2, 3, 3), "arrangement": "chunked"}),
    "in turn": ("mrope", {"layout": "half", "base": 1e4, "sections": (3, 3, 2), "arrangement": "interleaved"}),
    "partial sections": ("mrope", {"layout": "half", "base": 1e4, "sections": (2, 1, 1), "arrangement": "chunked"}),
    "image": ("axial_rope", {"layout": "half", "base": 1e4, "dims": (8, 8), "allocation": "own", "arrangement": "chunked"}),
}
ARRANGEMENTS = {8: "chunked", 40: "interleaved"}


class Library:
    """What the adapter calls of ggml, in NumPy: a tensor is the address of an array that stays in `self.arrays`."""

    def __init__(self) -> None:
        self.arrays: dict[int, Any] = {}

    def _kept(self, array: Any) -> int:
        self.arrays[array.ctypes.data] = array
        return int(array.ctypes.data)

    def ggml_init(self, params: Any) -> int:
        assert params.mem_size > 3 * X.nbytes
        return 1

    def ggml_free(self, ctx: int) -> None:
        assert ctx == 1

    def ggml_get_data(self, tensor: int) -> int:
        return tensor

    def ggml_new_tensor_1d(self, ctx: int, kind: int, size: int) -> int:
        return self._kept(np.zeros(size, {0: np.float32, 26: np.int32}[kind]))

    def ggml_new_tensor_3d(self, ctx: int, kind: int, *sizes: int) -> int:
        return self._kept(np.zeros(sizes[::-1], {0: np.float32, 1: np.float16}[kind]))

    def _turned(self, a: int, b: int, c: int | None, dims: int, mode: int, tail: Any, back: bool, sections: Any = None) -> int:
        original, base, scale, ext, factor, fast, slow = tail
        x, positions = self.arrays[a], self.arrays[b]
        scaling: Any = Linear(1 / scale)
        if c is not None:
            scaling = LongRoPE(tuple(self.arrays[c]), tuple(self.arrays[c]), max(original, 2), attention_factor=1.0)
        if ext:
            scaling = YaRN(1 / scale, original, fast, slow, attention_factor=1 + 0.1 * math.log(1 / scale))
        options = {"base": base, "layout": "interleaved" if mode == 0 else "half", "inverse": back}
        if mode == 24:
            assert dims == x.shape[-1] // 2 == 2 * sections[0] == 2 * sections[1]
            image = {"dims": (dims, dims), "allocation": "own", "arrangement": "chunked"}
            return self._kept(posref.axial_rope(x, positions.reshape(4, -1, 1)[:2], **image, **options))
        if mode in (0, 2):
            rest = {"rotary_dim": dims, "length": 1, "scaling": scaling}
            self.last = (x, lambda lanes: factor * posref.rope(x, positions[:, None], lanes=lanes, **rest, **options))
            return self._kept(np.where(self._lanes(x, dims), self.last[1]("leading"), x))
        assert (sections[3], positions.reshape(4, -1)[3].any(), dims) == (0, False, 2 * sum(sections))
        rest = {"sections": tuple(sections[:3]), "arrangement": ARRANGEMENTS[mode]}
        return self._kept(posref.mrope(x, positions.reshape(4, -1, 1)[:3], **rest, **options))

    @staticmethod
    def _lanes(x: Any, dims: int) -> Any:
        return np.arange(x.shape[-1]) < dims

    def ggml_rope_ext(self, ctx: int, a: int, b: int, c: int | None, dims: int, mode: int, *tail: float) -> int:
        return self._turned(a, b, c, dims, mode, tail, back=False)

    def ggml_rope_ext_back(self, ctx: int, a: int, b: int, c: int | None, dims: int, mode: int, *tail: float) -> int:
        return self._turned(a, b, c, dims, mode, tail, back=True)

    def ggml_rope_multi(
        self, ctx: int, a: int, b: int, c: int | None, dims: int, sections: Any, mode: int, *tail: float
    ) -> int:
        return self._turned(a, b, c, dims, mode, tail, False, list(sections))

    def ggml_rope_multi_back(
        self, ctx: int, a: int, b: int, c: int | None, dims: int, sections: Any, mode: int, *tail: float
    ) -> int:
        return self._turned(a, b, c, dims, mode, tail, True, list(sections))

    def ggml_rope_set_offset(self, tensor: int, offset: int) -> None:
        x, turned = self.last
        assert offset == 6
        self.arrays[tensor][...] = np.where(np.arange(x.shape[-1]) >= offset, turned("trailing"), x)

    def ggml_new_graph(self, ctx: int) -> int:
        return 2

    def ggml_build_forward_expand(self, graph: int, tensor: int) -> None:
        assert tensor in self.arrays

    def ggml_graph_compute_with_ctx(self, ctx: int, graph: int, threads: int) -> int:
        return 0


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "llama_cpp" / "lib").mkdir(parents=True)
    (tmp_path / "llama_cpp" / "__init__.py").write_text("raise RuntimeError('the whole library')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.modules.pop(NAME, None)
    module = import_module(NAME)
    monkeypatch.setattr(module, "_libraries", lambda: (library, library))
    library = Library()
    yield module
    del sys.modules[NAME]
    if before is not None:
        sys.modules[NAME] = before


@pytest.mark.parametrize("call", CALLS)
def test_the_library_is_given_what_the_call_asks(call: str, adapter: ModuleType) -> None:
    op, options = CALLS[call]
    positions = {"rope": POSITIONS, "mrope": GRID, "axial_rope": GRID[1:]}[op]
    found, expected = getattr(adapter, op)(X, positions, **options), getattr(posref, op)(X, positions, **options)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, rtol=0, atol=1e-3), np.abs(found - expected).max()  # angles of 1000 in float32
    assert not np.allclose(found, X, rtol=0, atol=0.1)


@pytest.mark.parametrize("call", ["half", "partial", "sections", "image"])
def test_gradients_are_those_of_the_backward_functions(call: str, adapter: ModuleType) -> None:
    op, options = CALLS[call]
    positions = {"rope": POSITIONS, "mrope": GRID, "axial_rope": GRID[1:]}[op]
    inputs = {"x": X, "positions": positions}
    found = adapter.vjp(op, inputs, options, {"out": X}, ("x",))["x"]
    assert np.allclose(found, getattr(posref, op)(X, positions, inverse=True, **options), rtol=0, atol=1e-3)
    with pytest.raises(Unsupported):
        adapter.vjp(op, inputs, options, {"out": X}, ("positions",))


@pytest.mark.parametrize(
    ("x", "positions", "options"),
    [
        (X[:, :0], POSITIONS[:0], {}),
        (X, POSITIONS + 0.5, {}),
        (X, POSITIONS + 2**31, {}),
        (X[..., :15], POSITIONS, {"rotary_dim": 8}),
        (X, POSITIONS, {"layout": "interleaved_to_half"}),
        (X, POSITIONS, {"scaling": Llama3(8.0, 8192)}),
        (X, POSITIONS, {"scaling": YaRN(8.0, 100, truncate=False)}),
    ],
)
def test_what_would_end_the_process_or_is_lacking_is_unsupported(x, positions, options, adapter: ModuleType) -> None:
    with pytest.raises(Unsupported):
        adapter.rope(x, positions, **{"layout": "half", "base": 1e4, **options})


def test_a_width_that_ggml_asserts_is_refused(adapter: ModuleType) -> None:
    with pytest.raises(ValueError, match="must be even and at most 16"):
        adapter.rope(X, POSITIONS, layout="half", base=1e4, rotary_dim=18)


def test_a_graph_that_fails_is_an_error(adapter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(library, "ggml_graph_compute_with_ctx", lambda *arguments: -1)
    monkeypatch.setattr(adapter, "_libraries", lambda: (library, library))
    with pytest.raises(RuntimeError, match="ended with status -1"):
        adapter.rope(X, POSITIONS, layout="half", base=1e4)


def test_arguments_have_the_types_of_the_header(tmp_path: Path, adapter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a library that only holds names."""
    monkeypatch.undo()
    made = ModuleType("library")

    class Function:
        restype: Any = None
        argtypes: Any = None

        def __call__(self, *arguments: Any) -> None:
            made.started = True  # type: ignore[attr-defined]

    functions: dict[str, Function] = {}
    made.__getattr__ = lambda name: functions.setdefault(name, Function())  # type: ignore[method-assign]
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: made)
    monkeypatch.setattr(adapter, "_folder", lambda: tmp_path)
    adapter._libraries.cache_clear()
    adapter._libraries()
    adapter._libraries.cache_clear()
    assert made.started
    assert len(functions["ggml_rope_ext"].argtypes) == 13
    assert len(functions["ggml_rope_multi_back"].argtypes) == 14
    assert functions["ggml_get_data"].restype is ctypes.c_void_p


def test_without_the_library_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = PathFinder.find_spec
    monkeypatch.setattr(PathFinder, "find_spec", lambda name, *rest: None if name == "llama_cpp" else find(name, *rest))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    with pytest.raises(TargetError, match="cannot import 'llama_cpp': pip install 'llama-cpp-python'"):
        load_python("ggml")

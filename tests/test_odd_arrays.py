"""Arrays of every kind: the right values, or a sentence that names the function, the argument and the remedy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from conftest import Library, opened
from sample import smoke
from sampling import few

import posref
from posref.conformance.calls import bind, takes_dtype
from posref.spec import REGISTRY

Kind = Callable[[Any], Any]
OPS = [op for op, record in REGISTRY.items() if record.arrays]


class Duck:
    """Numbers with a dtype and a shape that no library knows."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.dtype, self.shape, self.ndim = x, x.dtype, x.shape, x.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.x


class Named(Duck):
    """Numbers that say that they are NumPy's."""

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np


class Closed:
    """A thing that no attribute can be read of."""

    def __init__(self, x: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Metres(np.ndarray):
    """Numbers with a unit, whose products are areas."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(x) for x in inputs]
        return getattr(ufunc, method)(*plain, **options) * 10


class Sub(torch.Tensor):
    """A tensor by another name."""


def stored(x: np.ndarray) -> np.ndarray:
    """Return an array in a file."""
    import tempfile

    held = np.memmap(Path(tempfile.mkdtemp()) / "x", dtype=x.dtype, mode="w+", shape=x.shape or (1,))
    held[...] = x
    return held.reshape(x.shape)


def read_only(x: np.ndarray) -> np.ndarray:
    held = x.copy()
    held.flags.writeable = False
    return held


def quantized(x: torch.Tensor) -> torch.Tensor:
    return torch.quantize_per_tensor(x, 0.125, 0, torch.qint8)


NUMPY: dict[str, Kind] = {
    "masked": lambda x: np.ma.masked_array(x, mask=x > np.median(x)),
    "matrix": np.matrix,
    "unit": lambda x: x.view(Metres),
    "records": lambda x: x.view(np.recarray),
    "in a file": stored,
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "bfloat16": lambda x: x.astype(ml_dtypes.bfloat16),
    "float8": lambda x: x.astype(ml_dtypes.float8_e4m3fn),
    "float4": lambda x: x.astype(ml_dtypes.float4_e2m1fn),
    "int4": lambda x: x.astype(ml_dtypes.int4),
    "long double": lambda x: x.astype(np.longdouble),
    "complex": lambda x: x.astype(np.complex64),
    "objects": lambda x: x.astype(object),
    "text": lambda x: x.astype(str),
    "dates": lambda x: x.astype(np.int64).astype("datetime64[s]"),
    "durations": lambda x: x.astype(np.int64).astype("timedelta64[s]"),
    "structured": lambda x: x.astype([("a", x.dtype)]),
    "booleans": lambda x: x > 0,
    "list": lambda x: x.tolist(),
    "number": lambda x: float(x.flat[0]),
    "scalar": lambda x: x.reshape(-1)[0],
    "nothing": lambda _: None,
    "bytes in memory": lambda x: memoryview(x.copy()),
    "range": lambda x: range(len(x)),
    "dictionary": lambda x: {"x": x},
    "duck": Duck,
    "duck that is NumPy's by name": Named,
    "closed": Closed,
    "class": lambda _: np.ndarray,
    "bytes": lambda x: x.view(f"V{x.itemsize}"),
    "of PyTorch": torch.asarray,
    "unaligned": lambda x: np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
}
TORCH: dict[str, Kind] = {
    "sparse": lambda x: x.to_sparse(),
    "sparse rows": lambda x: x.to_sparse_csr(),
    "nested": lambda x: torch.nested.nested_tensor(list(x)),
    "nested jagged": lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
    "quantized": quantized,
    "float8": lambda x: x.to(torch.float8_e4m3fn),
    "float8 of more range": lambda x: x.to(torch.float8_e5m2),
    "complex": lambda x: x.to(torch.complex64),
    "negated view": lambda x: torch.complex(x, -x).conj().imag,
    "parameter": lambda x: torch.nn.Parameter(x, requires_grad=False),
    "transposed": lambda x: x.mT.contiguous().mT,
    "oneDNN": lambda x: x.to_mkldnn(),
    "booleans": lambda x: x > 0,
    "sparse blocks": lambda x: x.to_sparse_bsr((1, 1)),
    "masked": lambda x: torch.masked.masked_tensor(x, x > 0),
    "one number, repeated": lambda x: x.reshape(-1)[:1].reshape([1] * x.ndim).expand(x.shape),
    "subclass": lambda x: x.as_subclass(Sub),
    "bits": lambda x: torch.zeros(x.shape, dtype=torch.bits8),
    "no memory": lambda _: torch.nn.UninitializedParameter(),
    "on another device": lambda x: x.to("meta"),
    "of NumPy": lambda x: x.numpy(),
    "of JAX": lambda x: jax.numpy.asarray(x.numpy()),
}
KINDS = {"numpy": NUMPY, "torch": TORCH}


def dense(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor that is neither sparse nor nested nor quantized."""
    if x.is_nested:
        return torch.stack(x.unbind())
    return x.dequantize() if x.is_quantized else x if x.layout == torch.strided else x.to_dense()


def numbers_in(odd: Any) -> Any:
    """Return a plain array of the numbers that an array holds."""
    if isinstance(odd, torch.Tensor):
        plain = dense(odd)
        real = plain.is_floating_point() or plain.is_complex()
        return plain.to(torch.float32 if real else torch.bool if plain.dtype == torch.bool else torch.int64).clone()
    plain = np.asarray(odd)
    return plain if plain.dtype == bool else plain.astype(np.int64 if plain.dtype.kind in "iub" else np.float32)


def refusals(library: Library, kind: Kind, op: str) -> Iterator[str]:
    """Yield the calls of an operation, each with an odd array, that give other values or an error without a sentence."""
    call = smoke(op).calls[0]
    arrays = {n: library.array(x, None if x.dtype.kind in "biu" else "float32") for n, x in call.inputs.items()}

    def run(given: dict[str, Any]) -> list[Any]:
        positional, keywords = bind(op, given, call.params)
        if takes_dtype(op):
            keywords["dtype"] = library.dtype("float32")
        found = REGISTRY[op].function(*positional, **keywords)
        return list(found) if isinstance(found, tuple) else [found]

    for name, axes in REGISTRY[op].arrays.items():
        if name not in arrays or (op, name) == ("write_cache", "cache"):  # it may be of float8
            continue
        try:
            odd = kind(arrays[name])
        except (TypeError, ValueError, RuntimeError, IndexError):  # there is no such array of this shape or dtype
            continue
        if (odd is not None or not axes.optional) and (found := refusal(run, arrays, op, name, odd)):
            yield f"{op}, {name}: {found}"


def refusal(run: Callable[[dict[str, Any]], list[Any]], arrays: dict[str, Any], op: str, name: str, odd: Any) -> str:
    """Return what is wrong when one array of a call is odd: its values are others, or its error has no sentence; or nothing."""
    try:
        got = run(arrays | {name: odd})
    except (TypeError, ValueError) as error:
        said, names = str(error), (f"{op}: ", f"{posref._SHORTER.get(op, op)}: ")
        told = said.startswith(names) and any(word in said for word in (name.rpartition("_")[2], "positions", "dtype"))
        return "" if told else repr(error)
    except Exception as error:
        return repr(error)
    if getattr(odd, "is_meta", False):  # there are no values
        return ""
    pairs = zip(got, run(arrays | {name: numbers_in(odd)}), strict=True)
    same = all(np.allclose(host(a), host(b), 2.0**-16, 2.0**-16, equal_nan=True) for a, b in pairs)
    return "" if same else "other values"


def host(x: Any) -> np.ndarray:
    """Return a result as NumPy has it."""
    return dense(x).detach().to(torch.float64).numpy() if isinstance(x, torch.Tensor) else np.asarray(x, dtype=np.float64)


@few(10, ("name", "kind"), [(name, kind) for name, kinds in KINDS.items() for kind in kinds])
@pytest.mark.filterwarnings("ignore")
def test_odd_arrays(name: str, kind: str) -> None:
    with opened(name) as library:
        found = [mistake for op in OPS for mistake in refusals(library, KINDS[name][kind], op)]
    assert not found, f"{kind}: " + " | ".join(mistake[:120] for mistake in found)

"""Array helpers that the definitions share: namespaces, constants, dtypes, relative positions, heads."""

import sys
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from operator import getitem
from types import ModuleType
from typing import Any, TypeVar

from array_api_compat import array_namespace

from posref.surroundings import not_plain, subclass_of_numpy

Array = Any
Namespace = Any
DType = Any
F = TypeVar("F", bound=Callable[..., Any])

IDLE = ("ctypeslib", "f2py", "ma", "polynomial", "testing")  # parts that NumPy loads when they are used
KEPT = 256  # results of a function of constants, the last ones used

# Libraries that list float64 but compute its sine in float32 (their backends say so, and a test checks it).
FLOAT64_IN_NAME_ONLY = ("mlx.core", "ndonnx")

_NAMESPACES: dict[tuple[type, ...], Namespace] = {}  # looked up once per type: 0.1 us against 1.5 us


def library(function: str, /, **arrays: Array) -> Namespace:
    """Return the namespace of the arguments of `function`. Raise TypeError if they are not arrays of one library."""
    known = _NAMESPACES.get(tuple(map(type, arrays.values())))  # the common case, twice as fast
    return namespace(*arrays.values(), function=function, names=tuple(arrays)) if known is None else known


def namespace(*arrays: Array, function: str = "posref", names: tuple[str, ...] = ("arguments",)) -> Namespace:
    """Return the array API namespace of `arrays`. Raise TypeError, with a function's name, if they are not of one library."""
    key = tuple(map(type, arrays))
    xp = _NAMESPACES.get(key)
    if xp is None:
        xp = _system_of(arrays)  # all number systems share one type: the array is asked each time
    if xp is None:
        _check_kinds(function, names, arrays)
        try:
            xp = numpy_namespace() if are_numpy(*key) else array_namespace(*arrays)
        except TypeError as error:
            types = ", ".join(f"{t.__module__}.{t.__qualname__}" for t in key)
            *others, last = names
            named = f"{', '.join(others)} and {last}" if others else last
            alone = not others and last != "arguments"
            need = "an array (convert numbers and lists" if alone else "arrays of one library (convert numbers and lists"
            msg = f"{function}: {named} must be {need} with its asarray); got {types}."
            raise TypeError(msg) from error
        _NAMESPACES[key] = xp
    return xp


def _system_of(arrays: tuple[Array, ...]) -> Namespace | None:
    """Return the number system of arrays of one; None for others. `array_namespace` takes long to find it."""
    systems = {getattr(array, "xp", None) for array in arrays}
    return number_system(systems.pop()) if len(systems) == 1 else None


def _check_kinds(function: str, names: tuple[str, ...], arrays: tuple[Array, ...]) -> None:
    """Raise `TypeError` for masked arrays, matrices, arrays with units and all others that NumPy computes with otherwise."""
    for k, array in enumerate(arrays):
        if subclass_of_numpy(type(array)) or type(array).__name__ == "MaskedTensor":
            argument = names[k] if len(names) == len(arrays) else names[0]
            raise TypeError(not_plain(function, argument, array))


def are_numpy(*types: type) -> bool:
    """Return whether all are NumPy's array type. They are compared by name: Dynamo cannot trace array_api_compat's own test."""
    for t in types:  # a generator takes three times as long
        if t.__name__ != "ndarray" or t.__module__ != "numpy":
            return False
    return bool(types)


def numpy_namespace() -> Namespace:
    """Return NumPy's array API namespace."""
    if not is_compiling() and "array_api_compat.numpy" not in sys.modules:
        _copy_what_is_used()
    import array_api_compat.numpy as xp

    return xp


def _copy_what_is_used() -> None:
    """
    Import array_api_compat's copy of NumPy without the parts that NumPy loads only when they are used.

    They have no place in the array API and take longer to load than the rest. The copy gets them later, from NumPy.
    """
    import numpy

    idle = [part for part in IDLE if part not in vars(numpy)]
    vars(numpy).update(dict.fromkeys(idle))
    try:
        import array_api_compat.numpy as xp  # another thread that is here waits until it is whole
    finally:
        for part in idle:
            if vars(numpy).get(part, numpy) is None:
                vars(numpy).pop(part, None)
    for part in idle:
        vars(xp).pop(part, None)
    vars(xp).setdefault("__getattr__", _idle_part)


def _idle_part(name: str) -> Any:
    """Return a part that NumPy loads now, of the copy that was made without it."""
    if name not in IDLE:
        msg = f"array_api_compat.numpy has no attribute {name!r}"
        raise AttributeError(msg)
    import numpy

    return getattr(numpy, name)


def is_compiling() -> bool:
    """Return whether PyTorch compiles: Dynamo cannot read the dtype of a NumPy array, nor change modules."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def is_of(xp: Namespace, library: str) -> bool:
    """Return whether a namespace belongs to a library. torch.compile warns about array_api_compat's cached tests."""
    return f".{library}." in f".{xp.__name__}."


def number_system(xp: Namespace) -> Namespace | None:
    """Return `xp` if it is one of posref's own number systems, which compute constants themselves. None for array libraries."""
    return None if isinstance(xp, ModuleType) else xp if getattr(xp, "computes_constants", False) else None


def constants(xp: Namespace, given: Any = None) -> Namespace:
    """
    Return the namespace in which to compute constants: NumPy, except for posref's own number systems (balls, error bounds).

    If constants depend on a `given` array, they are computed in its library and on its device (`Beside`).
    """
    is_array = hasattr(given, "ndim")
    system = namespace(given) if is_array else xp
    if number_system(system) is not None:
        return system
    if is_array:
        return Beside(given)
    import numpy as np

    return np


class Beside:
    """A namespace for constants in the library and on the device of an array. Without float64, its `float64` is float32."""

    def __init__(self, x: Array) -> None:
        xp = namespace(x)
        self.pow, self.maximum, self._arange = xp.pow, xp.maximum, xp.arange
        self.float64 = real_beside(x)
        self._x = x

    def asarray(self, values: Any, dtype: DType) -> Array:
        """Return host `values`, or an array of the library, in `dtype`."""
        return beside(values, self._x, dtype)

    def arange(self, start: int, stop: int, step: int, dtype: DType) -> Array:
        """Return evenly spaced integers in `dtype`."""
        return spread(self._arange(start, stop, step, dtype=dtype, **placement(self._x, namespace(self._x))), self._x)


def placement(x: Array, xp: Namespace) -> dict[str, Any]:
    """Return the keywords that create an array on the device of `x`. None for JAX (a sharding fits only one shape) and Dask."""
    if is_of(xp, "jax") or is_of(xp, "dask"):
        return {}
    return {"device": x.device} if hasattr(x, "device") else {}  # MLX has none


def beside(values: Any, x: Array, dtype: DType) -> Array:
    """Return `values` as an array of `dtype`, in the library and on the device of `x`. Arrays of that library are only cast."""
    xp = namespace(x)
    if isinstance(values, type(x)) or (hasattr(values, "__array_namespace__") and namespace(values) is xp):
        return cast(values, dtype)
    if hasattr(values, "ndim") and type(values).__module__ != "numpy" and is_of(xp, "torch"):
        import numpy as np

        values = np.asarray(values)  # PyTorch would read its bytes as `dtype`
    return spread(xp.asarray(values, dtype=dtype, **placement(x, xp)), x)


def spread(made: Array, x: Array) -> Array:
    """Return the constant `made` for use with `x`. A PyTorch DTensor only mixes with DTensors, so it is replicated for one."""
    if type(x).__name__ != "DTensor":
        return made
    from torch.distributed.tensor import DTensor, Replicate

    return DTensor.from_local(made, x.device_mesh, [Replicate()] * x.device_mesh.ndim, run_check=False)


def created(function: str, values: Any, xp: Namespace | None, device: Any, dtype: DType | None) -> Array:
    """
    Return constants unchanged (NumPy float64), or as an array of `xp`, on `device`, in `dtype`, if these are given.

    In another library they are float64 too, if it computes in float64. With float32 frequencies angles at position 1e6 are off
    by 1e-2.
    """
    if dtype is not None:
        check_dtype(function, dtype, namespace(values) if xp is None else xp)
    if xp is None:
        return values if dtype is None else cast(values, dtype)
    if number_system(xp) is not None:
        return values if dtype is None else cast(values, dtype)
    keywords = {} if device is None else {"device": device}
    return xp.asarray(values, dtype=dtype or real_beside(xp.zeros(1, dtype=xp.float32, **keywords)), **keywords)


def once(function: F) -> F:
    """
    Cache a function that returns host NumPy arrays, numbers, or a tuple of these.

    Options are told apart by value and type. A call is computed anew if an option is an array, a module or anything else that
    is no number, word, tuple or record. The caller gets a copy of every array. `forget` of the function returned forgets all.
    """

    @lru_cache(maxsize=KEPT)
    def kept(key: Hashable, call: _Call) -> Any:
        return function(*call.args, **call.options)

    @wraps(function)
    def remembered(*args: Any, **options: Any) -> Any:
        try:
            key = (*map(option_key, args), *((name, option_key(value)) for name, value in options.items()))
        except TypeError:
            return function(*args, **options)
        result = kept(key, _Call(args, options))
        return tuple(map(_copy, result)) if isinstance(result, tuple) else _copy(result)

    remembered.forget = kept.cache_clear  # type: ignore[attr-defined]
    return remembered  # type: ignore[return-value]  # it has the signature of what it wraps


class _Call:
    """Arguments that are equal to all others, so that the key alone decides."""

    def __init__(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.args, self.options = args, options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call)

    def __hash__(self) -> int:
        return 0


def option_key(value: Any) -> Hashable:
    """Return a hashable value that is equal for the same options alone; `TypeError` where an option can be none."""
    if value is None or isinstance(value, int | float | str):
        return (type(value), value)
    if isinstance(value, tuple):
        return (tuple, *map(option_key, value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(option_key(getattr(value, field.name)) for field in fields(value)))
    raise TypeError


def _copy(value: Any) -> Any:
    """Return a copy of an array, and a number as it is."""
    return value.copy() if hasattr(value, "copy") else value


def cast(x: Array, dtype: DType) -> Array:
    """Return `x` in `dtype`, or `x` itself if it already has that dtype."""
    return x if x.dtype == dtype else namespace(x).astype(x, dtype)


def times(x: Array, factor: Any) -> Array:
    """Return `x` times a factor, or `x` itself if that is 1.0. Error bounds allow the product to those who compute it."""
    unchanged = type(factor) is float and factor == 1.0
    return x if unchanged and number_system(namespace(x)) is None else x * factor


def clipped(x: Array, low: float, high: float) -> Array:
    """Return `x` limited to a range, in Dask by its own method: the namespace's makes arrays of both limits."""
    xp = namespace(x)
    return x.clip(low, high) if is_of(xp, "dask") else xp.clip(x, low, high)


def wide(dtype: DType, xp: Namespace) -> DType:
    """Return the working dtype for results of `dtype`: itself, or float32 if it is narrower."""
    if dtype == xp.float32:  # the common case; the rest is slow
        return dtype
    return xp.promote_types(dtype, xp.float32) if is_of(xp, "torch") else xp.result_type(dtype, xp.float32)  # Dynamo traces it


def default_real(xp: Namespace, where: Any = None) -> DType:
    """Return the library's default real dtype (NumPy float64; PyTorch and JAX float32)."""
    if is_of(xp, "torch"):
        import torch

        return torch.get_default_dtype()  # __array_namespace_info__ breaks torch.compile
    return xp.__array_namespace_info__().default_dtypes(device=where)["real floating"]


def index_dtype(x: Array) -> DType:
    """Return the dtype of indices in the library and on the device of `x`."""
    xp = namespace(x)
    if is_of(xp, "torch"):
        return xp.int64
    return xp.__array_namespace_info__().default_dtypes(**placement(x, xp))["indexing"]


def result_dtype(function: str, positions: Array, dtype: DType | None) -> DType:
    """Return `dtype` if given, else the dtype of floating `positions`, else the library's default real dtype."""
    xp = namespace(positions)
    if dtype is not None:
        check_dtype(function, dtype, xp)
        return dtype
    if xp.isdtype(positions.dtype, "real floating"):
        return positions.dtype
    return default_real(xp, placement(positions, xp).get("device"))


def check_dtype(function: str, dtype: DType, xp: Namespace) -> None:
    """Raise if a result dtype is not a real floating data type of the library."""
    if dtype == xp.float32 or dtype == getattr(xp, "float64", None):  # the common case; the rest is slow
        return
    try:
        kinds = ("bool", "integral", "complex floating")
        fits = not any(dtype is kind for kind in (bool, int, complex)) and not any(xp.isdtype(dtype, kind) for kind in kinds)
    except (TypeError, AttributeError):  # not the library's own dtype, such as bfloat16 in NumPy
        try:
            fits = bool(xp.result_type(dtype, xp.float32))
        except (TypeError, AttributeError):
            fits = False
    if not fits:
        library_name = xp.__name__.removeprefix("array_api_compat.").partition(".")[0]
        msg = f"{function}: dtype must be a real floating data type of the arrays' library, {library_name}; got {dtype!r}."
        raise ValueError(msg)


def has_float64(x: Array) -> bool:
    """Return whether the library computes in float64 on the device of `x`, trigonometry included."""
    xp = namespace(x)
    if is_of(xp, "torch"):
        return bool(x.device.type != "mps")
    if any(xp.__name__.startswith(name) for name in FLOAT64_IN_NAME_ONLY):
        return False
    return "float64" in xp.__array_namespace_info__().dtypes(kind="real floating", **placement(x, xp))


def real_beside(x: Array) -> DType:
    """Return float64 if the library computes in it on the device of `x`, else float32."""
    xp = namespace(x)
    return xp.float64 if has_float64(x) else xp.float32


def whole(function: str, argument: str, positions: Array) -> Array:
    """
    Return integer `positions` in the indexing dtype, so that their differences do not wrap around.

    Raise if they are not integers, or unsigned and as wide as that dtype (`check_signs`).

    That dtype has 64 bits in nearly all libraries. In JAX it has 32 by default, and differences of 2**31 or more wrap around.
    """
    if not library(function, **{argument: positions}).isdtype(positions.dtype, "integral"):
        msg = f"{function}: {argument} must be integers; got {positions.dtype}."
        raise ValueError(msg)
    check_signs(function, argument, positions)
    return cast(positions, index_dtype(positions))


def check_signs(function: str, argument: str, positions: Array) -> None:
    """Raise for unsigned integers as wide as the indexing dtype: their upper half would wrap around below zero."""
    xp, index = namespace(positions), index_dtype(positions)
    if xp.isdtype(positions.dtype, "unsigned integer") and xp.iinfo(positions.dtype).bits >= xp.iinfo(index).bits:
        needed, received = (str(dtype).rpartition(".")[2] for dtype in (index, positions.dtype))
        msg = f"{function}: {argument} must be integers that {needed} can hold; got {received}. Convert them to {needed}."
        raise ValueError(msg)


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which shapes `a` and `b` broadcast, aligned from the right."""
    length = max(len(a), len(b))
    pairs = zip((1,) * (length - len(a)) + a, (1,) * (length - len(b)) + b, strict=True)
    return tuple(m if n == 1 else n for m, n in pairs)


def distances(q_positions: Array, k_positions: Array) -> Array:
    """Return query minus key position, shape ``(*B, Q, K)``. Integers are in the indexing dtype, the library's widest."""
    xp = namespace(q_positions, k_positions)
    q, k = (cast(p, index_dtype(p)) if xp.isdtype(p.dtype, "integral") else p for p in (q_positions, k_positions))
    return q[..., :, None] - k[..., None, :]


def rows(table: Array, index: Array) -> Array:
    """Return the rows of `table` at integer `index` of any shape: ``(*index.shape, *table.shape[1:])``."""
    xp = namespace(table)
    if 0 in index.shape and table.shape[0]:  # Dask cannot flatten that index
        return xp.broadcast_to(table[:1, ...], (*index.shape, *table.shape[1:]))
    if is_of(xp, "dask"):  # which would divide a flat index of n x n anew, row by row
        places, row, rest = (*range(index.ndim),), index.ndim, (*range(index.ndim + 1, index.ndim + table.ndim),)
        return xp.blockwise(getitem, (*places, *rest), table, (row, *rest), index, places, dtype=table.dtype, concatenate=True)
    flat = xp.take(table, cast(xp.reshape(index, (-1,)), index_dtype(index)), axis=0)
    return xp.reshape(flat, (*index.shape, *table.shape[1:]))


def with_axis_moved(x: Array, source: int, destination: int) -> Array:
    """Return `x` with one axis moved. PyTorch's vmap has no rule for moveaxis, but one for this."""
    axes = [axis for axis in range(x.ndim) if axis != source % x.ndim]
    axes.insert(destination % x.ndim, source % x.ndim)
    return namespace(x).permute_dims(x, tuple(axes))


def by_sign(x: Array) -> tuple[Array, Array, Array]:
    """
    Return min(x, 0), max(x, 0) and -abs(x), all with the derivative of x >= 0 at 0.

    Libraries differ in the derivatives of the three functions there, and a sigmoid made of them has half its slope, or twice.
    """
    xp = namespace(x)
    zero = beside(0.0, x, x.dtype)
    if number_system(xp) is not None:  # it need not decide the sign
        return xp.minimum(x, zero), xp.maximum(x, zero), -xp.abs(x)
    positive = x >= zero
    return xp.where(positive, zero, x), xp.where(positive, x, zero), xp.where(positive, -x, x)


def suffix_sums(x: Array) -> Array:
    """Return the sum of each element and of all after it, along the last axis."""
    xp, count = namespace(x), x.shape[-1]
    if 0 in x.shape:
        return x
    backwards = Beside(x).arange(count - 1, -1, -1, dtype=index_dtype(x))
    return xp.take(xp.cumulative_sum(xp.take(x, backwards, axis=-1), axis=-1), backwards, axis=-1)


def check_heads(function: str, heads: int, groups: int) -> None:
    """Raise if the number of query heads is not a multiple of the number of key or value heads."""
    if heads != groups and (groups == 0 or heads % groups):
        requirement = "the number of query heads must be a multiple of the number of key or value heads"
        msg = f"{function}: {requirement}; got {heads} and {groups}."
        raise ValueError(msg)


def repeat_heads(function: str, x: Array, heads: int) -> Array:
    """Return `x`, shape (..., G, K, D), with each head repeated in place so that there are `heads` heads."""
    xp = namespace(x)
    if x.ndim < 3 or x.shape[-3] == heads:
        return x
    check_heads(function, heads, x.shape[-3])
    groups = x.shape[-3]
    wider = xp.broadcast_to(x[..., :, None, :, :], (*x.shape[:-2], heads // groups, *x.shape[-2:]))
    return xp.reshape(wider, (*x.shape[:-3], heads, *x.shape[-2:]))

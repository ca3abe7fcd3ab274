"""
Types for array arguments: all arrays of a call, and its result, come from the same library.

`ArrayOf[T]` is an array of the library whose array type is T: ``torch.Tensor``, ``jax.Array``, or ``NDArray[Any]``. NumPy's
type contains the dtype, and a result may have another dtype, hence ``Any``. A type checker infers T from a method that returns
T for every dtype: ``cumsum`` in most libraries, an operator in libraries that follow the array API strictly.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

Layout = Literal["half", "interleaved", "interleaved_to_half"]  # of RoPE: see `posref.apply_rope`
Lanes = Literal["leading", "trailing"]
L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)
L_contra = TypeVar("L_contra", contravariant=True)


class _Array(Protocol[L_contra]):  # noqa: PLW1641  (arrays have no hash)
    """The methods of every array. Comparing arrays of two libraries is a type error."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def __lt__(self, other: L_contra | int, /) -> Any: ...
    def __ge__(self, other: L_contra | int, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __eq__(self, other: Any, /) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class _Summing(_Array[L], Protocol[L]):
    """An array of NumPy, PyTorch, JAX, CuPy, Dask or MLX."""

    def cumsum(self, axis: int, /) -> L: ...


class _Standard(_Array[L], Protocol[L]):
    """An array of any other array API library. NumPy's method accepts only a few versions."""

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __invert__(self) -> L: ...


class _Stacking(Protocol[L_co]):
    """The module of a library, whose functions return its arrays."""

    def stack(self, arrays: list[Any], /) -> L_co: ...


class _Converting(Protocol[L_co]):
    """The module of array_api_compat for a library."""

    def asarray(self, obj: float, /) -> L_co: ...


if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import TypeVar as WithDefault

    ArrayOf = _Summing[L] | _Standard[L]
    NamespaceOf = _Stacking[L] | _Converting[L]
    AnyArray = ArrayOf[Any]
    HostArray = npt.NDArray[Any]
    T = TypeVar("T", bound=AnyArray)
    N = WithDefault("N", default=HostArray)  # without `xp` the result is NumPy's: mypy uses this default, pyright uses HOST
    MYPY = False  # mypy treats this name as True
    if MYPY:
        HOST: Any
    else:
        HOST: NamespaceOf[HostArray]
else:

    class ArrayOf(Generic[L]):
        """An array of the library whose array type is L."""

    class NamespaceOf(Generic[L]):
        """The module of the library whose array type is L."""

    AnyArray = ArrayOf
    T, N = TypeVar("T"), TypeVar("N")
    HOST = None

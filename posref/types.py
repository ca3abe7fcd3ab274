"""
What a type checker is told of arrays: those of one call are of one library, and so is its result.

`ArrayOf[T]` is an array of the library that calls its arrays T: ``torch.Tensor``, ``jax.Array``, or ``NDArray[Any]``, since
NumPy's have their dtype in their type and a result may have another one. A checker reads T off a method that gives T whatever
the array's own dtype is: ``cumsum`` in the libraries that have it, an operator in those that keep to the array API.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

Layout = Literal["half", "interleaved", "interleaved_to_half"]  # of RoPE: see `posref.apply_rope`
Lanes = Literal["leading", "trailing"]
L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)
L_contra = TypeVar("L_contra", contravariant=True)


class _Array(Protocol[L_contra]):  # noqa: PLW1641  (arrays have no hash)
    """What every array has; comparing it with one of another library is an error."""

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
    """An array of another library of the array API; NumPy's take a few versions only."""

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __invert__(self) -> L: ...


class _Stacking(Protocol[L_co]):
    """The module of a library: its functions give its arrays."""

    def stack(self, arrays: list[Any], /) -> L_co: ...


class _Converting(Protocol[L_co]):
    """The module that array_api_compat has for a library."""

    def asarray(self, obj: float, /) -> L_co: ...


if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import TypeVar as WithDefault

    ArrayOf = _Summing[L] | _Standard[L]
    NamespaceOf = _Stacking[L] | _Converting[L]
    AnyArray = ArrayOf[Any]
    HostArray = npt.NDArray[Any]
    T = TypeVar("T", bound=AnyArray)
    N = WithDefault("N", default=HostArray)  # without `xp` a result is NumPy's: mypy reads it here, pyright off HOST
    MYPY = False  # which mypy takes for True
    if MYPY:
        HOST: Any
    else:
        HOST: NamespaceOf[HostArray]
else:

    class ArrayOf(Generic[L]):
        """An array of the library that calls its arrays L."""

    class NamespaceOf(Generic[L]):
        """The module of the library that calls its arrays L."""

    AnyArray = ArrayOf
    T, N = TypeVar("T"), TypeVar("N")
    HOST = None

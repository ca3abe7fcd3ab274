"""
Backends: one short module per array library, loaded by name, and number systems that look like array libraries.

A backend module has ``name``, ``dtypes`` (names of its real dtypes), ``float64_trigonometry`` (whether its float64 sine is
accurate to float64), ``namespace()``, ``dtype(name)``, ``from_numpy(x, dtype, device)``, ``to_numpy(x)``, ``synchronize(x)``
and ``compile(function)``. It may also have ``vjp(function, arrays, cotangents)`` (gradients), ``view(x)`` (the values on the
host, not copied if possible), ``strided(x)`` (the same values in memory that is not contiguous), ``guarded(x)`` (the same
values with marked memory around them) and ``around(x)`` (the bytes of that memory). Other packages add a backend with an entry
point in the group ``posref.backends``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = ("numpy", "torch", "jax", "cupy", "mlx", "dask", "array_api_strict")


class BackendMissing(ModuleNotFoundError):
    """The library of the requested backend is not installed."""


def names() -> tuple[str, ...]:
    """Return the names of all backends, installed or not."""
    return (*BUILT_IN, *sorted({point.name for point in _added()} - set(BUILT_IN)))


@cache
def load(name: str) -> ModuleType:
    """
    Return the backend called `name`.

    Raises
    ------
    ValueError
        If there is no backend with that name.
    BackendMissing
        If its library is not installed. The message gives the command to install it.
    """
    if name in BUILT_IN:
        target = f"posref.backends.{name}"
    else:
        modules = [point.value for point in _added() if point.name == name]
        if not modules:
            near = [known for known in names() if known in str(name) or str(name) in known]
            meant = f" Did you mean {near[0]!r}?" if near and name else ""
            msg = f"backends.load: name must be one of {', '.join(names())}; got {name!r}.{meant}"
            raise ValueError(msg)
        target = modules[0]
    try:
        return import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("posref"):
            raise
        extra = "strict" if name == "array_api_strict" else name
        msg = f"backend {name!r} needs {error.name}: pip install 'posref[{extra}]'"
        raise BackendMissing(msg, name=error.name) from error


def _added() -> Iterable[EntryPoint]:
    """Return the backends that other packages add."""
    from importlib.metadata import entry_points  # slow to load

    return entry_points(group="posref.backends")

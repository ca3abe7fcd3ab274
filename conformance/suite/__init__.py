"""The files of a suite: read safely, written whole."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reader import INSTALLED, load_group, load_groups, load_manifest

__all__ = ["INSTALLED", "load_group", "load_groups", "load_manifest"]


def __getattr__(name: str) -> Any:
    """Load what reads suites, and NumPy with it, when it is first asked for."""
    if name in __all__:
        from . import reader

        return getattr(reader, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

"""Read the metadata of a GGUF file: the public names of `posref.models.gguf`."""

from typing import Any

from posref.models.gguf import layouts, rope_from_gguf
from posref.types import Layout

__all__ = ["GGUF_LAYOUTS", "rope_from_gguf"]

GGUF_LAYOUTS: dict[str, Layout]  # of every known architecture; the table is read on first use


def __getattr__(name: str) -> Any:
    if name == "GGUF_LAYOUTS":
        return layouts()
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

"""Read the metadata of a GGUF file: the public names of `posref.models.gguf`."""

from posref.models.gguf import GGUF_LAYOUTS, rope_from_gguf

__all__ = ["GGUF_LAYOUTS", "rope_from_gguf"]

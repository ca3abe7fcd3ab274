"""
Read the metadata of a GGUF file: the vision tower of an mmproj file, whose architecture is "clip".

The encoding is a literal in llama.cpp's models of towers (tools/mtmd/models), which the type of the projector selects.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, refuse
from posref.models.gguf import check_layer

CLIP = "clip"  # the architecture of all of them
TABLE = ("gemma3", "idefics3", "janus_pro")
RESIZED = ("lfm2", "phi4")
ROTARY = ("qwen2.5vl_merger", "qwen2vl_merger")
BASE = 10_000.0


def read_tower(metadata: Mapping[str, Any], layer: int | None) -> dict[str, list[Entry | None]]:
    """Return the positional encoding of the vision tower, whose layers are alike."""
    if metadata.get("clip.has_vision_encoder", True) is not True or metadata.get("clip.has_audio_encoder", False) is not False:
        refuse("the file must be of a vision tower alone (clip.has_vision_encoder); towers for audio are not read.")
    kind = metadata.get("clip.vision.projector_type", metadata.get("clip.projector_type"))
    if not isinstance(kind, str) or kind not in (*TABLE, *RESIZED, *ROTARY):
        known = ", ".join(sorted((*TABLE, *RESIZED, *ROTARY)))
        refuse(f"clip.projector_type must be that of a tower that is read; got {kind!r}. Read: {known}.")
    if layer is not None:
        check_layer(metadata, "clip.vision", layer)
    if kind in TABLE:
        return {"vision": [Entry("learned", {"offset": 0})]}
    if kind in RESIZED:
        told = {"table": "resized at every call for another grid"}
        return {"vision": [Entry("learned", {"offset": 0}, told)]}
    width, heads = (integer((f"clip.vision.{key}",), metadata) for key in ("embedding_length", "attention.head_count"))
    if width % (4 * heads):
        refuse(f"clip.vision.embedding_length must be a multiple of 4 times {heads} heads; got {width}.")
    dims = (width // heads // 2,) * 2
    rotation = {"dims": dims, "base": BASE, "allocation": "own", "arrangement": "chunked", "layout": "half"}
    return {"vision": [Entry("axial_rope", rotation)]}

"""
Read the metadata of a GGUF file: the vision tower of an mmproj file, whose architecture is "clip".

The encoding is a literal in llama.cpp's models of towers (tools/mtmd/models), which the type of the projector selects.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, refuse
from posref.models.gguf import check_layer
from posref.models.reaches import MOST, windows

CLIP = "clip"  # the architecture of all of them
TABLE = ("gemma3", "idefics3", "janus_pro")
RESIZED = ("lfm2", "phi4")
ROTARY = ("dots_ocr", "exaone4_5", "glm4v", "qwen2.5vl_merger", "qwen2vl_merger", "qwen3vl_merger")
BOTH = ("glm4v", "qwen3vl_merger")  # a learned table, resized, and a rotation
WINDOWS = ("exaone4_5", "qwen2.5vl_merger")  # the last layer of every clip.vision.n_wa_pattern attends to all patches
PIXELS = 112  # of a window, whatever the file says (clip.cpp, 4957)
BASE = 10_000.0


def read_tower(metadata: Mapping[str, Any], layer: int | None) -> dict[str, list[Entry | None]]:
    """Return the positional encoding of the vision tower, whose layers are alike."""
    if metadata.get("clip.has_vision_encoder", True) is not True or metadata.get("clip.has_audio_encoder", False) is not False:
        refuse("the file must be of a vision tower alone (clip.has_vision_encoder); towers for audio are not read.")
    kind = metadata.get("clip.vision.projector_type", metadata.get("clip.projector_type"))
    if not isinstance(kind, str) or kind not in (*TABLE, *RESIZED, *ROTARY):
        known = ", ".join(sorted((*TABLE, *RESIZED, *ROTARY)))
        refuse(f"clip.projector_type must name a tower that posref reads; got {kind!r}. Read: {known}.")
    if layer is not None:
        check_layer(metadata, "clip.vision", layer)
    if kind in TABLE:
        return {"vision": [Entry("learned", {"offset": 0})]}
    if kind in RESIZED:
        facts = {"table": "resized at every call for another grid"}
        return {"vision": [Entry("learned", {"offset": 0}, facts)]}
    width, heads = (integer((f"clip.vision.{key}",), metadata) for key in ("embedding_length", "attention.head_count"))
    if width % (4 * heads):
        refuse(f"clip.vision.embedding_length must be a multiple of 4 times {heads} heads; got {width}.")
    dims = (width // heads // 2,) * 2
    rotation = {"dims": dims, "base": BASE, "allocation": "own", "arrangement": "chunked", "layout": "half"}
    if kind in BOTH:
        table = Entry("learned", {"offset": 0}, {"table": "resized at every call for another grid; GLM-OCR's file has none"})
        return {"vision input": [table], "vision attention": [Entry("axial_rope", rotation)]}
    tower: dict[str, list[Entry | None]] = {"vision": [Entry("axial_rope", rotation)]}
    masks = _windows(metadata) if kind in WINDOWS else []
    return tower | ({"vision mask": masks if layer is None else [masks[layer]]} if any(masks) else {})


def _windows(metadata: Mapping[str, Any]) -> list[Entry | None]:
    """Return the windows of each layer: squares of patches."""
    period = metadata.get("clip.vision.n_wa_pattern", 0)
    if isinstance(period, bool) or not isinstance(period, int) or period < 0:
        refuse(f"clip.vision.n_wa_pattern must be an int of at least 0; got {period!r}.")
    if not period:
        return []
    count, size = (integer((f"clip.vision.{key}",), metadata) for key in ("block_count", "patch_size"))
    return windows(2 * (PIXELS // size // 2), [(layer + 1) % period != 0 for layer in range(min(count, MOST))])

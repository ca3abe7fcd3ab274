"""
Which layers of a GGUF file rotate, and which have a sliding window.

Most of these rules are not keys of the file. They are literals in llama.cpp's models (src/models, src/llama-hparams.cpp), and
`general.architecture` selects them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from posref.models.fields import integer, refuse

STEP = 4  # n_no_rope_layer_step: no key sets it
PERIODS = {"gemma3": 6, "gemma-embedding": 6, "cohere2": 4, "exaone4": 4}  # one full layer in this many, by default
EXAONE4_32B = 64  # layers; a smaller EXAONE 4 has no window


def check_layer(metadata: Mapping[str, Any], name: str, layer: int) -> None:
    """Refuse the number of a layer that the file does not have."""
    count = integer((f"{name}.block_count",), metadata)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        refuse(f"layer must be an integer from 0 to {count - 1}, since {name}.block_count is {count}; got {layer!r}.")


def has_window(metadata: Mapping[str, Any], name: str, layer: int) -> bool:
    """Return whether a layer has a sliding window: all but the last of each period, or those that the file lists."""
    key = f"{name}.attention.sliding_window_pattern"
    pattern = metadata.get(key, PERIODS.get(name))
    if isinstance(pattern, Sequence) and not isinstance(pattern, str | bytes) and len(pattern) > layer:
        return bool(pattern[layer])
    if isinstance(pattern, bool) or not isinstance(pattern, int) or pattern < 0:
        refuse(
            f"metadata must have {key}, a period or one number for every layer; got {pattern!r}. Without it give layer_type."
        )
    return pattern == 0 or layer % pattern < pattern - 1


def rotates(metadata: Mapping[str, Any], name: str, layer: int) -> bool:
    """Return whether a layer rotates its queries and keys."""
    window = metadata.get(f"{name}.attention.sliding_window")
    last_of_step = (layer + 1) % STEP == 0
    match name:
        case "smollm3" | "afmoe":
            return not last_of_step
        case "llama4":  # without chunks all layers rotate
            return window == 0 or not last_of_step
        case "smallthinker":  # with a window, the first of each step does not rotate
            return not window or layer % STEP != 0
        case "cohere2" | "exaone-moe":
            return has_window(metadata, name, layer)
        case "cohere2moe":
            return layer < metadata.get(f"{name}.leading_dense_block_count", 0) or has_window(metadata, name, layer)
        case "exaone4":
            return integer((f"{name}.block_count",), metadata) != EXAONE4_32B or has_window(metadata, name, layer)
        case _:
            return True

"""
Read the metadata of a GGUF file: the positional encodings of a whole model.

What no key says are literals in llama.cpp's models (src/models), which `general.architecture` selects: ALiBi's largest bias
but for MPT, the largest distance of T5's buckets, and Baichuan's encoding, which the number of layers decides.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, number, refuse, speaking_as
from posref.models.gguf import Factors, architecture, check_layer, layouts, read_gguf
from posref.models.gguf_vision import CLIP, read_tower
from posref.types import Layout

ALIBI = ("bloom", "jina-bert-v2", "refact")
LEARNED = ("bert", "gpt2", "starcoder")
T5 = {"t5": ("encoder", "decoder"), "t5encoder": ("encoder",)}
BAICHUAN = {32: "rope", 40: "alibi"}  # layers of Baichuan 7B and 13B
MOST = 10_000  # layers


def from_gguf(
    metadata: Mapping[str, Any], /, *, rope_factors: Factors | None = None, layer: int | None = None
) -> dict[str, list[Entry | None]]:
    """
    Return the positional encodings of a model, by component, from the metadata of its GGUF file.

    Parameters
    ----------
    metadata : mapping
        The file's key-value pairs as Python values, such as "general.architecture" and "<architecture>.rope.freq_base".
    rope_factors : mapping, optional
        The file's tensors of divisors by name, as in `rope_from_gguf`.
    layer : int, optional
        The number of one layer, from 0. If the layers differ, the list then has only the entry of this layer.

    Returns
    -------
    dict
        As from `posref.from_config`: for "text", "encoder" and "decoder" of T5, or "vision" of an mmproj file, a list of one
        entry if the layers are alike, else one for each layer. An entry is None if the layer has no positions, else
        ``operation`` and ``options``. T5's table, ``attn_rel_b``, and learned tables, ``position_embd``, or
        ``v.position_embd`` of a tower, are tensors of the file.

    Raises
    ------
    ValueError
        If the architecture, or the projector of an mmproj file, is unknown, a key is missing or of the wrong type, the file
        does not have this layer, or `rope_from_gguf` would refuse the parameters of a rotation.

    Notes
    -----
    The rules are llama.cpp's (src/models). It reads ``attention.max_alibi_bias`` for MPT alone, where 0 means a learned table;
    BLOOM, Jina BERT v2, Refact and Baichuan 13B have 8 whatever the file says. It takes distances in T5's buckets to be at most
    128. Converters drop the rows of a learned table that come before that of position 0. Windows and temperatures are not told,
    nor are towers for audio. A vision tower's encoding follows from ``clip.projector_type`` (tools/mtmd/models).

    Examples
    --------
    >>> from_gguf({"general.architecture": "mpt", "mpt.attention.head_count": 32, "mpt.attention.max_alibi_bias": 8.0})
    {'text': [Entry(operation='alibi', options={'heads': 32, 'form': 'distance', 'max_bias': 8.0})]}
    """
    with speaking_as("from_gguf"):
        name = architecture(metadata)
        if name == CLIP:
            return read_tower(metadata, layer)
        if layer is not None:
            check_layer(metadata, name, layer)
        if name in T5:
            both = {"encoder": True, "decoder": False}
            return {part: [Entry("t5_bias", {"bidirectional": both[part], "max_distance": 128})] for part in T5[name]}
        entries = _text(metadata, name, rope_factors)
        return {"text": entries if layer is None or len(entries) == 1 else [entries[layer]]}


def _text(metadata: Mapping[str, Any], name: str, rope_factors: Factors | None) -> list[Entry | None]:
    """Return the entries of a model of texts: one if the layers are alike, else one for each."""
    kind = BAICHUAN.get(integer((f"{name}.block_count",), metadata), "none") if name == "baichuan" else "rope"
    if kind == "none":  # such a file has neither
        return [None]
    if name in ALIBI or kind == "alibi":
        return [_alibi(metadata, name, 8.0)]
    if name == "mpt":
        key = f"{name}.attention.max_alibi_bias"
        largest = number(key, (key,), metadata, low=0)
        return [_alibi(metadata, name, largest) if largest else Entry("learned", {"offset": 0})]
    if name in LEARNED:
        return [Entry("learned", {"offset": 0})]
    if name not in layouts() and name != "baichuan":
        known = ", ".join(sorted({*layouts(), *ALIBI, *LEARNED, *T5, "baichuan", CLIP, "mpt"}))
        refuse(f"general.architecture must be a known one; got {name!r}. Known: {known}.")
    layout: Layout | None = "interleaved" if name == "baichuan" else None
    count = integer((f"{name}.block_count",), metadata)
    if count > MOST:
        refuse(f"{name}.block_count must be at most {MOST}; got {count}.")
    found = [read_gguf(metadata, name, rope_factors, None, layer, layout) for layer in range(count)]
    found = found[:1] if all(options == found[0] for options in found) else found
    return [None if options is None else Entry("rope", {**options}) for options in found]


def _alibi(metadata: Mapping[str, Any], name: str, largest: float) -> Entry:
    heads = integer((f"{name}.attention.head_count",), metadata)
    return Entry("alibi", {"heads": heads, "form": "distance", "max_bias": largest})

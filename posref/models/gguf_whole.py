"""
Read the metadata of a GGUF file: the positional encodings of a whole model.

What no key says are literals in llama.cpp's models (src/models), which `general.architecture` selects: ALiBi's largest bias
but for MPT, the largest distance of T5's buckets, and Baichuan's encoding, which the number of layers decides.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry, RopeArguments
from posref.models.fields import integer, number, refuse, speaking_as
from posref.models.gguf import (
    EXAONE4_32B,
    Factors,
    architecture,
    check_layer,
    has_window,
    layouts,
    read_gguf,
    rotates,
    sections_of,
    window_of,
)
from posref.models.gguf_attention import attention_of
from posref.models.gguf_vision import CLIP, read_tower
from posref.models.model_types import table
from posref.types import Layout

NONE = (
    *("jamba", "nemotron_h", "nemotron_h_moe", "kimi-linear", "kimi-k3", "glm5-next"),  # attention without positions
    *("mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "wavtokenizer-dec"),
)
REFUSED = {
    "deepseek4": "the positions of its compressed keys follow the caches of llama.cpp, which are not read",
    "dflash": "its keys are those of the model that it drafts for",
    "gptj": "llama.cpp has no graph for it",
    "qwen4exp": "llama.cpp says that its graph is to be written anew, and is no reference",
}
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
    128. Converters drop the rows of a learned table that come before that of position 0. "text mask" is the window or chunk of
    each layer. "text scale", "text softcap", "text sinks" and "text temperature" are there where attention has more than the
    softmax of q.k / sqrt(d); "indexer" is the rotation of the queries and keys that choose which tokens are attended to. Towers
    for audio are not read. A vision tower's encoding follows from ``clip.projector_type`` (tools/mtmd/models). ggml's
    interleaved M-RoPE gives pairs beyond three times the section of their axis a fourth position (ggml-cpu/ops.cpp, 6256),
    where transformers gives them the time: ``conventions`` name these pairs.

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
        text = _text(metadata, name, rope_factors)
        components = {"text": text, "text mask": _masks(metadata, name)}
        components |= (
            {**attention_of(metadata, name, text), "indexer": _indexer(metadata, name, text)} if name in layouts() else {}
        )
        return {
            part: entries if layer is None or len(entries) == 1 else [entries[layer]]
            for part, entries in components.items()
            if part == "text" or any(entries)
        }


def _text(metadata: Mapping[str, Any], name: str, rope_factors: Factors | None) -> list[Entry | None]:
    """Return the entries of a model of texts: one if the layers are alike, else one for each."""
    kind = BAICHUAN.get(integer((f"{name}.block_count",), metadata), "none") if name == "baichuan" else "rope"
    if kind == "none" or name in NONE:  # such a Baichuan has neither
        return [None]
    if name in ALIBI or kind == "alibi":
        return [_alibi(metadata, name, 8.0)]
    key = f"{name}.attention.max_alibi_bias"
    if name == "jais":
        largest = number(key, (key,), metadata, {key: 0.0}, low=0)
        return [_alibi(metadata, name, largest) if largest else None]
    if name == "mpt":
        largest = number(key, (key,), metadata, low=0)
        return [_alibi(metadata, name, largest) if largest else Entry("learned", {"offset": 0})]
    if name in LEARNED:
        return [Entry("learned", {"offset": 0})]
    if name in REFUSED:
        refuse(f"general.architecture must be one that is read; got {name!r}: {REFUSED[name]}.")
    if name not in layouts() and name != "baichuan":
        known = ", ".join(sorted({*layouts(), *NONE, *ALIBI, *LEARNED, *T5, "baichuan", CLIP, "jais", "mpt"}))
        refuse(f"general.architecture must be a known one; got {name!r}. Known: {known}.")
    layout: Layout | None = "interleaved" if name == "baichuan" else None
    if name.startswith("granite") and metadata.get(f"{name}.rope.scaling.finetuned") is False:  # Granite's switch
        return [None]
    sections = sections_of(metadata, name)
    layers = [read_gguf(metadata, name, rope_factors, None, layer, layout) for layer in range(_count(metadata, name))]
    layers = layers[:1] if all(options == layers[0] for options in layers) else layers
    return [options and _entry(name, options, sections) for options in layers]


def _count(metadata: Mapping[str, Any], name: str) -> int:
    count = integer((f"{name}.block_count",), metadata)
    if count > MOST:
        refuse(f"{name}.block_count must be at most {MOST}; got {count}.")
    return count


def _entry(name: str, options: RopeArguments, sections: tuple[int, ...]) -> Entry:
    """Return RoPE, or M-RoPE of a file with sections. ggml's sections are of halves, whatever the layout without them."""
    if not sections:
        return Entry("rope", {**options}, table("gguf").get(name, {}).get("beside"))
    pairs = options["rotary_dim"] // 2
    if sum(sections) != pairs:
        refuse(f"{name}.rope.dimension_sections must add up to {pairs}, the rotated pairs; got {sections}.")
    arrangement = table("gguf")[name]["axes"].removesuffix(", or none")
    still = []
    if arrangement == "interleaved":  # sections that reach beyond the last pair, or leave pairs over, are those that rotate
        still = [p for p in range(pairs) if p >= 3 * sections[p % 3]]
        height, width = (len(range(axis, min(3 * sections[axis], pairs), 3)) for axis in (1, 2))
        sections = (pairs - height - width, height, width)
    rotation = {"sections": sections, "arrangement": arrangement, "layout": "half"}
    rotation |= {"base": options["base"], "scaling": options["scaling"]}
    beside = {"positions": f"llama.cpp gives pairs {still} a fourth position, 0 for text: it does not rotate them"}
    return Entry("mrope", rotation, beside if still else {})


def _indexer(metadata: Mapping[str, Any], name: str, text: list[Entry | None]) -> list[Entry | None]:
    """Return the rotation of the indexer: that of the text, but for its layout. Sliding layers have no indexer."""
    row = table("gguf")[name]
    if "indexer" not in row:
        return []
    layers = text * _count(metadata, name) if "mask" in row and len(text) == 1 else text
    none = ["mask" in row and has_window(metadata, name, layer) for layer in range(len(layers))]
    rotations = [entry and Entry("rope", {**(entry.options or {}), **row["indexer"]}) for entry in layers]
    return [None if no else entry for no, entry in zip(none, rotations, strict=True)]


def _masks(metadata: Mapping[str, Any], name: str) -> list[Entry | None]:
    """Return the window or chunk of each layer, None where a layer attends to all keys before it, or to all."""
    row, window = table("gguf").get(name, {}), window_of(metadata, name)
    count = integer((f"{name}.block_count",), metadata) if window and "mask" in row else 0
    if not count or (name == "exaone4" and count != EXAONE4_32B):
        return [None]
    if isinstance(window, bool) or not isinstance(window, int) or window < 0:
        refuse(f"{name}.attention.sliding_window must be an int of at least 0; got {window!r}.")
    window_options = {"window": window, "counting": "with_query", "sides": "causal"}
    mask = {
        "chunks": Entry("chunked_window", {"chunk_size": window, "sides": "causal"}),
        "both sides": Entry("sliding_window", {"window": window // 2, "counting": "without_query", "sides": "both"}),
    }.get(row["mask"], Entry("sliding_window", window_options))
    has = rotates if row["mask"] == "window of all" else has_window
    return [mask if has(metadata, name, layer) else None for layer in range(_count(metadata, name))]


def _alibi(metadata: Mapping[str, Any], name: str, largest: float) -> Entry:
    heads = integer((f"{name}.attention.head_count",), metadata)
    return Entry("alibi", {"heads": heads, "form": "distance", "max_bias": largest})

"""Words that several operations share. Users are those that the definitions and `posref.configs.LAYOUTS` name."""

from .record import Word, used_by

LAYOUT = {
    "half": Word(
        "Pair i is channels i and i + d/2: the first half of the channels meets the second.",
        ("GPT-NeoX", "Llama, Qwen, Mistral and Gemma in transformers", "gpt-oss"),
    ),
    "interleaved": Word(
        "Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper.",
        ("GPT-J", "Meta's own Llama", "Llama 4", "RoFormer", "Cohere", "GLM", "DeepSeek-V2"),
    ),
    "interleaved_to_half": Word(
        "Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.",
        ("DeepSeek-V3 in transformers", "Kimi K2", "Mistral 4", "LongCat-Flash"),
    ),
}
PAIRS = used_by(LAYOUT)  # of an operation that no model is known to use with one layout or another

LANES = {
    "leading": Word("The first channels of the head rotate, the rest stay as they are.", ("GPT-J", "GPT-NeoX")),
    "trailing": Word("The last channels of the head rotate, those before them stay as they are.", ("DeepSeek-V4",)),
}

ARRANGEMENT = {
    "chunked": Word(
        "The first pairs belong to axis 0, the next to axis 1, and so on.",
        ("Qwen2-VL", "Qwen2.5-VL", "GLM-4.1V"),
    ),
    "interleaved": Word(
        "Pairs alternate between three axes, 0, 1, 2, 0, 1, 2, until axis 1 or 2 has all its pairs; axis 0 takes the rest.",
        ("Qwen3-VL", "Qwen3.5"),
    ),
    "round_robin": Word(
        "Pair i belongs to axis i mod A or, if that axis has all its pairs, to the next axis that has room.",
        ("GLM-4.5V in SGLang",),
    ),
    "ernie": Word("Pairs of axis 1 and axis 2 alternate first; the rest belong to axis 0.", ("ERNIE 4.5-VL",)),
}

COMBINE = {
    "concat": Word("The rows are put end to end, so that each table has its own channels."),
    "sum": Word("The rows are added, so that each table is as wide as the result."),
}

WAVES = {
    "interleaved": Word("Each sine stands beside the cosine of the same frequency, as in the Transformer's paper."),
    "sin_cos": Word("The first half holds all sines, the second all cosines."),
    "cos_sin": Word("The first half holds all cosines, the second all sines."),
}

SIDES = {
    "causal": Word("A query sees only keys at or before its own position."),
    "both": Word("A query sees keys before and after it."),
}

COUNTING = {
    "with_query": Word("A window of W tokens is the query's own and the W - 1 before it."),
    "without_query": Word("A window of W tokens is the W before the query, plus the query's own."),
}

ORDER = {
    "key_minus_query": Word("The key's position minus the query's: keys that come before the query are negative."),
    "query_minus_key": Word("The query's position minus the key's: keys that come before the query are positive."),
}

ALLOCATION = {
    "own": Word(
        "Each axis has all frequencies, from fast to slow, over its own channels.",
        ("Qwen2-VL vision", "Llama 4 vision", "EVA-02", "DINOv3"),
    ),
    "shared": Word(
        "The axes take turns in one list of frequencies: even ones for the height, odd ones for the width.", ("Pixtral",)
    ),
}

UNIT = {
    "radians": Word("A frequency is an angle in radians for a step of 1."),
    "turns": Word("The angle is multiplied by 2 pi, for coordinates from -1 to 1.", ("DINOv3",)),
}

ROLE = {
    "query": Word("The numbers are for queries, whose factors fall as the position grows."),
    "key": Word("The numbers are for keys, whose factors grow with the position, so that only the distance counts."),
}

SHIFT = {
    "floor": Word("Grouped positions move by w - floor(w / g), as the authors mean it.", ("LongLM's flash decoding",)),
    "exact": Word("Grouped positions move by w - w/g, a fraction unless g divides w.", ("most of LongLM's prefill",)),
}

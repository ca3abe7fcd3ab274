"""GGUF metadata -> parameters, on the keys that llama.cpp's converters write, against the formulas of ggml's rope."""

import math
from typing import Any

import numpy as np

from posref import alibi, from_gguf, presets, rope_frequencies, rope_from_config, rope_from_gguf
from posref.gguf import GGUF_LAYOUTS


def of(arch: str, **keys: Any) -> dict[str, Any]:
    """Metadata of an architecture; "__" in a name stands for a dot."""
    sizes = {"embedding_length": 4096, "attention.head_count": 32, "context_length": 131072}
    named = {key.replace("__", "."): value for key, value in keys.items()}
    return {"general.architecture": arch, **{f"{arch}.{key}": value for key, value in (sizes | named).items()}}


ORIGINAL = "rope__scaling__original_context_length"
QWEN_YARN = {"rope__freq_base": 1e6, "rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, ORIGINAL: 32768}


GEMMA4 = of("gemma4", rope__freq_base=1e6, rope__dimension_count=512, attention__key_length=512, attention__sliding_window=512)


# llama.cpp 00342301, src/llama-model.cpp, llama_model_rope_type; posref leaves out baichuan, bert, grok and starcoder
NORM = """
arcee arctic bailingmoe chameleon chatglm cohere2 command-r deci deepseek deepseek2 ernie4_5 ernie4_5-moe glm4 granite
granitehybrid granitemoe internlm2 llada llama llama4 minicpm neo-bert olmo plm smollm3 xverse
"""
NEOX = """
apertus bailingmoe2 bitnet codeshell dbrx dots1 dream exaone exaone4 falcon falcon-h1 gemma gemma-embedding gemma2 gemma3
gemma3n glm4moe gpt-oss gptneox grovemoe hunyuan-dense hunyuan-moe jina-bert-v3 lfm2 lfm2moe llada-moe minicpm3 nemotron
nomic-bert nomic-bert-moe olmo2 olmoe openelm orion phi2 phi3 phimoe plamo plamo2 qwen qwen2 qwen2moe qwen3 qwen3moe qwen3next
seed_oss smallthinker stablelm starcoder2
"""


def test_layouts_are_those_of_llama_cpp() -> None:
    theirs = dict.fromkeys(NORM.split(), "interleaved") | dict.fromkeys(NEOX.split(), "half")
    assert {arch: layout for arch, layout in GGUF_LAYOUTS.items() if arch in theirs} == theirs


def test_gemma_4_has_divisors_on_its_full_layers_and_other_sizes() -> None:
    divisors = {"rope_freqs.weight": [1.0] * 64 + [1e30] * 192}
    sizes = GEMMA4 | {"gemma4.rope.dimension_count_swa": 256}
    local = rope_from_gguf(sizes, rope_factors=divisors, layer_type="sliding_attention")
    assert local == {"layout": "half", "base": 1e4, "rotary_dim": 256, "scaling": None}
    full = rope_from_gguf(sizes, rope_factors=divisors, layer_type="full_attention")
    assert (full["base"], full["rotary_dim"]) == (1e6, 512)
    inv_freq, _ = rope_frequencies(512, base=1e6, scaling=full["scaling"], length=1)
    config = {"model_type": "gemma4_text"}  # a silent file is of these sizes
    true = rope_from_config(config, layer_type="full_attention")
    expected, _ = rope_frequencies(512, base=true["base"], scaling=true["scaling"])
    assert np.max(np.abs(inv_freq - expected)) <= 1e-30


def test_yarn_factor_multiplies_the_files_own() -> None:
    """ggml multiplies attn_factor by 1 + ln(factor)/10 where YaRN mixes."""
    scaling = rope_from_gguf(of("qwen2", **QWEN_YARN, rope__scaling__attn_factor=1.5))["scaling"]
    assert abs(scaling.attention_factor - 1.5 * (1 + math.log(4) / 10)) <= 4 * 2**-52


def test_yarn_frequencies_are_those_of_ggml() -> None:
    """rope_yarn of ggml-cpu/ops.cpp, transcribed: ramp over pairs between rounded correction dimensions."""
    options = rope_from_gguf(of("qwen2", **QWEN_YARN))
    base, factor, n_dims, n_ctx = 1e6, 4.0, 128, 32768
    ends = [n_dims * math.log(n_ctx / (beta * 2 * math.pi)) / (2 * math.log(base)) for beta in (32, 1)]
    low, high = max(0, math.floor(ends[0])), min(n_dims - 1, math.ceil(ends[1]))
    expected = []
    for pair in range(n_dims // 2):
        theta = base ** (-2 * pair / n_dims)
        ramp = 1 - min(1, max(0, (pair - low) / max(0.001, high - low)))
        expected.append(theta / factor * (1 - ramp) + theta * ramp)
    inv_freq, gain = rope_frequencies(options["rotary_dim"], base=options["base"], scaling=options["scaling"])
    # a power, a quotient, the ramp, two products and a sum, rounded on both sides
    assert np.allclose(inv_freq, expected, rtol=12 * 2**-52, atol=0)
    assert abs(gain - (1 + math.log(factor) / 10)) <= 4 * 2**-52


def llama3_divisors() -> list[float]:
    """What the converter writes into rope_freqs.weight for Llama 3.1: 1, a ramp, then the factor, in float32."""
    config = {"model_type": "llama", "head_dim": 128, "rope_theta": 5e5}
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rope["original_max_position_embeddings"] = 8192
    options = rope_from_config(config | {"rope_scaling": rope})
    slowed, _ = rope_frequencies(128, base=5e5, scaling=options["scaling"])
    return [float(np.float32(x)) for x in rope_frequencies(128, base=5e5)[0] / slowed]


def test_divisors_at_every_length_are_llama_3_1() -> None:
    divisors = llama3_divisors()
    assert (divisors[0], divisors[-1]) == (1.0, 8.0)
    options = rope_from_gguf(of("llama", rope__freq_base=500000.0), rope_factors={"rope_freqs.weight": divisors})
    true, _ = rope_frequencies(128, base=5e5, scaling=presets["llama-3.1-8b"].rope["scaling"])
    for length in (1, 8192, 131072, 200000):
        inv_freq, gain = rope_frequencies(128, base=options["base"], scaling=options["scaling"], length=length)
        assert np.max(np.abs(inv_freq / true - 1)) <= 2**-23  # the divisors' rounding
        assert gain == 1.0


def test_the_layers_of_a_file_are_those_of_the_configuration() -> None:
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "rope_theta": 1e4}
    for arch, name, count, more in (
        ("smollm3", "smollm3", 36, {}),
        ("cohere2", "cohere2", 32, {"sliding_window": 4096, "sliding_window_pattern": 4}),
        ("exaone4", "exaone4", 64, {"sliding_window": 4096, "sliding_window_pattern": 4}),
    ):
        config = {"model_type": name, "num_hidden_layers": count, **sizes, **more}
        metadata = of(arch, block_count=count, attention__sliding_window=4096)
        still = [rope_from_config(config, layer=layer) is None for layer in range(count)]
        assert [rope_from_gguf(metadata, layer=layer) is None for layer in range(count)] == still
        assert 0 < sum(still) < count


def heads(arch: str, **keys: Any) -> dict[str, Any]:
    return of(arch, attention__head_count=12, block_count=40, **keys)


def test_slopes_of_ggml() -> None:
    """ggml's soft_max: m0**(h + 1) for the first heads, m1**(2 (h - n) + 1) for the others, times the distance."""
    (entry,) = from_gguf(heads("mpt", attention__max_alibi_bias=5.0))["text"]
    assert entry is not None
    bias = alibi(np.asarray([9]), np.asarray([2]), **entry.options or {})
    m0, m1 = 2.0 ** (-5.0 / 8), 2.0 ** (-5.0 / 2 / 8)
    slopes = [m0 ** (h + 1) if h < 8 else m1 ** (2 * (h - 8) + 1) for h in range(12)]
    np.testing.assert_allclose(np.asarray(bias)[:, 0, 0], [-7 * slope for slope in slopes], rtol=1e-6)

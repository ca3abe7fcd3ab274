"""GGUF metadata -> parameters, on the keys that llama.cpp's converters write, against the formulas of ggml's rope."""

import math
import re
from typing import Any

import numpy as np
import pytest

from posref import alibi, from_config, from_gguf, presets, rope_frequencies, rope_from_config, rope_from_gguf
from posref.gguf import GGUF_LAYOUTS
from posref.scaling import Linear, LongRoPE, YaRN


def of(arch: str, **keys: Any) -> dict[str, Any]:
    """Metadata of an architecture; "__" in a name stands for a dot."""
    sizes = {"embedding_length": 4096, "attention.head_count": 32, "context_length": 131072}
    named = {key.replace("__", "."): value for key, value in keys.items()}
    return {"general.architecture": arch, **{f"{arch}.{key}": value for key, value in (sizes | named).items()}}


ORIGINAL = "rope__scaling__original_context_length"
QWEN_YARN = {"rope__freq_base": 1e6, "rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, ORIGINAL: 32768}
DEEPSEEK = {"rope__dimension_count": 64, "rope__scaling__type": "yarn", "rope__scaling__factor": 40.0, ORIGINAL: 4096}
FILES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("silent", of("qwen2"), {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": None}),
    (
        "Llama's weights are permuted by the converter",
        of("llama", rope__freq_base=500000.0, rope__dimension_count=128),
        {"layout": "interleaved", "base": 500000.0, "rotary_dim": 128, "scaling": None},
    ),
    (
        "key length wins over embedding and heads",
        of("qwen3", attention__key_length=64, rope__scaling__type="none", rope__scaling__factor=4.0),
        {"layout": "half", "base": 1e4, "rotary_dim": 64, "scaling": None},
    ),
    (
        "part of the head",
        of("gptneox", rope__dimension_count=24, rope__scaling__factor=0.0),
        {"layout": "half", "base": 1e4, "rotary_dim": 24, "scaling": None},
    ),
    (
        "linear",
        of("gemma2", rope__scaling__type="linear", rope__scaling__factor=8.0),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": Linear(8.0)},
    ),
    (
        "the old key of linear",
        of("falcon", rope__scale_linear=4.0),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": Linear(4.0)},
    ),
    (
        "Qwen2.5 with YaRN",
        of("qwen2", **QWEN_YARN),
        {"layout": "half", "base": 1e6, "rotary_dim": 128, "scaling": YaRN(4.0, 32768)},
    ),
    (
        "YaRN's betas, and the model's own length",
        of("qwen2", **{k: v for k, v in QWEN_YARN.items() if k != ORIGINAL}, rope__scaling__yarn_beta_fast=8.0),
        {"layout": "half", "base": 1e6, "rotary_dim": 128, "scaling": YaRN(4.0, 131072, beta_fast=8.0)},
    ),
    (
        "DeepSeek-V3 has all of the factor on the softmax",
        of("deepseek2", **DEEPSEEK, rope__scaling__yarn_log_multiplier=0.1),
        {"layout": "interleaved", "base": 1e4, "rotary_dim": 64, "scaling": YaRN(40.0, 4096, attention_factor=1.0)},
    ),
    (
        "ggml truncates gpt-oss",
        of("gpt-oss", **QWEN_YARN, attention__key_length=64),
        {"layout": "half", "base": 1e6, "rotary_dim": 64, "scaling": YaRN(4.0, 32768)},
    ),
    (
        "an unknown architecture by the caller's word",
        of("klingon"),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": None},
    ),
]


@pytest.mark.parametrize(("metadata", "expected"), [file[1:] for file in FILES], ids=[file[0] for file in FILES])
def test_files_mean_what_llama_cpp_computes(metadata: dict[str, Any], expected: dict[str, Any]) -> None:
    layout = None if metadata["general.architecture"] in GGUF_LAYOUTS else "half"
    assert rope_from_gguf(metadata, layout=layout) == expected


GEMMA3 = of("gemma3", rope__freq_base=1e6, rope__scaling__type="linear", rope__scaling__factor=8.0, attention__key_length=256)
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


def test_sliding_layers_have_a_base_of_their_own() -> None:
    """llama_hparams: rope_freq_base_train_swa is 10000 and rope_freq_scale_train_swa 1 where nothing is said."""
    full = {"layout": "half", "base": 1e6, "rotary_dim": 256, "scaling": Linear(8.0)}
    local = {"layout": "half", "base": 1e4, "rotary_dim": 256, "scaling": None}
    windowed = GEMMA3 | {"gemma3.attention.sliding_window": 1024}
    assert rope_from_gguf(windowed, layer_type="full_attention") == full
    assert rope_from_gguf(windowed, layer_type="sliding_attention") == local
    own = rope_from_gguf(windowed | {"gemma3.rope.freq_base_swa": 2e4}, layer_type="sliding_attention")
    assert own == local | {"base": 2e4}
    assert rope_from_gguf(GEMMA3) == full  # Rnj-1 has no window


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


def test_short_and_long_divisors_are_longrope() -> None:
    lists = {"rope_factors_short.weight": [1.0] * 48, "rope_factors_long.weight": [2.0] * 48}
    metadata = of(
        "phi3", rope__dimension_count=96, rope__scaling__original_context_length=4096, rope__scaling__attn_factor=1.25
    )
    options = rope_from_gguf(metadata, rope_factors=lists)
    assert options["scaling"] == LongRoPE((1.0,) * 48, (2.0,) * 48, 4096, attention_factor=1.25)
    assert rope_from_gguf(metadata | {"phi3.rope.scaling.type": "longrope"}, rope_factors=lists) == options


WINDOW = {"attention__sliding_window": 4096}
LAYERS: list[tuple[str, dict[str, Any], list[int]]] = [  # the layers of eight that do not rotate
    ("llama", {}, []),
    ("smollm3", {}, [3, 7]),
    ("afmoe", WINDOW | {"attention__sliding_window_pattern": 2}, [3, 7]),
    ("llama4", {}, [3, 7]),
    ("llama4", {"attention__sliding_window": 0}, []),
    ("smallthinker", {}, []),
    ("smallthinker", WINDOW, [0, 4]),
    ("cohere2", WINDOW, [3, 7]),
    ("cohere2", WINDOW | {"attention__sliding_window_pattern": 2}, [1, 3, 5, 7]),
    (
        "cohere2moe",
        WINDOW | {"leading_dense_block_count": 1, "attention__sliding_window_pattern": [False, True] * 4},
        [2, 4, 6],
    ),
    ("exaone-moe", WINDOW | {"attention__sliding_window_pattern": 4}, [3, 7]),
    ("exaone4", WINDOW, []),
]


@pytest.mark.parametrize(("arch", "keys", "still"), LAYERS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_layer_that_does_not_rotate_has_no_options(arch: str, keys: dict[str, Any], still: list[int]) -> None:
    metadata = of(arch, block_count=8, **keys)
    found = [rope_from_gguf(metadata, layer=layer) for layer in range(8)]
    assert [layer for layer, options in enumerate(found) if options is None] == still
    assert all(options in (None, rope_from_gguf(metadata)) for options in found)


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


def test_a_layer_has_the_base_of_its_type() -> None:
    metadata = of("gemma3", block_count=12, rope__freq_base=1e6, **WINDOW)
    bases = [rope_from_gguf(metadata, layer=layer)["base"] for layer in range(12)]
    assert [layer for layer, base in enumerate(bases) if base == 1e6] == [5, 11]
    assert {base for base in bases if base != 1e6} == {1e4}
    listed = of("gemma4", block_count=3, attention__sliding_window_pattern=[True, False, True], rope__freq_base=1e6, **WINDOW)
    assert [rope_from_gguf(listed, layer=layer)["base"] for layer in range(3)] == [1e4, 1e6, 1e4]


LISTS = {"rope_freqs.weight": [1.0] * 64}
SWA = {"attention__sliding_window": 512, "rope__freq_base": 5e5}


@pytest.mark.parametrize(
    "arch", ["gpt-oss", "cohere2", "gemma2", "exaone4", "afmoe", "llama4", "smallthinker", "laguna", "olmo2"]
)
def test_sliding_layers_have_the_base_of_the_full_ones_unless_the_file_says(arch: str) -> None:
    alike = rope_from_gguf(of(arch, **SWA))
    assert alike["base"] == 5e5
    assert rope_from_gguf(of(arch, **SWA, rope__freq_base_swa=5e5)) == alike
    own = of(arch, **SWA, rope__freq_base_swa=1e4)
    assert rope_from_gguf(own, layer_type="full_attention") == alike
    assert rope_from_gguf(own, layer_type="sliding_attention") == {**alike, "base": 1e4}
    with pytest.raises(ValueError, match=r"layer_type must be one of"):
        rope_from_gguf(own)


@pytest.mark.parametrize(("arch", "scaled"), [("gpt-oss", True), ("cohere2", True), ("laguna", False), ("olmo2", False)])
def test_sliding_layers_are_scaled_as_the_architecture_says(arch: str, scaled: bool) -> None:
    file = of(arch, **QWEN_YARN | {"rope__freq_base": 5e5}, **{k: v for k, v in SWA.items() if k != "rope__freq_base"})
    if scaled:
        assert rope_from_gguf(file)["scaling"] == YaRN(4.0, 32768)
        return
    assert rope_from_gguf(file, layer_type="full_attention")["scaling"] == YaRN(4.0, 32768)
    sliding = rope_from_gguf(file, layer_type="sliding_attention")
    assert (sliding["scaling"], sliding["base"]) == (None, 5e5)


@pytest.mark.parametrize("arch", ["gemma3", "gemma3n", "gemma4", "gemma-embedding", "mimo2", "plamo3"])
def test_sliding_layers_of_some_have_base_10000_unless_the_file_says(arch: str) -> None:
    assert rope_from_gguf(of(arch, **SWA), layer_type="sliding_attention")["base"] == 1e4
    assert rope_from_gguf(of(arch, **SWA, rope__freq_base_swa=2e4), layer_type="sliding_attention")["base"] == 2e4


def test_keys_that_change_nothing_are_read() -> None:
    neutral = {"rope__scaling__yarn_ext_factor": 1.0, "rope__scaling__yarn_attn_factor": 1.0}
    assert rope_from_gguf(of("qwen2", **QWEN_YARN, **neutral)) == rope_from_gguf(of("qwen2", **QWEN_YARN))


def g(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1


@pytest.mark.parametrize(
    ("arch", "multiplier", "expected"),
    [
        ("deepseek2", 0.1, 1.0),  # mscale_all_dim 1, and mscale 1
        ("deepseek2", 0.07, 1.0),  # mscale is mscale_all_dim
        ("deepseek32", 0.07, g(40, 1) / g(40, 0.7)),
        ("mistral3", 1.0, 1.0),  # here the key is mscale_all_dim itself
        ("mistral3", 0.5, g(40, 1) / g(40, 0.5)),
    ],
)
def test_the_log_multiplier_has_the_unit_of_its_architecture(arch: str, multiplier: float, expected: float) -> None:
    found = rope_from_gguf(of(arch, **DEEPSEEK, rope__scaling__yarn_log_multiplier=multiplier))["scaling"]
    assert isinstance(found, YaRN)
    assert found.attention_factor is not None
    assert abs(found.attention_factor - expected) <= 8 * 2**-53


ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "metadata must be a mapping, the file's key-value pairs; got list."),
    ({}, {}, "metadata must have general.architecture, a string; got None."),
    (of("klingon"), {}, "general.architecture must be a known one; got 'klingon'. Pass layout, one of ("),
    (of("modern-bert"), {}, "general.architecture must be a known one; got 'modern-bert'."),
    (of("gemma3", attention__sliding_window=512), {}, "layer_type must be one of ('full_attention', 'sliding_attention'), "),
    (of("llama"), {"layer_type": "full_attention"}, "layer_type must be None, since all layers of this file are alike; got"),
    (of("llama"), {"layer": 0}, "the file must have llama.block_count; got none."),
    (of("llama", block_count=4), {"layer": 4}, "layer must be an integer from 0 to 3, since llama.block_count is 4; got 4."),
    (of("llama", block_count=4), {"layer": 1, "layer_type": "x"}, "layer must be given without layer_type; got layer 1 and"),
    (of("mimo2", block_count=4, **WINDOW), {"layer": 1}, "metadata must have mimo2.attention.sliding_window_pattern, a period"),
    (of("exaone-moe", block_count=4), {"layer": 1}, "a period or one number for every layer; got None."),
    (of("llama"), {"layout": "neox"}, "layout must be one of ('half', 'interleaved', 'interleaved_to_half') or None; got"),
    (of("llama", attention__head_count=[32, 8]), {}, "llama.attention.head_count must be an int of at least 1; got [32, 8]."),
    (of("llama", rope__dimension_count=63), {}, "the file must have an even number of rotated channels, at least 2; got 63."),
    (of("llama", rope__freq_base=-1.0), {}, "freq_base must be a number above 0; got -1.0."),
    (of("qwen2", rope__scaling__type="ntk"), {}, "scaling.type must be one of ('none', 'linear', 'yarn', 'longrope'); got"),
    (of("qwen2", rope__scaling__type="longrope"), {}, "rope_factors must be given for this file (LongRoPE): the tensors"),
    *(
        (of("phi3", **{ORIGINAL: length}), {}, "rope_factors must be given for this file (LongRoPE): the tensors")
        for length in (4096, 262144)  # shorter than the model's context, and longer
    ),
    (of("phi3", rope__scaling__attn_factor=1.19), {}, "rope_factors must be given for this file (LongRoPE): the tensors"),
    (of("qwen2", rope__scaling__alpha=1000.0), {}, "got ['qwen2.rope.scaling.alpha'], which rope cannot do."),
    (of("olmo3", rope__freq_base_swa=1e4), {}, "got ['olmo3.rope.freq_base_swa'], which rope cannot do."),
    (of("glm4", rope__dimension_sections=[8, 12, 12, 0]), {}, "one position for each token; got glm4.rope.dimension_sections."),
    (
        of("qwen2", **QWEN_YARN, rope__scaling__yarn_log_multiplier=1.0),
        {},
        "yarn_log_multiplier must be 0 or not given, except",
    ),
    (of("olmo2", **QWEN_YARN, attention__sliding_window=4096), {}, "layer_type must be one of ('full_attention', 'sliding_"),
    (of("deepseek2", attention__key_length=576), {}, "'deepseek2' must have deepseek2.rope.dimension_count, since only a part"),
    (of("qwen2", rope__scaling__type="linear"), {}, "a file of scaling.type 'linear' must have scaling.factor; got none."),
    (of("qwen2", rope__scaling__type="yarn"), {}, "a file of scaling.type 'yarn' must have scaling.factor; got none."),
    (
        of("qwen2", **QWEN_YARN, rope__scaling__yarn_ext_factor=64.0),
        {},
        "scaling.yarn_ext_factor must be 1.0 for scaling.type 'yarn', or not given; got 64.0.",
    ),
    (
        of("qwen2", rope__scaling__yarn_ext_factor=1.0),
        {},
        "yarn_ext_factor must be 0.0 for scaling.type 'linear', or not given",
    ),
    (of("qwen2", **QWEN_YARN, rope__scaling__yarn_attn_factor=2.0), {}, "yarn_attn_factor must be 1.0 for scaling.type 'yarn'"),
    (of("granite", rope__scaling__finetuned=False), {}, "got Granite's scaling.finetuned false: it has none."),
    (of("llama"), {"rope_factors": {"rope_freqs.weight": [1.0]}}, "rope_freqs.weight must be a list of 64 numbers above 0"),
    (of("llama"), {"rope_factors": {"freqs": [1.0] * 64}}, "rope_factors must have rope_freqs.weight, or rope_factors_short"),
    (of("qwen2", **QWEN_YARN), {"rope_factors": LISTS}, "rope_factors must be None if the file has another scaling; got"),
]


@pytest.mark.parametrize(("metadata", "options", "message"), ERRORS)
def test_what_cannot_be_read_is_refused(metadata: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^rope_from_gguf: ") as error:
        rope_from_gguf(metadata, **options)
    assert message in str(error.value)


def heads(arch: str, **keys: Any) -> dict[str, Any]:
    return of(arch, attention__head_count=12, block_count=40, **keys)


def tower(kind: str, **keys: Any) -> dict[str, Any]:
    sizes = {
        "vision.embedding_length": 1280,
        "vision.attention.head_count": 16,
        "vision.block_count": 2,
        "projector_type": kind,
    }
    sizes |= {name.replace("__", "."): value for name, value in keys.items()}
    return {"general.architecture": "clip", **{f"clip.{name}": value for name, value in sizes.items()}}


SLOPES = {"heads": 12, "form": "distance"}
T5_SIDES = {"encoder": [("t5_bias", {"bidirectional": True, "max_distance": 128})]}
WHOLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (heads("mpt", attention__max_alibi_bias=16.0), {"text": [("alibi", {**SLOPES, "max_bias": 16.0})]}),
    (heads("mpt", attention__max_alibi_bias=0.0), {"text": [("learned", {"offset": 0})]}),
    (heads("bloom"), {"text": [("alibi", {**SLOPES, "max_bias": 8.0})]}),
    (heads("jina-bert-v2", attention__max_alibi_bias=4.0), {"text": [("alibi", {**SLOPES, "max_bias": 8.0})]}),
    (heads("refact"), {"text": [("alibi", {**SLOPES, "max_bias": 8.0})]}),
    (heads("baichuan"), {"text": [("alibi", {**SLOPES, "max_bias": 8.0})]}),
    (of("baichuan", block_count=12), {"text": [None]}),
    (of("t5encoder"), T5_SIDES),
    (of("t5"), {**T5_SIDES, "decoder": [("t5_bias", {"bidirectional": False, "max_distance": 128})]}),
    *((of(arch), {"text": [("learned", {"offset": 0})]}) for arch in ("bert", "gpt2", "starcoder")),
    *((tower(kind), {"vision": [("learned", {"offset": 0})]}) for kind in ("gemma3", "idefics3", "janus_pro", "lfm2", "phi4")),
]


@pytest.mark.parametrize(("metadata", "expected"), WHOLE, ids=lambda value: value.get("general.architecture"))
def test_encodings_of_whole_files(metadata: dict[str, Any], expected: dict[str, Any]) -> None:
    assert from_gguf(metadata) == expected


def test_rotations_of_whole_files() -> None:
    """As `rope_from_gguf` reads them, layer by layer where layers differ."""
    assert from_gguf(of("qwen2", block_count=3)) == {"text": [("rope", rope_from_gguf(of("qwen2")))]}
    (entry,) = from_gguf(of("baichuan", block_count=32))["text"]
    assert entry == ("rope", {"layout": "interleaved", "base": 1e4, "rotary_dim": 128, "scaling": None})
    smol = of("smollm3", block_count=8)
    found = from_gguf(smol)["text"]
    assert [entry is None for entry in found] == [False, False, False, True] * 2
    assert from_gguf(smol, layer=3) == {"text": [None]}
    assert from_gguf(smol, layer=4)["text"] == found[4:5] == [("rope", rope_from_gguf(smol, layer=4))]
    divisors = {"rope_freqs.weight": llama3_divisors()}
    (entry,) = from_gguf(of("llama", rope__dimension_count=128, block_count=2), rope_factors=divisors)["text"]
    assert entry == ("rope", rope_from_gguf(of("llama", rope__dimension_count=128), rope_factors=divisors))


@pytest.mark.parametrize("kind", ["qwen2vl_merger", "qwen2.5vl_merger"])
def test_a_tower_that_rotates_is_that_of_the_configuration(kind: str) -> None:
    """As llama.cpp's clip_graph_qwen2vl: halves of a head for rows and columns, at base 10000."""
    config = {"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 16}, "text_config": {}}
    assert from_gguf(tower(kind))["vision"] == from_config(config)["vision"]
    assert from_gguf(tower(kind), layer=1) == from_gguf(tower("other", vision__projector_type=kind))
    (entry,) = from_gguf(tower("lfm2"))["vision"]
    assert entry is not None
    assert "resized" in entry.conventions["table"]


def test_slopes_of_ggml() -> None:
    """ggml's soft_max: m0**(h + 1) for the first heads, m1**(2 (h - n) + 1) for the others, times the distance."""
    (entry,) = from_gguf(heads("mpt", attention__max_alibi_bias=5.0))["text"]
    assert entry is not None
    bias = alibi(np.asarray([9]), np.asarray([2]), **entry.options or {})
    m0, m1 = 2.0 ** (-5.0 / 8), 2.0 ** (-5.0 / 2 / 8)
    slopes = [m0 ** (h + 1) if h < 8 else m1 ** (2 * (h - 8) + 1) for h in range(12)]
    np.testing.assert_allclose(np.asarray(bias)[:, 0, 0], [-7 * slope for slope in slopes], rtol=1e-6)


@pytest.mark.parametrize(
    ("metadata", "options", "message"),
    [
        ([], {}, "metadata must be a mapping"),
        ({}, {}, "metadata must have general.architecture"),
        (of("rwkv6"), {}, "general.architecture must be a known one; got 'rwkv6'. Known: afmoe"),
        (heads("mpt"), {}, "the file must have mpt.attention.max_alibi_bias; got none"),
        (heads("mpt", attention__max_alibi_bias=-1.0), {}, "must be a number of at least 0"),
        (heads("bloom"), {"layer": 40}, "layer must be an integer from 0 to 39"),
        (of("qwen2"), {}, "the file must have qwen2.block_count"),
        (of("qwen2", block_count=10**6), {}, "qwen2.block_count must be at most 10000"),
        (of("qwen2", block_count=2, rope__strange=1), {}, "rope keys of metadata must be among"),
        (tower("pixtral"), {}, "clip.projector_type must be that of a tower that is read; got 'pixtral'. Read: gemma3,"),
        (tower("gemma3", has_audio_encoder=True), {}, "towers for audio are not read"),
        (tower("gemma3"), {"layer": 2}, "layer must be an integer from 0 to 1, since clip.vision.block_count is 2"),
        (tower("qwen2vl_merger", vision__attention__head_count=15), {}, "must be a multiple of 4 times 15 heads; got 1280"),
    ],
)
def test_whole_files_that_cannot_be_read(metadata: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^from_gguf: .*{re.escape(message)}"):
        from_gguf(metadata, **options)

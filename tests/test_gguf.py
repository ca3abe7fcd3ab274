"""GGUF metadata -> parameters, on the keys that llama.cpp's converters write, against the formulas of ggml's rope."""

import math
from typing import Any

import numpy as np
import pytest

from posref import alibi, from_config, from_gguf, mrope, presets, rope_frequencies, rope_from_config, rope_from_gguf
from posref.gguf import GGUF_LAYOUTS
from posref.models.arguments import Entry


def of(arch: str, **keys: Any) -> dict[str, Any]:
    """Metadata of an architecture; "__" in a name stands for a dot."""
    sizes = {"embedding_length": 4096, "attention.head_count": 32, "context_length": 131072}
    named = {key.replace("__", "."): value for key, value in keys.items()}
    return {"general.architecture": arch, **{f"{arch}.{key}": value for key, value in (sizes | named).items()}}


ORIGINAL = "rope__scaling__original_context_length"
QWEN_YARN = {"rope__freq_base": 1e6, "rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, ORIGINAL: 32768}


GEMMA4 = of("gemma4", rope__freq_base=1e6, rope__dimension_count=512, attention__key_length=512, attention__sliding_window=512)


# llama.cpp 00342301, src/llama-model.cpp, llama_model_rope_type; posref leaves out baichuan, bert and starcoder
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


SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "rope_theta": 1e4, "sliding_window": 4096}
KINDS = ["conv", "conv", "full_attention"] * 8
LAYERS: dict[str, tuple[str, int, dict[str, Any], dict[str, Any]]] = {  # type, layers, and more of the config and the file
    "smollm3": ("smollm3", 36, {}, {}),
    "cohere2": ("cohere2", 32, {"sliding_window_pattern": 4}, {}),
    "exaone4": ("exaone4", 64, {"sliding_window_pattern": 4}, {}),
    "qwen3next": ("qwen3_next", 24, {}, {}),
    "lfm2": ("lfm2", 24, {"layer_types": KINDS}, {"attention__head_count_kv": [8 * (kind != "conv") for kind in KINDS]}),
    "qwen35": (
        "qwen3_5_text",
        24,
        {"head_dim": 256},
        {"rope__dimension_sections": [11, 11, 10, 0], "rope__dimension_count": 64},
    ),
}


def still(answer: dict[str, list[Entry | None]], count: int) -> list[bool]:
    """Return which layers have no positions."""
    entries = answer["text"]
    return [entry is None for entry in (entries if len(entries) > 1 else entries * count)]


@pytest.mark.parametrize("arch", LAYERS)
def test_the_layers_of_a_file_are_those_of_the_configuration(arch: str) -> None:
    name, count, more, keys = LAYERS[arch]
    config = from_config({"model_type": name, "num_hidden_layers": count, **SIZES, **more})
    file = from_gguf(of(arch, block_count=count, attention__sliding_window=4096, **keys))
    assert still(file, count) == still(config, count)
    assert 0 < sum(still(file, count)) < count


def test_a_file_that_lists_its_recurrent_layers_is_believed() -> None:
    listed = [True, False, False, True]
    assert still(from_gguf(of("qwen3next", block_count=4, attention__recurrent_layers=listed)), 4) == listed
    every = of("minimax-01", block_count=16, nextn_predict_layers=2)
    for file, expected in ((every, [7, 14, 15]), (every | {"minimax-01.full_attention_interval": 3}, [2, 5, 8, 11, 14, 15])):
        assert [layer for layer, none in enumerate(still(from_gguf(file), 16)) if not none] == expected


@pytest.mark.parametrize(
    ("arch", "name", "sections"), [("qwen2vl", "qwen2_vl_text", [16, 24, 24, 0]), ("qwen3vl", "qwen3_vl_text", [24, 20, 20, 0])]
)
def test_several_axes_are_those_of_the_configuration(arch: str, name: str, sections: list[int]) -> None:
    config = {"model_type": name, **SIZES, "rope_scaling": {"rope_type": "default", "mrope_section": sections[:3]}}
    (expected,) = from_config(config)["text"]
    metadata = of(arch, block_count=2, rope__dimension_sections=sections)
    (entry,) = from_gguf(metadata)["text"]
    assert (entry.operation, entry.options) == (expected.operation, expected.options)
    with pytest.raises(ValueError, match="from_gguf"):
        rope_from_gguf(metadata)


def imrope(sections: list[int], pairs: int) -> list[int]:
    """Return the axis of each pair, as ggml-cpu/ops.cpp (6256) chooses it; 3 is the fourth."""
    axes = []
    for pair in range(pairs):
        sector = pair % sum(sections)
        axis = {1: 1, 2: 2, 0: 0}[sector % 3]
        axes.append(axis if sector < 3 * sections[axis] else 3)
    return axes


@pytest.mark.parametrize("sections", [[24, 20, 20, 0], [11, 11, 10, 0], [16, 24, 24, 0], [22, 21, 21, 0], [16, 16, 16, 16]])
def test_pairs_of_the_fourth_position_are_named(sections: list[int]) -> None:
    """The others rotate by the position that ggml gives them."""
    pairs = sum(sections)
    (entry,) = from_gguf(of("qwen3vl", block_count=1, rope__dimension_count=2 * pairs, rope__dimension_sections=sections))[
        "text"
    ]
    assert entry is not None
    axes = imrope(sections, pairs)
    fourth = [pair for pair, axis in enumerate(axes) if axis == 3]
    assert entry.conventions.get("positions", "").count(str(fourth)) == bool(fourth)
    x, positions = np.eye(1, 2 * pairs) + 1.0, np.array([[7.0], [11.0], [5.0]])
    angles = np.array([positions[axis % 3, 0] for axis in axes]) * 1e4 ** (-np.arange(pairs) / pairs)
    expected = x[0, :pairs] * np.cos(angles) - x[0, pairs:] * np.sin(angles)
    off = np.abs(mrope(x, positions, **(entry.options or {}))[0, :pairs] - expected)
    assert np.delete(off, fourth).max() < 1e-14


def test_sections_are_needed_where_the_graph_needs_them() -> None:
    with pytest.raises(ValueError, match="dimension_sections"):
        from_gguf(of("qwen2vl", block_count=1))
    with pytest.raises(ValueError, match="add up"):
        from_gguf(of("qwen2vl", block_count=1, rope__dimension_sections=[16, 24, 20, 0]))
    with pytest.raises(ValueError, match="one position"):
        from_gguf(of("llama", block_count=1, rope__dimension_sections=[16, 24, 24, 0]))
    (plain,) = from_gguf(of("glm4", block_count=1, rope__dimension_sections=[0, 0, 0, 0]))["text"]
    (axes,) = from_gguf(of("glm4", block_count=1, rope__dimension_sections=[16, 24, 24, 0]))["text"]
    assert ((plain.options or {})["layout"], (axes.options or {})["layout"]) == ("interleaved", "half")


def test_hunyuan_raises_its_base_by_alpha() -> None:
    four = {"rope__dimension_sections": [16, 16, 16, 16], "rope__scaling__alpha": 1000.0}
    (entry,) = from_gguf(of("hunyuan_vl", block_count=1, **four))["text"]
    options = entry.options or {}
    assert options["sections"] == (16, 16, 16, 16)
    scaled, _ = rope_frequencies(128, base=options["base"], scaling=options["scaling"])
    raised, _ = rope_frequencies(128, base=1e4 * 1000.0 ** (128 / 126))
    np.testing.assert_allclose(scaled, raised, rtol=1e-14)


MASKS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "gemma2": ("gemma2", {}, {}),
    "gemma3": ("gemma3_text", {"sliding_window_pattern": 6}, {"attention__sliding_window": 4096}),
    "gpt-oss": ("gpt_oss", {}, {"attention__sliding_window": 4096}),
    "cohere2": ("cohere2", {"sliding_window_pattern": 4}, {"attention__sliding_window": 4096}),
    "llama4": ("llama4_text", {}, {"attention__sliding_window": 4096}),
    "modern-bert": ("modernbert", {"local_attention": 128}, {"attention__sliding_window": 128}),
}


@pytest.mark.parametrize("arch", MASKS)
def test_windows_of_a_file_are_those_of_the_configuration(arch: str) -> None:
    name, more, keys = MASKS[arch]
    config = from_config({"model_type": name, "num_hidden_layers": 12, **SIZES, **more})
    file = from_gguf(of(arch, block_count=12, **keys))
    assert file["text mask"] == config["text mask"]
    assert from_gguf(of(arch, block_count=12, **keys), layer=1)["text mask"] == [config["text mask"][1]]


def test_windows_that_llama_cpp_has_of_its_own() -> None:
    sixteen = of("smallthinker", block_count=8, attention__sliding_window=16)
    window = Entry("sliding_window", {"window": 4096, "counting": "with_query", "sides": "causal"})
    assert from_gguf(sixteen)["text mask"] == [None, window, window, window] * 2
    assert "text mask" not in from_gguf(of("exaone4", block_count=8, attention__sliding_window=16))
    assert "text mask" not in from_gguf(of("llama4", block_count=8, attention__sliding_window=0))
    listed = from_gguf(of("lfm2", block_count=2, attention__head_count_kv=[0, 8], attention__sliding_window=16))
    assert [entry and (entry.options or {})["window"] for entry in listed["text mask"]] == [None, 16]


# llama.cpp as in llama-cpp-python 0.3.36, llama_model_rope_type: the architectures beside NORM and NEOX above
OTHERS = """
arwkv7 bailingmoe3 bert bloom clip cohere2moe deepseek2-ocr deepseek32 deepseek4 dflash dots3note eagle3 eurobert exaone-moe
gemma4 gemma4-assistant glm-dsa glm5-next gpt2 gptj granite_swa graniteswitch grok hrm_text hunyuan_vl hy_v3 hy_v4 jais jais2
jamba jina-bert-v2 kimi-k3 kimi-linear laguna llama-embed maincoder mamba mamba2 maple mellum mimo2 minimax-01 minimax-m2
minimax-m3 mistral3 mistral4 modern-bert mpt muse-glimmer nanbeige nemotron_h nemotron_h_moe paddleocr pangu-embedded plamo3
pockettts qwen2vl qwen35 qwen35moe qwen3tts qwen3vl qwen3vlmoe qwen4exp refact rnd1 rwkv6 rwkv6qwen2 rwkv7 spark2_5 starcoder
step35 t5 t5encoder talkie wavtokenizer-dec
"""


@pytest.mark.parametrize("arch", (NORM + NEOX + OTHERS).split())
def test_every_architecture_is_answered_or_refused_with_a_reason(arch: str) -> None:
    try:
        answer = from_gguf(of(arch, block_count=4))
    except ValueError as error:
        assert "must be a known one" not in str(error), arch  # noqa: PT017
        assert arch in str(error), arch  # noqa: PT017
    else:
        assert answer


def heads(arch: str, **keys: Any) -> dict[str, Any]:
    return of(arch, attention__head_count=12, block_count=40, **keys)


def test_slopes_of_ggml() -> None:
    """ggml's soft_max: m0**(h + 1) for the first heads, m1**(2 (h - n) + 1) for the others, times the distance."""
    (entry,) = from_gguf(heads("mpt", attention__max_alibi_bias=5.0))["text"]
    bias = alibi(np.asarray([9]), np.asarray([2]), **entry.options or {})
    m0, m1 = 2.0 ** (-5.0 / 8), 2.0 ** (-5.0 / 2 / 8)
    slopes = [m0 ** (h + 1) if h < 8 else m1 ** (2 * (h - 8) + 1) for h in range(12)]
    np.testing.assert_allclose(np.asarray(bias)[:, 0, 0], [-7 * slope for slope in slopes], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "keys", "component", "value"),
    [
        ("gemma2", {}, "text softcap", ("attention", {"softcap": 50.0})),
        ("gemma2", {"attn_logit_softcapping": 30.0}, "text softcap", ("attention", {"softcap": 30.0})),
        ("gemma2", {"block_count": 46}, "text scale", ("attention", {"scale": 0.125})),
        ("gemma2", {}, "text scale", None),
        ("gemma3n", {}, "text scale", ("attention", {"scale": 1.0})),
        ("granite", {"attention.scale": 0.015625}, "text scale", ("attention", {"scale": 0.015625})),
        ("granite", {}, "text scale", None),
        ("grok", {}, "text scale", ("attention", {"scale": 0.08838834764831845})),
        ("grok", {}, "text softcap", ("attention", {"softcap": 30.0})),
        ("gpt-oss", {}, "text sinks", ("attention", {})),
        ("mimo2", {}, "text sinks", ("attention", {})),
        ("qwen2", {}, "text sinks", None),
        (
            "deepseek2",
            {"rope.dimension_count": 64, "attention.key_length_mla": 192, "rope.scaling.type": "yarn",
             "rope.scaling.factor": 40.0, "rope.scaling.yarn_log_multiplier": 0.1},
            "text scale",
            ("mla_logits", {"scale": 0.1352337788608801}),
        ),
        (
            "mistral3",
            {"attention.temperature_scale": 0.1, "rope.scaling.type": "yarn", "rope.scaling.factor": 16.0,
             "rope.scaling.original_context_length": 8192},
            "text temperature",
            ("attention_temperature", {"form": "steps", "beta": 0.1, "original_length": 8192, "offset": 0}),
        ),
    ],
)  # fmt: skip
def test_what_attention_has_besides_positions(name: str, keys: dict[str, Any], component: str, value: Any) -> None:
    """Literals of llama.cpp's src/models, and the scale of DeepSeek's latent attention (deepseek2.cpp, 443)."""
    sizes = {"block_count": 4, "embedding_length": 512, "attention.head_count": 8, "context_length": 4096}
    metadata = {f"{name}.{key}": number for key, number in {**sizes, **keys}.items()}
    pattern = {f"{name}.attention.sliding_window_pattern": [1, 0] * 2} if name in ("mimo2", "gemma3n") else {}
    found = from_gguf({"general.architecture": name, **metadata, **pattern}).get(component, [None])
    assert found == [value]


def graph_scale(arch: str, kind: str, factor: float, multiplier: float) -> float:
    """kq_scale of a latent head of 192, as llama-context.cpp (176-214) and deepseek2.cpp (34, 437-443) compute it."""
    log_mul = 0.0 if arch == "glm-dsa" else multiplier / 0.1
    attn_factor = 1.0
    if kind == "yarn":
        mscale = log_mul if arch == "deepseek2" and log_mul not in (0.0, 1.0) else 1.0
        attn_factor = 1 + 0.1 * mscale * math.log(factor)
        attn_factor /= 1 + 0.1 * log_mul * math.log(factor)
        attn_factor *= 1 / (1 + 0.1 * math.log(factor))
    original = attn_factor * (1 + 0.1 * math.log(factor))
    mscale = original * (1 + 0.1 * log_mul * math.log(factor))
    return mscale * mscale / math.sqrt(192)


@pytest.mark.parametrize("arch", ["deepseek2", "deepseek32", "glm-dsa", "mistral4"])
@pytest.mark.parametrize(("kind", "multiplier"), [("linear", 0.0), ("yarn", 0.0), ("yarn", 0.1), ("yarn", 0.0707)])
def test_the_scale_of_latent_attention_is_that_of_the_graph(arch: str, kind: str, multiplier: float) -> None:
    moved = {} if arch == "glm-dsa" else {"rope__scaling__yarn_log_multiplier": multiplier}
    sizes = {"rope__dimension_count": 64, "attention__key_length_mla": 192, "attention__key_length": 576}
    file = of(arch, block_count=2, rope__scaling__type=kind, rope__scaling__factor=40.0, **sizes, **moved)
    if kind == "linear" and not multiplier:
        file = {key: value for key, value in file.items() if "log_multiplier" not in key}
    (entry,) = from_gguf(file)["text scale"]
    assert abs((entry.options or {})["scale"] / graph_scale(arch, kind, 40.0, multiplier) - 1) < 1e-12


def test_large_models_of_mistral_have_temperatures() -> None:
    keys = {"rope__dimension_count": 64, "attention__temperature_scale": 0.1, "attention__temperature_length": 8192}
    (warm,) = from_gguf(of("mistral4", block_count=2, **keys))["text temperature"]
    assert warm == ("attention_temperature", {"form": "steps", "beta": 0.1, "original_length": 8192, "offset": 0})


def test_the_graph_of_deepseek_ocr_rotates_whole_heads_by_halves() -> None:
    """Its files have a dimension_count of 0, and the layout is not that of llama_model_rope_type (deepseek2.cpp, 473-485)."""
    (entry,) = from_gguf(of("deepseek2-ocr", block_count=12, rope__dimension_count=0))["text"]
    assert ((entry.options or {})["layout"], (entry.options or {})["rotary_dim"]) == ("half", 128)


def test_full_layers_of_step35_rotate_half_of_their_width() -> None:
    """step35.cpp (9, 244): with the divisors of full layers, of which the first are read."""
    keys = {"rope__dimension_count": 128, "rope__freq_base": 5e6, "attention__sliding_window": 512}
    file = of("step35", block_count=2, attention__sliding_window_pattern=[False, True], **keys)
    full, sliding = from_gguf(file, rope_factors={"rope_freqs.weight": [2.0] * 32 + [1.0] * 32})["text"]
    assert full is not None
    assert sliding is not None
    found = [(entry.options or {})[key] for entry in (full, sliding) for key in ("rotary_dim", "base")]
    assert found == [64, 5e6, 128, 1e4]
    assert [len((full.options or {})["scaling"].short_factor), (sliding.options or {})["scaling"]] == [32, None]


@pytest.mark.parametrize(
    ("arch", "keys", "texts", "indexers"),
    [
        ("deepseek32", {}, ["interleaved"], ["half"]),
        ("glm-dsa", {}, ["interleaved"], ["interleaved"]),
        ("hy_v4", {}, ["interleaved"], ["trailing"]),
        ("dots3note", {"attention__sliding_window_pattern": [0, 1], "attention__sliding_window": 8, "rope__freq_base_swa": 5e4},
         ["interleaved"] * 2, ["half", None]),
        ("bailingmoe3", {"attention__head_count_kv": [0, 8]}, [None, "interleaved"], []),
        ("bailingmoe3", {"attention__head_count_kv": [0, 8], "rope__dimension_sections": [11, 11, 10, 0]}, [None, "half"], []),
    ],
)  # fmt: skip
def test_layouts_of_text_and_of_indexers(arch: str, keys: dict[str, Any], texts: list[Any], indexers: list[Any]) -> None:
    """deepseek32.cpp (234), glm-dsa.cpp (272), hy-v4.cpp (361), dots3note.cpp (215, 335), bailingmoe3.cpp (37)."""
    found = from_gguf(of(arch, block_count=2, rope__dimension_count=64, **keys))
    assert [entry and (entry.options or {})["layout"] for entry in found["text"]] == texts
    assert [
        entry and (entry.options or {}).get("lanes", (entry.options or {})["layout"]) for entry in found.get("indexer", [])
    ] == (indexers)


def test_queries_of_llama4_that_do_not_rotate_have_a_temperature() -> None:
    sizes = {"block_count": 8, "embedding_length": 512, "attention.head_count": 8}
    found = from_gguf({"general.architecture": "llama4", **{f"llama4.{key}": number for key, number in sizes.items()}})
    warm = ("attention_temperature", {"form": "steps", "beta": 0.1, "original_length": 8192, "offset": 1})
    assert found["text temperature"] == [None if entry else warm for entry in found["text"]]


@pytest.mark.parametrize("kind", ["qwen2.5vl_merger", "exaone4_5"])
def test_windows_of_a_tower_are_those_of_the_configuration(kind: str) -> None:
    sizes = {"embedding_length": 1280, "attention.head_count": 16, "block_count": 32, "patch_size": 14, "n_wa_pattern": 8}
    metadata = {
        "general.architecture": "clip",
        "clip.projector_type": kind,
        **{f"clip.vision.{k}": n for k, n in sizes.items()},
    }
    theirs = from_config({"model_type": "qwen2_5_vl_vision", "hidden_size": 1280, "num_heads": 16, "depth": 32})
    assert from_gguf(metadata)["vision mask"] == theirs["vision mask"]
    assert from_gguf(metadata, layer=7)["vision mask"] == [None]
    del metadata["clip.vision.n_wa_pattern"]
    assert "vision mask" not in from_gguf(metadata)


@pytest.mark.parametrize("kind", ["glm4v", "qwen3vl_merger"])
def test_a_tower_may_have_a_table_and_a_rotation(kind: str) -> None:
    sizes = {"clip.vision.embedding_length": 1152, "clip.vision.attention.head_count": 16}
    found = from_gguf({"general.architecture": "clip", "clip.projector_type": kind, **sizes})
    assert found["vision input"] == [("learned", {"offset": 0})]
    (entry,) = found["vision attention"]
    assert (entry.options or {})["dims"] == (36, 36)

"""M-RoPE of released models: what a config.json means."""

from typing import Any

import pytest

import posref
from posref import mrope_from_config
from posref.models.model_types import mropes
from posref.scaling import YaRN

SIZES = {"hidden_size": 512, "num_attention_heads": 4, "max_position_embeddings": 32768}
QWEN2VL = {"model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1e6}
CHUNKED = {"type": "mrope", "mrope_section": [16, 24, 24]}
THREE = {"mrope_section": [24, 20, 20], "mrope_interleaved": True, "rope_type": "default"}
QWEN3VL = {"model_type": "qwen3_vl_text", "head_dim": 128, "rope_theta": 5e6, "rope_scaling": THREE}
QWEN35 = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
QWEN35 |= {"mrope_section": [11, 11, 10], "mrope_interleaved": True}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 262144}
GLM = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}

FILES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "Qwen2-VL",
        QWEN2VL | {"rope_scaling": CHUNKED},
        {"sections": (16, 24, 24), "arrangement": "chunked", "layout": "half", "base": 1e6, "scaling": None},
    ),
    (
        "Qwen2.5-VL, saved by version 5",
        {"model_type": "qwen2_5_vl", "text_config": {**QWEN2VL, "model_type": "qwen2_5_vl_text", "rope_parameters": CHUNKED}},
        {"sections": (16, 24, 24), "arrangement": "chunked", "layout": "half", "base": 1e6, "scaling": None},
    ),
    (
        "Qwen3-VL",
        {"model_type": "qwen3_vl", "text_config": QWEN3VL},
        {"sections": (24, 20, 20), "arrangement": "interleaved", "layout": "half", "base": 5e6, "scaling": None},
    ),
    (
        "Qwen3.5",
        {"model_type": "qwen3_5_text", "head_dim": 256, "rope_parameters": QWEN35},
        {"sections": (11, 11, 10), "arrangement": "interleaved", "layout": "half", "base": 1e7, "scaling": None},
    ),
    (
        "Qwen3.5 with YaRN",
        {"model_type": "qwen3_5_text", "head_dim": 256, "rope_parameters": QWEN35 | YARN},
        {
            "sections": (11, 11, 10),
            "arrangement": "interleaved",
            "layout": "half",
            "base": 1e7,
            "scaling": YaRN(4.0, 262144),
        },
    ),
    (
        "ERNIE 4.5-VL, whose file has height and width before time",
        {"model_type": "ernie4_5_vl_moe_text", "hidden_size": 2560, "num_attention_heads": 20},
        {"sections": (20, 22, 22), "arrangement": "ernie", "layout": "interleaved", "base": 500_000.0, "scaling": None},
    ),
    (
        "GLM-4.1V",
        {"model_type": "glm4v", "text_config": {"model_type": "glm4v_text", **SIZES, "rope_parameters": GLM}},
        {"sections": (8, 12, 12), "arrangement": "chunked", "layout": "interleaved", "base": 1e4, "scaling": None},
    ),
    (
        "GLM-4.5V: pairs are halves, as in its mixture of experts",
        {"model_type": "glm4v_moe_text", **SIZES, "rope_parameters": GLM},
        {"sections": (8, 12, 12), "arrangement": "chunked", "layout": "half", "base": 1e4, "scaling": None},
    ),
    (
        "another model, by the caller's word",
        {"model_type": "klingon", "head_dim": 128, "rope_theta": 1e4, "rope_scaling": THREE},
        {"sections": (24, 20, 20), "arrangement": "interleaved", "layout": "half", "base": 1e4, "scaling": None},
    ),
]


@pytest.mark.parametrize(("config", "expected"), [file[1:] for file in FILES], ids=[file[0] for file in FILES])
def test_files_mean_what_the_models_do(config: dict[str, Any], expected: dict[str, Any]) -> None:
    words = {"arrangement": "interleaved", "layout": "half"} if config["model_type"] == "klingon" else {}
    before = repr(config)
    assert mrope_from_config(config, **words) == expected
    assert repr(config) == before


def text_of(config: dict[str, Any]) -> dict[str, Any]:
    inner = config.get("text_config", config)
    return {"max_position_embeddings": 32768, **inner}


UNLIKE = {  # where a silent file's sections do not fit a silent file's head
    "glm4v_text": GLM,
    "glm_image_text": GLM,
    "glm_ocr_text": GLM,
    "qwen3_5_moe_text": QWEN35,
    "qwen4_exp_text": QWEN35,
    "qwen3_omni_moe_text": THREE,
    "qwen3_omni_moe_talker_text": THREE,
}
REAL = [(name, text_of(config)) for name, config, _ in FILES if config["model_type"] != "klingon"]
SILENT = [
    (f"{model}, silent", {"model_type": model, **SIZES, **({"rope_parameters": UNLIKE[model]} if model in UNLIKE else {})})
    for model in mropes()
    if not model.endswith(("_vl", "qwen3_5_text"))
]


ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "mrope_from_config: config must be a mapping, the path of a config.json, or have to_dict(); got list."),
    ({"model_type": "klingon"}, {}, "config['model_type'] must be a known one; got 'klingon'. Pass arrangement and layout."),
    (QWEN2VL | {"model_type": "klingon"}, {"arrangement": "chunked"}, "mrope_section must be three ints that add up to 64"),
    (
        QWEN2VL | {"model_type": "klingon", "rope_scaling": CHUNKED},
        {"arrangement": "chunked"},
        "config['model_type'] must be a known one; got 'klingon'. Pass layout, one of (",
    ),
    (QWEN2VL, {"arrangement": "axial"}, "arrangement must be one of ('chunked', 'interleaved', 'round_robin', 'ernie') or"),
    (
        QWEN2VL | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 23]}},
        {},
        "mrope_section must be three ints that add up to 64, the rotated pairs; got [16, 24, 23].",
    ),
    (QWEN2VL | {"rope_scaling": {"mrope_section": [32, 32]}}, {}, "must be three ints that add up to 64"),
    (QWEN2VL | {"rope_scaling": {"mrope_section": [16.0, 24.0, 24.0]}}, {}, "must be three ints that add up to 64"),
    (
        QWEN2VL | {"rope_scaling": {"type": "mrope", "mrope_interleaved": True}},
        {},
        "mrope_interleaved must agree with the arrangement, 'chunked'; got True.",
    ),
    (
        QWEN3VL | {"rope_scaling": THREE | {"mrope_interleaved": False}},
        {},
        "mrope_interleaved must agree with the arrangement, 'interleaved'; got False.",
    ),
    (
        QWEN3VL | {"rope_scaling": THREE | {"mrope_section": [20, 20, 24]}},
        {},
        "mrope_section must fit the arrangement, 'interleaved'; got [20, 20, 24]. mrope: sections must fit",
    ),
    (QWEN2VL | {"rope_scaling": CHUNKED | {"beta": 1}}, {}, "got ['beta'], which rope cannot do."),
]


@pytest.mark.parametrize(("config", "options", "message"), ERRORS)
def test_what_cannot_be_read_is_refused(config: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^mrope_from_config: ") as error:
        mrope_from_config(config, **options)
    assert message in str(error.value)


def test_factors_of_a_multimodal_model() -> None:
    found = posref.configs.factors({"model_type": "qwen3_5_text", "rope_parameters": QWEN35 | YARN})
    assert abs(found["table"] - 1.1386294361119891) <= 4 * 2**-52

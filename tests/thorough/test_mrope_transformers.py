"""M-RoPE of released models: posref.mrope with what a config.json means, and transformers' own module and apply function."""

from typing import Any

import numpy as np
import pytest
import torch
from rotary_modules import built
from snapshot import load
from transformers import CONFIG_MAPPING

from posref import mrope, mrope_from_config
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.models.model_types import mropes

SIZES = {"hidden_size": 512, "num_attention_heads": 4, "max_position_embeddings": 32768}
THREE = {"mrope_section": [24, 20, 20], "mrope_interleaved": True, "rope_type": "default"}
QWEN35 = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
QWEN35 |= {"mrope_section": [11, 11, 10], "mrope_interleaved": True}
GLM = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
UNLIKE = {  # where a silent file's sections do not fit a silent file's head
    **dict.fromkeys(("glm4v_text", "glm_image_text", "glm_ocr_text"), GLM),
    **dict.fromkeys(("qwen3_5_moe_text", "qwen4_exp_text"), QWEN35),
    **dict.fromkeys(("qwen3_omni_moe_text", "qwen3_omni_moe_talker_text"), THREE),
}
FILES = [(row["name"], row["config"]) for row in load("multimodal")["Files mean what the models do"]]
REAL = [
    (name, {"max_position_embeddings": 32768, **config.get("text_config", config)})
    for name, config in FILES
    if config["model_type"] != "klingon"
]
SILENT = [
    (f"{model}, silent", {"model_type": model, **SIZES, **({"rope_parameters": UNLIKE[model]} if model in UNLIKE else {})})
    for model in mropes()
    if not model.endswith(("_vl", "qwen3_5_text"))
]
LATER = {"hy_v4_vl_text"}  # types that version 5.23 does not know
CASES = [case for case in REAL + SILENT if case[1]["model_type"] not in LATER]


def test_all_others_are_known() -> None:
    assert {config["model_type"] for _, config in SILENT} - set(CONFIG_MAPPING) == LATER


@pytest.mark.parametrize("config", [config for _, config in CASES], ids=[name for name, _ in CASES])
def test_vectors_are_those_of_transformers(config: dict[str, Any]) -> None:
    """Random vectors at random positions on three axes, within the bounds of float32."""
    options = mrope_from_config(config)
    lanes, rng = 2 * sum(options["sections"]), np.random.default_rng(7)
    head = max(lanes, config.get("head_dim", 0))
    x = rng.standard_normal((1, 2, 5, head)).astype(np.float32)
    positions = rng.integers(0, 300, (3, 1, 5))
    module, code = built(config)
    cos, sin = module(torch.zeros(1), torch.asarray(positions))
    found = code.apply_rotary_pos_emb(torch.asarray(x), torch.asarray(x), cos, sin)[0].to(torch.float64).numpy()
    inputs = {"x": x.astype(np.float64), "positions": positions[:, :, None]}
    true = golden("mrope", inputs, options)
    for name, values in (("angle32", found), ("float64", mrope(inputs["x"], inputs["positions"], **options))):
        width = half_widths("mrope", inputs, options, name, true)["out"]
        assert np.all(np.abs(values - true["out"]) <= width)


def test_hunyuan_vl_is_no_rotation() -> None:
    """The two lanes of a pair have cosines of different axes, so the length of a vector changes."""
    rope = {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0, "mrope_section": [16, 16, 16, 16], "rope_theta": 1e4}
    config = {"model_type": "hunyuan_vl_text", **SIZES, "head_dim": 128, "rope_parameters": rope}
    module, code = built(config)
    cos, sin = module(torch.zeros(1), torch.tensor([[[3]], [[5]], [[7]], [[2]]]))
    x = torch.eye(128)[None, None, :1]  # of which lane 0 gets the cosine of axis 0, and lane 64 the sine of axis 2
    turned = code.apply_rotary_pos_emb(x, x, cos, sin)[0]
    assert float(turned.norm()) > 1.1
    with pytest.raises(
        ValueError, match=r"^mrope_from_config: .* HunYuan-VL's sections, which split a pair between two axes\. For vLLM"
    ):
        mrope_from_config(config)

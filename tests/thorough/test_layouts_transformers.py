"""The layout of every known model type, and what is left as it is, by running that model's own rotary module and function."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rotary_modules import built, code_of
from test_configs_transformers import ELSEWHERE, LATER, ODD, SWITCHED, TABLES
from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from posref import rope_from_config
from posref.configs import LAYOUTS, factors
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.models.config import HEADS, HIDDEN
from posref.models.model_types import model_type, mropes

PASSED = 6  # lanes beside the rotated ones, where the function takes them
POSITIONS = (0, 1, 7)
Apply = Callable[..., Any]


def complex_after_heads(apply: Apply, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return apply(x, x, table)[0]


def complex_before_heads(apply: Apply, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return apply(x.transpose(1, 2), x.transpose(1, 2), table)[0].transpose(1, 2)


def one_array(apply: Apply, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return apply(x, *table)


def queries_and_keys(apply: Apply, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return apply(x, x, *table)[0]


COMPLEX = {"deepseek_v2": complex_after_heads, "llama4_text": complex_before_heads}


def function(model: str, code: Any) -> Apply:
    """Return the function that the model's main attention calls; there may be those of an indexer or an encoder beside it."""
    if model in COMPLEX:
        return code.apply_rotary_emb  # type: ignore[no-any-return]
    mla = getattr(code, "apply_rotary_pos_emb_interleave", None)
    return code.apply_rotary_pos_emb if mla is None or "audio" in model else mla


def turned(model: str, apply: Apply, table: Any, x: torch.Tensor) -> torch.Tensor:
    """Return what the function makes of `x`, of shape (batch, heads, tokens, lanes)."""
    if model in COMPLEX:
        return COMPLEX[model](apply, x, table)
    alone = list(inspect.signature(apply).parameters)[1] == "cos"
    return (one_array if alone else queries_and_keys)(apply, x, table)


def takes_more(apply: Apply) -> bool:
    """Say whether the function itself leaves the lanes beyond the table as they are."""
    return any(name in inspect.getsource(apply) for name in ("q_pass", "nope, rope"))


@pytest.mark.parametrize("model", sorted(set(LAYOUTS) - ELSEWHERE - LATER - TABLES - ODD))
def test_the_rotation_of_a_known_model_type_is_that_of_its_own_code(model: str) -> None:
    module, code = built({"model_type": model})
    sizes = {name: value for name, value in module.config.to_dict().items() if name in (*HIDDEN, *HEADS)}
    file = {"model_type": model, "max_position_embeddings": 4096, **SWITCHED.get(model, {}), **sizes}
    buffer = next(name for name, _ in module.named_buffers() if name.endswith("inv_freq") and "original" not in name)
    layer = buffer.removesuffix("inv_freq").removesuffix("_") or None
    options = rope_from_config(file, layer_type=layer)
    apply = function(model, code)
    lanes = options["rotary_dim"] + (PASSED if takes_more(apply) else 0)
    x = np.random.default_rng(5).standard_normal((1, 2, len(POSITIONS), lanes)).astype(np.float32)
    table = module(torch.zeros(1), torch.tensor([POSITIONS]), **({} if layer is None else {"layer_type": layer}))
    found = turned(model, apply, table, torch.asarray(x)).to(torch.float64).numpy()
    inputs = {"x": x.astype(np.float64), "positions": np.asarray(POSITIONS)}
    params = {**options, "length": 8}
    true = golden("rope", inputs, params)
    assert np.all(np.abs(found - true["out"]) <= half_widths("rope", inputs, params, "angle32", true)["out"])


YARN = {"rope_type": "yarn", "factor": 40.0, "mscale": 0.8, "mscale_all_dim": 0.7, "original_max_position_embeddings": 4096}


def test_the_softmax_factor_is_in_the_code_of_the_models_that_have_it() -> None:
    """DeepSeek's `yarn_apply_mscale`: no other modeling file of a known type has it."""
    for model in sorted(set(LAYOUTS) - ELSEWHERE - LATER):
        code = code_of(AutoConfig.for_model(model))
        applies = getattr(code, "yarn_apply_mscale", None)
        assert (applies is not None) is model_type(model)["rope"].get("softmax", False), model
        if applies is not None:
            softmax = factors({"model_type": model, "rope_parameters": YARN})["softmax"]
            assert softmax > 1
            assert abs(applies(YARN, 1.0) - softmax) <= 8 * 2**-53 * softmax  # a logarithm and a few operations, twice


VISION = ("_vision", "_vision_encoder", "_vision_model", "_vit_model")
# Model types with RoPE that are not known, and why.
UNKNOWN = {
    "positions on several axes: see axial_rope and mixed_rope": (
        "cohere_compass_text dinov3_vit edgetam_video efficientloftr eomt_dinov3 neomme pixtral sam2_video sam3_tracker_video "
        "sapiens2"
    ),
    "two axes turn the lanes of a pair, see mrope_from_config": "hunyuan_vl_text",
    "times turn it, not tokens": "musicflamingo",
    "only the first head is rotated": "qwen2_5_omni_dit",
    "its parts have what turns": "blt",
}


def test_every_model_type_with_rope_is_known_or_left_out_for_a_reason() -> None:
    """With parameters of its own in its configuration class, that is; encoders of images have positions on several axes."""
    without = {name for names in UNKNOWN.values() for name in names.split()}
    found = set()
    for name in CONFIG_MAPPING_NAMES:
        kind = CONFIG_MAPPING[name]
        fields = {field for parent in kind.__mro__ for field in getattr(parent, "__annotations__", {})}
        if fields & {"rope_parameters", "rope_theta"} and not kind.model_type.endswith(VISION):
            found.add(kind.model_type)
    assert found - set(LAYOUTS) - set(mropes()) == without
    assert set(LAYOUTS) - ELSEWHERE - set(CONFIG_MAPPING_NAMES) == LATER
    assert len(found) > 200

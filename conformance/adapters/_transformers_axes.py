"""transformers on several position axes: the rotary modules of its multimodal models and vision encoders."""

from typing import Any

import torch
from torch import Tensor
from transformers.models.ernie4_5_vl_moe import Ernie4_5_VLMoeTextConfig
from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as ernie
from transformers.models.gemma4 import Gemma4VisionConfig
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.glm4v import Glm4vTextConfig
from transformers.models.glm4v import modeling_glm4v as glm4v
from transformers.models.glm4v_moe import Glm4vMoeTextConfig
from transformers.models.glm4v_moe import modeling_glm4v_moe as glm4v_moe
from transformers.models.kimi_k25 import Kimi_K25VisionConfig
from transformers.models.kimi_k25 import modeling_kimi_k25 as kimi
from transformers.models.pixtral import PixtralVisionConfig
from transformers.models.pixtral import modeling_pixtral as pixtral
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen3_5
from transformers.models.sam3.configuration_sam3 import Sam3ViTConfig
from transformers.models.sam3.modeling_sam3 import Sam3ViTRotaryEmbedding
from transformers.models.sam3.modeling_sam3 import apply_rotary_pos_emb_2d as apply_sam3

from posref.scaling import NTKAlpha

from ._shared import hf_parameters, lacks, of_both, queries_and_keys
from ._transformers_modules import Scaling, check_length


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling = None, length: int | None = None,
) -> Tensor:  # fmt: skip
    """The rotary module and the apply function of a model that arranges its axes so; see `AXES`."""
    if (arrangement, layout) not in AXES or len(sections) != 3:
        lacks(f"no model has {len(sections)} axes that are {arrangement!r}, with layout {layout!r}")
    make, kind, model = AXES[arrangement, layout]
    dim, rows = 2 * sum(sections), x.shape[:-1]
    if arrangement == "ernie" and (scaling is not None or dim != x.shape[-1]):
        lacks("ERNIE 4.5-VL refuses scalings, and rotates the whole head")
    if isinstance(scaling, NTKAlpha):
        lacks("an alpha is HunYuan's, whose image positions are no rotation")
    check_length(scaling, positions, length)
    listed = [*sections[1:], sections[0]] if arrangement == "ernie" else list(sections)
    parameters, original = hf_parameters(scaling)
    config = make(
        hidden_size=dim, num_attention_heads=1, max_position_embeddings=original,
        rope_parameters={"rope_theta": base, "partial_rotary_factor": 1.0, "mrope_section": listed, **parameters},
    )  # fmt: skip
    config.head_dim = dim
    where = torch.stack([torch.broadcast_to(axis, rows).reshape(1, -1) for axis in positions])
    tables = kind(config)(x, where)
    return of_both(x, lambda q, k: model.apply_rotary_pos_emb(q, k, *tables))


def axial_rope(
    x: Tensor, positions: Tensor, /, *, dims: list[int], base: float, allocation: str, arrangement: str, layout: str
) -> Tensor:
    """The rotary module and the apply function of a vision encoder that lays out its channels so; see `VISION`."""
    if (allocation, arrangement, layout) not in VISION:
        lacks(f"no vision encoder that is asked here has {allocation!r}, {arrangement!r} and {layout!r}")
    if len(dims) != 2 or dims[0] != dims[1] or sum(dims) != x.shape[-1]:
        lacks("two axes share all channels of a head evenly")
    make, kind, apply = VISION[allocation, arrangement, layout]
    lanes, rows = x.shape[-1], x.shape[:-1]
    where = torch.stack([torch.broadcast_to(axis, rows).reshape(-1) for axis in positions], -1)
    config = make(hidden_size=lanes, num_attention_heads=1, rope_parameters={"rope_type": "axial", "rope_theta": base})
    config.head_dim = lanes
    return apply(kind(config), x, where)


def _qwen2_vl(module: Any, x: Tensor, where: Tensor) -> Tensor:
    q, k, back = queries_and_keys(x)
    return back(*qwen2_vl.apply_rotary_pos_emb_vision(q, k, *module(x, where)))


def _pixtral(module: Any, x: Tensor, where: Tensor) -> Tensor:
    q, k, back = queries_and_keys(x)
    return back(*pixtral.apply_rotary_pos_emb(q, k, *module(x, where)))


def _sam3(module: Any, x: Tensor, where: Tensor) -> Tensor:
    tables = module(x, where)
    return of_both(x, lambda q, k: apply_sam3(q, k, *tables))


def _gemma4(module: Any, x: Tensor, where: Tensor) -> Tensor:
    tokens = x.reshape(1, -1, 1, x.shape[-1])  # queries and keys are two calls
    return gemma4.apply_multidimensional_rope(tokens, *module(x, where[None]), where[None]).reshape(x.shape)


def _kimi(module: Any, x: Tensor, where: Tensor) -> Tensor:
    q, k, back = queries_and_keys(x)
    return back(*kimi.apply_rotary_pos_emb_vision(q, k, *module(x, where.flip(-1))))  # it reverses the axes itself


# allocation, arrangement, layout: a configuration, its rotary module, and the two applied
VISION: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {
    ("own", "chunked", "half"): (Qwen2VLVisionConfig, qwen2_vl.Qwen2VLVisionRotaryEmbedding, _qwen2_vl),
    ("shared", "chunked", "half"): (PixtralVisionConfig, pixtral.PixtralVisionRotaryEmbedding, _pixtral),
    ("own", "chunked", "interleaved"): (Sam3ViTConfig, Sam3ViTRotaryEmbedding, _sam3),
    ("own", "chunked", "half_by_axis"): (Gemma4VisionConfig, gemma4.Gemma4VisionRotaryEmbedding, _gemma4),
    ("own", "round_robin", "half"): (Kimi_K25VisionConfig, kimi.Kimi_K25VisionRotaryEmbedding, _kimi),
}

# arrangement, layout: a configuration, its rotary module, and the model's code
AXES: dict[tuple[str, str], tuple[Any, Any, Any]] = {
    ("chunked", "half"): (Glm4vMoeTextConfig, glm4v_moe.Glm4vMoeTextRotaryEmbedding, glm4v_moe),
    ("chunked", "interleaved"): (Glm4vTextConfig, glm4v.Glm4vTextRotaryEmbedding, glm4v),
    ("interleaved", "half"): (Qwen3_5TextConfig, qwen3_5.Qwen3_5TextRotaryEmbedding, qwen3_5),
    ("ernie", "interleaved"): (Ernie4_5_VLMoeTextConfig, ernie.Ernie4_5_VLMoeTextRotaryEmbedding, ernie),
}

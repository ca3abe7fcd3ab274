"""Axial RoPE of vision encoders: posref.axial_rope and transformers' own modules and apply functions, at their real sizes."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from transformers.models.dinov3_vit import modeling_dinov3_vit as dinov3
from transformers.models.efficientloftr import EfficientLoFTRConfig
from transformers.models.efficientloftr import modeling_efficientloftr as loftr
from transformers.models.lightglue import LightGlueConfig
from transformers.models.lightglue import modeling_lightglue as lightglue
from transformers.models.llama4 import Llama4VisionConfig
from transformers.models.llama4 import modeling_llama4 as llama4
from transformers.models.vjepa2 import modeling_vjepa2 as vjepa2
from transformers.vision_utils import get_vision_position_ids

import posref
from posref import positions
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths

HALF: dict[str, Any] = {"allocation": "own", "arrangement": "chunked", "layout": "half", "base": 10000.0}
PAIRS: dict[str, Any] = {**HALF, "layout": "interleaved"}


def tokens_first(code: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return code.apply_rotary_pos_emb_vision(x[0].transpose(0, 1), x[0].transpose(0, 1), cos, sin)[0].transpose(0, 1)[None]


def heads_first(code: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return code.apply_rotary_pos_emb(x, x, cos[None], sin[None])[0]


def in_pairs(code: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    apply = getattr(code, "apply_rotary_pos_emb_2d", None) or code.apply_rotary_pos_emb_2d_self_attn
    return apply(x, x, cos, sin)[0]


def by_axis(code: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    where = torch.zeros(1, x.shape[-2], 2)  # of which it reads the number of axes
    return code.apply_multidimensional_rope(x.transpose(1, 2), cos, sin, where).transpose(1, 2)


# model: its rotary module, lanes of the head, posref's options, its apply function, what else its positions are
MODELS: dict[str, tuple[str, int, dict[str, Any], Callable[..., torch.Tensor]]] = {
    "qwen2_vl": ("Qwen2VLVisionRotaryEmbedding", 80, {"dims": (40, 40), **HALF}, tokens_first),
    "qwen3_vl": ("Qwen3VLVisionRotaryEmbedding", 72, {"dims": (36, 36), **HALF}, tokens_first),
    "glm4v": ("Glm4vVisionRotaryEmbedding", 128, {"dims": (64, 64), **HALF}, tokens_first),
    "lfm3_vl": ("Lfm3VlVisionRotaryEmbedding", 64, {"dims": (32, 32), **HALF, "base": 1e6}, tokens_first),
    "minimax_m3_vl": ("MiniMaxM3VLVisionRotaryEmbedding", 80, {"dims": (26, 26, 26), **HALF}, tokens_first),
    "kimi_k25": ("Kimi_K25VisionRotaryEmbedding", 72, {"dims": (36, 36), **HALF, "arrangement": "round_robin"}, tokens_first),
    "pixtral": ("PixtralVisionRotaryEmbedding", 64, {"dims": (32, 32), **HALF, "allocation": "shared"}, heads_first),
    "sam3": ("Sam3ViTRotaryEmbedding", 64, {"dims": (32, 32), **PAIRS}, in_pairs),
    "edgetam_video": ("EdgeTamVideoVisionRotaryEmbedding", 256, {"dims": (128, 128), **PAIRS}, in_pairs),
    "gemma4": ("Gemma4VisionRotaryEmbedding", 64, {"dims": (32, 32), **HALF, "layout": "half_by_axis", "base": 100.0}, by_axis),
}
WIDTH_FIRST = ("kimi_k25",)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def assert_the_same(found: torch.Tensor, x: np.ndarray, where: Any, options: dict[str, Any]) -> None:
    """Assert that what transformers gave is the definition within angle32, and the definition on NumPy within float64."""
    inputs = {"x": x.astype(np.float64), "positions": np.asarray(where)}
    true = golden("axial_rope", inputs, options)
    ours = posref.axial_rope(inputs["x"], inputs["positions"], **options)
    for name, values in (("angle32", found.to(torch.float64).numpy()), ("float64", ours)):
        assert np.all(np.abs(values - true["out"]) <= half_widths("axial_rope", inputs, options, name, true)["out"])


@pytest.mark.parametrize("model", MODELS)
def test_vision_encoders_are_those_of_transformers(model: str) -> None:
    """Random vectors at random cells, two heads; the module is built from its configuration's own defaults."""
    name, lanes, options, apply = MODELS[model]
    code = import_module(f"transformers.models.{model}.modeling_{model}")
    kind = getattr(code, name)
    config = get_type_hints(kind.__init__, vars(code))["config"]()
    module = kind(config)
    assert inspect.getsourcefile(kind) == code.__file__
    where = np.random.default_rng(3).integers(0, 64, (len(options["dims"]), 4))
    ids = torch.asarray(where.T.copy())
    cos, sin = module(torch.zeros(1), ids[None] if model == "gemma4" else ids)
    x = random(1, 2, 4, lanes)
    found = apply(code, torch.asarray(x), cos, sin)
    assert_the_same(found, x, where[::-1] if model in WIDTH_FIRST else where, options)


@pytest.mark.parametrize("sizes", [(14, 9), (2, 3)])
def test_dinov3(sizes: tuple[int, int]) -> None:
    """Centres of patches in turns; a class token and four registers stay as they are."""
    config = dinov3.DINOv3ViTConfig()
    module = dinov3.DINOv3ViTRopePositionEmbedding(config).eval()  # in training it moves the grid about
    cos, sin = module(torch.zeros(1, 3, *(n * config.patch_size for n in sizes)))
    some = [0, 1, sizes[1], sizes[0] * sizes[1] - 1]
    x = random(1, 2, 5 + len(some), 64)
    found, _ = dinov3.apply_rotary_pos_emb(torch.asarray(x), torch.asarray(x), cos[some], sin[some])
    where = positions.with_origin(positions.centred(sizes)[:, some], tokens_before=5)
    assert_the_same(found, x, where, {"dims": (32, 32), **HALF, "base": 100.0, "unit": "turns"})


def test_llama_4() -> None:
    """Width first, cells from 1, and the class token last, at 0 on both axes."""
    config = Llama4VisionConfig(hidden_size=1408, num_attention_heads=16)
    cells = config.image_size // config.patch_size
    table = llama4.Llama4VisionRotaryEmbedding(config)(torch.zeros(1))
    where = positions.with_origin(positions.grid(cells, cells)[::-1] + 1, tokens_after=1)
    some = [0, 1, cells, cells**2 - 1, cells**2]
    x = random(1, 2, len(some), 88)
    turned = torch.asarray(x).transpose(1, 2)
    found, _ = llama4.vision_apply_rotary_emb(turned, turned, table[some])
    assert_the_same(found.transpose(1, 2), x, where[:, some], {"dims": (44, 44), **PAIRS})


def test_efficientloftr() -> None:
    """Axes take turns, cells are counted from 1, and all heads are rotated as one of 256 lanes."""
    config = EfficientLoFTRConfig()
    module = loftr.EfficientLoFTRRotaryEmbedding(config)
    step = config.q_aggregation_stride
    cos, sin = module(torch.zeros(1, 1, 3 * step, 2 * step))
    lanes = config.hidden_size
    assert cos.shape == (1, 3, 2, lanes)
    x = random(1, 3, 2, lanes)
    found, _ = loftr.apply_rotary_pos_emb(torch.asarray(x), torch.asarray(x), cos, sin, unsqueeze_dim=0)
    where = positions.grid(3, 2) + 1
    options = {"dims": (lanes // 2, lanes // 2), **PAIRS, "arrangement": "round_robin"}
    assert_the_same(found.reshape(6, lanes), x.reshape(6, lanes), where, options)


def test_lightglue() -> None:
    """A learned projection of key points, which all heads share."""
    module = lightglue.LightGluePositionalEncoder(LightGlueConfig())
    points, x = random(1, 5, 2), random(1, 4, 5, 64)
    cos, sin = module(torch.asarray(points))[0]
    found = lightglue.apply_rotary_pos_emb(torch.asarray(x), torch.asarray(x), cos, sin)[0].detach()
    weight = module.projector.weight
    inputs = {"x": x, "positions": points[0].T, "frequencies": weight.detach().numpy().T}
    inputs = {name: value.astype(np.float64) for name, value in inputs.items()}
    true = golden("mixed_rope", inputs, {"layout": "interleaved"})
    width = half_widths("mixed_rope", inputs, {"layout": "interleaved"}, "angle32", true)["out"]
    assert np.all(np.abs(found.to(torch.float64).numpy() - true["out"]) <= width)


def test_lightglue_gives_a_parameter_the_same_gradient() -> None:
    """
    In float64. Each of 4 x 5 x 2 terms of a frequency's gradient is at most 3 (2 X)^2 2 X P, with X and P the largest of x and
    of the points; it is off by the angle's rounding and some twenty more.
    """
    module = lightglue.LightGluePositionalEncoder(LightGlueConfig()).double()
    points, x = (random(*shape).astype(np.float64) for shape in ((1, 5, 2), (1, 4, 5, 64)))
    weight = module.projector.weight
    frequencies = torch.nn.Parameter(weight.detach().T.clone())
    turned = posref.mixed_rope(torch.asarray(x), torch.asarray(points[0].T.copy()), frequencies, layout="interleaved")
    (turned**3).sum().backward()
    ours, theirs = frequencies.grad, torch.autograd.grad((apply_to(x, module, points) ** 3).sum(), weight)[0].T
    assert ours is not None
    largest, far = np.abs(x).max(), np.abs(points).max()
    angle = 2 * far * float(weight.detach().abs().max())
    assert float((ours - theirs).abs().max()) <= 40 * 24 * largest**3 * far * (angle + 20) * 2.0**-53
    assert float(ours.abs().max()) > 1e-3


def apply_to(x: np.ndarray, module: Any, points: np.ndarray) -> torch.Tensor:
    cos, sin = module(torch.asarray(points))[0]
    return lightglue.apply_rotary_pos_emb(torch.asarray(x), torch.asarray(x), cos, sin)[0]


def test_v_jepa_2_is_no_rotation() -> None:
    """Lanes 2i and 2i + 1 are turned by two different frequencies, so the length of a vector changes."""
    x = torch.zeros(1, 1, 1, 8)
    x[..., 0] = 1.0
    turned = vjepa2.rotate_queries_or_keys(x, torch.tensor([1.5]))[0, 0, 0]
    frequencies = 10000.0 ** (-torch.arange(4) / 4)
    assert torch.allclose(turned[:2], torch.stack([torch.cos(1.5 * frequencies[0]), torch.sin(1.5 * frequencies[1])]))
    assert float(turned.norm()) < 0.2


@pytest.mark.parametrize(("sizes", "merge"), [((1, 4, 6), 2), ((2, 4, 2), 2), ((1, 3, 6), 3), ((1, 2, 5), 1)])
def test_patches_in_blocks_are_those_of_transformers(sizes: tuple[int, int, int], merge: int) -> None:
    for temporal in (False, True):
        theirs = get_vision_position_ids(torch.tensor([sizes]), merge, include_temporal=temporal)
        assert positions.grid(*sizes, merge=merge)[0 if temporal else 1 :].T.tolist() == theirs.tolist()


@pytest.mark.parametrize("sizes", [(14, 9), (1, 2)])
def test_centres_are_those_of_dinov3(sizes: tuple[int, int]) -> None:
    theirs = dinov3.get_patches_center_coordinates(*sizes, dtype=torch.float64, device="cpu")
    assert np.max(np.abs(positions.centred(sizes).T - theirs.numpy())) <= 4 * 2**-53

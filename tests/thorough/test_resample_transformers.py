"""Learned tables as models of transformers resample them are those of resample, within angle32."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_resample import PLAIN, assert_inside
from transformers import (
    BeitConfig,
    Dinov2Config,
    Dinov2WithRegistersConfig,
    DPTConfig,
    SamVisionConfig,
    TvpConfig,
    ViTConfig,
    VivitConfig,
)
from transformers.models.beit.modeling_beit import BeitRelativePositionBias
from transformers.models.dinov2.modeling_dinov2 import Dinov2Embeddings
from transformers.models.dinov2_with_registers.modeling_dinov2_with_registers import Dinov2WithRegistersEmbeddings
from transformers.models.dpt.modeling_dpt import DPTViTEmbeddings
from transformers.models.glm4v.configuration_glm4v import Glm4vVisionConfig
from transformers.models.glm4v.modeling_glm4v import Glm4vVisionEmbeddings
from transformers.models.inkling2.configuration_inkling2 import Inkling2VisionConfig
from transformers.models.inkling2.modeling_inkling2 import Inkling2VisionEmbeddings
from transformers.models.kimi_k25.configuration_kimi_k25 import Kimi_K25VisionConfig
from transformers.models.kimi_k25.modeling_kimi_k25 import Kimi_K25VisionPositionEmbeddings
from transformers.models.muse_spark.configuration_muse_spark import MuseSparkVisionConfig
from transformers.models.muse_spark.modeling_muse_spark import MuseSparkVisionPatchEmbedder
from transformers.models.paddleocr_vl.configuration_paddleocr_vl import PaddleOCRVisionConfig
from transformers.models.paddleocr_vl.modeling_paddleocr_vl import PaddleOCRVisionEmbeddings
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel
from transformers.models.sam.modeling_sam import SamVisionAttention
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings
from transformers.models.tvp.modeling_tvp import TvpVisualInputEmbedding
from transformers.models.unlimited_ocr.configuration_unlimited_ocr import UnlimitedOcrVisionEncoderConfig
from transformers.models.unlimited_ocr.modeling_unlimited_ocr import UnlimitedOcrVisionEmbeddings
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.vivit.modeling_vivit import VivitEmbeddings

from posref.positions import grid

SIDE, PATCH, WIDTH = 7, 4, 2  # of the old grid, in cells; of a cell, in pixels; of a row
NEW = [(5, 9), (7, 3), (12, 6), (1, 2)]
IMAGE: dict[str, Any] = {"image_size": SIDE * PATCH, "patch_size": PATCH, "hidden_size": WIDTH, "num_attention_heads": 1}


def random(*shape: int) -> torch.Tensor:
    return torch.asarray(np.random.default_rng(7).standard_normal(shape), dtype=torch.float32)


def with_class(module: Any, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A module that has interpolate_pos_encoding, and a class token."""
    module.position_embeddings.data = table = random(1, 1 + SIDE * SIDE, WIDTH)
    tokens = torch.zeros(1, 1 + height * width, WIDTH)
    return table[0], module.interpolate_pos_encoding(tokens, height * PATCH, width * PATCH)[0]


def vit(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return with_class(ViTEmbeddings(ViTConfig(**IMAGE)), height, width)


def vivit(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one tubelet in time: of more, the model's sum with the tokens raises."""
    return with_class(VivitEmbeddings(VivitConfig(num_frames=2, tubelet_size=[2, PATCH, PATCH], **IMAGE)), height, width)


def dinov2(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return with_class(Dinov2Embeddings(Dinov2Config(**IMAGE)), height, width)


def dinov2_with_registers(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return with_class(Dinov2WithRegistersEmbeddings(Dinov2WithRegistersConfig(**IMAGE)), height, width)


def dpt(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    table = random(1, 1 + SIDE * SIDE, WIDTH)
    return table[0], DPTViTEmbeddings(DPTConfig(**IMAGE))._resize_pos_embed(table, height, width)[0]


def siglip2(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of two: the second image is one cell, padded with copies of it."""
    table = random(SIDE * SIDE, WIDTH)
    resize = Siglip2VisionEmbeddings.resize_positional_embeddings
    sizes = torch.asarray([[height, width], [1, 1]])
    first, second = resize(table.reshape(SIDE, SIDE, WIDTH), sizes, max_length=height * width)
    assert torch.equal(second, second[:1].expand_as(second))
    return table, first


def qwen3_vl(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What its vision model adds to the patches, put back in the order of rows."""
    config = Qwen3VLVisionConfig(
        depth=1, hidden_size=16, num_heads=2, num_position_embeddings=SIDE * SIDE, deepstack_visual_indexes=[]
    )
    model, seen = Qwen3VLVisionModel(config), []
    model.patch_embed = torch.nn.Identity()
    model.pos_embed.weight.data = table = random(SIDE * SIDE, 16)
    model.rotary_pos_emb.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(torch.zeros(height * width, 16), torch.asarray([[1, height, width]]))
    rows, columns = grid(height, width, merge=2)
    found = torch.empty_like(seen[0])
    found[torch.asarray(rows * width + columns)] = seen[0]
    return table[:, :WIDTH], found.detach()[:, :WIDTH]


def kimi(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    module = Kimi_K25VisionPositionEmbeddings(
        Kimi_K25VisionConfig(pos_emb_height=SIDE, pos_emb_width=SIDE, hidden_size=WIDTH, num_attention_heads=1)
    )
    module.position_embeddings.data = random(SIDE, SIDE, WIDTH)
    found = module(torch.zeros(height * width, WIDTH), torch.asarray([[1, height, width]]))
    return module.position_embeddings.detach().flatten(0, 1), found.detach()


def packed(module: Any, table: torch.Tensor, pixels: tuple[int, ...], thw: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """A module that adds positions to patches, of which there is nothing left."""
    module.patch_embedding.weight.data.zero_()
    if module.patch_embedding.bias is not None:
        module.patch_embedding.bias.data.zero_()
    return table, module(torch.zeros(pixels), torch.asarray([thw])).detach()


def paddleocr(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    module = PaddleOCRVisionEmbeddings(PaddleOCRVisionConfig(**IMAGE))
    module.position_embedding.weight.data = table = random(SIDE * SIDE, WIDTH)
    return packed(module, table, (1, height * width, 3, PATCH, PATCH), [1, height, width])


def muse(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """It takes the new width for the height: so it is told the reverse."""
    config = MuseSparkVisionConfig(pos_emb_height=SIDE, pos_emb_width=SIDE, hidden_size=WIDTH, num_attention_heads=1)
    module = MuseSparkVisionPatchEmbedder(config)
    module.position_embedding_table.weight.data = table = random(SIDE * SIDE, WIDTH)
    return packed(module, table, (height * width, module.patch_embedding.in_features), [1, width, height])


def glm4v(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    module, count = Glm4vVisionEmbeddings(Glm4vVisionConfig(**IMAGE)), height * width
    module.position_embedding.weight.data = table = random(SIDE * SIDE, WIDTH)
    rows, columns = (torch.asarray(axis) for axis in grid(height, width))
    found = module(torch.zeros(count, WIDTH), [count], torch.asarray([[1, height, width]]), rows, columns)
    return table, found.detach()


def unlimited_ocr(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    module = UnlimitedOcrVisionEmbeddings(UnlimitedOcrVisionEncoderConfig(**IMAGE))
    module.position_embedding.weight.data = table = random(1 + SIDE * SIDE, WIDTH)
    module.class_embedding.data.zero_()
    return table, module(torch.zeros(1, WIDTH, height, width)).detach()[0]


def inkling2(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Patches follow a class token."""
    config = Inkling2VisionConfig(
        hidden_size=WIDTH, num_attention_heads=1, patch_size=PATCH, posemb_grid_size=SIDE, spatial_merge_size=1
    )
    module, count = Inkling2VisionEmbeddings(config), height * width
    module.position_embedding.weight.data = table = random(SIDE * SIDE, WIDTH)
    pixels = torch.zeros(count, PATCH, PATCH, config.num_channels)
    found = module(pixels, torch.asarray([[1, height, width]]), torch.arange(1, count + 1))
    return table, found.detach()[1:]


CORNERS = {**PLAIN, "align_corners": True}
SMOOTH = {**PLAIN, "antialias": True}
MODELS: dict[str, tuple[Callable[[int, int], tuple[torch.Tensor, torch.Tensor]], dict[str, Any]]] = {
    "ViT": (vit, {"method": "cubic", **PLAIN, "prefix": 1}),
    "ViViT": (vivit, {"method": "cubic", **PLAIN, "prefix": 1}),
    "DINOv2": (dinov2, {"method": "cubic", **PLAIN, "prefix": 1}),
    "DINOv2 with registers": (dinov2_with_registers, {"method": "cubic", **SMOOTH, "prefix": 1}),
    "DPT": (dpt, {"method": "linear", **PLAIN, "prefix": 1}),
    "SigLIP 2": (siglip2, {"method": "linear", **SMOOTH, "prefix": 0}),
    "Qwen3-VL": (qwen3_vl, {"method": "linear", **CORNERS, "prefix": 0}),
    "Kimi K2.5": (kimi, {"method": "cubic", **PLAIN, "prefix": 0}),
    "PaddleOCR-VL": (paddleocr, {"method": "linear", **PLAIN, "prefix": 0}),
    "Muse Spark": (muse, {"method": "linear", **PLAIN, "prefix": 0, "boundary": "zeros"}),
    "Unlimited OCR": (unlimited_ocr, {"method": "cubic", **SMOOTH, "prefix": 1}),
    "Inkling 2": (inkling2, {"method": "linear", **PLAIN, "prefix": 0}),
    "GLM-4.1V": (glm4v, {"method": "cubic", **PLAIN, "prefix": 0}),
}


@pytest.mark.parametrize("new", NEW, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_transformers_resamples_so(name: str, new: tuple[int, int]) -> None:
    made, options = MODELS[name]
    if name == "Qwen3-VL":
        new = new[0] + new[0] % 2, new[1] + new[1] % 2  # blocks of 2 by 2
    table, found = made(*new)
    values = {"angle32": found.detach().double().numpy()}
    assert_inside(table.detach().double().numpy(), new, {"old_size": (SIDE, SIDE), **options}, values)


@pytest.mark.parametrize("new", [*NEW, (SIDE, SIDE)], ids=str)
def test_tvp_resamples_the_axes_that_grow(new: tuple[int, int]) -> None:
    """Others have the first rows of their table."""
    module = TvpVisualInputEmbedding(
        TvpConfig(hidden_size=WIDTH, max_grid_row_position_embeddings=SIDE, max_grid_col_position_embeddings=SIDE)
    )
    found = module.add_2d_positional_embeddings(torch.zeros(1, *new, WIDTH), interpolate_pos_encoding=True)[0]
    old = tuple(min(cells, SIDE) for cells in new)
    rows, columns = module.row_position_embeddings.weight[: old[0], None], module.col_position_embeddings.weight[: old[1]]
    options = {"old_size": old, "prefix": 0, "method": "cubic", **PLAIN}
    table = (rows + columns).reshape(-1, WIDTH).detach().double().numpy()
    assert_inside(table, new, options, {"angle32": found.reshape(-1, WIDTH).detach().double().numpy()})


@pytest.mark.parametrize("cells", [5, 9])
def test_sam_resamples_relative_tables_so(cells: int) -> None:
    """Of one axis. With as many queries as keys, entry (q, k) is row q - k + cells - 1 of the new table."""
    table = random(13, WIDTH)
    module = SamVisionAttention(SamVisionConfig(hidden_size=8, num_attention_heads=2), window_size=7)
    taken = module.get_rel_pos(cells, cells, table)
    found = torch.cat([taken[0].flip(0), taken[1:, 0]])
    options = {"old_size": (13,), "prefix": 0, "method": "linear", **PLAIN}
    assert_inside(table.double().numpy(), (2 * cells - 1,), options, {"angle32": found.double().numpy()})


@pytest.mark.parametrize("window", [(5, 5), (3, 6)], ids=str)
def test_beit_resamples_relative_tables_so(window: tuple[int, int]) -> None:
    """All but the last three rows, which are those of the class token; the old window is a square."""
    module = BeitRelativePositionBias(BeitConfig(image_size=16, patch_size=4, hidden_size=4, num_attention_heads=WIDTH))
    module.relative_position_bias_table.data = table = random(7 * 7 + 3, WIDTH)
    new = tuple(2 * n - 1 for n in window)
    index = module.generate_relative_position_index(window)
    found = torch.full((new[0] * new[1] + 3, WIDTH), torch.nan)
    found[index.flatten()] = module(window)[0].detach().movedim(0, -1).reshape(-1, WIDTH)
    assert torch.equal(found[-3:], table[-3:])
    options = {"old_size": (7, 7), "prefix": 0, "method": "linear", **PLAIN}
    assert_inside(table[:-3].double().numpy(), new, options, {"angle32": found[:-3].double().numpy()})

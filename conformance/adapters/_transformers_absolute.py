"""transformers on absolute positions: learned tables and their resampling, sines of images, convolutions."""

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import embedding
from torch.nn.utils.parametrize import remove_parametrizations
from transformers import ReformerConfig, ViTMAEConfig, ViTMAEModel, Wav2Vec2Config
from transformers.models.deformable_detr.modeling_deformable_detr import DeformableDetrSinePositionEmbedding
from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding
from transformers.models.dinov2_with_registers.modeling_dinov2_with_registers import Dinov2WithRegistersEmbeddings
from transformers.models.dpt.modeling_dpt import DPTViTEmbeddings
from transformers.models.layoutlmv2.modeling_layoutlmv2 import LayoutLMv2Embeddings
from transformers.models.layoutlmv3.modeling_layoutlmv3 import LayoutLMv3TextEmbeddings
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.reformer.modeling_reformer import AxialPositionEmbeddings
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings
from transformers.models.segformer.modeling_segformer import SegformerDepthWiseConv
from transformers.models.vit.modeling_vit import ViTEmbeddings
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2PositionalConvEmbedding

from ._shared import from_grid, lacks

LAYOUTLM = 1024  # rows of LayoutLMv3's tables

supports: dict[str, dict[str, Any]] = {
    "learned": {"offset": [2], "clip": [False], "negative": False},
    "axial_learned": {"combine": ["concat"], "empty": False},
    "layout_2d": {"combine": ["concat"]},
    "resample": {
        "axes": [2],
        "unequal_old_size": False,
        "prefix": [1],
        "align_corners": [False],
        "interpolate_offset": ["default"],
        "boundary": ["border"],
        "empty": False,
        "not": [{"method": "linear", "antialias": True}],
    },
    "sinusoidal_nd": {
        "axes": [2],
        "unequal": False,
        "layout": ["sin_cos"],
        "arrangement": ["axis"],
        "base": ["default"],
        "endpoint": [False],
        "numbers": ["integers"],
        "negative": False,
        "empty": False,
    },
    "positions_from_tokens": {},
    "conv_positions": {"empty": False},
    "peg": {"residual": [False], "taps": [3], "empty": False},
    "sine_2d": {"eps": ["default"], "empty": False, "not": [{"normalize": False, "centered": True}]},
}


def learned(positions: Tensor, table: Tensor, /, *, offset: int = 0, clip: bool = False) -> Tensor:
    """OPTLearnedPositionalEmbedding with the position ids of the call: its rows begin at 2."""
    if offset != 2 or clip:
        lacks("OPT's table has 2 rows before position 0, and no clipping")
    module = OPTLearnedPositionalEmbedding(table.shape[0] - 2, table.shape[1])
    return functional_call(module, {"weight": table}, (None,), {"position_ids": positions})


def axial_learned(positions: Tensor, first: Tensor, second: Tensor, /, *, combine: str) -> Tensor:
    """Reformer's AxialPositionEmbeddings of one sequence, whose ids count row after row."""
    if combine != "concat" or not positions[0].numel():
        lacks("Reformer joins two tables, of a position at least")
    shape, widths = (first.shape[0], second.shape[0]), (first.shape[1], second.shape[1])
    config = ReformerConfig(axial_pos_shape=shape, axial_pos_embds_dim=widths, hidden_size=sum(widths), hidden_dropout_prob=0.0)
    module = AxialPositionEmbeddings(config).eval()
    weights = {"weights.0": first[:, None], "weights.1": second[None]}
    ids, where = torch.unique(positions[0] * shape[1] + positions[1], return_inverse=True)
    return functional_call(module, weights, (ids[None],))[0][where]


def layout_2d(
    boxes: Tensor, x_table: Tensor, y_table: Tensor, h_table: Tensor, w_table: Tensor, /, *, combine: str, clip_sizes: bool
) -> Tensor:
    """The functions of LayoutLMv2, and with clipped sizes LayoutLMv3, whose tables have 1024 rows: the last one again."""
    if combine != "concat":
        lacks("LayoutLM adds these rows to others within its forward")
    tables = {"x": x_table, "y": y_table, "h": h_table, "w": w_table}
    if clip_sizes:
        tables = {name: torch.cat([held, held[-1:].expand(LAYOUTLM - len(held), -1)]) for name, held in tables.items()}
    rows = {f"{name}_position_embeddings": lambda ids, held=held: embedding(ids, held) for name, held in tables.items()}
    module, flat = SimpleNamespace(**rows), boxes.reshape(1, -1, 4)
    if clip_sizes:
        embeddings = LayoutLMv3TextEmbeddings.calculate_spatial_position_embeddings(module, flat)
    else:
        embeddings = LayoutLMv2Embeddings._calc_spatial_position_embeddings(module, flat)
    return embeddings.reshape(*boxes.shape[:-1], embeddings.shape[-1])


def resample(
    table: Tensor, size: list[int], /, *, old_size: list[int], prefix: int, method: str, align_corners: bool, antialias: bool,
    interpolate_offset: float | None = None, boundary: str = "border",
) -> Tensor:  # fmt: skip
    """The methods of ViT (cubic), DINOv2 with registers (cubic with antialias) and DPT (linear), of a square table."""
    if len(size) != 2 or old_size[0] != old_size[1] or prefix != 1 or not table.numel():
        lacks("a square grid of two axes, after the row of a class token")
    if align_corners or interpolate_offset is not None or boundary != "border" or (method == "linear" and antialias):
        lacks("no aligned corners, no offset, no zeros beyond the border, and no linear interpolation with antialias")
    if method == "linear":
        return DPTViTEmbeddings._resize_pos_embed(None, table[None], *size)[0]
    rows, columns = size
    kind, patches = Dinov2WithRegistersEmbeddings if antialias else ViTEmbeddings, SimpleNamespace(patch_size=(1, 1))
    model = SimpleNamespace(position_embeddings=table[None], patch_size=1, patch_embeddings=patches)
    tokens = table.new_zeros((1, 1 + rows * columns, table.shape[1]))
    return kind.interpolate_pos_encoding(model, tokens, rows, columns)[0]


def conv_positions(x: Tensor, weight: Tensor, bias: Tensor, /, *, groups: int) -> Tensor:
    """Wav2Vec2PositionalConvEmbedding, its weight given, without its activation."""
    channels, _, taps = weight.shape
    config = Wav2Vec2Config(hidden_size=channels, num_conv_pos_embeddings=taps, num_conv_pos_embedding_groups=groups)
    module = Wav2Vec2PositionalConvEmbedding(config)
    remove_parametrizations(module.conv, "weight")
    module.activation = torch.nn.Identity()
    flat = x.reshape(-1, *x.shape[-2:])
    return functional_call(module, {"conv.weight": weight, "conv.bias": bias}, (flat,)).reshape(x.shape)


def peg(x: Tensor, weight: Tensor, bias: Tensor, /, *, residual: bool) -> Tensor:
    """SegformerDepthWiseConv."""
    if residual or weight.shape[-1] != 3:
        lacks("SegFormer has 3 by 3 taps, and does not add x")
    rows, columns, channels = x.shape[-3:]
    flat = x.reshape(-1, rows * columns, channels)
    weights = {"dwconv.weight": weight, "dwconv.bias": bias}
    return functional_call(SegformerDepthWiseConv(channels), weights, (flat, rows, columns)).reshape(x.shape)


def sine_2d(
    mask: Tensor, dim: int, /, *, normalize: bool, centered: bool, base: float = 1e4, scale: float = 2 * torch.pi,
    eps: float = 1e-6, dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """The sine modules of DETR, and centred of Deformable DETR."""
    if eps != 1e-6:
        lacks("eps is 1e-6")
    if centered and not normalize:
        lacks("Deformable DETR moves to the centre what it normalises")
    kind = DeformableDetrSinePositionEmbedding if centered else DetrSinePositionEmbedding
    module = kind(dim // 2, temperature=base, normalize=normalize, scale=scale if normalize else None)
    flat = mask.reshape(-1, *mask.shape[-2:])
    shape = torch.Size((flat.shape[0], 3, *flat.shape[-2:]))
    features = module(shape, mask.device, dtype or torch.get_default_dtype(), flat)
    return features.permute(0, 2, 3, 1).reshape(*mask.shape, dim)


def sinusoidal_nd(
    positions: Tensor, /, *, dims: list[int], layout: str, arrangement: str, base: float = 1e4, endpoint: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """The table of a ViTMAEModel that is made from a configuration of the smallest square grid; columns come first."""
    if len(dims) != 2 or dims[0] != dims[1] or (layout, arrangement) != ("sin_cos", "axis") or base != 1e4 or endpoint:
        lacks("two axes that share evenly, sines before cosines on each, base 10000, no endpoint")
    width = sum(dims)

    def table(rows: int, columns: int) -> Tensor:
        config = ViTMAEConfig(
            hidden_size=width, num_hidden_layers=0, num_attention_heads=1, image_size=(rows, columns), patch_size=1
        )
        return ViTMAEModel(config).embeddings.position_embeddings.detach()[0, 1:]

    return from_grid(table, positions.flip(0), width, square=True).to(dtype or torch.get_default_dtype())


def positions_from_tokens(tokens: Tensor, /, *, padding_idx: int) -> Tensor:
    """RobertaEmbeddings.create_position_ids_from_input_ids."""
    flat = tokens.reshape(math.prod(tokens.shape[:-1]), tokens.shape[-1])
    return RobertaEmbeddings.create_position_ids_from_input_ids(flat, padding_idx).reshape(tokens.shape)

"""What `from_config` says of relative encodings is what the models of transformers build: sizes, windows, shifts and terms."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    DebertaConfig,
    DebertaV2Config,
    LevitConfig,
    LevitModel,
    SamVisionConfig,
    SamVisionModel,
    SegGptConfig,
    SegGptModel,
    Swin2SRConfig,
    Swin2SRModel,
    SwinModel,
    Swinv2Config,
    Swinv2Model,
    VitDetConfig,
    VitDetModel,
)
from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention as SelfAttentionOfV2
from transformers.models.levit.modeling_levit import LevitAttention, LevitAttentionSubsample

import posref

SMALL = {"embed_dim": 12, "depths": [2, 3], "num_heads": [3, 3]}


def listed(config: Any, component: str, count: int) -> list[Any]:
    """Return the entries of a component, one for each of `count` layers."""
    entries = posref.from_config(config)[component]
    assert len(entries) in (1, count)
    return entries * (count // len(entries))


def modules(model: torch.nn.Module, ends: str) -> list[Any]:
    return [module for module in model.modules() if type(module).__name__.endswith(ends)]


@pytest.mark.parametrize("image", [48, 64, 160])
@pytest.mark.parametrize("pretrained", [0, 6])
@pytest.mark.parametrize("kind", [Swinv2Config, Swin2SRConfig])
def test_swin_v2(kind: type, image: int, pretrained: int) -> None:
    config = kind(image_size=image, patch_size=4 if kind is Swinv2Config else 1, window_size=12, **SMALL)
    if kind is Swinv2Config:
        config.pretrained_window_sizes = [pretrained, pretrained // 2]
    layers = modules((Swinv2Model if kind is Swinv2Config else Swin2SRModel)(config), "Layer")
    biases, masks = (listed(config, name, len(layers)) for name in ("vision attention", "vision mask"))
    for layer, bias, mask in zip(layers, biases, masks, strict=True):
        attention = layer.attention.self
        trained = attention.pretrained_window_size[0] or None
        assert (bias.options["height"], bias.options["width"]) == tuple(attention.window_size)
        assert (bias.options["pretrained_height"], bias.options["pretrained_width"]) == (trained, trained)
        assert mask.options == {"window": layer.window_size, "shift": layer.shift_size}


@pytest.mark.parametrize("image", [28, 32, 36, 60])
@pytest.mark.parametrize("kind", ["swin", "donut-swin", "maskformer-swin"])
def test_swin(kind: str, image: int) -> None:
    """Windows and shifts are those that a forward pass leaves in the layers."""
    config = AutoConfig.for_model(kind, image_size=image, patch_size=4, window_size=4, **SMALL)
    model = SwinModel(config) if kind == "swin" else AutoModel.from_config(config)
    if kind == "donut-swin" and image % 8:
        return  # odd sizes do not pass its merging of patches
    model.eval()(torch.zeros(1, 3, image, image))
    layers = modules(model, "Layer")
    masks, bias = listed(config, "vision mask", len(layers)), posref.from_config(config)["vision attention"][0]
    for layer, mask in zip(layers, masks, strict=True):
        assert mask.options == {"window": layer.window_size, "shift": int(layer.shift_size)}
    tables = [p for name, p in model.named_parameters() if name.endswith("relative_position_bias_table")]
    for table in tables:
        found = posref.window_bias(table.detach(), **bias.options)
        assert found.shape[-1] == bias.options["height"] * bias.options["width"]


@pytest.mark.parametrize("image", [64, (96, 64)])
@pytest.mark.parametrize("kind", ["sam", "vitdet", "seggpt"])
def test_decomposed(kind: str, image: Any) -> None:
    """The tables of a layer have the rows that its entry needs."""
    own: dict[str, Any] = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 3, "patch_size": 16}
    model: torch.nn.Module
    if kind == "sam":
        side = image if isinstance(image, int) else image[0]
        config: Any = SamVisionConfig(**own, image_size=side, window_size=3, global_attn_indexes=[1], output_channels=8)
        model = SamVisionModel(config)
    elif kind == "vitdet":
        config = VitDetConfig(
            **own, image_size=image, window_size=3, window_block_indices=[0, 2], use_relative_position_embeddings=True
        )
        model = VitDetModel(config)
    else:
        config = SegGptConfig(**own, image_size=image, intermediate_hidden_index=1, merge_index=1)
        model = SegGptModel(config)
    tables = {name: [len(p) for n, p in model.named_parameters() if n.endswith(name)] for name in ("rel_pos_h", "rel_pos_w")}
    entries = listed(config, "vision attention", 3)
    assert tables["rel_pos_h"] == [2 * entry.options["k_rows"] - 1 for entry in entries]
    assert tables["rel_pos_w"] == [2 * entry.options["k_columns"] - 1 for entry in entries]


@pytest.mark.parametrize("image", [80, 224])
def test_levit(image: int) -> None:
    config = LevitConfig(
        image_size=image, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[2, 1, 3], key_dim=[8, 8, 8]
    )
    found = posref.from_config(config)["vision"]
    model = LevitModel(config)
    attentions = [m for m in model.modules() if isinstance(m, LevitAttention | LevitAttentionSubsample)]
    for attention, entry in zip(attentions, found, strict=True):
        bias = posref.levit_bias(attention.attention_biases.detach(), **entry.options)
        assert torch.equal(bias, attention.attention_biases[:, attention.attention_bias_idxs].reshape(bias.shape))


@pytest.mark.parametrize("terms", [["c2p"], ["p2c"], ["c2p", "p2c"], "p2c|c2p", [], None])
@pytest.mark.parametrize(("kind", "module"), [(DebertaConfig, DisentangledSelfAttention), (DebertaV2Config, SelfAttentionOfV2)])
@pytest.mark.parametrize("longest", [-1, 40])
def test_deberta(kind: type, module: type, terms: Any, longest: int) -> None:
    config = kind(
        hidden_size=24, num_attention_heads=3, num_hidden_layers=2, relative_attention=True, pos_att_type=terms,
        max_relative_positions=longest, max_position_embeddings=60, position_buckets=8,
    )  # fmt: skip
    entries = posref.from_config(config).get("text attention")
    attention = module(config)
    if not attention.pos_att_type:
        assert entries is None
        return
    assert entries is not None
    options, conventions = entries[0].options, entries[0].conventions
    assert options["max_distance"] == attention.max_relative_positions
    assert options["buckets"] == (attention.position_buckets if kind is DebertaV2Config else None)
    assert set(conventions["terms"].split(" and ")) == set(attention.pos_att_type)
    assert conventions["scale"] == f"1/sqrt({1 + len(attention.pos_att_type)} D)"


@pytest.mark.parametrize("image", [64, (96, 64)])
def test_beit(image: Any) -> None:
    config = AutoConfig.for_model(
        "beit", hidden_size=24, num_attention_heads=3, num_hidden_layers=1, image_size=image, use_relative_position_bias=True
    )
    model = AutoModel.from_config(config)
    bias = modules(model, "RelativePositionBias")[0]
    entry = posref.from_config(config)["vision attention"][0]
    table = torch.randn_like(bias.relative_position_bias_table)
    bias.relative_position_bias_table.data = table
    found = posref.window_bias(table, **entry.options)
    if isinstance(image, int):  # else its table is resized with height and width exchanged
        np.testing.assert_allclose(found, bias(bias.window_size)[0].detach(), atol=1e-6)
    assert found.shape[-1] == bias.window_size[0] * bias.window_size[1] + 1

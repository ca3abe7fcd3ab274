"""What `from_config` says of relative encodings is what the models of transformers build: sizes, windows, shifts and terms."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    ClvpEncoderConfig,
    CpmAntConfig,
    DebertaConfig,
    DebertaV2Config,
    LevitConfig,
    LevitModel,
    LongformerConfig,
    LongformerModel,
    LongT5Config,
    ProphetNetConfig,
    PvtV2Config,
    SamVisionConfig,
    SamVisionModel,
    SegGptConfig,
    SegGptModel,
    SEWConfig,
    Swin2SRConfig,
    Swin2SRModel,
    SwinModel,
    Swinv2Config,
    Swinv2Model,
    UdopConfig,
    VitDetConfig,
    VitDetModel,
)
from transformers.models.clvp.modeling_clvp import ClvpRotaryPositionalEmbedding
from transformers.models.clvp.modeling_clvp import apply_rotary_pos_emb as apply_rotary_of_clvp
from transformers.models.cpmant.modeling_cpmant import CpmAntSegmentPositionEmbedding
from transformers.models.cvt.modeling_cvt import CvtSelfAttentionConvProjection
from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention as SelfAttentionOfV2
from transformers.models.florence2.configuration_florence2 import Florence2VisionConfig
from transformers.models.florence2.modeling_florence2 import Florence2VisionSpatialBlock
from transformers.models.gemma4.configuration_gemma4 import Gemma4AudioConfig
from transformers.models.gemma4.modeling_gemma4 import sliding_window_mask_function as gemma4_window
from transformers.models.glpn.modeling_glpn import GLPNDepthWiseConv
from transformers.models.inkling2.configuration_inkling2 import Inkling2TextConfig
from transformers.models.inkling2.modeling_inkling2 import Inkling2RelativeLogits
from transformers.models.layoutlmv2.modeling_layoutlmv2 import LayoutLMv2Encoder
from transformers.models.layoutlmv3.modeling_layoutlmv3 import LayoutLMv3Encoder
from transformers.models.levit.modeling_levit import LevitAttention, LevitAttentionSubsample
from transformers.models.longt5.modeling_longt5 import LongT5TransientGlobalAttention, _mask_local_attention_mask
from transformers.models.moonshine_streaming.configuration_moonshine_streaming import MoonshineStreamingEncoderConfig
from transformers.models.moonshine_streaming.modeling_moonshine_streaming import (
    sliding_window_mask_function as moonshine_window,
)
from transformers.models.phi4_multimodal.configuration_phi4_multimodal import Phi4MultimodalAudioConfig
from transformers.models.phi4_multimodal.modeling_phi4_multimodal import Phi4MultimodalAudioRelativeAttentionBias
from transformers.models.prophetnet.modeling_prophetnet import ProphetNetNgramSelfAttention, compute_all_stream_relative_buckets
from transformers.models.pvt_v2.modeling_pvt_v2 import PvtV2DepthWiseConv
from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniDiTConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniDiTRotaryEmbedding, deinterleave_head_dim
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import apply_rotary_pos_emb as apply_rotary_of_omni
from transformers.models.segformer.modeling_segformer import SegformerDepthWiseConv
from transformers.models.sew.modeling_sew import SEWPositionalConvEmbedding
from transformers.models.udop.modeling_udop import UdopCellEmbeddings, create_relative_bias

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
    options, conventions = entries[0].options, entries[0].conventions
    assert options["max_distance"] == attention.max_relative_positions
    assert options["num_buckets"] == (attention.position_buckets if kind is DebertaV2Config else None)
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


def given(file: Any, component: str) -> Any:
    """Return the one entry of a component whose layers are alike."""
    (entry,) = posref.from_config(file if isinstance(file, dict) else file.to_dict())[component]
    return entry


def assert_near(found: Any, expected: Any, bound: float = 1e-6) -> None:
    found, expected = (np.asarray(x.detach() if hasattr(x, "detach") else x, dtype=np.float64) for x in (found, expected))
    assert found.shape == expected.shape
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(found, expected, atol=bound, rtol=0)


@pytest.mark.parametrize("kind", ["layoutlmv2", "layoutlmv3"])
def test_boxes_of_layoutlm(kind: str) -> None:
    """Three tables: of tokens, of left edges, and of lower edges."""
    torch.manual_seed(0)
    sizes = {"rel_pos_bins": 16, "max_rel_pos": 40, "rel_2d_pos_bins": 24, "max_rel_2d_pos": 90}
    config = CONFIG_MAPPING[kind](num_hidden_layers=1, hidden_size=24, num_attention_heads=3, **sizes)
    encoder = (LayoutLMv2Encoder if kind == "layoutlmv2" else LayoutLMv3Encoder)(config)
    places, boxes = torch.randint(300, (2, 30)), torch.randint(1000, (2, 30, 4))
    if kind == "layoutlmv2":
        tokens, edges = encoder._calculate_1d_position_embeddings(places), encoder._calculate_2d_position_embeddings(boxes)
    else:
        tokens, edges = encoder._cal_1d_pos_emb(places), encoder._cal_2d_pos_emb(boxes)
    x, y, options = boxes[..., 0], boxes[..., 3], {n: given(config, f"text {n}").options for n in PLACES}
    assert_near(posref.t5_bias(places, places, encoder.rel_pos_bias.weight.T, **options["attention"]), tokens)
    across = posref.t5_bias(x, x, encoder.rel_pos_x_bias.weight.T, **options["horizontal"])
    down = posref.t5_bias(y, y, encoder.rel_pos_y_bias.weight.T, **options["vertical"])
    assert_near(across + down, edges)
    assert ("scale" in given(config, "text vertical").conventions) == (kind == "layoutlmv3")
    found = posref.from_config({**config.to_dict(), "has_spatial_attention_bias": False})
    assert "text attention" in found
    assert not {"text horizontal", "text vertical"} & found.keys()


PLACES = ("attention", "horizontal", "vertical")
OWN = [{"type": "vertical", "scaling_factor": 40, "max_distance": 30, "relative_attention_num_buckets": 16}, {"type": "1d"}]


@pytest.mark.parametrize("own", [None, OWN])
def test_boxes_of_udop(own: Any) -> None:
    torch.manual_seed(1)
    config = UdopConfig(d_model=24, num_heads=3, num_layers=1, relative_bias_args=own)
    boxes, mask, found = torch.rand(2, 20, 4), torch.ones(2, 20), posref.from_config(config.to_dict())
    for module in create_relative_bias(config):
        name = type(module).__name__.removeprefix("RelativePositionBias")
        table = torch.randn_like(module.relative_attention_bias.weight)
        module.relative_attention_bias.weight.data = table
        (entry,) = found.pop("encoder" if name == "1D" else f"encoder {name.lower()}")
        assert entry.options is not None
        if name == "1D":
            ours: Any = posref.t5_bias(torch.arange(20), torch.arange(20), table, **entry.options)[None]
        else:
            middle = boxes[..., [0, 2] if name == "Horizontal" else [1, 3]].mean(-1)
            scale = float(entry.conventions["relative_positions"].split(" times ")[1].split(",")[0])
            apart = ((middle[:, None] - middle[:, :, None]) * scale).long()
            ours = table[posref.t5_buckets(apart, **entry.options)].movedim(-1, 1)
        assert_near(ours, module(mask, boxes))
    assert not {"encoder", "encoder horizontal", "encoder vertical"} & found.keys()
    cells = UdopCellEmbeddings(30, 24)
    rows = (boxes * 29).long().movedim(-1, 0)
    tables = cells.x_position_embeddings.weight, cells.y_position_embeddings.weight
    options = given(config, "encoder boxes").options
    assert_near(sum(posref.axial_learned(corner, *tables, **options) for corner in (rows[:2], rows[2:])), cells(boxes))


def test_segments_of_cpmant() -> None:
    torch.manual_seed(2)
    config = CpmAntConfig(num_attention_heads=3, position_bias_num_buckets=16, position_bias_max_distance=50, segment_types=4)
    module = CpmAntSegmentPositionEmbedding(config)
    torch.nn.init.normal_(module.relative_attention_bias)
    places, segments, table = torch.arange(70)[None], torch.randint(4, (1, 70)), module.relative_attention_bias
    inside = posref.t5_bias(torch.arange(70), torch.arange(70), table[:16], **given(config, "text").options)
    q, k = segments[0][:, None], segments[0]
    across = table[16 + q * 4 + k].movedim(-1, 0)
    assert_near(torch.where(q == k, inside, across)[None], module(places, places, segments, segments))


def test_streams_of_prophetnet() -> None:
    torch.manual_seed(3)
    config = ProphetNetConfig(hidden_size=24, num_decoder_attention_heads=3, num_buckets=12, relative_max_distance=25)
    module, places = ProphetNetNgramSelfAttention(config), torch.arange(40)[None] + 1
    options = given(config, "decoder attention").options
    main, ahead = compute_all_stream_relative_buckets(config.num_buckets, config.relative_max_distance, places)
    apart = places[:, None] - places[:, :, None]
    ours = posref.t5_buckets(apart, **options)
    assert_near(ours, main)
    assert_near(posref.t5_buckets(torch.cat([apart - 1, apart], -1), **options), ahead)
    x = torch.randn(1, 40, 24)
    bias = module.get_main_relative_pos_embeddings(x, torch.zeros(1, 3, 40, 40), places, main)
    told = module.relative_pos_embeddings(x).view(40, 12, 3)
    assert_near(told[torch.arange(40)[:, None], ours[0]].movedim(-1, 0)[None], bias)


def test_blocks_of_longt5() -> None:
    """Tokens to the sums of blocks; 3 tokens of 43 fill no block and belong to the last. And which keys are near."""
    torch.manual_seed(4)
    config = LongT5Config(
        d_model=24, num_heads=3, d_kv=8, encoder_attention_type="transient-global", global_block_size=4, local_radius=5,
        relative_attention_num_buckets=8, relative_attention_max_distance=20,
    )  # fmt: skip
    module = LongT5TransientGlobalAttention(config, has_relative_attention_bias=True)
    mask = torch.ones(1, 43)
    blocks, segments = torch.arange(43).div(4, rounding_mode="floor").clamp(max=9), torch.arange(10)
    table = module.global_relative_attention_bias.weight
    bias = posref.t5_bias(blocks, segments, table, **given(config, "encoder global").options)
    assert_near(bias[None], module.compute_side_bias(mask, torch.ones(1, 10)), 1e-5)
    near = _mask_local_attention_mask(torch.ones(1, 1, 6, 18), 6)[0, 0]  # queries of the middle block, keys of three
    window = posref.sliding_window(torch.arange(6, 12), torch.arange(18), **given(config, "encoder mask").options)
    assert torch.equal(window, near)


@pytest.mark.parametrize("symmetric", [False, True])
def test_clipped_distances_of_phi_4_multimodal(symmetric: bool) -> None:
    torch.manual_seed(5)
    config = Phi4MultimodalAudioConfig(num_attention_heads=3, bias_max_distance=6, bias_symmetric=symmetric)
    module, tokens = Phi4MultimodalAudioRelativeAttentionBias(config), 6 if symmetric else 20
    options, weight = given(config, "audio").options, module.bias_values.weight
    table = weight[torch.arange(-options["left"], options["right"] + 1).abs()] if symmetric else weight
    zeros, places = torch.zeros(3, tokens, 3), torch.arange(tokens)
    ours = posref.shaw_scores(torch.eye(3)[:, None].expand(3, tokens, 3), zeros, table, places, places, **options)
    assert_near(ours[None], module(torch.zeros(1, tokens, 3)))


def test_relative_logits_of_inkling_2() -> None:
    torch.manual_seed(6)
    config = Inkling2TextConfig(num_hidden_layers=6, rel_extent=9, sliding_window_size=4)
    found = listed(config, "text", 6)
    assert [entry.options["right"] + 1 for entry in found] == [4, 4, 4, 4, 4, 9]
    module, x = Inkling2RelativeLogits(8, 9), torch.randn(2, 20, 3, 8)
    torch.nn.init.normal_(module.proj)
    places, q = torch.arange(20), x.movedim(2, 1)
    ours = posref.shaw_scores(q, torch.zeros_like(q), module.proj.T, places, places, **found[5].options)
    assert_near(ours, module(x, places, places), 1e-5)


@pytest.mark.parametrize(("left", "right"), [(13, 0), (5, 1), (4, 3), (1, 4)])
def test_windows_with_two_reaches(left: int, right: int) -> None:
    """Gemma 4's and Moonshine's: the keys are fewer than so many back, and fewer than so many ahead."""
    q, k = torch.arange(30)[:, None], torch.arange(30)
    audio = Gemma4AudioConfig(attention_context_left=left, attention_context_right=right)
    windows = [[left, right], [16, 4], [left, 0]]
    layers = MoonshineStreamingEncoderConfig(num_hidden_layers=3, sliding_windows=windows)
    cases = [(gemma4_window, (left - 1, right), given(audio, "audio mask"))]
    cases += [
        (moonshine_window, tuple(window), entry) for window, entry in zip(windows, listed(layers, "audio mask", 3), strict=True)
    ]
    for function, window, entry in cases:
        ahead = int(entry.conventions.get("q_positions", "plus 0,").split()[1].rstrip(","))
        ours = posref.sliding_window(torch.arange(30) + ahead, torch.arange(30), **entry.options)
        assert torch.equal(ours, function(window)(0, 0, q, k))


@pytest.mark.parametrize("window", [8, [4, 8]])
def test_windows_of_longformer(window: Any) -> None:
    """Which tokens change when one does, after one layer, is the window."""
    torch.manual_seed(7)
    sizes: dict[str, Any] = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 32, "vocab_size": 50}
    config = LongformerConfig(num_hidden_layers=2, attention_window=window, max_position_embeddings=60, **sizes)
    for entry, layer in zip(listed(config, "text mask", 2), LongformerModel(config).eval().encoder.layer, strict=True):
        x = torch.randn(1, 32, 24)
        mask, none = torch.zeros(1, 32), torch.zeros(1, 32, dtype=torch.bool)

        def run(x: torch.Tensor, layer: Any = layer, mask: Any = mask, none: Any = none) -> torch.Tensor:
            with torch.no_grad():
                return layer(x, mask, is_index_masked=none, is_index_global_attn=none, is_global_attn=False)[0][0]

        before = run(x)
        changes = []
        for token in range(32):
            other = x.clone()
            other[0, token] += 1
            changes.append((run(other) - before).abs().amax(-1) > 1e-5)
        ours = posref.sliding_window(torch.arange(32), torch.arange(32), **entry.options)
        assert torch.equal(torch.stack(changes, 1), ours)


def test_rotation_of_clvp() -> None:
    """It is wider than 32 channels for a wide projection, and rotates values too."""
    torch.manual_seed(8)
    config = ClvpEncoderConfig(hidden_size=192, num_attention_heads=3, projection_dim=240)
    entry = given(config, "encoder")
    q, k, v = torch.randn(3, 2, 3, 9, 64)
    angles = ClvpRotaryPositionalEmbedding(config)(torch.zeros(1, 9, 192))[0]
    wide = angles.shape[-1]
    places = torch.arange(9)
    theirs = apply_rotary_of_clvp(q[..., :wide], k[..., :wide], v[..., :wide], angles.cos(), angles.sin(), places[None])
    for x, rotated in zip((q, k, v), theirs, strict=True):
        assert_near(posref.rope(x, places, **entry.options), torch.cat([rotated, x[..., wide:]], -1), 1e-5)
    assert wide == 40
    assert posref.from_config({**config.to_dict(), "use_rotary_embedding": False})["encoder"] == [None]


def test_rotation_of_the_first_head_of_qwen_2_5_omni() -> None:
    torch.manual_seed(9)
    config = Qwen2_5OmniDiTConfig(rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    places, x = torch.arange(9), torch.randn(1, 1, 9, 64)
    cos, sin = Qwen2_5OmniDiTRotaryEmbedding(config)(x, places[None])
    theirs = apply_rotary_of_omni(deinterleave_head_dim(x), deinterleave_head_dim(x), cos, sin)[0]
    assert_near(posref.rope(x, places, **given(config, "attention").options), theirs, 1e-5)


@pytest.mark.parametrize("kind", ["florence", "segformer", "pvt_v2", "glpn", "cvt"])
def test_depthwise_convolutions(kind: str) -> None:
    torch.manual_seed(10)
    x = torch.randn(1, 6, 5, 4)  # channels, rows, columns
    names = {"florence": ("florence_vision", "vision convolutions")}
    options = given({"model_type": names.get(kind, (kind, "vision"))[0]}, names.get(kind, (kind, "vision"))[1]).options
    if kind == "cvt":
        project = CvtSelfAttentionConvProjection(6, 3, 1, 2).convolution
        theirs, weight, bias = project(x), project.weight, torch.zeros(6)
    elif kind == "florence":
        block = Florence2VisionSpatialBlock(Florence2VisionConfig(embed_dim=[6], num_heads=[1]), 0, 0.0)
        theirs, weight, bias = block.conv1(x) + x, block.conv1.weight, block.conv1.bias
    else:
        module = {
            "segformer": lambda: SegformerDepthWiseConv(6),
            "glpn": lambda: GLPNDepthWiseConv(6),
            "pvt_v2": lambda: PvtV2DepthWiseConv(PvtV2Config(), 6),
        }[kind]()
        theirs = module(x.flatten(2).mT, 5, 4).mT.reshape(x.shape)
        weight, bias = module.dwconv.weight, module.dwconv.bias
    ours = posref.peg(x.movedim(1, -1), weight, bias, **options).movedim(-1, 1)
    assert_near(ours[..., ::2, ::2] if kind == "cvt" else ours, theirs)


@pytest.mark.parametrize("tokens", [12, 14])
def test_strided_convolution_of_sew(tokens: int) -> None:
    torch.manual_seed(11)
    config = SEWConfig(hidden_size=12, num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=3, squeeze_factor=3)
    module = SEWPositionalConvEmbedding(config)
    x = torch.randn(1, tokens, 12)
    theirs = module.padding(module.conv(x.mT)).mT[:, : tokens // 3]
    ours = posref.conv_positions(x, module.conv.weight, module.conv.bias, **given(config, "audio").options)
    assert_near(ours[:, ::3][:, : tokens // 3], theirs)

"""
Encoders of transformers whose position code is replaced by posref's, with the options that `from_config` names.

Weights are random. Hidden states must stay as they were; with one option changed they must not, or the comparison sees nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import (
    DetrConfig,
    DetrModel,
    LayoutLMConfig,
    LayoutLMModel,
    PerceiverConfig,
    PerceiverForImageClassificationFourier,
    ResNetConfig,
    SamConfig,
    SamModel,
    SamVisionConfig,
    ViTMAEConfig,
    ViTMAEModel,
    Wav2Vec2Config,
    Wav2Vec2Model,
)

import posref

SMALL: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
RTOL = 1e-4  # of the largest value: roundings of float32, through norms and layers


class Called(torch.nn.Module):
    """A module that is a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)


def named(config: Any, component: str, operation: str) -> dict[str, Any]:
    """Return the options that `from_config` has for a component, which must be of one operation."""
    [entry] = posref.from_config(config.to_dict())[component]
    assert entry.operation == operation
    assert entry.options is not None
    return dict(entry.options)


def alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() <= RTOL * other.abs().max())


def made(model: Any) -> Any:
    """Return a model whose matrices are large enough for positions to matter."""
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval().requires_grad_(False)


def test_mae() -> None:
    torch.manual_seed(0)
    config = ViTMAEConfig(**SMALL, image_size=32, patch_size=8, mask_ratio=0.25)
    model = made(ViTMAEModel(config))
    model.embeddings.patch_embeddings.projection._is_hf_initialized = False  # or the table is left at zeros (5.23.0)
    model.embeddings.initialize_weights()
    assert model.embeddings.position_embeddings.abs().max() == 1
    pixels, noise = torch.randn(2, 3, 32, 32), torch.rand(2, 16)
    expected = model(pixels, noise=noise).last_hidden_state

    def replaced(**options: Any) -> torch.Tensor:
        cells = posref.positions.grid(4, 4)[::-1].copy()  # columns first
        table = torch.zeros_like(model.embeddings.position_embeddings)  # the class token has zeros
        table[0, 1:] = posref.sinusoidal_nd(torch.as_tensor(cells), dtype=torch.float32, **options)
        model.embeddings.position_embeddings.data = table
        return model(pixels, noise=noise).last_hidden_state

    options = named(config, "vision", "sinusoidal_nd")
    assert alike(replaced(**options), expected)
    assert not alike(replaced(**{**options, "layout": "interleaved"}), expected)


def test_detr() -> None:
    torch.manual_seed(0)
    resnet = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 16], depths=[1, 1, 1, 1], out_features=["stage4"])
    config = DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=resnet, d_model=24,
        num_queries=5,
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32,
    )  # fmt: skip
    model = made(DetrModel(config))
    pixels, mask = torch.randn(2, 3, 128, 192), torch.ones(2, 128, 192, dtype=torch.long)
    mask[1, 90:], mask[1, :, 120:] = 0, 0  # the second image is smaller
    expected = model(pixels, pixel_mask=mask).last_hidden_state
    [place] = [name for name, module in model.named_modules() if type(module).__name__ == "DetrSinePositionEmbedding"]
    owner = model.get_submodule(place.rpartition(".")[0])

    def replaced(**options: Any) -> torch.Tensor:
        def sines(shape: Any = None, device: Any = None, dtype: Any = None, mask: Any = None, **_: Any) -> torch.Tensor:
            rest = {name: value for name, value in options.items() if name != "dim"}
            table = posref.sine_2d(mask.bool(), options["dim"], dtype=torch.float32, **rest)
            return table.flatten(1, 2) if flat else table.movedim(-1, 1)

        setattr(owner, place.rpartition(".")[2], Called(sines))
        return model(pixels, pixel_mask=mask).last_hidden_state

    seen: list[torch.Tensor] = []
    module = model.get_submodule(place)
    hook = module.register_forward_hook(lambda _, __, out: seen.append(out))
    model(pixels, pixel_mask=mask)
    hook.remove()
    flat = seen[0].ndim == 3
    options = named(config, "vision", "sine_2d")
    assert alike(replaced(**options), expected)
    assert not alike(replaced(**{**options, "normalize": False}), expected)


def test_sam() -> None:
    torch.manual_seed(0)
    vision = SamVisionConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=64, patch_size=8, output_channels=16, mlp_dim=32,
        window_size=3, global_attn_indexes=[1], num_pos_feats=8,
    )  # fmt: skip
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 32, "iou_head_hidden_dim": 16}
    prompts = {"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4}
    config = SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=small)
    model = made(SamModel(config))
    pixels, points = torch.randn(1, 3, 64, 64), torch.tensor([[[[20.0, 31.0], [5.0, 60.0]]]])
    table = torch.randn_like(model.vision_encoder.pos_embed)
    model.vision_encoder.pos_embed.data = table
    expected = model(pixel_values=pixels, input_points=points).pred_masks
    matrix = model.shared_image_embedding.positional_embedding.data.clone()

    def replaced(**options: Any) -> torch.Tensor:
        def projected(coordinates: torch.Tensor, input_shape: Any = None) -> torch.Tensor:
            sizes = torch.ones(2) if input_shape is None else torch.tensor([float(input_shape[1]), float(input_shape[0])])
            return posref.random_fourier(2 * coordinates / sizes - 1, matrix, **options)

        whole = Called(projected)
        whole.positional_embedding = torch.nn.Parameter(matrix, requires_grad=False)
        model.shared_image_embedding = model.prompt_encoder.shared_embedding = whole
        return model(pixel_values=pixels, input_points=points).pred_masks

    options = named(config, "prompt encoder prompt", "random_fourier")
    assert alike(replaced(**options), expected)
    assert not alike(replaced(**{**options, "layout": "cos_sin"}), expected)
    rows = named(config, "vision input", "learned")
    replaced(**options)
    places = torch.arange(64)
    model.vision_encoder.pos_embed.data = posref.learned(places, table.reshape(64, -1), **rows).reshape(table.shape)
    assert alike(model(pixel_values=pixels, input_points=points).pred_masks, expected)


def test_wav2vec2() -> None:
    torch.manual_seed(0)
    config = Wav2Vec2Config(
        **SMALL, num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=2, conv_dim=(16, 16), conv_stride=(2, 2),
        conv_kernel=(3, 3), num_feat_extract_layers=2, mask_time_prob=0.0,
    )  # fmt: skip
    model = made(Wav2Vec2Model(config))
    wave = torch.randn(2, 90)
    expected = model(wave).last_hidden_state
    conv = model.encoder.pos_conv_embed.conv
    g, v = conv.parametrizations.weight.original0, conv.parametrizations.weight.original1

    def replaced(axis: Any = 2, **options: Any) -> torch.Tensor:
        weight = posref.weight_norm(v, g if axis == 2 else g.new_ones(v.shape[0], 1, 1), axis=axis)
        model.encoder.pos_conv_embed = Called(
            lambda x: torch.nn.functional.gelu(posref.conv_positions(x, weight, conv.bias, **options))
        )
        return model(wave).last_hidden_state

    options = named(config, "audio", "conv_positions")
    assert alike(replaced(**options), expected)
    assert not alike(replaced(axis=0, **options), expected)


def test_layoutlm() -> None:
    torch.manual_seed(0)
    config = LayoutLMConfig(**SMALL, vocab_size=50)
    model = made(LayoutLMModel(config))
    for table in model.embeddings.children():
        if isinstance(table, torch.nn.Embedding):
            torch.nn.init.normal_(table.weight)
    tokens = torch.randint(2, 50, (2, 7))
    corner = torch.randint(0, 500, (2, 7, 2))
    boxes = torch.cat((corner, corner + torch.randint(1, 500, (2, 7, 2))), dim=-1)
    expected = model(tokens, bbox=boxes).last_hidden_state
    own = model.embeddings
    tables = [getattr(own, f"{name}_position_embeddings").weight for name in "xyhw"]

    def replaced(order: tuple[int, ...] = (0, 1, 2, 3), **options: Any) -> torch.Tensor:
        def embedded(input_ids: Any = None, bbox: Any = None, **_: Any) -> torch.Tensor:
            rows = posref.learned(torch.arange(7), own.position_embeddings.weight, **named(config, "text", "learned"))
            layout = posref.layout_2d(bbox, *(tables[k] for k in order), **options)
            kinds = own.token_type_embeddings(torch.zeros_like(input_ids))
            return own.LayerNorm(own.word_embeddings(input_ids) + rows + layout + kinds)

        model.embeddings = Called(embedded)
        return model(tokens, bbox=boxes).last_hidden_state

    options = named(config, "text layout", "layout_2d")
    assert alike(replaced(**options), expected)
    assert not alike(replaced(order=(0, 1, 3, 2), **options), expected)


def test_perceiver() -> None:
    """Its configuration does not tell the encoding, which the preprocessor has: `from_config` names both that it may be."""
    torch.manual_seed(0)
    config = PerceiverConfig(num_latents=4, d_latents=32, d_model=24, num_blocks=1, num_self_attends_per_block=1,
                             num_self_attention_heads=2, num_cross_attention_heads=1, num_labels=3, image_size=14)  # fmt: skip
    [entry] = posref.from_config(config.to_dict())["input"]
    assert "fourier" in entry.operation
    model = made(PerceiverForImageClassificationFourier(config))
    pre = model.perceiver.input_preprocessor
    size, bands = pre.position_embeddings.num_bands, pre.position_embeddings.max_resolution
    pixels = torch.randn(1, 3, *bands)
    expected = model(inputs=pixels).logits

    def replaced(order: str) -> torch.Tensor:
        def encoded(index_dims: Any, batch_size: int, device: Any, dtype: Any, **_: Any) -> torch.Tensor:
            axes = [np.linspace(-1.0, 1.0, n) for n in index_dims]
            cells = torch.as_tensor(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes)))
            spaced = np.stack([np.linspace(1.0, n / 2, size) for n in bands])
            one = posref.fourier(cells, spaced, unit="half_turns", arrangement=order, include="first")  # type: ignore[arg-type]
            return one.to(dtype).expand(batch_size, -1, -1)

        pre.position_embeddings.forward = encoded
        return model(inputs=pixels).logits

    assert alike(replaced("wave coordinate band"), expected)
    assert not alike(replaced("coordinate band wave"), expected)

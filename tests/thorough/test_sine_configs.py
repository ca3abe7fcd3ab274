"""What `from_config` says of sinusoids is what the models of transformers compute: boxes, timesteps, bases and widths."""

from math import pi
from typing import Any

import numpy as np
import pytest
import torch
from transformers import CONFIG_MAPPING, DabDetrConfig, LwDetrConfig, RfDetrConfig
from transformers.models.canary.modeling_canary import CanaryPositionalEmbedding
from transformers.models.dab_detr.modeling_dab_detr import DabDetrSinePositionEmbedding
from transformers.models.dab_detr.modeling_dab_detr import encode_sinusoidal_position_embedding as of_dab_detr
from transformers.models.fun_asr_nano.modeling_fun_asr_nano import FunAsrNanoEncoder
from transformers.models.lw_detr.modeling_lw_detr import encode_sinusoidal_position_embedding as of_lw_detr
from transformers.models.omdet_turbo.modeling_omdet_turbo import OmDetTurboHybridEncoder
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import SinusPositionEmbedding
from transformers.models.rf_detr.modeling_rf_detr import encode_sinusoidal_position_embedding as of_rf_detr
from transformers.models.sam3.modeling_sam3 import Sam3SinePositionEmbedding
from transformers.models.vibevoice.modeling_vibevoice import VibeVoiceDiffusionHeadSinusoidalEmbedding

import posref


def given(file: dict[str, Any], component: str) -> tuple[str, dict[str, Any]]:
    """Return the operation and the options of a component, all layers of which are alike."""
    (entry,) = posref.from_config(file)[component]
    assert entry.options is not None
    return entry.operation, dict(entry.options)


def assert_near(found: Any, expected: Any, angle: float) -> None:
    """Compare sinusoids: the models round angles of at most `angle` to float32."""
    assert found.shape == expected.shape
    assert np.ptp(np.asarray(expected)) > 1e-3
    assert np.max(np.abs(np.asarray(found) - np.asarray(expected))) <= 8 * 2.0**-24 * max(angle, 1)


@pytest.mark.parametrize(
    ("kind", "config", "encode"),
    [
        ("dab-detr", DabDetrConfig(hidden_size=48), of_dab_detr),
        ("lw_detr", LwDetrConfig(d_model=48), of_lw_detr),
        ("rf_detr", RfDetrConfig(d_model=48), of_rf_detr),
    ],
)
def test_boxes(kind: str, config: Any, encode: Any) -> None:
    boxes = torch.rand(2, 7, 4, generator=torch.Generator().manual_seed(0))
    operation, options = given(config.to_dict(), "queries")
    assert operation == "sinusoidal_nd"
    x, y, w, h = 2 * pi * boxes.movedim(-1, 0)
    found = posref.sinusoidal_nd(torch.stack([y, x, w, h]), **options)
    assert_near(found, encode(boxes, num_pos_feats=24), 2 * pi)


@pytest.mark.parametrize("lite", ["", "_lite_text"])
def test_boxes_of_sam_3(lite: str) -> None:
    boxes = torch.rand(2, 7, 4, generator=torch.Generator().manual_seed(1))
    module = Sam3SinePositionEmbedding(24)
    x, y, w, h = 2 * pi * boxes.movedim(-1, 0)
    _, options = given({"model_type": f"sam3{lite}_detr_decoder", "hidden_size": 48}, "attention")
    assert_near(posref.sinusoidal_nd(torch.stack([y, x, w, h]), **options), module.encode_boxes(boxes), 2 * pi)
    _, options = given({"model_type": f"sam3{lite}_geometry_encoder", "hidden_size": 48}, "geometry")
    centre = module.encode_1d_positions(boxes[0, :, 0], boxes[0, :, 1])
    assert_near(posref.sinusoidal_nd(torch.stack([y[0], x[0]]), **options), torch.cat(centre[::-1], -1), 2 * pi)
    _, options = given({"model_type": f"sam3{lite}_detr_encoder", "hidden_size": 48}, "attention")
    cells = Sam3SinePositionEmbedding(24, normalize=True)(torch.Size((1, 3, 5, 6)), "cpu", torch.float32)
    found = posref.sine_2d(torch.ones(1, 5, 6, dtype=torch.bool), options.pop("dim"), **options)
    assert_near(found, cells.permute(0, 2, 3, 1), 2 * pi)


@pytest.mark.parametrize(("height", "width", "scale"), [(20, 20, None), (20, 9, None), (300, 50, 4.0)])
def test_a_base_for_each_axis(height: int, width: int, scale: float | None) -> None:
    config = DabDetrConfig(
        hidden_size=16, temperature_height=height, temperature_width=width, sine_position_embedding_scale=scale
    )
    mask = torch.rand(2, 7, 40, generator=torch.Generator().manual_seed(2)) < 0.75
    mask[:, 0, :] = mask[:, :, 0] = True
    (entry,) = posref.from_config(config.to_dict())["vision"]
    options = dict(entry.options or {})
    dim = options.pop("dim")
    rows = posref.sine_2d(mask, dim, **options)
    columns = posref.sine_2d(mask, dim, **{**options, "base": float(width)})
    found = torch.cat([rows[..., : dim // 2], columns[..., dim // 2 :]], -1)
    assert ("channels" in entry.conventions) == (height != width)
    expected = DabDetrSinePositionEmbedding(config)(torch.zeros(2, 3, 7, 40), mask).permute(0, 2, 3, 1)
    assert_near(found, expected, options["scale"] * 40)


def test_timesteps() -> None:
    times = torch.rand(9, generator=torch.Generator().manual_seed(3))
    _, options = given({"model_type": "qwen2_5_omni_dit"}, "timestep")
    assert_near(posref.timestep(times, options.pop("dim"), **options), SinusPositionEmbedding(256)(times), 1000)
    config = CONFIG_MAPPING["vibevoice_diffusion"](frequency_embedding_size=32, diffusion_max_period=500)
    _, options = given({**config.to_dict(), "model_type": "vibevoice_diffusion"}, "timestep")
    found = posref.timestep(900 * times, options.pop("dim"), **options)
    assert_near(found, VibeVoiceDiffusionHeadSinusoidalEmbedding(config)(900 * times), 900)


def test_tables() -> None:
    _, options = given({"model_type": "canary_decoder", "hidden_size": 48}, "decoder")
    found = posref.sinusoidal(torch.arange(60), options.pop("dim"), **options)
    assert_near(found, CanaryPositionalEmbedding(60, 48)(torch.arange(60)), 60)
    config = CONFIG_MAPPING["fun_asr_nano_encoder"](num_mel_bins=6, num_stacked_frames=4, num_hidden_layers=0)
    _, options = given({**config.to_dict(), "model_type": "fun_asr_nano_encoder"}, "audio")
    found = posref.sinusoidal(torch.arange(1, 31), options.pop("dim"), **options)
    assert_near(found, FunAsrNanoEncoder(config).position_embeddings(torch.zeros(1, 30, 24)), 60)


def test_cells_of_omdet_turbo() -> None:
    """Its cells are numbered by columns, but the features they are added to by rows."""
    _, options = given({"model_type": "omdet-turbo", "encoder_hidden_dim": 32}, "vision")
    cells = torch.arange(30)
    found = posref.sinusoidal_nd(torch.stack([cells // 5, cells % 5]), **options)
    table = OmDetTurboHybridEncoder.build_2d_sincos_position_embedding(6, 5, 32)
    assert_near(found[None], table, 30)

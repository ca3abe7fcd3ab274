"""Fourier features and DETR's sines as the models of transformers compute them, in float32: a few units of the angle apart."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GroundingDinoConfig, SamVisionConfig
from transformers.models.deformable_detr.modeling_deformable_detr import DeformableDetrSinePositionEmbedding
from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding
from transformers.models.grounding_dino.modeling_grounding_dino import GroundingDinoSinePositionEmbedding
from transformers.models.mask2former.modeling_mask2former import Mask2FormerSinePositionEmbedding
from transformers.models.perceiver.modeling_perceiver import build_linear_positions, generate_fourier_features
from transformers.models.sam.modeling_sam import SamPositionalEmbedding

import posref

U = 2.0**-24


@pytest.mark.parametrize(("shape", "count"), [((5, 4), 3), ((4, 6, 8), 5), ((7,), 4)])
def test_perceiver(shape: tuple[int, ...], count: int) -> None:
    x = build_linear_positions(shape).reshape(1, -1, len(shape))
    bands = torch.stack([torch.linspace(1, size / 2, count) for size in shape])
    found = posref.fourier(x, bands, unit="half_turns", arrangement="wave coordinate band", include="first")
    expected = generate_fourier_features(x, count, shape)
    assert torch.max(torch.abs(found - expected)) <= 4 * U * np.pi * max(shape) / 2


def test_sam() -> None:
    torch.manual_seed(0)
    module, u = SamPositionalEmbedding(SamVisionConfig(hidden_size=8)), torch.rand(2, 3, 5, 2)
    found = posref.random_fourier(2 * u - 1, module.positional_embedding.detach(), layout="sin_cos")
    largest = 2 * np.pi * 2 * float(torch.max(torch.abs(module.positional_embedding)))
    assert torch.max(torch.abs(found - module(u))) <= 4 * U * largest


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (DetrSinePositionEmbedding, {"normalize": True, "centered": False}),
        (DetrSinePositionEmbedding, {"normalize": False, "centered": False, "base": 500.0}),
        (Mask2FormerSinePositionEmbedding, {"normalize": True, "centered": False, "scale": 3.0}),
        (DeformableDetrSinePositionEmbedding, {"normalize": True, "centered": True}),
    ],
)
def test_sines_of_masked_images(kind: Any, options: dict[str, Any]) -> None:
    mask = torch.rand(2, 7, 40, generator=torch.Generator().manual_seed(0)) < 0.75
    mask[:, 0, :] = mask[:, :, 0] = True
    given = {"scale": options["scale"]} if "scale" in options else {}
    module = kind(16, temperature=options.get("base", 10_000), normalize=options["normalize"], **given)
    expected = module(torch.Size((2, 3, 7, 40)), "cpu", torch.float32, mask).permute(0, 2, 3, 1)
    assert torch.max(torch.abs(posref.sine_2d(mask, 32, **options) - expected)) <= 8 * U * 40


def test_sines_of_grounding_dino() -> None:
    config = GroundingDinoConfig(d_model=32)
    mask = torch.ones(1, 5, 6, dtype=torch.bool)
    mask[0, 4:] = mask[0, :, 5:] = False
    expected = GroundingDinoSinePositionEmbedding(config)(torch.zeros(1, 3, 5, 6), mask).permute(0, 2, 3, 1)
    found = posref.sine_2d(mask, 32, normalize=True, centered=False, base=float(config.positional_embedding_temperature))
    assert torch.max(torch.abs(found - expected)) <= 8 * U * 7

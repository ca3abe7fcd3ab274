"""Fourier features as the models of transformers compute them, in float32: a few units of the largest angle apart."""

import numpy as np
import pytest
import torch
from transformers import SamVisionConfig
from transformers.models.perceiver.modeling_perceiver import build_linear_positions, generate_fourier_features
from transformers.models.sam.modeling_sam import SamPositionalEmbedding

import posref

U = 2.0**-24


@pytest.mark.parametrize(("shape", "count"), [((5, 4), 3), ((4, 6, 8), 5), ((7,), 4)])
def test_perceiver(shape: tuple[int, ...], count: int) -> None:
    x = build_linear_positions(shape).reshape(1, -1, len(shape))
    bands = torch.stack([torch.linspace(1, size / 2, count) for size in shape])
    found = posref.fourier(x, bands, unit="half_turns", order="wave coordinate band", include="first")
    expected = generate_fourier_features(x, count, shape)
    assert torch.max(torch.abs(found - expected)) <= 4 * U * np.pi * max(shape) / 2


def test_sam() -> None:
    torch.manual_seed(0)
    module, u = SamPositionalEmbedding(SamVisionConfig(hidden_size=8)), torch.rand(2, 3, 5, 2)
    found = posref.random_fourier(2 * u - 1, module.positional_embedding.detach(), layout="sin_cos")
    largest = 2 * np.pi * 2 * float(torch.max(torch.abs(module.positional_embedding)))
    assert torch.max(torch.abs(found - module(u))) <= 4 * U * largest

"""Convolutional positions as the models of transformers compute them, with random weights, in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import Data2VecAudioConfig, HubertConfig, Wav2Vec2Config, WavLMConfig
from transformers.models.data2vec.modeling_data2vec_audio import Data2VecAudioPositionalConvLayer
from transformers.models.hubert.modeling_hubert import HubertPositionalConvEmbedding
from transformers.models.segformer.modeling_segformer import SegformerDepthWiseConv
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2PositionalConvEmbedding
from transformers.models.wavlm.modeling_wavlm import WavLMPositionalConvEmbedding

import posref

SIZES = {"hidden_size": 8, "num_attention_heads": 2, "num_conv_pos_embedding_groups": 4}
TERMS = 2 * 19 + 2  # of one sum, at most


def randomised(module: Any) -> Any:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double().eval()


def array(x: torch.Tensor) -> np.ndarray:
    return x.detach().numpy()


def close(found: torch.Tensor, expected: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """Two sums of the same terms, in any order, and an activation of slope at most 1.13, off by a few units."""
    largest = TERMS * float(x.abs().max() * weight.detach().abs().max()) + 4
    np.testing.assert_allclose(array(found), array(expected), rtol=0, atol=3 * (TERMS + 4) * 2.0**-53 * largest)


@pytest.mark.parametrize("taps", [16, 17])
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (Wav2Vec2PositionalConvEmbedding, Wav2Vec2Config),
        (HubertPositionalConvEmbedding, HubertConfig),
        (WavLMPositionalConvEmbedding, WavLMConfig),
    ],
)
def test_wav2vec2_and_its_successors(kind: Any, config: Any, taps: int) -> None:
    module = randomised(kind(config(num_conv_pos_embeddings=taps, **SIZES)))
    x, conv = torch.randn(2, 11, 8, dtype=torch.float64), module.conv
    lengths, directions = conv.parametrizations.weight.original0, conv.parametrizations.weight.original1
    weight = posref.weight_norm(directions.detach(), lengths.detach(), axis=2)
    close(weight, conv.weight, torch.ones(1), weight)
    found = posref.conv_positions(x, weight, conv.bias.detach(), groups=4)
    close(torch.nn.functional.gelu(found), module(x), x, conv.weight)


def test_data2vec() -> None:
    """A layer is a convolution, a norm without parameters, and GELU: here only the convolution."""
    config = Data2VecAudioConfig(conv_pos_kernel_size=19, **SIZES)
    module = randomised(Data2VecAudioPositionalConvLayer(config))
    x, conv = torch.randn(2, 11, 8, dtype=torch.float64), module.conv
    module.layer_norm, module.activation = torch.nn.Identity(), torch.nn.Identity()
    found = posref.conv_positions(x, conv.weight.detach(), conv.bias.detach(), groups=4)
    close(found, module(x.transpose(1, 2)).transpose(1, 2), x, conv.weight)


def test_segformer() -> None:
    """The convolution alone."""
    module = randomised(SegformerDepthWiseConv(4))
    x, conv = torch.randn(2, 3, 5, 4, dtype=torch.float64), module.dwconv
    found = posref.peg(x, conv.weight.detach(), conv.bias.detach(), residual=False)
    close(found, module(x.reshape(2, 15, 4), 3, 5).reshape(x.shape), x, conv.weight)


def test_values_that_transformers_gave() -> None:
    """wav2vec 2.0 in transformers 5.23.0 with these weights, activated and added to x, as printed in float32."""
    v = torch.arange(32, dtype=torch.float64).reshape(4, 2, 4) / 10 - 1
    weight = posref.weight_norm(v, torch.tensor([[[1.0, 2.0, 0.5, 1.5]]], dtype=torch.float64), axis=2)
    x = (torch.arange(12, dtype=torch.float64).reshape(3, 4) - 5) / 5
    found = posref.conv_positions(x, weight, torch.tensor([0.1, -0.1, 0.2, 0.0], dtype=torch.float64), groups=2)
    expected = [
        [0.2191496, -0.0701427, 0.2360344, 0.1556911],
        [0.5333492, 0.0084680, 0.6841232, 0.8381299],
        [0.4503947, -0.0101657, 0.5166149, 0.6426561],
    ]
    np.testing.assert_allclose(array(torch.nn.functional.gelu(found)), expected, rtol=0, atol=1e-6)

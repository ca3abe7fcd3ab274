"""Learned tables as the models of transformers read them, with random weights, bit for bit."""

from typing import Any

import numpy as np
import torch
from transformers import OPTConfig, ReformerConfig, RobertaConfig
from transformers.models.detr.modeling_detr import DetrLearnedPositionEmbedding
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.reformer.modeling_reformer import AxialPositionEmbeddings
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

import posref
from posref.positions import from_mask, from_tokens, grid


def array(x: torch.Tensor) -> np.ndarray:
    return x.detach().numpy()


def randomised(module: torch.nn.Module) -> Any:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.eval()


def test_opt() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    module = randomised(OPTLearnedPositionalEmbedding(7, OPTConfig().hidden_size))
    found = posref.learned(from_mask(mask.numpy(), padding=-1), array(module.weight), offset=2)
    np.testing.assert_array_equal(found, array(module(mask)))


def test_roberta() -> None:
    tokens = torch.tensor([[5, 6, 1, 7, 1], [1, 1, 8, 9, 4]])
    config = RobertaConfig(vocab_size=11, hidden_size=6, num_attention_heads=2, max_position_embeddings=9)
    module = randomised(RobertaEmbeddings(config))
    rows = from_tokens(tokens.numpy(), padding_idx=1)
    expected = module.position_embeddings(RobertaEmbeddings.create_position_ids_from_input_ids(tokens, 1))
    np.testing.assert_array_equal(posref.learned(rows, array(module.position_embeddings.weight)), array(expected))


def test_reformer() -> None:
    """A position is row and column, row after row, whatever the documentation says."""
    config = ReformerConfig(axial_pos_shape=(4, 3), axial_pos_embds_dim=(5, 2), hidden_size=7, attn_layers=["local"])
    module = randomised(AxialPositionEmbeddings(config))
    positions = torch.tensor([[0, 1, 2, 3, 4, 11, 7], [5, 5, 9, 10, 6, 8, 0]])
    first, second = (array(weight).reshape(-1, weight.shape[-1]) for weight in module.weights)
    found = posref.axial_learned(grid(4, 3)[:, positions.numpy()], first, second, combine="concat")
    np.testing.assert_array_equal(found, array(module(positions)))


def test_detr() -> None:
    """Columns come first."""
    module = randomised(DetrLearnedPositionEmbedding(6))
    expected = module((1, 3, 4, 5), "cpu", torch.float32)[0].permute(1, 2, 0)
    rows, columns = grid(4, 5)
    tables = array(module.column_embeddings.weight), array(module.row_embeddings.weight)
    found = posref.axial_learned(np.stack([columns, rows]), *tables, combine="concat")
    np.testing.assert_array_equal(found.reshape(4, 5, 12), array(expected))

"""Learned tables as the models of transformers read them, with random weights: their rows, joined or added."""

from typing import Any

import numpy as np
import torch
from transformers import LayoutLMConfig, LayoutLMv2Config, LayoutLMv3Config, OPTConfig, ReformerConfig, RobertaConfig
from transformers.models.detr.modeling_detr import DetrLearnedPositionEmbedding
from transformers.models.layoutlm.modeling_layoutlm import LayoutLMEmbeddings
from transformers.models.layoutlmv2.modeling_layoutlmv2 import LayoutLMv2Embeddings
from transformers.models.layoutlmv3.modeling_layoutlmv3 import LayoutLMv3TextEmbeddings
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


def boxes(rows: int) -> torch.Tensor:
    """Return two pages of boxes on a page of `rows` lines and columns; of LayoutLMv3 some are backwards."""
    return torch.tensor([[[1, 2, 5, 7], [0, 3, 2, rows - 1], [4, 0, rows - 1, 6]], [[2, 2, 2, 2], [0, 0, 0, 0], [3, 1, 4, 8]]])


def tables_of(module: Any) -> list[np.ndarray]:
    return [array(getattr(module, f"{name}_position_embeddings").weight) for name in "xyhw"]


def test_layoutlm() -> None:
    """The sum without tokens, types and 1-D positions: six numbers below 5, added in float32 in another order."""
    config = LayoutLMConfig(vocab_size=5, hidden_size=6, num_attention_heads=2, max_2d_position_embeddings=12)
    module = randomised(LayoutLMEmbeddings(config))
    bbox = boxes(12)
    module.LayerNorm, module.dropout = torch.nn.Identity(), torch.nn.Identity()
    zeros = torch.zeros(2, 3, 6)
    for other in (module.position_embeddings, module.token_type_embeddings):
        torch.nn.init.zeros_(other.weight)
    expected = module(inputs_embeds=zeros, bbox=bbox)
    found = posref.layout_2d(bbox.numpy(), *tables_of(module), combine="sum", clip_sizes=False)
    np.testing.assert_allclose(found, array(expected), rtol=0, atol=2 * 5 * 2.0**-24 * 6 * 5)


def test_layoutlmv2() -> None:
    sizes = {"hidden_size": 20, "coordinate_size": 4, "shape_size": 2, "num_attention_heads": 2}
    module = randomised(LayoutLMv2Embeddings(LayoutLMv2Config(max_2d_position_embeddings=12, **sizes)))
    bbox = boxes(12)
    found = posref.layout_2d(bbox.numpy(), *tables_of(module), combine="concat", clip_sizes=False)
    np.testing.assert_array_equal(found, array(module._calc_spatial_position_embeddings(bbox)))


def test_layoutlmv3() -> None:
    sizes = {"hidden_size": 20, "coordinate_size": 4, "shape_size": 2, "num_attention_heads": 2}
    module = randomised(LayoutLMv3TextEmbeddings(LayoutLMv3Config(**sizes)))
    bbox = torch.cat([boxes(1024), torch.tensor([[[900, 7, 3, 1000]], [[5, 1023, 5, 0]]])], dim=1)
    found = posref.layout_2d(bbox.numpy(), *tables_of(module), combine="concat", clip_sizes=True)
    np.testing.assert_array_equal(found, array(module.calculate_spatial_position_embeddings(bbox)))

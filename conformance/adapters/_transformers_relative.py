"""Relative positions of transformers: attention modules run, with projections taken out, up to the softmax."""

import functools
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from transformers import ParakeetEncoderConfig, XLNetConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.beit.modeling_beit import BeitRelativePositionBias
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention, make_log_bucket_position
from transformers.models.parakeet.modeling_parakeet import ParakeetEncoderAttention, ParakeetEncoderRelPositionalEncoding
from transformers.models.sam.modeling_sam import SamVisionAttention
from transformers.models.swin.modeling_swin import SwinLayer, SwinRelativePositionBias
from transformers.models.vitdet.modeling_vitdet import get_rel_pos
from transformers.models.vits import VitsConfig
from transformers.models.vits.modeling_vits import VitsAttention
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import _apply_relative_key_position_encoding
from transformers.models.wavlm.modeling_wavlm import WavLMAttention
from transformers.models.xlnet.modeling_xlnet import XLNetModel, XLNetRelativeAttention

from ._shared import lacks

LONGEST = 1 << 20  # distances of a table that is made to look up a few


def relative_shift(x: Tensor, /) -> Tensor:
    """ParakeetEncoderAttention._rel_shift."""
    if not x.numel():
        lacks("its view has a query at least")
    return ParakeetEncoderAttention._rel_shift(None, x.reshape(1, -1, *x.shape[-2:])).reshape(x.shape)


def transformer_xl_scores(
    q: Tensor, k: Tensor, r_weight: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, layout: str, base: float = 1e4,
    endpoint: bool = False, max_distance: int | None = None, bias_u: Tensor | None = None, bias_v: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """XLNetRelativeAttention.rel_attn_core, or ParakeetEncoderAttention.forward, for one query at a time, up to the softmax."""
    if endpoint or base != 10_000.0:
        lacks("only Gemma has other frequencies, inside of a module with distances of its own")
    if layout == "interleaved" and max_distance is not None:
        lacks("Parakeet does not clamp")
    if not q.numel() or not k.numel():
        lacks("its module has a query and a key at least")
    (*lead, heads, queries, lanes), keys, width = q.shape, k.shape[-2], r_weight.shape[0]
    zeros = q.new_zeros(heads, lanes)
    biases = tuple(zeros if b is None else b for b in (bias_u, bias_v))
    of_batch = [torch.broadcast_to(p, (*lead, 1, p.shape[-1])).reshape(-1, p.shape[-1]) for p in (q_positions, k_positions)]
    flat_q, flat_k = q.reshape(-1, heads, queries, lanes), k.reshape(-1, heads, keys, lanes)
    waves, scores = (_xlnet_waves, _xlnet) if layout == "sin_cos" else (_parakeet_waves, _parakeet)
    rows = []
    for row in range(flat_q.shape[0]):
        apart = of_batch[0][row][:, None] - of_batch[1][row]
        table = waves(apart, width, max_distance).to(q.dtype)  # as both models do
        rows.append(
            torch.stack([scores(flat_q[row, :, i], flat_k[row], table[i], r_weight, biases) for i in range(queries)], 1)
        )
    return torch.stack(rows).reshape(*lead, heads, queries, keys)


def shaw_scores(
    q: Tensor, k: Tensor, key_table: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, left: int, right: int, order: str,
    outside: str = "clip", terms: str = "query",
) -> Tensor:  # fmt: skip
    """Wav2Vec2-BERT's relative keys, or VitsAttention.forward up to its softmax, for a query with keys at each distance."""
    if order != "key_minus_query" or terms != "query":
        lacks("key minus query, and no term of the key")
    if outside == "zero":
        left, right, key_table = _one_window(left, right, key_table)
    apart = _near(q, q_positions, k_positions, left, right)
    flat = q.reshape(-1, 1, q.shape[-1])
    tokens = nn.functional.pad(flat, (0, 0, left + 1, right + 1 if outside == "zero" else 0))  # the query is token left + 1
    if outside == "zero":
        by_offset = _vits(tokens, key_table, None, None)[1][:, left + 1]
    else:
        module = SimpleNamespace(
            left_max_position_embeddings=left, right_max_position_embeddings=right, scaling=1.0,
            distance_embedding=lambda rows: nn.functional.embedding(rows, key_table),
        )  # fmt: skip
        keys = q.new_zeros(1, 1, left + right + 3, 1)  # only their number counts
        by_offset = _apply_relative_key_position_encoding(module, tokens[:, None], keys)[1][:, 0, left + 1]
    relative = by_offset.reshape(*q.shape[:-1], -1).gather(-1, apart)
    return q @ k.transpose(-1, -2) + relative


def shaw_values(
    weights: Tensor, v: Tensor, value_table: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, left: int, right: int,
    order: str, outside: str = "clip",
) -> Tensor:  # fmt: skip
    """VitsAttention.forward after its softmax, for a query with keys at each distance."""
    if order != "key_minus_query" or outside != "zero":
        lacks("VITS has key minus query, and zeros outside")
    left, right, value_table = _one_window(left, right, value_table)
    apart = _near(weights, q_positions, k_positions, left, right).reshape(-1, weights.shape[-1])
    size = left + right + 3
    rows = torch.zeros(len(apart), size, dtype=weights.dtype).scatter_add(1, apart, weights.reshape(apart.shape))
    row = torch.arange(size)[:, None] == left + 1  # of the query, among all tokens
    tokens = weights.new_zeros(len(apart), size, v.shape[-1])
    relative = _vits(tokens, None, value_table, rows[:, None] * row)[0][:, left + 1]
    return weights @ v + relative.reshape(*weights.shape[:-1], v.shape[-1])


def _one_window(left: int, right: int, table: Tensor) -> tuple[int, int, Tensor]:
    """Return a window of one size for both sides, as VITS has it, whose further rows are 0."""
    size = max(left, right, 1)
    return size, size, nn.functional.pad(table, (0, 0, size - left, size - right))


def _near(x: Tensor, q_positions: Tensor, k_positions: Tensor, left: int, right: int) -> Tensor:
    """Return the number of each key among tokens from left + 1 before the query to right + 1 after it."""
    if not x.numel():
        lacks("its module has a query and a channel at least")
    apart = torch.clamp(k_positions[..., None, :] - q_positions[..., :, None], -left - 1, right + 1) + left + 1
    return apart.expand(*x.shape[:-1], apart.shape[-1])


def _vits(tokens: Tensor, k_table: Tensor | None, v_table: Tensor | None, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the output and the logits of VitsAttention of one head, with given queries and tables; keys and values are 0."""
    table = next(t for t in (k_table, v_table) if t is not None)
    lanes = tokens.shape[-1]
    attention = _vits_attention(lanes, (table.shape[0] - 1) // 2)
    none = torch.zeros(table.shape, dtype=table.dtype)
    attention.emb_rel_k = (none if k_table is None else k_table)[None]
    attention.emb_rel_v = (none if v_table is None else v_table)[None]
    attention.q_proj.forward = lambda x: tokens
    seen: list[Tensor] = []

    def softmax(logits: Tensor, dim: int) -> Tensor:
        seen.append(logits)
        return torch.zeros_like(logits) if weights is None else weights

    with patch.object(nn.functional, "softmax", softmax):
        out = attention(torch.zeros(tokens.shape, dtype=tokens.dtype))[0]
    return out, seen[0]


@functools.lru_cache(maxsize=64)
def _vits_attention(lanes: int, window: int) -> Any:
    config = VitsConfig(hidden_size=lanes, num_attention_heads=1, window_size=window, attention_dropout=0.0)
    attention = VitsAttention(config).eval()
    attention.scaling = 1.0
    for name in ("emb_rel_k", "emb_rel_v"):
        delattr(attention, name)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        setattr(attention, name, nn.Identity())
    return attention


def decomposed_rows(q_positions: Tensor, k_positions: Tensor, /, *, q_size: int, k_size: int) -> Tensor:
    """ViTDet's get_rel_pos of a table whose vectors are the numbers of their rows."""
    if q_size * k_size > LONGEST:
        lacks(f"a table of {q_size} by {k_size} rows is too large here")
    numbers = torch.arange(2 * max(q_size, k_size) - 1, dtype=torch.float64)[:, None]
    rows = get_rel_pos(q_size, k_size, numbers)[..., 0].to(torch.int64)
    return rows[q_positions[..., :, None], k_positions[..., None, :]]


def decomposed_bias(q: Tensor, table_h: Tensor, table_w: Tensor, /, *, k_rows: int, k_columns: int) -> Tensor:
    """SamVisionAttention.get_decomposed_rel_pos, whose interpolation changes nothing at the right size."""
    if not q.numel():
        lacks("an image has a patch at least")
    *lead, rows, columns, lanes = q.shape
    module = SimpleNamespace(get_rel_pos=functools.partial(SamVisionAttention.get_rel_pos, None))
    out = SamVisionAttention.get_decomposed_rel_pos(
        module, q.reshape(-1, rows * columns, lanes), table_h, table_w, (rows, columns), (k_rows, k_columns)
    )
    return out.reshape(*lead, rows, columns, k_rows, k_columns)


def bias_gate(x: Tensor, weight: Tensor, offset: Tensor, constant: Tensor, /) -> Tensor:
    """WavLMAttention.forward of a bias of ones, up to what it adds to the logits."""
    if not x.numel():
        lacks("its module has a query and a channel at least")
    heads, queries, lanes = x.shape[-3:]
    states = x.reshape(-1, heads, queries, lanes).transpose(1, 2).flatten(-2)
    rows = len(states)
    seen: list[Tensor] = []

    def stopped(hidden_states: Tensor, attention_mask: Any, bias: Tensor) -> tuple[Tensor, None]:
        seen.append(bias)
        return hidden_states, None

    module = SimpleNamespace(
        num_heads=heads, gru_rel_pos_linear=lambda y: nn.functional.linear(y, weight, offset),
        gru_rel_pos_const=constant.reshape(1, heads, 1, 1), torch_multi_head_self_attention=stopped,
    )  # fmt: skip
    WavLMAttention.forward(module, states, position_bias=x.new_ones(rows * heads, queries, queries))
    return seen[0][..., 0].reshape(x.shape[:-1])


def window_bias(table: Tensor, /, *, height: int, width: int, depth: int, order: str, class_token: bool) -> Tensor:
    """SwinRelativePositionBias with this table, or the rows of BeitRelativePositionBias, whose own call resamples the table."""
    if depth != 1 or order != "query_minus_key":
        lacks("windows of images, query minus key")
    if class_token:
        index = BeitRelativePositionBias.generate_relative_position_index((height, width))
        return table[index.view(-1)].view(*index.shape, -1).permute(2, 0, 1).contiguous()
    module = SwinRelativePositionBias(table.shape[1], (height, width))
    del module.relative_position_bias_table
    module.relative_position_bias_table = table  # not a Parameter, so that gradients reach the caller's table
    return module()[0]


def shifted_window_mask(q_positions: Tensor, k_positions: Tensor, /, *, size: int, window: int, shift: int) -> Tensor:
    """SwinLayer.get_attn_mask of an image as wide as a window, whose last axis is not shifted, looked up."""
    q, k = q_positions[..., :, None], k_positions[..., None, :]
    together = q // window == k // window
    if not shift:
        return together
    layer = SimpleNamespace(window_size=window, shift_size=shift)
    mask = SwinLayer.get_attn_mask(layer, size, window, torch.float32, q_positions.device) == 0  # (windows, cells, cells)
    rows = mask.unflatten(2, (window, window)).unflatten(1, (window, window))[:, :, 0, :, 0]  # of the first column
    return together & rows[q // window, q % window, k % window]


def deberta_rows(relative_positions: Tensor, /, *, num_buckets: int | None, max_distance: int) -> Tensor:
    """make_log_bucket_position, clipped as disentangled_attention_bias does."""
    relative, span = relative_positions, max_distance
    if num_buckets is not None:
        relative, span = make_log_bucket_position(relative_positions, num_buckets, max_distance).to(torch.long), num_buckets
    return torch.clamp(relative + span, 0, span * 2 - 1)


def deberta_scores(
    q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, num_buckets: int | None, max_distance: int, p2c: str,
    rel_k: Tensor | None = None, rel_q: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """DebertaV2's disentangled_attention_bias without its scales, for all tokens in one sequence: queries, then keys."""
    if p2c != "code":
        lacks("p2c is that of the code")
    if not q.numel() or not k.numel():
        lacks("its module has a query and a key at least")
    (*lead, heads, queries, lanes), keys = q.shape, k.shape[-2]
    pad = torch.nn.functional.pad
    flat_q, flat_k = q.reshape(-1, heads, queries, lanes), k.reshape(-1, heads, keys, lanes)
    places = [torch.broadcast_to(p, (*lead, 1, p.shape[-1])).reshape(-1, p.shape[-1]) for p in (q_positions, k_positions)]
    module = _deberta_attention(num_buckets, max_distance)
    module.pos_att_type = [name for name, table in (("c2p", rel_k), ("p2c", rel_q)) if table is not None]
    scores = flat_q @ flat_k.transpose(-1, -2)
    if not module.pos_att_type:
        return scores.reshape(*lead, heads, queries, keys)
    present: list[Tensor] = [table for table in (rel_k, rel_q) if table is not None]
    tables = present * (3 - len(present))  # of a term that is left out, another table, which is not read
    biases = []
    for row in range(len(flat_q)):
        apart = torch.cat((places[0][row], places[1][row]))
        apart = apart[:, None] - apart
        if num_buckets is not None:
            apart = make_log_bucket_position(apart, num_buckets, max_distance).to(torch.long)
        tokens_q, tokens_k = pad(flat_q[row], (0, 0, 0, keys)), pad(flat_k[row], (0, 0, queries, 0))
        for h in range(heads):  # one head at a time, whose tables come in place of projections
            module.pos_key_proj = lambda _, h=h: tables[0][h][None]
            module.pos_query_proj = lambda _, h=h: tables[1][h][None]
            bias = DisentangledSelfAttention.disentangled_attention_bias(
                module, tokens_q[h][None], tokens_k[h][None], apart[None], tables[0][h], 1 / lanes
            )
            biases.append(bias[0, :queries, queries:])
    return (scores + torch.stack(biases).reshape(scores.shape)).reshape(*lead, heads, queries, keys)


def _deberta_attention(buckets: int | None, max_distance: int) -> Any:
    """Return what disentangled_attention_bias reads of its module."""
    module = SimpleNamespace(
        pos_ebd_size=buckets or max_distance, share_att_key=False, num_attention_heads=1, position_buckets=buckets or -1,
        max_relative_positions=max_distance,
    )  # fmt: skip
    module.transpose_for_scores = functools.partial(DisentangledSelfAttention.transpose_for_scores, module)
    return module


def _xlnet_waves(apart: Tensor, width: int, clamp: int | None) -> Tensor:
    """XLNetModel.relative_positional_encoding of lengths that have these distances, looked up."""
    longest = _longest(apart)
    model = SimpleNamespace(
        d_model=width,
        attn_type="bi",
        bi_data=False,
        clamp_len=clamp or -1,
        positional_embedding=XLNetModel.positional_embedding,
    )
    table = XLNetModel.relative_positional_encoding(model, longest + 1, longest)[:, 0]  # distances longest to -longest
    return table[longest - apart]


def _parakeet_waves(apart: Tensor, width: int, clamp: int | None) -> Tensor:
    longest = _longest(apart)
    module = ParakeetEncoderRelPositionalEncoding(ParakeetEncoderConfig(hidden_size=width))
    return module(torch.zeros(1, longest + 1, 1))[0][longest - apart]


def _longest(apart: Tensor) -> int:
    longest = int(apart.abs().max())
    if longest >= LONGEST:
        lacks(f"a table of {longest} distances is too large here")
    return longest


def _xlnet(q: Tensor, k: Tensor, waves: Tensor, r_weight: Tensor, biases: tuple[Tensor, Tensor]) -> Tensor:
    """Return the logits of one query without the scale, where XLNet has its softmax."""
    heads, keys, lanes = k.shape
    attention = _xlnet_attention(heads, lanes)
    attention.r_w_bias, attention.r_r_bias = biases
    rows = torch.cat((waves[:1], waves))  # the shift drops the first
    relative = torch.einsum("ih,hnd->ind", rows, r_weight)[:, None]
    with patch.object(nn.functional, "softmax", lambda scores, dim: scores):
        core = attention.rel_attn_core(
            q[None, None], k.transpose(0, 1)[:, None], k.new_zeros(keys, 1, heads, lanes), relative, output_attentions=True
        )
    return core[1][0, :, 0].T


def _parakeet(q: Tensor, k: Tensor, waves: Tensor, r_weight: Tensor, biases: tuple[Tensor, Tensor]) -> Tensor:
    """Return the logits of one query without the scale: the first token, with its keys after it."""
    heads, keys, lanes = k.shape
    attention = _parakeet_attention(heads, lanes)
    attention.bias_u, attention.bias_v = biases
    attention.relative_k_proj.forward = lambda x: x @ r_weight.flatten(1)
    tokens = torch.cat((q[None], k.transpose(0, 1))).reshape(1, keys + 1, heads * lanes)
    table = nn.functional.pad(waves, (0, 0, keys + 1, 0))[None]  # distances of tokens before the first are not read
    return attention(tokens, table)[1][0, :, 0, 1:]


def _stopped(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, *, scaling: float, **options: Any
) -> tuple[Tensor, Tensor]:
    """Return the logits, where a model has its softmax."""
    return value.transpose(1, 2), query @ key.transpose(-1, -2) * scaling + attention_mask


ALL_ATTENTION_FUNCTIONS.register("posref_relative", _stopped)


@functools.lru_cache(maxsize=64)
def _xlnet_attention(heads: int, lanes: int) -> Any:
    attention = XLNetRelativeAttention(XLNetConfig(d_model=heads * lanes, n_head=heads)).eval()
    attention.scale = 1.0
    for name in ("r_w_bias", "r_r_bias"):
        delattr(attention, name)
    return attention


@functools.lru_cache(maxsize=64)
def _parakeet_attention(heads: int, lanes: int) -> Any:
    config = ParakeetEncoderConfig(hidden_size=heads * lanes, num_attention_heads=heads)
    config._attn_implementation = "posref_relative"
    attention = ParakeetEncoderAttention(config, 0).eval()
    attention.scaling = 1.0
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        setattr(attention, name, nn.Identity())
    for name in ("bias_u", "bias_v"):
        delattr(attention, name)
    return attention

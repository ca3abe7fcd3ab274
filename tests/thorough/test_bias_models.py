"""More models of transformers with biases and relative scores: the definition replaces their code, and their output stays."""

from typing import Any

import pytest
import torch
from replacement import assert_replaced, at, code, heads_of, hidden, made, options_of
from torch import Tensor

import posref


def test_bloom_with_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions count the tokens that are there; three heads are no power of two."""
    config, model = made(0, "bloom", vocab_size=50, hidden_size=24, n_head=3, n_layer=2)
    tokens, there = torch.randint(50, (2, 11)), torch.ones(2, 11, dtype=torch.int64)
    there[1, 7:] = 0  # not before the tokens: in float64 the model turns a query without keys into NaN

    def of_mask(mask: Tensor, sign: int = 1) -> Tensor:
        places = sign * torch.as_tensor(posref.positions.from_mask(mask.numpy(), padding=0))
        return posref.alibi(places, places, **options_of(config, "text"))

    def bias(self: Any, mask: Tensor, heads: int, dtype: torch.dtype, *, sign: int) -> Tensor:
        return of_mask(mask, sign).flatten(0, 1).to(dtype)

    def run() -> Tensor:
        return model(tokens, attention_mask=there).last_hidden_state[there == 1]

    theirs = code("bloom").build_alibi_tensor(there.flip(1), 3, torch.float64).unflatten(0, (2, 3))
    torch.testing.assert_close(of_mask(there.flip(1)).double(), theirs, rtol=1e-6, atol=0)
    assert_replaced(monkeypatch, run, (type(model), "build_alibi_tensor", bias))


def test_falcon(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slopes and positions that bfloat16 holds, to which this model rounds their product."""
    config, model = made(
        1, "falcon", vocab_size=50, hidden_size=32, num_attention_heads=4, num_hidden_layers=2, alibi=True, ffn_hidden_size=32,
        attn_implementation="eager",
    )  # fmt: skip
    tokens = torch.randint(50, (2, 11))

    def bias(mask: Tensor, heads: int, dtype: torch.dtype, *, sign: int) -> Tensor:
        places = at(mask.shape[1], 1).expand(mask.shape)
        return posref.alibi(places, sign * places, **options_of(config, "text")).flatten(0, 1).to(dtype)

    assert_replaced(monkeypatch, hidden(model, tokens), (code("falcon"), "build_alibi_tensor", bias))


def test_mpt(monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(2, "mpt", vocab_size=50, d_model=24, n_heads=3, n_layers=2, max_seq_len=32)
    tokens = torch.randint(50, (2, 11))

    def bias(self: Any, heads: int, length: int, device: Any = None, *, sign: int) -> Tensor:
        return posref.alibi(at(1, 1), at(length, sign), **options_of(config, "text"))

    assert_replaced(monkeypatch, hidden(model, tokens), (type(model), "build_mpt_alibi_tensor", bias))


@pytest.mark.parametrize("kind", ["t5", "umt5"])
def test_t5(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoder and decoder, farther than the largest distance; T5 has one table, UMT5 one for each layer."""
    config, model = made(
        3, kind, vocab_size=50, d_model=24, d_kv=8, d_ff=32, num_heads=3, num_layers=2, relative_attention_num_buckets=8,
        relative_attention_max_distance=12, attn_implementation="eager", wider={"relative_attention_bias": 2.0},
    )  # fmt: skip
    tokens, answer = torch.randint(50, (2, 21)), torch.randint(50, (2, 17))

    def bias(self: Any, queries: int, keys: int, device: Any = None, past_seen_tokens: int = 0, *, sign: int) -> Tensor:
        options = options_of(config, "decoder" if self.is_decoder else "encoder")
        seen.add(self.is_decoder)
        table = self.relative_attention_bias.weight
        return posref.t5_bias(at(queries, sign, past_seen_tokens), at(keys, sign), table, **options)[None]

    run = hidden(model, input_ids=tokens, decoder_input_ids=answer)
    seen: set[bool] = set()
    assert_replaced(monkeypatch, run, (getattr(code(kind), f"{kind.upper()}Attention"), "compute_bias", bias))
    assert seen == {True, False}


def test_mpnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Farther than the largest distance, 128."""
    config, model = made(
        4, "mpnet", vocab_size=50, hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=32,
        wider={"relative_attention_bias": 2.0},
    )  # fmt: skip
    tokens = torch.randint(2, 50, (1, 150))

    def bias(self: Any, x: Tensor, *_: Any, sign: int) -> Tensor:
        places = at(x.shape[1], sign)
        return posref.t5_bias(places, places, self.relative_attention_bias.weight, **options_of(config, "text attention"))[None]

    assert_replaced(monkeypatch, hidden(model, tokens), (code("mpnet").MPNetEncoder, "compute_position_bias", bias))


def test_layoutlmv3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens with boxes, then the patches of an image."""
    config, model = made(
        5, "layoutlmv3", vocab_size=50, hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=32,
        coordinate_size=4, shape_size=4, input_size=32, patch_size=16, rel_pos_bins=16, max_rel_pos=10, rel_2d_pos_bins=24,
        max_rel_2d_pos=90, wider={"rel_pos": 2.0},
    )  # fmt: skip
    tokens, corner = torch.randint(3, 50, (2, 15)), torch.randint(500, (2, 15, 2))
    boxes, pixels = torch.cat((corner, corner + 100), -1), torch.randn(2, 3, 32, 32, dtype=torch.float64)

    def along(places: Tensor, layer: Any, component: str, sign: int) -> Tensor:
        return posref.t5_bias(sign * places, sign * places, layer.weight.T, **options_of(config, f"text {component}"))

    def of_tokens(self: Any, places: Tensor, *, sign: int) -> Tensor:
        return along(places, self.rel_pos_bias, "attention", sign)

    def of_boxes(self: Any, bbox: Tensor, *, sign: int) -> Tensor:
        left, lower = bbox[..., 0], bbox[..., 3]
        return along(left, self.rel_pos_x_bias, "horizontal", sign) + along(lower, self.rel_pos_y_bias, "vertical", sign)

    run = hidden(model, input_ids=tokens, bbox=boxes, pixel_values=pixels)
    encoder = code("layoutlmv3").LayoutLMv3Encoder
    assert_replaced(monkeypatch, run, (encoder, "_cal_1d_pos_emb", of_tokens), (encoder, "_cal_2d_pos_emb", of_boxes))


def test_udop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Biases of tokens and of the middles of boxes in the encoder, of tokens in the decoder."""
    config, model = made(
        6, "udop", vocab_size=50, d_model=24, d_kv=8, d_ff=32, num_heads=3, num_layers=2, image_size=32, patch_size=16,
        max_2d_position_embeddings=30, attn_implementation="eager", wider={"relative_attention_bias": 2.0},
    )  # fmt: skip
    model.decoder.relative_bias.requires_grad_(False)
    tokens, answer, corner = torch.randint(2, 50, (2, 15)), torch.randint(2, 50, (2, 9)), 0.8 * torch.rand(2, 15, 2)
    boxes, pixels = torch.cat((corner, corner + 0.2), -1).double(), torch.randn(2, 3, 32, 32, dtype=torch.float64)

    def of_boxes(self: Any, attention_mask: Tensor, bbox: Tensor, *, sign: int) -> Tensor:
        name = type(self).__name__.removeprefix("RelativePositionBias").lower()
        table = self.relative_attention_bias.weight
        if name == "1d":
            places = at(attention_mask.shape[1], sign)
            return posref.t5_bias(places, places, table, **options_of(config, "encoder"))[None]
        middle = bbox[..., [0, 2] if name == "horizontal" else [1, 3]].mean(-1)
        apart = ((middle[:, None] - middle[:, :, None]).float() * 100).long()
        return table[posref.t5_buckets(sign * apart, **options_of(config, f"encoder {name}"))].movedim(-1, 1)

    def of_tokens(self: Any, queries: int, keys: int, device: Any = None, past_seen_tokens: int = 0, *, sign: int) -> Tensor:
        table = self.relative_attention_bias.weight
        return posref.t5_bias(at(queries, sign, past_seen_tokens), at(keys, sign), table, **options_of(config, "decoder"))[None]

    run = hidden(model, input_ids=tokens, bbox=boxes, pixel_values=pixels, decoder_input_ids=answer)
    udop = code("udop")
    places = (udop.RelativePositionBiasBase, "forward", of_boxes), (udop.UdopAttention, "compute_bias", of_tokens)
    assert_replaced(monkeypatch, run, *places)


@pytest.mark.parametrize("length", [9, 27])
@pytest.mark.parametrize("terms", [["c2p"], ["p2c"], ["c2p", "p2c"]])
def test_deberta(terms: list[str], length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """DeBERTa v1, whose model reads the middle rows of its table for a text that is shorter than the largest distance."""
    config, model = made(
        7, "deberta", vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32,
        relative_attention=True, max_relative_positions=20, pos_att_type=terms,
    )  # fmt: skip

    def bias(self: Any, q: Tensor, k: Tensor, _: Any, rel_embeddings: Tensor, factor: int, *, sign: int) -> Tensor:
        layers = {"rel_k": getattr(self, "pos_proj", None), "rel_q": getattr(self, "pos_q_proj", None)}
        found = {name: self.transpose_for_scores(layer(rel_embeddings[None]))[0] for name, layer in layers.items() if layer}
        if "rel_q" in found:
            found["rel_q"] = found["rel_q"] / (q.shape[-1] * factor) ** 0.5  # as the queries are already
        options, places = options_of(config, "text attention"), at(q.shape[-2], sign)
        scores = posref.deberta_scores(q, k, places, places, **options, **found)
        return scores - posref.deberta_scores(q, k, places, places, **options)

    tokens = torch.randint(1, 50, (2, length))
    place = (code("deberta").DisentangledSelfAttention, "disentangled_att_bias", bias)
    assert_replaced(monkeypatch, hidden(model, tokens), place)


def scores_of(self: Any, q: Tensor, k: Tensor, layer: Any, config: Any, sign: int) -> Tensor:
    """Return a Conformer's logits without the scale; heads before tokens."""
    weight = layer.weight.view(q.shape[1], q.shape[-1], -1).movedim(-1, 0)
    places = at(q.shape[-2], sign)
    biases = {"bias_u": self.pos_bias_u, "bias_v": self.pos_bias_v}
    return posref.transformer_xl_scores(q, k, weight, places, places, **options_of(config, "audio"), **biases)


def test_wav2vec2_conformer(monkeypatch: pytest.MonkeyPatch) -> None:
    wav2vec2 = code("wav2vec2_conformer")
    config, model = made(
        8, "wav2vec2-conformer", wav2vec2.Wav2Vec2ConformerEncoder, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=32, position_embeddings_type="relative", conv_depthwise_kernel_size=3,
        num_conv_pos_embedding_groups=2, max_source_positions=40, layerdrop=0.0,
        wider={"linear_pos": 1.0, "pos_bias": 1.0},
    )  # fmt: skip
    states = torch.randn(2, 15, 24, dtype=torch.float64)

    def forward(self: Any, hidden_states: Tensor, *_: Any, sign: int, **__: Any) -> tuple[Tensor, None]:
        q, k, v = heads_of(hidden_states, self.num_heads, self.linear_q, self.linear_k, self.linear_v)
        scores = scores_of(self, q, k, self.linear_pos, config, sign) * self.scaling
        return self.linear_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)), None

    place = (wav2vec2.Wav2Vec2ConformerSelfAttention, "forward", forward)
    assert_replaced(monkeypatch, hidden(model, states), place)


def test_fastspeech2_conformer(monkeypatch: pytest.MonkeyPatch) -> None:
    conformer = code("fastspeech2_conformer")
    config, model = made(
        9, "fastspeech2_conformer",
        lambda config: conformer.FastSpeech2ConformerEncoder(config, config.encoder_config, use_encoder_input_layer=True),
        hidden_size=24, vocab_size=50, encoder_num_attention_heads=3, encoder_layers=2, encoder_linear_units=32,
        wider={"linear_pos": 1.0},
    )  # fmt: skip
    tokens = torch.randint(1, 50, (2, 15))

    def forward(self: Any, hidden_states: Tensor, *_: Any, sign: int, **__: Any) -> tuple[Tensor, None]:
        q, k, v = heads_of(hidden_states, self.num_heads, self.linear_q, self.linear_k, self.linear_v)
        scores = scores_of(self, q, k, self.linear_pos, config, sign) / self.head_dim**0.5
        return self.linear_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)), None

    run = hidden(model, tokens, return_dict=True)
    assert_replaced(monkeypatch, run, (conformer.FastSpeech2ConformerAttention, "forward", forward))


@pytest.mark.parametrize("form", ["factorized", "relative_shift"])
@pytest.mark.parametrize(("apart", "truncated"), [(True, True), (True, False), (False, False)])
def test_funnel(form: str, apart: bool, truncated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three blocks, each of half the tokens; a decoder of all of them."""
    config, model = made(
        10, "funnel", code("funnel").FunnelModel, vocab_size=50, block_sizes=[1, 2, 2], num_decoder_layers=1, d_model=24,
        n_head=3, d_head=8, d_inner=32, attention_type=form, separate_cls=apart, truncate_seq=truncated,
        wider={"r_kernel": 1.0},
    )  # fmt: skip
    tokens = torch.randint(1, 50, (2, 16))
    places = [torch.arange(16)]
    for _ in range(2):  # the first token has a place of its own; its scores are masked if it is kept apart
        last = places[-1]
        rest = last[1:-1] if truncated else last[1:]
        places.append(torch.cat((last[:1], rest[::2])) if apart else last[::2])

    def attention(self: Any, _: Any, q: Tensor, keys: int, mask: Tensor | None = None, *, sign: int) -> Tensor:
        of_queries = places[self.block_index]
        of_keys = of_queries if len(of_queries) == keys else places[self.block_index - 1]
        seen.add((self.block_index, len(of_queries), len(of_keys)))
        heads = q.transpose(1, 2)
        none = torch.zeros(len(q), self.config.n_head, keys, self.config.d_head, dtype=q.dtype)
        scores = posref.transformer_xl_scores(
            heads, none, self.r_kernel, sign * of_queries, sign * of_keys, **options_of(config, "text"),
            bias_v=self.r_r_bias * self.scale,
        )  # fmt: skip
        return scores if mask is None else scores * mask

    seen: set[tuple[int, int, int]] = set()
    place = (code("funnel").FunnelRelMultiheadAttention, "relative_positional_attention", attention)
    assert_replaced(monkeypatch, hidden(model, tokens), place)
    assert len(seen) == 5  # queries of the second and third blocks also meet the keys of the block before


@pytest.mark.parametrize("shared", [False, True])
def test_beit(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(
        11, "beit", hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=32, image_size=64,
        patch_size=16, use_relative_position_bias=not shared, use_shared_relative_position_bias=shared,
        wider={"relative_position_bias_table": 2.0},
    )  # fmt: skip
    pixels = torch.randn(2, 3, 64, 64, dtype=torch.float64)

    def bias(self: Any, *_: Any, sign: int, **__: Any) -> Tensor:
        found = posref.window_bias(self.relative_position_bias_table, **options_of(config, "vision attention"))
        return (found if sign > 0 else found.mT)[None]

    place = (code("beit").BeitRelativePositionBias, "forward", bias)
    assert_replaced(monkeypatch, hidden(model, pixels), place)


def test_seggpt(monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(
        12, "seggpt", hidden_size=24, num_attention_heads=3, num_hidden_layers=2, mlp_dim=32, image_size=(128, 64),
        patch_size=16, intermediate_hidden_index=1, merge_index=0, intermediate_hidden_state_indices=[0, 1],
        decoder_hidden_size=8, pretrain_image_size=64, wider={"rel_pos": 1.0},
    )  # fmt: skip
    pixels, prompt, mask = (torch.randn(1, 3, 64, 64, dtype=torch.float64) for _ in range(3))

    def added(self: Any, attn: Tensor, q: Tensor, *_: Any, sign: int) -> Tensor:
        tables = [table if sign > 0 else table.flip(0) for table in (self.rel_pos_h, self.rel_pos_w)]
        bias = posref.decomposed_bias(q.unflatten(1, (8, 4)), *tables, **options_of(config, "vision attention"))
        return attn + bias.flatten(1, 2).flatten(-2)

    run = hidden(model, pixels, prompt, mask)
    assert_replaced(monkeypatch, run, (code("seggpt").SegGptAttention, "add_decomposed_rel_pos", added))

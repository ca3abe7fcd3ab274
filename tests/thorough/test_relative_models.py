"""Whole models of transformers with relative positions: their code is replaced by the definition, and their output stays."""

from typing import Any

import pytest
import torch
from replaced_models import TOLERANCE, wide
from replacement import assert_replaced, code, heads_of, hidden, made, options_of
from torch import Tensor
from transformers import Gemma3nAudioConfig, WavLMConfig, WavLMModel
from transformers.models.inkling.configuration_inkling import InklingTextConfig

import posref


@pytest.mark.parametrize(
    ("attn_type", "clamp_len", "mem_len", "same_length"),
    [("bi", -1, 0, True), ("uni", -1, 7, False), ("uni", -1, 7, True), ("bi", 4, 7, False)],
)
def test_xlnet(attn_type: str, clamp_len: int, mem_len: int, same_length: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(
        0, "xlnet", vocab_size=50, d_model=24, n_layer=2, n_head=3, d_inner=32, attn_type=attn_type, clamp_len=clamp_len,
        mem_len=mem_len, same_length=same_length,
    )  # fmt: skip
    masks = posref.from_config(config.to_dict()).get("text mask", [])
    first, tokens = torch.randint(50, (2, 6)), torch.randint(50, (2, 9))
    mems = model(first, use_mems=True).mems if mem_len else None

    run = hidden(model, tokens, mems=mems, use_mems=bool(mem_len))

    def core(self: Any, q: Tensor, k: Tensor, v: Tensor, r: Tensor, *, attn_mask: Any = None, sign: int, **_: Any) -> Tensor:
        queries, keys = q.shape[0], k.shape[0]
        scores = posref.transformer_xl_scores(
            q.permute(1, 2, 0, 3), k.permute(1, 2, 0, 3), self.r, sign * torch.arange(keys - queries, keys),
            sign * torch.arange(keys), **options_of(config, "text"), bias_u=self.r_w_bias, bias_v=self.r_r_bias,
        )  # fmt: skip
        scores = scores * self.scale
        if attn_mask is not None:
            at, other = torch.arange(keys - queries, keys), torch.arange(keys)
            seen = at[:, None] >= other
            for options in (entry.options for entry in masks):
                seen = posref.sliding_window(at, other, **{**options, "window": options["window"] + keys - queries})
            scores = scores.masked_fill(~seen, -1e30)
        return torch.einsum("bnij,jbnd->ibnd", torch.softmax(scores, -1), v)

    assert_replaced(monkeypatch, run, (code("xlnet").XLNetRelativeAttention, "rel_attn_core", core))


def test_parakeet(monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(
        1, "parakeet_encoder", hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=32,
        num_mel_bins=16, conv_kernel_size=3, subsampling_conv_channels=8, attn_implementation="eager",
        wider={"std": 0.2, "relative_k_proj": 1.0, "bias_v": 1.0},
    )  # fmt: skip
    features = torch.randn(2, 90, 16, dtype=torch.float64)

    def forward(self: Any, hidden_states: Tensor, position_embeddings: Any, mask: Any = None, *, sign: int, **_: Any) -> Any:
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        q, k, v = (p(hidden_states).view(shape).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        weight = self.relative_k_proj.weight.view(q.shape[1], self.head_dim, -1).movedim(-1, 0)
        places = sign * torch.arange(q.shape[-2])
        scores = posref.transformer_xl_scores(
            q, k, weight, places, places, **options_of(config, "audio"), bias_u=self.bias_u, bias_v=self.bias_v
        )
        mixed = torch.softmax(scores * self.scaling, -1) @ v
        return self.o_proj(mixed.transpose(1, 2).flatten(2)), None

    assert_replaced(monkeypatch, hidden(model, features), (code("parakeet").ParakeetEncoderAttention, "forward", forward))


def test_gemma_3n_audio() -> None:
    """Inside of the window, which a mask then selects: chunks of 5 queries, 6 keys back and 2 ahead."""
    torch.manual_seed(2)
    config = Gemma3nAudioConfig(
        hidden_size=24, conf_num_attention_heads=3, conf_attention_context_left=7, conf_attention_context_right=2
    )
    with wide():
        module = code("gemma3n").Gemma3nAudioRelativePositionEmbedding(config).double()
    queries, keys = 5, 5 + 6 + 2
    q, k = torch.randn(2, 4, queries, 3, 8, dtype=torch.float64), torch.randn(2, 4, keys, 3, 8, dtype=torch.float64)
    with wide():
        expected = module(q, k).permute(0, 2, 1, 3, 4)  # (B, chunks, H, queries, keys)
    q_positions, k_positions = torch.arange(6, 6 + queries), torch.arange(keys)
    found = posref.transformer_xl_scores(
        q.transpose(2, 3), k.transpose(2, 3), module.pos_proj.weight.view(3, 8, 24).movedim(-1, 0), q_positions, k_positions,
        **options_of(config, "audio"),
    )  # fmt: skip
    apart = q_positions[:, None] - k_positions
    window = (apart <= 6) & (apart >= -2)
    error = ((found - expected).abs() * window).max().detach()
    assert window.sum() == queries * 9
    assert error < TOLERANCE * expected.abs().max()
    assert ((found - expected).abs() * ~window).max() > 0.1  # the module has no distances there


def test_sam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and whole images, with tables of another size than the image."""
    _, model = made(
        3, "sam_vision_model", hidden_size=24, num_attention_heads=3, num_hidden_layers=2, mlp_dim=32, image_size=96,
        patch_size=16, window_size=4, global_attn_indexes=[1], output_channels=8, attn_implementation="eager",
    )  # fmt: skip
    for layer in model.vision_encoder.layers:  # as trained for other images
        layer.attn.rel_pos_h.data = torch.randn(9, 8, dtype=torch.float64)
    pixels = torch.randn(1, 3, 96, 96, dtype=torch.float64)

    def bias(self: Any, query: Tensor, rel_pos_h: Tensor, rel_pos_w: Tensor, q_size: Any, k_size: Any, *, sign: int) -> Tensor:
        tables = []
        for table, size in ((rel_pos_h, k_size[0]), (rel_pos_w, k_size[1])):
            options: Any = {"prefix": 0, "method": "linear", "align_corners": False, "antialias": False}
            tables.append(posref.resample(table, [2 * size - 1], old_size=[len(table)], **options))
        if sign < 0:
            tables = [table.flip(0) for table in tables]
        return posref.decomposed_bias(query.unflatten(1, q_size), *tables, k_rows=k_size[0], k_columns=k_size[1])

    place = (code("sam").SamVisionAttention, "get_decomposed_rel_pos", bias)
    assert_replaced(monkeypatch, hidden(model, pixels), place)


def test_swin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifted windows of an image that is not square, padded to whole windows."""
    config, model = made(
        4, "swin", image_size=(40, 56), patch_size=4, embed_dim=12, depths=[2], num_heads=[3], window_size=4,
        attn_implementation="eager",
    )  # fmt: skip
    pixels = torch.randn(1, 3, 40, 56, dtype=torch.float64)

    def bias(self: Any, *, sign: int) -> Tensor:
        options = options_of(config, "vision attention")
        if sign < 0:
            options["order"] = "key_minus_query"
        return posref.window_bias(self.relative_position_bias_table, **options)[None]

    def mask(self: Any, height: int, width: int, dtype: torch.dtype, device: Any) -> Tensor | None:
        window, shift = int(self.window_size), int(self.shift_size)
        if not shift:
            return None
        parts = [
            c.reshape(height // window, window, width // window, window).transpose(1, 2).reshape(-1, window * window)
            for c in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        ]
        sizes = zip(parts, (height, width), strict=True)
        masks = [posref.shifted_window_mask(c, c, size=size, window=window, shift=shift) for c, size in sizes]
        seen.append(int((~(masks[0] & masks[1])).sum()))
        return torch.where(masks[0] & masks[1], 0.0, -100.0).to(dtype)

    seen: list[int] = []
    monkeypatch.setattr(code("swin").SwinLayer, "get_attn_mask", mask)
    place = (code("swin").SwinRelativePositionBias, "forward", bias)
    assert_replaced(monkeypatch, hidden(model, pixels), place)
    assert min(seen) > 0


@pytest.mark.parametrize("pretrained", [0, 7])
def test_swin_v2(pretrained: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of the size of training, and smaller ones."""
    config, model = made(
        10, "swinv2", image_size=(40, 56), patch_size=4, embed_dim=12, depths=[2], num_heads=[3], window_size=4,
        pretrained_window_sizes=[pretrained],
    )  # fmt: skip
    pixels = torch.randn(1, 3, 40, 56, dtype=torch.float64)

    def attention(self: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, sign: int) -> tuple[Tensor]:
        q, k, v = heads_of(hidden_states, self.num_attention_heads, self.query, self.key, self.value)
        first, _, second = self.continuous_position_bias_mlp
        options = options_of(config, "vision attention")
        bias = posref.continuous_position_bias(first.weight, first.bias, second.weight, **options)
        q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))  # keys of the padding are 0
        scale = self.logit_scale.exp().clamp(max=100.0)
        logits = scale * (q @ k.mT) + (bias if sign > 0 else bias.mT)
        if attention_mask is not None:
            twice = 2 * attention_mask.repeat(len(logits) // len(attention_mask), 1, 1)
            logits = logits + twice[:, None]
            seen.append(int(attention_mask.count_nonzero()))
        return ((logits.softmax(-1) @ v).transpose(1, 2).flatten(-2),)

    seen: list[int] = []
    place = (code("swinv2").Swinv2SelfAttention, "forward", attention)
    assert_replaced(monkeypatch, hidden(model, pixels), place)
    assert min(seen) > 0


def test_levit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids of 5, 3 and 2 rows and columns: each stage but the last ends with queries at every second cell."""
    _, model = made(
        11, "levit", image_size=80, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[2, 1, 1],
        key_dim=[8, 8, 8], attention_ratio=[2, 2, 2], mlp_ratio=[2, 2, 2], num_labels=2,
        wider={"attention_biases": 5.0, "projection": 1.0},
    )  # fmt: skip
    pixels = torch.randn(1, 3, 80, 80, dtype=torch.float64)

    def biases(self: Any, device: Any, *, sign: int) -> Tensor:
        queries, keys = self.attention_bias_idxs.shape
        size, stride = round(keys**0.5), 1 if queries == keys else self.queries_subsample.stride
        seen.add((size, stride))
        table = self.attention_biases if sign > 0 else self.attention_biases.flip(-1)
        return posref.levit_bias(table, height=size, width=size, stride=stride)

    seen: set[tuple[int, int]] = set()
    levit = code("levit")
    kinds = (levit.LevitAttention, levit.LevitAttentionSubsample)
    places = [(attention, "get_attention_biases", biases) for attention in kinds]
    assert_replaced(monkeypatch, hidden(model, pixels), *places)
    assert seen == {(5, 1), (5, 2), (3, 1), (3, 2), (2, 1)}


@pytest.mark.parametrize("position_buckets", [-1, 8])
@pytest.mark.parametrize("pos_att_type", [["c2p"], ["p2c"], ["c2p", "p2c"]])
@pytest.mark.parametrize("share", [False, True])
def test_deberta_v2(position_buckets: int, pos_att_type: list[str], share: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config, model = made(
        5, "deberta-v2", vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32,
        share_att_key=share, relative_attention=True, max_position_embeddings=30, max_relative_positions=20,
        position_buckets=position_buckets, pos_att_type=pos_att_type,
    )  # fmt: skip
    tokens = torch.randint(50, (2, 27))

    def bias(self: Any, q: Tensor, k: Tensor, _: Any, rel_embeddings: Tensor, factor: int, *, sign: int) -> Tensor:
        table = rel_embeddings[: 2 * self.pos_ebd_size]
        of_keys, of_queries = (
            (self.key_proj, self.query_proj) if self.share_att_key else
            (getattr(self, "pos_key_proj", None), getattr(self, "pos_query_proj", None))
        )  # fmt: skip
        tables = {
            name: projection(table).unflatten(-1, (self.num_attention_heads, -1)).transpose(0, 1)
            for name, projection, term in (("rel_k", of_keys, "c2p"), ("rel_q", of_queries, "p2c"))
            if term in self.pos_att_type
        }
        heads = (x.unflatten(0, (-1, self.num_attention_heads)) for x in (q, k))
        q, k = heads
        places = sign * torch.arange(q.shape[-2])
        options = options_of(config, "text attention")
        scores = posref.deberta_scores(q, k, places, places, **options, **tables)
        content = posref.deberta_scores(q, k, places, places, **options)
        return ((scores - content) / (q.shape[-1] * factor) ** 0.5).flatten(0, 1)

    place = (code("deberta_v2").DisentangledSelfAttention, "disentangled_attention_bias", bias)
    assert_replaced(monkeypatch, hidden(model, tokens), place)


def test_vits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens on both sides of the window; keys and values."""
    config, model = made(
        12, "vits", code("vits").VitsTextEncoder, vocab_size=30, hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        window_size=3, ffn_dim=32, flow_size=8, layerdrop=0.0, wider={"emb_rel": 1.0},
    )  # fmt: skip
    tokens, places = torch.randint(1, 30, (2, 11)), torch.arange(11)
    padding = torch.ones(2, 11, 1, dtype=torch.float64)

    run = hidden(model, tokens, padding_mask=padding, attention_mask=padding[..., 0])

    def forward(self: Any, hidden_states: Tensor, *_: Any, sign: int, **__: Any) -> tuple[Tensor, None]:
        q, k, v = heads_of(hidden_states, self.num_heads, self.q_proj, self.k_proj, self.v_proj)
        at = sign * places, sign * places
        scores = posref.shaw_scores(q, k, self.emb_rel_k[0], *at, **options_of(config, "text")) * self.scaling
        out = posref.shaw_values(scores.softmax(-1), v, self.emb_rel_v[0], *at, **options_of(config, "text values"))
        return self.out_proj(out.transpose(1, 2).flatten(-2)), None

    assert_replaced(monkeypatch, run, (code("vits").VitsAttention, "forward", forward))


def test_granite_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of six tokens, of which each attends to its own."""
    granite = code("granite_speech")
    config, model = made(
        13, "granite_speech_encoder", granite.GraniteSpeechCTCEncoder, input_dim=10, num_layers=2, hidden_dim=24, num_heads=3,
        dim_head=8, output_dim=5, context_size=6, max_pos_emb=7, conv_kernel_size=3, wider={"rel_pos_emb": 1.0},
    )  # fmt: skip
    features, places = torch.randn(1, 12, 10, dtype=torch.float64), torch.arange(6)

    def forward(self: Any, hidden_states: Tensor, *_: Any, sign: int, **__: Any) -> Tensor:
        x = self.pre_norm(hidden_states)
        q, k, v = (
            y.unflatten(1, (-1, 6)).unflatten(-1, (self.num_heads, -1)).transpose(2, 3)
            for y in (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        )
        at = sign * places, sign * places
        scores = posref.shaw_scores(q, k, self.rel_pos_emb.weight, *at, **options_of(config, "audio")) * self.scale
        return self.to_out((scores.softmax(-1) @ v).transpose(2, 3).flatten(-2).flatten(1, 2))

    assert_replaced(monkeypatch, hidden(model, features), (granite.GraniteSpeechConformerAttention, "forward", forward))


def test_wavlm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer gates the bias of the first layer's table, which the gate of the layer before has not changed."""
    torch.manual_seed(14)
    config = WavLMConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32, conv_dim=(8, 8), conv_stride=(4, 2),
        conv_kernel=(8, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
        num_buckets=8, max_bucket_distance=12, layerdrop=0.0,
    )  # fmt: skip
    with wide():
        model = WavLMModel(config).eval().double()
    for name, parameter in model.named_parameters():
        if "layers." in name and "layer_norm" not in name:
            torch.nn.init.normal_(parameter, std=1.0 if "rel" in name else 0.3)
    sound = torch.randn(1, 200, dtype=torch.float64)
    table: list[Tensor] = []

    def forward(self: Any, hidden_states: Tensor, *_: Any, sign: int, **__: Any) -> tuple[Tensor, None, None]:
        parts = hidden_states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        if hasattr(self, "rel_attn_embed"):
            table[:] = [self.rel_attn_embed.weight]
        places = sign * torch.arange(hidden_states.shape[1])
        bias = posref.t5_bias(places, places, table[0], **options_of(config, "audio attention"))
        linear = self.gru_rel_pos_linear
        gate = posref.bias_gate(parts, linear.weight, linear.bias, self.gru_rel_pos_const[0, :, 0, 0])
        q, k, v = heads_of(hidden_states, self.num_heads, self.q_proj, self.k_proj, self.v_proj)
        logits = self.scaling * (q @ k.mT) + gate[..., None] * bias
        return self.out_proj((logits.softmax(-1) @ v).transpose(1, 2).flatten(-2)), None, None

    run = hidden(model, sound)
    assert run().shape[1] > 20
    assert_replaced(monkeypatch, run, (code("wavlm").WavLMAttention, "forward", forward))


def test_inkling_relative_logits() -> None:
    """Full and sliding layers of the model's own module, a decode step and a prompt."""
    torch.manual_seed(15)
    config = InklingTextConfig(num_hidden_layers=6, sliding_window_size=4, rel_extent=7, d_rel=3)
    entries = posref.from_config(config.to_dict())["text"]
    assert [entry and (entry.options or {})["right"] for entry in entries] == [3, 3, 3, 3, 3, 6]
    for entry, extent in ((entries[0], 4), (entries[5], 7)):
        assert entry is not None
        module = code("inkling").InklingRelativeLogits(3, extent).double()
        torch.nn.init.normal_(module.proj)
        for q, k in ((torch.arange(12), torch.arange(12)), (torch.arange(11, 12), torch.arange(2, 12))):
            states = torch.randn(2, len(q), 5, 3, dtype=torch.float64)
            theirs = module(states, q, k)
            keys = torch.zeros(2, 5, len(k), 3, dtype=torch.float64)
            ours = posref.shaw_scores(states.transpose(1, 2), keys, module.proj.mT, q, k, **entry.options or {})
            assert entry.operation == "shaw_scores"
            assert float((ours - theirs).detach().abs().max()) < 1e-14
            assert float(theirs.detach().abs().max()) > 0.1

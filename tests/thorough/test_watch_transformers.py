"""`watch` on models of transformers, built small and random: their own calls while they run and generate."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2VLTextConfig
from transformers.models.llama import modeling_llama
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextModel

import posref
from posref.testing import watch

SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2,
}  # fmt: skip
LLAMA, QWEN = "transformers.models.llama.modeling_llama", "transformers.models.qwen2_vl.modeling_qwen2_vl"


def llama(dtype: torch.dtype = torch.float32, **changed: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, max_position_embeddings=256, **changed)).to(dtype).eval()


def generate(model: LlamaForCausalLM, new: int) -> None:
    tokens = torch.arange(1, 15).reshape(2, 7)
    model.generate(tokens, max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)


def halves(table: tuple[Any, Any]) -> tuple[Any, ...]:
    """Return a table of which transformers holds every number twice."""
    return tuple(t[..., : t.shape[-1] // 2] for t in table)


def applied(q: Any, k: Any, cos: Any, sin: Any, unsqueeze_dim: int = 1) -> Any:
    table = tuple(t.unsqueeze(unsqueeze_dim) for t in halves((cos, sin)))
    return [("apply_rope", (x, *table), {"layout": "half"}, i) for i, x in enumerate((q, k))]


def made(self: Any, x: Any, position_ids: Any) -> Any:
    return "rope_table", (position_ids, self.inv_freq), {"attention_factor": self.attention_scaling}, halves


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_llama_rotates_queries_and_keys_in_every_layer_and_step(dtype: torch.dtype) -> None:
    before = modeling_llama.apply_rotary_pos_emb
    with watch(f"{LLAMA}:apply_rotary_pos_emb", like=applied) as seen:
        generate(llama(dtype), new=4)
    assert modeling_llama.apply_rotary_pos_emb is before
    assert sum(call.times for call in seen.calls) == 2 * 2 * 4  # queries and keys, layers, steps
    assert {call.shapes["x"] for call in seen.calls} == {(2, h, t, 16) for h in (4, 2) for t in (7, 1)}
    seen.assert_conforms()


def test_llama_makes_tables_at_the_positions_of_every_step() -> None:
    with watch(f"{LLAMA}:LlamaRotaryEmbedding.forward", like=made) as seen:
        generate(llama(), new=4)
    seen.assert_conforms()
    assert "positions (2, 7), 0 to 6" in seen.report()
    assert "7 to 9" in seen.report()


def test_yarn_is_told_from_what_a_config_says() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
    model = llama(rope_parameters=yarn)
    options = dict(posref.rope_from_config(model.config.to_dict()))
    layout = options.pop("layout")
    assert layout == "half"
    dim = options.pop("rotary_dim", None) or 16
    frequencies, factor = posref.rope_frequencies(dim, base=options["base"], scaling=options["scaling"])

    def table(self: Any, x: Any, position_ids: Any) -> Any:
        return "rope_table", (position_ids, frequencies), {"attention_factor": factor}, halves

    with watch(f"{LLAMA}:LlamaRotaryEmbedding.forward", like=table) as seen:
        generate(model, new=2)
    seen.assert_conforms()
    model.model.rotary_emb.attention_scaling = 1.0  # a mistake
    with watch(model.model.rotary_emb, "forward", like=lambda x, position_ids: table(None, x, position_ids)) as wrong:
        generate(model, new=2)
    assert len(wrong.failed) == len(wrong.calls)
    assert "factor" in str(wrong.failed[0].fault)


def test_a_mistake_planted_in_one_layer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rotate, made_calls = llama(), modeling_llama.apply_rotary_pos_emb, iter(range(10_000))

    def planted(q: Any, k: Any, cos: Any, sin: Any, unsqueeze_dim: int = 1) -> Any:
        q_out, k_out = rotate(q, k, cos, sin, unsqueeze_dim)
        return (q_out, rotate(k, k, cos, -sin, unsqueeze_dim)[0]) if next(made_calls) % 2 else (q_out, k_out)

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", planted)
    with watch(f"{LLAMA}:apply_rotary_pos_emb", like=applied) as seen:
        generate(model, new=3)
    assert {call.shapes["x"][1] for call in seen.failed} == {2}  # keys
    assert sum(call.times for call in seen.failed) == 3  # of every second layer
    assert "sin" in str(seen.failed[0].fault)


def test_training_goes_on_under_a_watch() -> None:
    model = llama().train()
    with watch(f"{LLAMA}:apply_rotary_pos_emb", like=applied) as seen:
        tokens = torch.arange(1, 15).reshape(2, 7)
        model(tokens, labels=tokens).loss.backward()
    seen.assert_conforms()
    assert all(p.grad is not None for p in model.parameters())


def test_qwen2_vl_makes_tables_of_three_axes_and_rotates_by_them() -> None:
    sections = [2, 3, 3]
    rope = {"rope_type": "default", "mrope_section": sections, "rope_theta": 1e4}
    torch.manual_seed(0)
    model = Qwen2VLTextModel(Qwen2VLTextConfig(**SIZES, rope_parameters=rope)).eval()
    positions = torch.stack([torch.arange(7).expand(2, 7) * n for n in (1, 3, 50)])

    def axial(self: Any, x: Any, position_ids: Any) -> Any:
        return "axial_table", (position_ids, self.inv_freq), {"sections": sections, "arrangement": "chunked"}, halves

    with (
        watch(f"{QWEN}:Qwen2VLRotaryEmbedding.forward", like=axial) as tables,
        watch(f"{QWEN}:apply_rotary_pos_emb", like=applied) as rotated,
    ):
        model(inputs_embeds=torch.randn(2, 7, 64), position_ids=positions)
    tables.assert_conforms()
    rotated.assert_conforms()
    assert "positions (3, 2, 7), 0 to 300" in tables.report()


def test_a_rotation_that_mixes_the_axes_itself_is_one_question() -> None:
    """As Qwen2-VL's apply_multimodal_rotary_pos_emb did until transformers 4.57: tables of all axes come in."""
    sections, rng = [2, 3, 3], torch.Generator().manual_seed(0)
    frequencies = posref.rope_frequencies(16, base=1e4)[0]
    positions = torch.stack([torch.arange(7)[None] * n for n in (1, 3, 50)])
    angles = positions[..., None] * torch.asarray(frequencies)
    cos, sin = (torch.cat([f(angles)] * 2, -1).float() for f in (torch.cos, torch.sin))

    def apply_multimodal(q: Any, k: Any, cos: Any, sin: Any, mrope_section: Any, unsqueeze_dim: int = 1) -> Any:
        split = [mrope_section * 2, -1]
        cos, sin = (
            torch.cat([m[i % 3] for i, m in enumerate(t.split(*split))], -1).unsqueeze(unsqueeze_dim) for t in (cos, sin)
        )
        return tuple(x * cos + modeling_llama.rotate_half(x) * sin for x in (q, k))

    class Model:
        apply = staticmethod(apply_multimodal)

    def whole(q: Any, k: Any, cos: Any, sin: Any, mrope_section: Any) -> Any:
        options = {"sections": mrope_section, "arrangement": "chunked", "base": 1e4, "layout": "half"}
        return [("mrope", (x, positions[:, :, None]), options, i) for i, x in enumerate((q, k))]

    with watch(Model, "apply", like=whole) as seen:
        Model.apply(torch.randn(1, 4, 7, 16, generator=rng), torch.randn(1, 2, 7, 16, generator=rng), cos, sin, sections)
    seen.assert_conforms()
    assert len(seen.calls) == 2

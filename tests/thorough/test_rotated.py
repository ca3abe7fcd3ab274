"""RoPE inside other forms of attention, against the modules of transformers as they are, and computed in other ways."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, DeepseekV4Config
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as v3
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as v4

import posref
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.scaling import YaRN

PLACES = np.asarray([0, 1, 7, 64, 2049], dtype=np.int64)
YARN = {"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 65536}


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Return numbers that float32 holds, near 1."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(np.float64)


def within(found: torch.Tensor, op: str, inputs: dict[str, Any], params: dict[str, Any]) -> None:
    """Assert that what a library gave in float32 is the true value, within class angle32."""
    true = golden(op, inputs, params)
    width = half_widths(op, inputs, params, "angle32", true)["out"]
    assert np.all(np.abs(found.to(torch.float64).numpy() - true["out"]) <= width)


def tensor(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x.astype(np.float32) if x.dtype.kind == "f" else x)


@pytest.mark.parametrize(("kind", "rope"), [("main", None), ("compress", YARN)])
def test_rotated_lanes_are_those_of_deepseek_v4(kind: str, rope: dict[str, Any] | None) -> None:
    """Its rotary module and function, for both of its kinds of layers, at its size: 64 of 512 lanes, the last."""
    config = DeepseekV4Config(rope_parameters=rope) if rope else DeepseekV4Config()
    cos, sin = v4.DeepseekV4RotaryEmbedding(config)(torch.zeros(1), tensor(PLACES)[None], layer_type=kind)
    x = random(5, 512)
    options = {"base": 10000.0, "scaling": None}
    if rope:
        options = {"base": 160000.0, "scaling": YaRN(16, 65536, attention_factor=1.0)}
    params = {"layout": "interleaved", "rotary_dim": 64, "lanes": "trailing", **options}
    inputs = {"x": x, "positions": PLACES}
    within(v4.apply_rotary_pos_emb(tensor(x)[None, None], cos, sin)[0, 0], "rope", inputs, params)
    within(v4.apply_rotary_pos_emb(tensor(x)[None, None], cos, -sin)[0, 0], "rope", inputs, params | {"inverse": True})


def test_rotated_values_are_those_of_deepseek_v4() -> None:
    """
    The attention of a sliding layer as it is, sinks and softmax too, at its width of 512 lanes, up to where heads are mixed.

    Its weights are those that it says it used, which do not add up to 1; its values are its one key head before the rotation.
    """
    config = DeepseekV4Config(
        hidden_size=48, num_attention_heads=2, num_hidden_layers=1, layer_types=["sliding_attention"], q_lora_rank=8,
        o_groups=1, o_lora_rank=4,
    )  # fmt: skip
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    attention = v4.DeepseekV4Attention(config, 0).eval()
    torch.nn.init.normal_(attention.sinks)
    kept: dict[str, torch.Tensor] = {}
    attention.kv_norm.register_forward_hook(lambda module, given, out: kept.update(values=out))
    attention.o_a_proj.register_forward_pre_hook(lambda module, given: kept.update(out=given[0]))
    hidden, places = tensor(random(1, 5, 48)), tensor(PLACES)[None]
    table = v4.DeepseekV4RotaryEmbedding(config)(hidden, places, layer_type="main")
    mask = torch.full((5, 5), -torch.inf).triu(1)[None, None]
    with torch.no_grad():
        _, weights = attention(hidden, {"main": table}, places, mask)
    assert torch.all(weights.sum(-1) < 0.999)  # the sinks' share
    inputs = {
        "weights": weights[0].to(torch.float64).numpy(), "v": kept["values"].to(torch.float64).numpy(),
        "q_positions": PLACES, "k_positions": PLACES,
    }  # fmt: skip
    params = {"layout": "interleaved", "base": 10000.0, "rotary_dim": 64, "lanes": "trailing"}
    within(kept["out"].reshape(5, 2, 512).transpose(0, 1), "rotated_values", inputs, params)


def test_logits_are_those_of_deepseek_v3(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its attention as it is, with YaRN whose two mscales differ: its queries and keys before the rotation, and its logits.

    The scale is the square of `configs.factors` over the root of both widths.
    """
    yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.75, "original_max_position_embeddings": 4096}
    sizes = {"qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 6, "kv_lora_rank": 16, "q_lora_rank": 10}
    given = {"model_type": "deepseek_v3", "hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 3, **sizes}
    given |= {"rope_theta": 1e4, "rope_scaling": yarn, "max_position_embeddings": 163840}
    config = AutoConfig.for_model(**given)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    attention, kept = v3.DeepseekV3Attention(config, 0).eval(), {}
    attention.q_b_proj.register_forward_hook(lambda module, x, out: kept.update(q=out))
    attention.kv_b_proj.register_forward_hook(lambda module, x, out: kept.update(k=out))
    attention.kv_a_proj_with_mqa.register_forward_hook(lambda module, x, out: kept.update(shared=out))

    def stopped(module: Any, q: Any, k: Any, v: Any, mask: Any, *, scaling: float, **rest: Any) -> Any:
        kept["logits"] = q @ k.transpose(-1, -2) * scaling
        return v.transpose(1, 2), None

    monkeypatch.setattr(v3, "eager_attention_forward", stopped)
    hidden = tensor(random(1, 5, 24))
    with torch.no_grad():
        attention(hidden, v3.DeepseekV3RotaryEmbedding(config)(hidden, tensor(PLACES)[None]), None)
    numbers = {name: value[0].to(torch.float64).numpy() for name, value in kept.items()}
    q, k = (numbers[n].reshape(5, 3, -1).swapaxes(0, 1) for n in ("q", "k"))
    inputs = {"q_nope": q[..., :12], "q_rope": q[..., 12:], "k_nope": k[..., :12], "k_rope": numbers["shared"][:, 16:]}
    scale = posref.configs.factors(given)["softmax"] / 20**0.5
    options = posref.rope_from_config(given)
    params = {n: options[n] for n in ("layout", "base", "scaling")} | {"scale": scale}
    within(kept["logits"][0], "mla_logits", inputs | {"q_positions": PLACES, "k_positions": PLACES}, params)
    plain = posref.mla_logits(*inputs.values(), PLACES, PLACES, **params)
    assert not np.allclose(plain, numbers["logits"] / posref.configs.factors(given)["softmax"], rtol=1e-3)


def test_both_sides_alike_give_the_same_logits() -> None:
    """Layouts that read the same pairs differ in where they write them, which no product of two such vectors shows."""
    x = [random(2, 3, 5, 6, seed=i) for i in range(3)] + [random(2, 5, 6, seed=3)]
    one, other = (
        posref.mla_logits(*x, PLACES, PLACES, layout=layout, base=1e4) for layout in ("interleaved", "interleaved_to_half")
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=2 * 12 * 2.0**-53 * 12 * 25)  # 12 products below 25, in any order


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_in_its_own_order_is_within_the_bounds(causal: bool) -> None:
    """Keys meet values first, in float32, one query after another: more keys than lanes, as in use."""
    q, k, v, places = random(5, 8), random(40, 8, seed=1), random(40, 3, seed=2), np.arange(40)
    own = places[[3, 9, 20, 38, 39]]
    options = {"layout": "interleaved", "base": 10000.0}
    phi_q, phi_k = (torch.nn.functional.elu(tensor(x)) + 1 for x in (q, k))
    turned = [posref.rope(x, torch.from_numpy(p), **options) for x, p in ((phi_q, own), (phi_k, places))]
    found = []
    for i, p in enumerate(own):
        seen = int(p) + 1 if causal else 40
        state, total = turned[1][:seen].T @ tensor(v)[:seen], phi_k[:seen].sum(0)
        found.append(turned[0][i] @ state / (phi_q[i] @ total))
    inputs = {"q": q, "k": k, "v": v, "q_positions": own, "k_positions": places}
    within(torch.stack(found), "rotary_linear_attention", inputs, options | {"causal": causal})


def test_an_unseen_query_gives_zeros_and_gradients_that_are_finite() -> None:
    x = [tensor(random(*shape, seed=i)).requires_grad_() for i, shape in enumerate(((2, 4), (3, 4), (3, 2)))]
    out = posref.rotary_linear_attention(
        *x, torch.tensor([0, 5]), torch.tensor([1, 4, 9]), layout="half", base=1e4, causal=True
    )
    assert torch.all(out[0] == 0)
    out.sum().backward()
    assert all(torch.all(torch.isfinite(part.grad)) for part in x)
    assert torch.all(x[0].grad[0] == 0)

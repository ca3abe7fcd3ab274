"""The adapters run the libraries' own code, and say of them what is so."""

import sys
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import torch
from snapshot import load
from transformers import AutoConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

import posref
from posref.conformance import check
from posref.conformance.adapters import onnx as onnx_adapter
from posref.conformance.adapters import onnxruntime as ort_adapter
from posref.conformance.adapters import transformers as hf_adapter
from posref.conformance.errors import TargetError
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.conformance.targets import python

ROTARY = {
    "llama": "LlamaRotaryEmbedding",
    "qwen2": "Qwen2RotaryEmbedding",
    "gpt_oss": "GptOssRotaryEmbedding",
    "deepseek_v3": "DeepseekV3RotaryEmbedding",
    "gpt_neox": "GPTNeoXRotaryEmbedding",
}
REAL = [(row["name"], row["config"]) for row in load("rotations")["Real models in both generations"]]
CONFIGS = [(name, config) for name, config in REAL if config["model_type"] in ROTARY]


@pytest.mark.parametrize(("name", "config"), CONFIGS, ids=lambda value: value if isinstance(value, str) else "")
def test_frequencies_and_factors_are_those_of_transformers(name: str, config: dict[str, Any]) -> None:
    """A config.json goes through transformers' own configuration and rotary module, and through `rope_from_config`."""
    kind = config["model_type"]
    module = getattr(import_module(f"transformers.models.{kind}.modeling_{kind}"), ROTARY[kind])
    theirs = module(AutoConfig.for_model(**{"max_position_embeddings": 131072, **config}))
    options = posref.rope_from_config(config)
    limit = config.get("max_position_embeddings")  # transformers builds dynamic NTK's first frequencies for it
    params = {"dim": options["rotary_dim"], "base": options["base"], "scaling": options["scaling"], "length": limit}
    true = golden("rope_frequencies", {}, params)
    width = half_widths("rope_frequencies", {}, params, "angle32", true)
    found = theirs.inv_freq.to(torch.float64).numpy()
    assert np.all(np.abs(found - true["inv_freq"]) <= width["inv_freq"]), name
    assert abs(float(theirs.attention_scaling) - true["attention_factor"]) <= width["attention_factor"], name
    factor = float(true["attention_factor"])
    assert (
        abs(posref.configs.factors(config)["table"] - factor) <= 8 * 2**-53 * factor
    )  # a logarithm, a product, a sum, a quotient


def test_the_softmax_factor_is_that_of_deepseek_v3() -> None:
    """transformers puts mscale_all_dim on the softmax scale: two roundings of a logarithm's line, squared."""
    sizes = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 64, "v_head_dim": 16, "kv_lora_rank": 8, "q_lora_rank": 8}
    yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.75, "original_max_position_embeddings": 4096}
    config = {"model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 2, "rope_theta": 1e4, "rope_scaling": yarn}
    config |= {"max_position_embeddings": 163840, **sizes}
    theirs = DeepseekV3Attention(AutoConfig.for_model(**config), 0).scaling * (16 + 64) ** 0.5
    assert abs(theirs - posref.configs.factors(config)["softmax"]) <= 16 * 2**-53 * theirs


KNOWN = (
    "zero-mscale",
    "mrope/scaled/yarn-1",
    "sequence/dynamic",
    "steps/beyond-float32",
    "sinusoidal_nd/",
    "decomposed_rows/fewer-keys/",
    "decomposed_bias/pooled/uneven",
    "alibi/max-bias/",
)  # transformers' own: see the adapter's NOTES


@pytest.mark.thorough(dear=True)
def test_transformers_fails_only_where_its_notes_say() -> None:
    report = check("transformers", dtype="float32")
    failures = [case.id for case in report.failures]
    assert [f for f in failures if not any(k in f for k in KNOWN)] == []
    assert any("sequence/dynamic" in f for f in failures), "dynamic NTK at exactly the limit after a longer call"
    assert report.counts["pass"] > 150


@pytest.mark.parametrize("name", ["onnx", "onnxruntime"])
def test_the_operator_of_onnx_is_conformant(name: str) -> None:
    report = check(name)
    assert report.conformant
    assert {op.op for op in report.operations} == {"apply_rope"}


def zeros_like_first(x: Any, *rest: Any, **options: Any) -> Any:
    return torch.zeros_like(x)


def zero_pair(q: Any, k: Any, *rest: Any, **options: Any) -> Any:
    return torch.zeros_like(q), torch.zeros_like(k)


def zero_table(self: Any, x: Any, positions: Any) -> Any:
    shape = (*positions.shape, 2 * self.inv_freq.shape[0])
    return torch.zeros(shape, dtype=x.dtype), torch.zeros(shape, dtype=x.dtype)


REPLACED = {
    "rope_table": ("LlamaRotaryEmbedding.forward", zero_table),
    "rope": ("LlamaRotaryEmbedding.forward", zero_table),
    "apply_rope": ("apply_llama", zero_pair),
    "axial_rope": ("qwen2_vl.apply_rotary_pos_emb_vision", zero_pair),
    "mrope": ("glm4v_moe.Glm4vMoeTextRotaryEmbedding.forward", lambda self, x, positions: zero_table(self, x, positions[0])),
    "rotated_values": (
        "DeepseekV4Attention.forward",
        lambda self, x, *rest, **options: (torch.zeros(*x.shape[:-1], x.shape[-1] * self.num_heads), None),
    ),
    "mla_logits": (
        "DeepseekV3Attention.forward",
        lambda self, x, *rest: (None, torch.zeros(x.shape[0], self.num_heads, x.shape[1], x.shape[1])),
    ),
    "t5_buckets": ("T5Attention._relative_position_bucket", staticmethod(zeros_like_first)),
    "t5_bias": ("T5Attention.compute_bias", lambda self, *a, **o: torch.zeros(1, self.n_heads, 1, 1)),
    "alibi": (
        "build_alibi_tensor",
        lambda mask, heads, dtype: torch.zeros(mask.shape[0] * heads, 1, mask.shape[1], dtype=dtype),
    ),
    "alibi_slopes": ("build_mpt_alibi_tensor", lambda heads, length, **o: torch.zeros(heads, 1, length)),
    "sliding_window": ("sliding_window_causal_mask_function", lambda w: lambda b, h, q, k: q > k + 10**9),
    "chunked_window": ("chunked_causal_mask_function", lambda c, p: lambda b, h, q, k: q > k + 10**9),
    "attention_temperature": ("get_llama_4_attn_scale", lambda p, *rest: torch.zeros(p.shape)),
    "learned": ("OPTLearnedPositionalEmbedding.forward", lambda self, *a, position_ids: 0 * self.weight[position_ids]),
    "axial_learned": (
        "AxialPositionEmbeddings.forward",
        lambda self, ids: torch.zeros(*ids.shape, sum(weight.shape[-1] for weight in self.weights)),
    ),
    "layout_2d": (
        "LayoutLMv2Embeddings._calc_spatial_position_embeddings",
        lambda self, boxes: torch.zeros(*boxes.shape[:-1], 6),
    ),
    "positions_from_tokens": ("RobertaEmbeddings.create_position_ids_from_input_ids", staticmethod(zeros_like_first)),
    "conv_positions": ("Wav2Vec2PositionalConvEmbedding.forward", lambda self, x: torch.zeros_like(x)),
    "peg": ("SegformerDepthWiseConv.forward", lambda self, x, *sizes: torch.zeros_like(x)),
    "sine_2d": (
        "DetrSinePositionEmbedding.forward",
        lambda self, shape, device, dtype, mask: torch.zeros(shape[0], 2 * self.num_position_features, *shape[2:], dtype=dtype),
    ),
    "sinusoidal": ("sinusoids", lambda rows, dim, *rest: torch.zeros(rows, dim)),
}


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", [*REPLACED, "rope_frequencies"])
def test_the_adapter_calls_the_library(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With zeros in the place of the library's function every operation fails."""
    if op == "rope_frequencies":
        zero = {n: lambda config, *a, **o: (torch.zeros(config.head_dim // 2), 1.0) for n in hf_adapter.ROPE_INIT_FUNCTIONS}
        monkeypatch.setattr(hf_adapter, "ROPE_INIT_FUNCTIONS", zero)
    else:
        path, replacement = REPLACED[op]
        owner, _, attribute = f"hf.{path}".rpartition(".")
        file = sys.modules[getattr(hf_adapter, op).__module__]  # the adapter is several
        target = file if owner == "hf" else attrgetter(owner.removeprefix("hf."))(file)
        monkeypatch.setattr(target, attribute, replacement)
    hf_adapter.reset()
    report = check(hf_adapter, op=op, dtype="float32")
    hf_adapter.reset()
    assert not report.conformant
    assert report.counts["fail"] >= 2, report.counts


@pytest.mark.parametrize(("adapter", "made"), [(onnx_adapter, "_evaluator"), (ort_adapter, "_session")])
def test_the_adapters_of_onnx_run_the_operator(adapter: Any, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Zeros:
        def run(self, names: Any, feed: dict[str, Any]) -> list[Any]:
            return [0 * feed["x"]]

    monkeypatch.setattr(adapter, made, lambda *attributes: Zeros())
    report = check(adapter)
    assert not report.conformant
    assert report.counts["fail"] > 3


def test_every_adapter_states_its_package_and_the_report_its_version() -> None:
    assert {"onnx", "onnxruntime", "transformers", "litgpt", "mlx_lm"} <= set(python.ADAPTERS)
    assert not [name for name in python.ADAPTERS if name.startswith("_")]
    assert python.package_of("mlx_lm") == "mlx-lm[cpu]"
    assert set(check("onnx", tier="smoke").target["versions"]) == {"numpy", "onnx"}


def test_an_adapter_whose_library_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    with pytest.raises(TargetError, match=r"pip install 'mlx-lm\[cpu\]'"):
        check("mlx_lm")

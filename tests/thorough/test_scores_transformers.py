"""Learned sinks, windows and temperatures beside the code of transformers' models, run and not copied."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig
from transformers.masking_utils import (
    create_bidirectional_sliding_window_mask,
    create_chunked_causal_mask,
    create_sliding_window_causal_mask,
)
from transformers.models.mistral_large4.modeling_mistral_large4 import MistralLarge4TextSoftmaxScaling

import posref
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths

RNG = np.random.default_rng(5)
SINKS = ("gpt_oss", "mimo_v2_flash", "granite_swa", "flint", "deepseek_v4")


def rounded(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("masked", [False, True], ids=["all", "window"])
@pytest.mark.parametrize("model", SINKS)
def test_sinks_are_those_of_the_models(model: str, masked: bool) -> None:
    """Within the bounds of class angle32; every query may attend to a key, since transformers' masks are added."""
    q, k, v, sinks = rounded(2, 4, 5, 8), rounded(2, 2, 7, 8), rounded(2, 2, 7, 8), 2 * rounded(4)
    mask = posref.sliding_window(np.arange(2, 7), np.arange(7), window=3, counting="with_query", sides="causal")
    inputs = {"q": q, "k": k, "v": v, "sinks": sinks} | ({"mask": mask} if masked else {})
    params = {"scale": 8**-0.5}
    true = golden("attention", inputs, params)
    width = half_widths("attention", inputs, params, "angle32", true)["out"]
    module = SimpleNamespace(sinks=torch.tensor(sinks, dtype=torch.float32), num_key_value_groups=2, training=False)
    added = torch.where(torch.tensor(mask), 0.0, torch.finfo(torch.float32).min)[None, None] if masked else None
    code = import_module(f"transformers.models.{model}.modeling_{model}")
    tensors = (torch.tensor(x, dtype=torch.float32) for x in (q, k, v))
    found, _ = code.eager_attention_forward(module, *tensors, added, scaling=params["scale"])
    apart = np.abs(found.transpose(1, 2).double().numpy() - true["out"])
    assert np.all(apart <= width), np.max(apart / width)


def allowed(mask: Any) -> np.ndarray:
    """Return an additive mask of transformers as booleans."""
    return (mask == 0).numpy()


def config_of(kind: str, **options: Any) -> Any:
    config = AutoConfig.for_model(kind, **options).get_text_config()
    config._attn_implementation = "eager"
    return config


@pytest.mark.parametrize("window", [1, 3, 6])
@pytest.mark.parametrize("padding", [0, 2, 5])
def test_a_configurations_window_counts_the_query(window: int, padding: int) -> None:
    """Also in a row that is padded on the left, where distances are what they are without padding."""
    config = config_of("mistral", sliding_window=window)
    present = torch.ones(2, 9, dtype=torch.int64)
    present[1, :padding] = 0
    theirs = allowed(create_sliding_window_causal_mask(config, torch.zeros(2, 9, 4), present, None))[:, 0]
    places = posref.positions.from_mask(present.numpy(), padding=0)
    ours = posref.sliding_window(places, places, window=window, counting="with_query", sides="causal")
    real = present.numpy() == 1
    np.testing.assert_array_equal(theirs[real], (ours & real[:, None, :])[real])


@pytest.mark.parametrize("window", [1, 4])
def test_a_window_on_both_sides_does_not(window: int) -> None:
    config = config_of("modernbert", local_attention=2 * window)
    mask = create_bidirectional_sliding_window_mask(config, torch.zeros(1, 11, 4), torch.ones(1, 11, dtype=torch.int64))
    ours = posref.sliding_window(np.arange(11), np.arange(11), window=window, counting="without_query", sides="both")
    np.testing.assert_array_equal(allowed(mask)[0, 0], ours)


@pytest.mark.parametrize("padding", [0, 1, 6])
def test_chunks_begin_with_the_text(padding: int) -> None:
    """Not with the padding before it."""
    config = config_of("llama4_text", attention_chunk_size=4)
    present = torch.ones(2, 13, dtype=torch.int64)
    present[1, :padding] = 0
    theirs = allowed(create_chunked_causal_mask(config, torch.zeros(2, 13, 4), present, None))[:, 0]
    places = posref.positions.from_mask(present.numpy(), padding=0)
    ours = posref.chunked_window(places, places, chunk_size=4, sides="causal")
    real = present.numpy() == 1
    np.testing.assert_array_equal(theirs[real], (ours & real[:, None, :])[real])


def test_mistral_large_4_learns_a_line_in_the_logarithm_of_log_n() -> None:
    """Its a ln(p + 1) + b, of each head, is a ln(L) times the factor of any length L, plus b: 12 roundings of binary32."""
    positions, a, b = np.asarray([[0, 5, 1000, 70000]]), rounded(3), rounded(3)
    module = MistralLarge4TextSoftmaxScaling(3)
    module.scale.data, module.bias.data = (torch.tensor(x, dtype=torch.float32) for x in (a, b))
    theirs = module(torch.ones(1, 3, 4, 1), torch.tensor(positions), head_dim_first=True)[0, :, :, 0]
    factor = posref.logn_scale(positions[0], original_length=512, offset=1, at_least_one=False)
    ours = a[:, None] * np.log(512) * factor + b[:, None]
    size = np.abs(a[:, None] * np.log(512) * factor) + np.abs(b[:, None])
    assert np.all(np.abs(theirs.detach().double().numpy() - ours) <= 12 * 2.0**-24 * size)

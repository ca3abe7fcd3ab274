"""Class fused: kernels in half precision that add in float32 are inside; one that scales by three percent too much is not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from posref.conformance import check
from posref.conformance.accuracy import OF_HALF
from posref.conformance.judge import systematic as measure
from posref.conformance.model import Call
from posref.conformance.proof.evaluation import half_widths

HALF = ("bfloat16", "float16")


def scaled(q: Any, width: int, scale: float | None) -> float:
    """Return the scale as a kernel holds it that gets it in the dtype of `q`."""
    return float(torch.tensor(width**-0.5 if scale is None else scale, dtype=q.dtype))


def attention(weights: str, factor: float = 1.0) -> Any:
    """Return attention with float32 sums; the weights are rounded before or after they are divided, or not at all."""

    def kernel(q: Any, k: Any, v: Any, /, *, bias: Any = None, mask: Any = None, scale: Any = None, sinks: Any = None) -> Any:
        if sinks is not None:
            raise NotImplementedError
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
        logits = torch.einsum("...qd,...kd->...qk", q.float(), k.float()) * (factor * scaled(q, q.shape[-1], scale))
        logits = logits if bias is None else logits + bias.float()
        logits = logits if mask is None else logits.where(mask, -torch.inf)
        exps = torch.exp(logits - logits.amax(-1, keepdim=True).clamp(min=-3e38))
        total = exps.sum(-1, keepdim=True).clamp(min=1e-37)
        if weights == "divided":
            exps, total = (exps / total).to(q.dtype), torch.ones(())
        held = exps if weights == "float32" else exps.to(q.dtype).float()
        return (torch.einsum("...qk,...kd->...qd", held.float(), v.float()) / total).to(q.dtype)

    return kernel


def mla(factor: float = 1.0) -> Any:
    """Return the logits of latent attention, with rotated queries and keys held in half precision."""

    def rotated(x: Any, positions: Any, base: float, layout: str) -> Any:
        angles = positions[..., None].float() / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        cos, sin = angles.cos().to(x.dtype).float(), angles.sin().to(x.dtype).float()
        a, b = x.float().chunk(2, -1) if layout == "half" else (x.float()[..., ::2], x.float()[..., 1::2])
        pair = (a * cos - b * sin, b * cos + a * sin)
        together = torch.cat(pair, -1) if layout == "half" else torch.stack(pair, -1).flatten(-2)
        return together.to(x.dtype).float()

    def kernel(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):  # type: ignore[no-untyped-def]
        of_heads = q_positions if q_positions.ndim < 2 else q_positions.unsqueeze(-2)
        keys = rotated(k_rope, k_positions, base, layout).unsqueeze(-3)
        turned = torch.einsum(
            "...qd,...kd->...qk", rotated(q_rope, of_heads, base, layout), keys.expand(*k_nope.shape[:-1], -1)
        )
        plain = torch.einsum("...qd,...kd->...qk", q_nope.float(), k_nope.float())
        return ((plain + factor * turned) * scaled(q_nope, q_nope.shape[-1] + q_rope.shape[-1], scale)).to(q_nope.dtype)

    return kernel


def failures(op: str, function: Any, dtype: str, claim: str = "fused") -> list[str]:
    """Return the cases that fail; gradients are judged by class low."""
    target = SimpleNamespace(**{op: function}, backend="torch", __name__="kernel")
    report = check(target, op=op, dtype=dtype, claim=claim, experiments=0)
    assert report.counts["pass"] + len(report.failures) > 15
    return [case.id for case in report.failures]


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        ("divided", "bfloat16"),
        *(pytest.param(w, d, marks=pytest.mark.thorough) for w in ("before the division", "float32") for d in HALF),
    ],
)
def test_honest_attention_is_inside(weights: str, dtype: str) -> None:
    assert not failures("attention", attention(weights), dtype)


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("dtype", HALF)
def test_honest_latent_attention_is_inside(dtype: str) -> None:
    assert not failures("mla_logits", mla(), dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [1.03, 1.05])
def test_a_scale_that_is_off_is_found(factor: float) -> None:
    assert len(failures("attention", attention("divided", factor), "bfloat16")) > 5


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("factor", [0.98, 0.95])
def test_a_rotated_part_that_is_too_small_is_found(factor: float) -> None:
    assert len(failures("mla_logits", mla(factor), "bfloat16")) > 5


@pytest.mark.thorough
def test_class_low_is_not_changed() -> None:
    assert not failures("mla_logits", mla(0.98), "bfloat16", claim="low")


@pytest.mark.parametrize("dtype", HALF)
def test_many_keys_have_bounds_that_say_something(dtype: str) -> None:
    q, k, v = (torch.from_numpy(np.random.default_rng(n).normal(size=(n, 64))).to(getattr(torch, dtype)) for n in (9, 257, 257))
    inputs = {"q": q.double().numpy(), "k": k.double().numpy(), "v": v.double().numpy()}
    logits = inputs["q"] @ inputs["k"].T / 8
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ inputs["v"]
    width = half_widths("attention", Call({}, inputs, {"out": expected}), f"{OF_HALF[0]}-{dtype}")["out"]
    got = attention("divided")(q, k, v).double().numpy()
    assert np.all(np.abs(got - expected) <= width)
    assert np.median(width) < (0.2 if dtype == "bfloat16" else 0.02) * np.median(np.abs(expected))


def systematic_ratio(output: np.ndarray, call: Call) -> float:
    """Return the systematic error of logits in bfloat16, over its bound."""
    found = measure("attention_logits", call, "out", output, "fused", "bfloat16")
    return found.ratio


def test_an_error_that_all_values_share_is_told_from_roundings() -> None:
    """Both are within the bound of every single value."""
    rng = np.random.default_rng(3)
    q, k = (rng.integers(-99, 99, size=(n, 16)).astype(np.float64) for n in (200, 150))
    call = Call({"scale": 0.25}, {"q": q, "k": k}, {"out": q @ k.T / 4})  # an exact scale
    expected, one = call.expected["out"], 2.0**-8
    rounded = expected * (1 + one * rng.uniform(-1, 1, expected.shape))
    assert systematic_ratio(rounded, call) < 0.2
    assert systematic_ratio(expected * (1 + 0.9 * one), call) > 1
    assert systematic_ratio(expected + 0.9 * one * np.abs(expected), call) > 1


def test_a_scale_that_half_precision_does_not_hold_is_no_systematic_error() -> None:
    rng = np.random.default_rng(4)
    q, k = (rng.integers(-99, 99, size=(n, 112)).astype(np.float64) for n in (40, 30))
    call = Call({}, {"q": q, "k": k}, {"out": q @ k.T / np.sqrt(112)})
    held = q @ k.T * scaled(torch.empty((), dtype=torch.bfloat16), 112, None)
    assert 1e-3 < np.max(np.abs(held / call.expected["out"] - 1)) < 4e-3
    assert systematic_ratio(held, call) < 1

"""
Correct code in any order of factors: its float32 results are within the tolerances.

The inputs are those for which a definition's own order is exact: short numbers, one-hot rows and powers of two.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reordered import Reordered, Single
from sample import LARGEST, size, stored
from sampling import few, share

from posref.backends.numbers import Array
from posref.conformance.judge import judge
from posref.conformance.model import Arrays, Call
from posref.conformance.proof.evaluation import call_of
from posref.spec import REGISTRY, Axes
from posref.testing import assert_conforms

REALS = [op for op, record in REGISTRY.items() if record.returns == "real"]
CALLS = 36  # of each operation: more than 2000 of all
KINDS = ("short", "one-hot", "powers of two")


def drawn_calls(op: str, count: int, rng: np.random.Generator) -> list[Call]:
    """Return calls with the options of stored cases, the larger ones, and short reals."""
    cases = [c for c in stored(op) if c.kind == "value" and "float32" in c.dtypes and 0 < size(c.calls[0]) <= LARGEST]
    cases = sorted(cases, key=lambda c: size(c.calls[0]))[-count:]
    calls = []
    for index in range(count):
        call, kind = cases[index % len(cases)].calls[0], KINDS[rng.integers(len(KINDS))]
        inputs = {n: drawn(REGISTRY[op].arrays[n], x, kind, rng) for n, x in call.inputs.items()}
        calls.append(Call(call.params, inputs))
    return calls


def drawn(axes: Axes, x: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of at most eight bits in the place of reals of no domain, and anything else as it is."""
    if axes.kind not in ("real", "wide") or axes.positive or not axes.low is axes.high is None:
        return x
    if kind == "powers of two" and rng.random() < 0.5:
        return np.asarray(2.0 ** rng.integers(-3, 4, x.shape) * rng.choice([-1, 1], x.shape))
    found = np.asarray(np.round(rng.uniform(-5, 5, x.shape) * 32) / 32)
    if kind == "one-hot" and x.ndim and x.shape[-1] and rng.random() < 0.7:
        hot = rng.integers(0, x.shape[-1], x.shape[:-1])
        found = np.where(np.arange(x.shape[-1]) == np.asarray(hot)[..., None], found, 0.0)
    return found


def outputs_of(op: str, call: Call, rng: np.random.Generator) -> Arrays:
    """Return what float32 code in a drawn order gives."""
    found = call_of(Reordered(Single(), rng), op, call.inputs, call.params)
    return {n: np.asarray(x.parts[0] if isinstance(x, Array) else np.float32(x), dtype=float) for n, x in found.items()}


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of the run, which it prints."""
    return int(request.config.option.seed or 0)


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REALS))
def test_float32_code_in_a_drawn_order_conforms(op: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *op.encode()])
    failed, judged = [], 0
    for call in drawn_calls(op, CALLS, rng):
        found = judge(op, call, outputs_of(op, call, rng), "angle32", "float32", truth="live")
        judged += found.sample is not None
        failed += [f"{one} ({dict(call.params)})" for one in found.failures]
    assert not failed, f"seed {seed}: " + "\n".join(failed)
    assert judged > CALLS / 2


# ---- as people write them ------------------------------------------------------------------------------------------------
f32 = np.float32


def random_fourier_with_two_pi_first(rng: np.random.Generator) -> tuple[Any, ...]:
    x, b = short(rng, 32, (4, 1)), short(rng, 8, (1, 128))
    angle = x @ (b * f32(2 * np.pi))
    return np.concatenate([np.sin(angle), np.cos(angle)], -1), (x, b), {"layout": "sin_cos"}


def fourier_with_pi_on_the_bands(rng: np.random.Generator) -> tuple[Any, ...]:
    x, b = short(rng, 64, (16, 2)), np.arange(1, 17, dtype=f32)
    angle = x[..., None] * (b * f32(np.pi))
    y = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(16, -1)
    return y, (x, b), {"unit": "half_turns", "arrangement": "coordinate band wave", "include": "none"}


def attention_logits_with_roots(rng: np.random.Generator) -> tuple[Any, ...]:
    q, k, root = np.eye(8, dtype=f32), short(rng, 8, (8, 8)), f32(8**-0.25)
    return (q * root) @ (k * root).T, (q, k), {}


def attention_logits_with_q_scaled(rng: np.random.Generator) -> tuple[Any, ...]:
    q, k = short(rng, 512, (60, 1)), short(rng, 512, (60, 1))
    return (q * f32(0.3)) @ k.T, (q, k), {"scale": 0.3}


def attention_with_roots(rng: np.random.Generator) -> tuple[Any, ...]:
    q, k, v = 16 * short(rng, 8, (6, 8)) * np.eye(6, 8, dtype=f32), short(rng, 8, (2, 8)), np.eye(2, dtype=f32)
    root = f32(8**-0.25)
    logits = (q * root) @ (k * root).T
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v, (q, k, v), {}


def hierarchical_learned_as_interpolation(rng: np.random.Generator) -> tuple[Any, ...]:
    table, a, m = short(rng, 8, (6, 16)), f32(0.375), np.arange(36)
    u = (table - a * table[:1]) / (1 - a)
    return u[m % 6] + a * (u[m // 6] - u[m % 6]), (m, table), {"alpha": 0.375}


def hierarchical_learned_with_a_ratio(rng: np.random.Generator) -> tuple[Any, ...]:
    table, a, m = short(rng, 1, (6, 16)), f32(0.375), np.arange(36)
    shifted = table - a * table[:1]
    return a / (1 - a) * shifted[m // 6] + shifted[m % 6], (m, table), {"alpha": 0.375}


WRITTEN = (
    random_fourier_with_two_pi_first, fourier_with_pi_on_the_bands, attention_logits_with_roots, attention_logits_with_q_scaled,
    attention_with_roots, hierarchical_learned_as_interpolation, hierarchical_learned_with_a_ratio,
)  # fmt: skip


def short(rng: np.random.Generator, parts: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return float32 numbers that are whole multiples of 1 / parts."""
    return np.asarray(np.round(rng.uniform(-5, 5, shape) * parts) / parts, dtype=f32)


@few(4, "written", WRITTEN, ids=lambda f: f.__name__)
def test_code_in_an_order_that_people_write_conforms(written: Callable[..., Any]) -> None:
    op = next(op for op in sorted(REGISTRY, key=len, reverse=True) if written.__name__.startswith(op))
    for seed in range(12):
        y, arrays, options = written(np.random.default_rng(seed))
        assert y.dtype == f32
        assert_conforms(op, y, *arrays, **options)


def test_gradients_of_the_second_formula_conform() -> None:
    """The root of the scale on q and on k, for one key and for one-hot queries."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q, k = np.eye(5, 8, dtype=f32), short(rng, 8, (1 + 2 * (seed % 2), 8))
        g, root = short(rng, 8, (5, len(k))), f32(8**-0.25)
        found = {"q": (g @ (k * root)) * root, "k": (g.T @ (q * root)) * root}
        call = Call({"scale": None}, {"q": q, "k": k}, cotangents={"out": g.astype(float)})
        judgement = judge("attention_logits", call, found, "angle32", "float32", truth="live")
        assert judgement.verdict == "pass", (seed, judgement.worst)
        found["k"][0, 0] += f32(1e-4)
        assert judge("attention_logits", call, found, "angle32", "float32", truth="live").verdict == "fail"


def test_an_order_that_is_wrong_does_not_conform() -> None:
    y, arrays, options = random_fourier_with_two_pi_first(np.random.default_rng(0))
    y[2, 5] += f32(1e-4)
    with pytest.raises(AssertionError):
        assert_conforms("random_fourier", y, *arrays, **options)

"""Batch invariance: who gives a row the same bits alone as in a batch, told from who does not; no verdict changes."""

import json
from collections.abc import Callable
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from commands import run
from sampling import few

import posref
from posref.conformance import check
from posref.conformance.errors import TargetError
from posref.conformance.reports.document import batch_lines
from posref.conformance.reports.report import rendered
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.suite.schemas import validate
from posref.testing import assert_conforms

X = np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32)
P, ROPE = np.arange(6), {"layout": "half", "base": 10000.0}


def rotated(x: Any, positions: Any, dtype: Any, options: dict[str, Any]) -> Any:
    """RoPE in a dtype, rounded to that of x."""
    return posref.rope(x.astype(dtype), positions, **options).astype(x.dtype)


def by_pairs(x: Any, positions: Any, /, **options: Any) -> Any:
    """Row by row, in float64."""
    if x.ndim == 1:
        return rotated(x, positions, np.float64, options)
    at = np.broadcast_to(positions, x.shape[:-1])
    rows = [rotated(row, p, np.float64, options) for row, p in zip(x.reshape(-1, x.shape[-1]), at.reshape(-1), strict=True)]
    return np.asarray(rows, dtype=x.dtype).reshape(x.shape)


def logits_by_sums(q: Any, k: Any, /, *, bias: Any = None, scale: Any = None) -> Any:
    """Each logit is a sum of its own."""
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else k
    products = np.ascontiguousarray(q[..., :, None, :].astype(np.float64) * k[..., None, :, :])
    found = products.sum(axis=-1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return (found if bias is None else found + bias).astype(q.dtype)


def norm_by_rows(x: Any, weight: Any, /, *, eps: float, weight_offset: int) -> Any:
    x64 = np.ascontiguousarray(x, dtype=np.float64)
    return (x64 / np.sqrt((x64 * x64).mean(axis=-1, keepdims=True) + eps) * (weight + np.float64(weight_offset))).astype(
        x.dtype
    )


def logits_in_halves(q: Any, k: Any, /, *, bias: Any = None, scale: Any = None, softcap: Any = None) -> Any:
    """Sums over the channels in two parts if there are few queries. Numbers of few bits would not show it."""
    few = q.shape[-2] < 16 and q.shape[-1] > 1
    parts = np.split(np.arange(q.shape[-1]), [q.shape[-1] // 2] if few else [])
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else k
    found = sum(np.add.accumulate(q[..., :, None, part] * k[..., None, :, part], axis=-1)[..., -1] for part in parts)
    found = found * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    found = found if bias is None else found + bias
    return found if softcap is None else softcap * np.tanh(found / softcap)


def alone_in_float64(x: Any, positions: Any, /, **options: Any) -> Any:
    """Decoding has another kernel."""
    return rotated(x, positions, np.float64 if x.size // x.shape[-1] == 1 else np.float32, options)


def by_size(x: Any, positions: Any, /, **options: Any) -> Any:
    """From 64 tokens on another kernel."""
    return rotated(x, positions, np.float64 if x.ndim > 1 and x.shape[-2] >= 64 else np.float32, options)


def tail(x: Any, positions: Any, /, **options: Any) -> Any:
    """The last tokens that fill no vector have another path."""
    if x.ndim == 1 or not x.size:
        return rotated(x, positions, np.float64, options)
    found, exact = (rotated(x, positions, dtype, options) for dtype in (np.float32, np.float64))
    count = x.shape[-2]
    return np.where((np.arange(count) >= count // 4 * 4)[:, None], exact, found)


def from_first(x: Any, positions: Any, /, **options: Any) -> Any:
    """Angles are counted from the smallest position, which is a rotation of its own."""
    least = np.min(positions) if np.size(positions) else 0
    return rotated(
        rotated(x, positions - least, np.float32, options), np.broadcast_to(least, np.shape(positions)), np.float32, options
    )


def with_all(x: Any, positions: Any, /, **options: Any) -> Any:
    """Numbers of other rows times 0 are added: only NaN shows it."""
    return rotated(x, positions, np.float64, options) + 0 * np.sum(x)


def by_memory(x: Any, positions: Any, /, **options: Any) -> Any:
    """What lies in strides has another kernel."""
    return rotated(x, positions, np.float64 if x.flags.c_contiguous else np.float32, options)


class BatchGradient(torch.autograd.Function):
    """A right rotation, whose gradient is in float64 if there are many tokens."""

    @staticmethod
    def forward(context: Any, x: Any, positions: Any, options: dict[str, Any]) -> Any:
        context.save_for_backward(positions)
        context.options = options
        return posref.rope(x, positions, **options)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        [positions] = context.saved_tensors
        wide = gradient.double() if gradient.ndim > 1 and gradient.shape[-2] > 3 else gradient
        options = context.options | {"inverse": not context.options.get("inverse", False)}
        return posref.rope(wide, positions, **options).to(gradient.dtype), None, None


def gradient_by_size(x: Any, positions: Any, /, **options: Any) -> Any:
    return BatchGradient.apply(x, positions, options)


CASES = {  # in place of the first one of the operation
    "gradient": next(c.id for g in load_groups(INSTALLED, ops={"rope"}) for c in g.cases if c.kind == "vjp" and not c.form),
    "products of matrices": "attention_logits/plain/64",
}
ARE: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "definition": ("rope", "numpy", posref.rope),
    "definition in PyTorch": ("rope", "torch", posref.rope),
    "row by row": ("rope", "numpy", by_pairs),
    "biases": ("alibi", "numpy", posref.alibi),
    "sums of their own": ("attention_logits", "numpy", logits_by_sums),
    "norms of their own": ("rms_norm", "numpy", norm_by_rows),
    "table in PyTorch": ("rope_table", "torch", posref.rope_table),
}
ARE_NOT: dict[str, tuple[str, str, Callable[..., Any], str]] = {
    "one token": ("rope", "numpy", alone_in_float64, "differs from the row alone"),
    "many tokens": ("rope", "numpy", by_size, "of 64 along T differs"),
    "tail": ("rope", "numpy", tail, "along T differs"),
    "first position": ("rope", "numpy", from_first, "along T"),
    "other rows": ("rope", "numpy", with_all, "beside rows of NaN"),
    "memory": ("rope", "numpy", by_memory, "in strides"),
    "gradient": ("rope", "torch", gradient_by_size, "the gradient of x"),
    "products of matrices": ("attention_logits", "numpy", posref.attention_logits, " differs from the row alone"),
    "order of sums": ("attention_logits", "numpy", logits_in_halves, "along Q differs"),
}


@few(1, "name", [*ARE, *ARE_NOT])
def test_those_that_are_are_told_from_those_that_are_not(name: str) -> None:
    op, backend, function, *said = (*ARE.get(name, ()), *ARE_NOT.get(name, ()))
    options: dict[str, Any] = {"op": op} | ({"case": CASES[name]} if name in CASES else {"tier": "smoke"})
    target = SimpleNamespace(__name__="made", backend=backend, dtypes=("float32",), **{op: function})
    report, plain = (check(target, experiments=0, batch_invariant=batch, **options) for batch in (True, False))
    assert (report.verdict, report.exit_code, report.counts) == (plain.verdict, plain.exit_code, plain.counts)
    assert plain.batch is None
    assert report.batch is not None
    [found] = report.batch
    assert bool(found["broken"]) == (name in ARE_NOT), found
    assert found["compared"] >= 18 or found["broken"]
    assert all(words in found["broken"] for words in said)
    document = json.loads(json.dumps(report.to_json()))
    validate("report", document, "report")
    assert ("batch_invariance" in document, "batch_invariance" in plain.to_json()) == (True, False)
    assert len(batch_lines(document)) == 1 + (name in ARE_NOT)
    assert all("atch" in line and escape(line) in rendered(document, "html") for line in batch_lines(document))


@pytest.mark.thorough
def test_the_command_prints_a_line_of_its_own_and_keeps_the_verdict() -> None:
    case = CASES["products of matrices"]
    arguments = ["check", "posref", "--op", "attention_logits", "--dtype", "float32", "--case", case, "--experiments", "0"]
    with_line, without = (run(*arguments, *more) for more in (["--batch-invariant"], []))
    assert "batch invariance: 0 of 1 operations and dtypes" in with_line.output
    assert "not batch-invariant: attention_logits float32: row " in with_line.output
    assert "batch" not in without.output
    assert with_line.exit_code == without.exit_code == 0


@few(2, "name", [*ARE, *ARE_NOT])
def test_an_assertion_on_a_function(name: str) -> None:
    op, backend, function, *_ = (*ARE.get(name, ()), *ARE_NOT.get(name, ()))
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "rope": ((X[0], P), ROPE),
        "alibi": ((P[None].repeat(3, axis=0), P[None].repeat(3, axis=0)), {"heads": 4, "form": "causal"}),
        "attention_logits": ((X, X), {}),
        "rms_norm": ((X, X[0, 0]), {"eps": 1e-6, "weight_offset": 0}),
        "rope_table": ((P, np.ones(4, dtype=np.float32)), {}),
    }
    arrays, options = calls[op]
    arrays = tuple(map(torch.as_tensor, arrays)) if backend == "torch" else arrays
    if name in ARE:
        assert_conforms(op, function, *arrays, batch_invariant=True, **options)
        return
    with pytest.raises(AssertionError, match=f"{op} in float32 is not batch-invariant: row"):
        assert_conforms(op, function, *arrays, batch_invariant=True, **options)
    if name != "first position":  # which is also too far off where positions are large
        assert_conforms(op, function(*arrays, **options), *arrays, **options)


@pytest.mark.thorough
def test_an_assertion_says_both() -> None:
    def wrong(x: Any, positions: Any, /, **options: Any) -> Any:
        return 1.5 * by_size(x, positions, **options)

    with pytest.raises(AssertionError, match=r"(?s)not within angle32.*\nrope in float32 is not batch-invariant: "):
        assert_conforms("rope", wrong, X, P, batch_invariant=True, **ROPE)


def test_an_assertion_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(TypeError, match="actual must be a function if batch_invariant is True; got ndarray"):
        assert_conforms("rope", posref.rope(X, P, **ROPE), X, P, batch_invariant=True, **ROPE)
    with pytest.raises(TargetError, match="has no rows to compare"):
        assert_conforms("alibi_slopes", posref.alibi_slopes, 8, batch_invariant=True)

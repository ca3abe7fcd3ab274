"""The kernel tier: correct code passes, defects of kernels that no stored case sees are found, the rest is told."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run
from sampling import few

import posref
from posref.conformance import check
from posref.conformance.checks import choice as tier
from posref.conformance.checks.case_run import ask
from posref.conformance.errors import TargetError
from posref.conformance.evidence.every import kernel_cases, rules
from posref.conformance.evidence.every.facts import facts_of
from posref.conformance.model import CaseResult
from posref.conformance.suite.schemas import validate
from posref.conformance.targets.python import load_python
from posref.spec import REGISTRY

Array = np.ndarray[Any, Any]


def rope(x: Array, positions: Array, *, layout: str, base: float) -> Array:
    """Half layout, float32."""
    if layout != "half":
        raise NotImplementedError
    d = x.shape[-1]
    frequencies = np.float32(1) / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / np.float32(d))
    angles = np.asarray(positions)[..., None].astype(np.float32) * frequencies
    c, s = np.cos(angles), np.sin(angles)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1).astype(x.dtype)


def asked(name: str, dtype: str = "float32", **functions: Callable[..., Any]) -> CaseResult:
    """Return the verdict of one case; its explanation takes longer."""
    (case,) = tier.load([name.split("/", maxsplit=1)[0]], name)
    return ask(load_python(SimpleNamespace(**functions)), case, dtype)


def spoiled(change: Callable[[Array, Array], None]) -> Callable[..., Array]:
    """Return rope whose output is changed, given the input."""

    def wrong(x: Array, positions: Array, *, layout: str, base: float) -> Array:
        y = rope(x, positions, layout=layout, base=base)
        change(y, x)
        return y

    return wrong


def tail_of_tile(y: Array, x: Array) -> None:
    whole = x.shape[-2] // 32 * 32 if x.shape[-2] > 1 else 1
    y[..., whole:, :] = x[..., whole:, :]


def past_64_zero(y: Array, x: Array) -> None:
    y[..., 64:, :] = 0


def past_the_grid(y: Array, x: Array) -> None:
    y.reshape(-1, x.shape[-1])[65535:] = x.reshape(-1, x.shape[-1])[65535:]


def one_token_off(y: Array, x: Array) -> None:
    if x.shape[-2] > 3000:
        y[..., 3001, 7] += 0.2


def odd_heads(y: Array, x: Array) -> None:
    if x.ndim > 3:
        y[:, 32:] = x[:, 32:]


def wrong_from_33(x: Array, positions: Array, *, layout: str, base: float) -> Array:
    p = np.broadcast_to(positions, x.shape[:-1]).copy()
    p[..., 33:] += 1
    return rope(x, p, layout=layout, base=base)


@few(
    1,
    ("case", "wrong"),
    [
        ("tokens-257", spoiled(tail_of_tile)),
        ("tokens-257", spoiled(past_64_zero)),
        ("tokens-4097", spoiled(one_token_off)),
        ("heads-33", spoiled(odd_heads)),
        ("tokens-65", wrong_from_33),
    ],
)
def test_defects_of_kernels_are_found(case: str, wrong: Callable[..., Array]) -> None:
    """None of them has a failing case among the stored vectors: those have fewer tokens, rows and heads."""
    name = f"rope/kernel/half-{case}"
    right = asked(name, rope=rope)
    assert right.verdict == "pass", right.message
    failure = asked(name, rope=wrong)
    assert failure.verdict == "fail"
    assert f"--case {name}" in failure.reproduce


@pytest.mark.thorough
def test_the_worst_value_is_named_where_it_lies_in_the_whole() -> None:
    failure = asked("rope/kernel/half-rows-65537", rope=spoiled(past_the_grid))
    assert failure.worst["index"][0] >= 65535
    assert "of 4194368 values judged" in failure.message


def wrong_rows_from_8192(x: Array, positions: Array, **options: Any) -> Array:
    y = np.array(posref.mrope(x, positions, **options))
    y.reshape(-1, y.shape[-1])[8192:] = x.reshape(-1, x.shape[-1])[8192:]
    return y


@pytest.mark.thorough
def test_rows_that_are_lost_behind_heads_and_tokens_are_found() -> None:
    assert asked("mrope/kernel/half-heads-and-tokens", mrope=wrong_rows_from_8192).verdict == "fail"


@few(3, "op", [op for op in REGISTRY if kernel_cases._maker(op) is kernel_cases._rotating])
def test_a_rotation_has_more_rows_through_all_axes_than_a_grid_has_blocks(op: str) -> None:
    name = next(name for name in kernel_cases.names(op) if "heads-and-tokens" in name)
    [call] = kernel_cases.kernel(op, name)
    assert np.prod(call.inputs["x"].shape[:-1]) > 65535


def softmax(q: Array, k: Array, v: Array, mask: Array | None, keys: int) -> Array:
    """Attention over the first `keys` keys, in which query head h reads key head h // (H / G)."""
    groups = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(a, groups, axis=-3)[..., :keys, :] for a in (k, v))
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))
    logits = logits if mask is None else np.where(mask[..., :keys], logits, -np.inf)
    weights = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return np.asarray(weights / np.sum(weights, axis=-1, keepdims=True) @ v, dtype=q.dtype)


def attention(q: Array, k: Array, v: Array, *, mask: Array | None = None) -> Array:
    return softmax(q, k, v, mask, k.shape[-2])


def first_keys(q: Array, k: Array, v: Array, *, mask: Array | None = None) -> Array:
    return softmax(q, k, v, mask, k.shape[-2] // 64 * 64)


def other_groups(q: Array, k: Array, v: Array, *, mask: Array | None = None) -> Array:
    order = np.arange(q.shape[-3]) % k.shape[-3]
    return softmax(q, k[..., order, :, :], v[..., order, :, :], mask, k.shape[-2])


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "wrong"), [("keys-127", first_keys), ("keys-31", other_groups)])
def test_defects_of_attention_are_found(case: str, wrong: Callable[..., Array]) -> None:
    name = f"attention/kernel/{case}"
    assert asked(name, attention=attention).verdict == "pass"
    assert asked(name, attention=wrong).verdict == "fail"


def test_what_a_class_says_nothing_of_is_told_and_counts_nowhere() -> None:
    half = SimpleNamespace(attention=attention, dtypes=("float16",), claims={"float16": "low"})
    report = check(half, case="attention/kernel/keys-31")
    assert not report.counts
    assert not report.conformant
    assert any("1 kernel case not judged: low-float16" in note for note in report.target["notes"])


@pytest.mark.thorough(dear=True)
def test_core_and_kernel_cases_make_one_report() -> None:
    narrow = SimpleNamespace(alibi=lambda q, k, /, **options: posref.alibi(q, k, **options), dtypes=("float32",))
    report = check(narrow, op="alibi", tier="kernel")
    ids = {case.id for case in report.operations[0].cases}
    assert set(kernel_cases.names("alibi")) < ids
    assert len(ids) > len(kernel_cases.names("alibi")) + 20
    assert report.conformant
    validate("report", report.to_json(), Path("report.json"))


def test_every_operation_has_calls_in_the_kernel_tier() -> None:
    for op in REGISTRY:
        assert bool(kernel_cases.names(op)) is bool(facts_of(op).kernel), op
        assert next(rules.kernel(op), None) is not None, op


@few(1, "op", [op for op in REGISTRY if facts_of(op).kernel])
def test_an_operation_answers_the_smallest_of_its_kernel_calls(op: str) -> None:
    asked = min(kernel_cases.kernel(op), key=lambda c: sum(x.size for x in c.inputs.values()))
    [case] = tier.load([op], asked.id)
    result = ask(load_python("posref"), case, "float32" if REGISTRY[op].returns == "real" else "float64")
    assert result.verdict in ("pass", "not-judged"), (case.id, result.message)  # a class may say nothing of a value


def test_no_two_kernel_calls_have_one_name() -> None:
    for op in REGISTRY:
        names = kernel_cases.names(op)
        assert len(names) == len(set(names)), op


@few(1, "op", [op for op in REGISTRY if facts_of(op).kernel_sizes is not None])
def test_calls_of_other_kinds_are_large_and_right(op: str) -> None:
    """Some result has more than 64 channels or 256 rows, and no two calls have one name."""
    names = kernel_cases.names(op)
    assert len(names) == len(set(names))
    small = [name for name in names if "4099" not in name]
    largest = 0
    for case in (case for name in small for case in tier.load([op], name)):
        [call] = case.calls
        largest = max(largest, *(size for x in call.expected.values() for size in x.shape))
        dtype = "float32" if REGISTRY[op].returns == "real" else "float64"
        result = ask(load_python("posref"), case, dtype)
        assert result.verdict == "pass", (case.id, result.message)
    assert largest > 64


def beyond(limit: int, op: str, axis: int) -> Callable[..., Any]:
    """Return the reference, whose values beyond an index of an axis are 0."""

    def function(*arrays: Any, **options: Any) -> Any:
        out = np.array(REGISTRY[op].function(*arrays, **options))
        np.moveaxis(out.reshape(-1, out.shape[-1]), axis, 0)[limit:] = 0
        return out

    return function


@few(
    1,
    ("op", "limit", "axis"),
    [
        ("resample", 64, 1),
        ("fourier", 256, 0),
        ("conv_positions", 64, 1),
        ("peg", 256, 0),
        ("timestep", 1024, 0),
        ("weight_norm", 128, 1),
    ],
)
def test_what_is_not_computed_beyond_a_block_is_found(op: str, limit: int, axis: int) -> None:
    target = load_python(SimpleNamespace(**{op: beyond(limit, op, axis)}))
    names = [name for name in kernel_cases.names(op) if "4099" not in name]
    verdicts = [ask(target, case, "float32").verdict for name in names for case in tier.load([op], name)]
    assert "fail" in verdicts


def sixteen_bits(op: str) -> Callable[..., Any]:
    """Return a function that computes 65535 rows of leading axes, or writes into slots that 16 bits count."""

    def function(x: Array, *others: Any, **options: Any) -> Any:
        if op == "write_cache":
            return posref.write_cache(x, others[0], np.where(others[1] < 32768, others[1], -1), **options)
        out = getattr(posref, op)(x, *others, **options)
        out.reshape(-1, *out.shape[-2:])[65535:] = 0
        return out

    return function


@few(1, "op", ["write_cache", "apply_rope", "attention_logits", "relative_shift"])
def test_a_count_of_16_bits_is_found(op: str) -> None:
    target = load_python(SimpleNamespace(**{op: sixteen_bits(op)}))
    names = [case.id for case in rules.kernel(op) if "/limit-" in case.id]
    assert [ask(target, case, "float32").verdict for name in names for case in tier.load([op], name)] == ["fail"] * len(names)
    assert names


def rotate_by_xor(x: Array, positions: Array, *, layout: str, base: float, rotary_dim: int | None = None) -> Array:
    """Rotate with the partner that is found by XOR of the channel with half of the rotated width."""
    if layout != "half":
        raise NotImplementedError
    part = rotary_dim or x.shape[-1]
    channel = np.arange(part)
    angle = positions[..., None].astype(np.float64) * base ** (-2.0 * (channel % (part // 2)) / part)
    partner = x[..., (channel ^ (part // 2)) % part]
    rotated = x[..., :part] * np.cos(angle) + np.where(channel < part // 2, -1.0, 1.0) * partner * np.sin(angle)
    return np.concatenate([rotated.astype(x.dtype), x[..., part:]], -1)


def test_a_partner_by_xor_is_found_at_every_head_size() -> None:
    names = [name for name in kernel_cases.names("rope") if "half-part" in name]
    assert len(names) == 12
    for name in names:
        part = int(name.split("-")[-3])
        verdict = asked(name, rope=rotate_by_xor).verdict
        assert verdict == ("pass" if part & (part - 1) == 0 else "fail"), name


def test_a_case_is_a_function_of_its_id() -> None:
    name = "rope/kernel/half-tokens-65"
    (one,), (other,) = tier.load(["rope"], name), tier.load(["rope"], name)
    assert all(np.array_equal(one.calls[0].inputs[n], x) for n, x in other.calls[0].inputs.items())
    with pytest.raises(TargetError, match="posref list --cases rope --tier kernel"):
        list(tier.load(["rope"], "rope/kernel/none"))


def test_the_command_line_lists_the_tier() -> None:
    listed = run("list", "--cases", "sliding_window", "--tier", "kernel")
    assert "sliding_window/kernel/causal-keys-129" in listed.output


def test_a_program_is_asked_kernel_cases() -> None:
    harness = Path(__file__).parent / "harnesses" / "right.py"
    report = check(command=[sys.executable, str(harness)], case="sinusoidal/kernel/interleaved-tokens-129")
    assert report.counts == {"pass": 1}, report.failures

"""Gradients: rules against differences, two witnesses, bounds that autograd keeps, and wrong backward passes that are found."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from every_encoding.cases import gradients_are_asked, is_of_tables, worst_of
from sample import stored
from sampling import few, share
from test_vectors import reseal, suite_of

import posref
from posref.attention.stick_breaking import log_sigmoid
from posref.backends.adjoints import Adjoints
from posref.backends.bounds import bounds
from posref.backends.exact import correctly_rounded, exact, precision
from posref.bias.bias_gate import sigmoid
from posref.bias.continuous_position_bias import bounded_bias
from posref.bias.dynamic_position_bias import silu
from posref.conformance import Unsupported, check, golden
from posref.conformance.calls import broadcast_axes
from posref.conformance.errors import BuildError
from posref.conformance.evidence.catalogue import cases_of
from posref.conformance.model import Case, LoadedCase
from posref.conformance.proof import witnesses
from posref.conformance.proof.build import build_group, verify
from posref.conformance.proof.evaluation import Pullback
from posref.conformance.reports.report import Report
from posref.conformance.suite.reader import load_groups
from posref.conformance.witness import learned as transcription
from posref.core.matrices import cayley_transform, skew_symmetric
from posref.rotary.pope import softplus
from posref.rotary.rotary_linear_attention import _elu
from posref.spec import REGISTRY, Axes, encoding

RNG = np.random.default_rng(11)
A, B = RNG.standard_normal((2, 3)), RNG.standard_normal((2, 3))
ROW, TALL = RNG.standard_normal(3), RNG.standard_normal((4, 3, 2))
SQUARES = RNG.standard_normal((2, 3, 3))
PICKED = np.asarray([2, 0, 2, 2, 1])
RULES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "add": (lambda xp, a, b: a + b, (A, ROW)),
    "subtract": (lambda xp, a, b: a - b * 3 - 2, (ROW, B)),
    "multiply": (lambda xp, a, b: a * b, (A, ROW)),
    "square": (lambda xp, a: a * a * a, (A,)),
    "divide": (lambda xp, a, b: a / b, (ROW, B)),
    "pow": (lambda xp, a, b: a**b, (np.abs(A), ROW)),
    "exp": (lambda xp, a: xp.exp(a), (A,)),
    "log": (lambda xp, a: xp.log(a), (np.abs(A),)),
    "sqrt": (lambda xp, a: xp.sqrt(a), (np.abs(A),)),
    "tanh": (lambda xp, a: xp.tanh(a), (A,)),
    "sin": (lambda xp, a: xp.sin(a), (A * 9,)),
    "cos": (lambda xp, a: xp.cos(a), (A * 9,)),
    "abs": (lambda xp, a: xp.abs(a), (A,)),
    "negative": (lambda xp, a: -a, (A,)),
    "minimum": (lambda xp, a, b: xp.minimum(a, b), (A, ROW)),
    "maximum": (lambda xp, a, b: xp.maximum(a, b), (ROW, B)),
    "clip": (lambda xp, a: xp.clip(a, -0.5, 0.25), (A,)),
    "where": (lambda xp, a, b: xp.where(a > 0, a, b * b), (A, ROW)),
    "sum": (lambda xp, a: xp.sum(a * a, axis=0), (A,)),
    "sum, kept": (lambda xp, a: a / xp.sum(a, axis=-1, keepdims=True), (np.abs(A),)),
    "cumulative sum": (lambda xp, a: xp.cumulative_sum(a * a, axis=1), (A,)),
    "max": (lambda xp, a: xp.max(a, axis=0), (A,)),
    "max, kept": (lambda xp, a: a * xp.max(a, axis=-1, keepdims=True), (A,)),
    "softmax": (lambda xp, a: xp.exp(a) / xp.sum(xp.exp(a), axis=-1, keepdims=True), (A,)),
    "floor": (lambda xp, a: xp.floor(a) + xp.ceil(a) + a, (A,)),
    "elements": (lambda xp, a: a[..., ::2] * a[0, 1], (A,)),
    "reshape": (lambda xp, a: xp.reshape(a, (3, 2)) * a[0, 0], (A,)),
    "broadcast": (lambda xp, a: xp.broadcast_to(a, (4, 2, 3)) * 2, (A,)),
    "permute_dims": (lambda xp, a: xp.permute_dims(a, (1, 2, 0)), (TALL,)),
    "take": (lambda xp, a: xp.take(a, xp.asarray(PICKED), axis=1), (A,)),
    "stack": (lambda xp, a, b: xp.stack([a, b, a], axis=-1), (A, B)),
    "concat": (lambda xp, a, b: xp.concat([a, b, a], axis=1), (A, B)),
    "matmul": (lambda xp, a, b: xp.matmul(a, b), (A, TALL)),
    "constant sine": (lambda xp, a: a * xp.constant_sin(xp.asarray(ROW, dtype=xp.float64)), (A,)),
    "half turns": (lambda xp, a: xp.sin_pi(a) * xp.cos_pi(a * a), (A,)),
    "skew exponential": (lambda xp, a: xp.skew_exponential(skew_symmetric(a)), (SQUARES,)),
    "Cayley transform": (lambda xp, a: cayley_transform(skew_symmetric(a)), (SQUARES,)),
    "matmul, turned": (lambda xp, a, b: xp.matmul(xp.matrix_transpose(b), xp.matrix_transpose(a)), (A, TALL)),
}


def cotangent(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(1.0 + np.arange(int(np.prod(shape)))).reshape(shape)


def pulled_back(base: Any, function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> list[Any]:
    """Return the gradients of a function in arrays, over another number system."""
    xp = Adjoints(base)
    leaves = [xp.leaf(base.asarray(x, dtype=base.float64)) for x in arrays]
    out = function(xp, *leaves)
    return xp.pull_back([out], [base.asarray(cotangent(out.shape), dtype=base.float64)], leaves)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_the_limit_of_differences(name: str) -> None:
    """On balls of 600 bits, a central difference with a step of 2^-100 is as good as exact."""
    function, arrays = RULES[name]

    def total(*values: Any) -> Any:
        out = function(exact, *values)
        return np.sum(out.parts[0] * exact.asarray(cotangent(out.shape)).parts[0])

    with precision(600):
        step = exact.asarray(np.asarray(2.0**-100))
        for k, gradient in enumerate(pulled_back(exact, function, arrays)):
            assert gradient.shape == arrays[k].shape
            for index in np.ndindex(arrays[k].shape):
                one = np.zeros(arrays[k].shape)
                one[index] = 1
                ends = []
                for sign in (1, -1):
                    values = [exact.asarray(x) for x in arrays]
                    values[k] = values[k] + exact.asarray(one) * step * sign
                    ends.append(total(*values))
                up, down = ends
                slope = (up - down) / (step.parts[0].item() * 2)
                assert abs(float((slope - gradient.parts[0][index]).mid())) < 1e-40, (name, index)


@pytest.mark.parametrize("accuracy", ["angle32", "float64"])
@pytest.mark.parametrize("name", RULES)
def test_bounds_of_a_rule_hold_the_truth(name: str, accuracy: str) -> None:
    """The value that bounds are about is the one on balls, to within them."""
    function, arrays = RULES[name]
    with precision(200):
        true = [correctly_rounded(g) for g in pulled_back(exact, function, arrays)]
    for gradient, expected in zip(pulled_back(bounds(accuracy), function, arrays), true, strict=True):
        value, error, _ = gradient.parts
        assert np.all(np.abs(value - expected) <= error + 1e-14)
        assert np.all(error < 1e-3)


def test_an_undecided_maximum_allows_every_share() -> None:
    tied = np.asarray([1.0, 1.0, 0.0])
    with precision(64):
        (gradient,) = pulled_back(exact, lambda xp, a: xp.max(a, axis=0), (tied,))
        shares = gradient.parts[0] / exact.asarray(cotangent(())).parts[0].item()
        assert [share.contains(x) for share, x in zip(shares, (0, 1, 0), strict=True)] == [True, True, True]
        assert [share.contains(0.5) for share in shares] == [True, True, False]


@pytest.mark.parametrize("inside", [0.001, -0.001])
def test_an_undecided_relu_allows_both_derivatives_about_the_true_one(inside: float) -> None:
    """In bfloat16 1 * 1 - 1.001 may have either sign, so that honest code may drop a cotangent or pass it on."""
    for accuracy, undecided in (("float64", False), ("low-bfloat16", True)):
        xp = Adjoints(bounds(accuracy))
        a, b, zero, one = (xp.base.asarray(np.asarray(x), dtype=xp.base.float32) for x in (1.0, inside - 1.0, 0.0, 1.0))
        leaves = [xp.leaf(a), xp.leaf(b)]
        out = xp.maximum(leaves[0] * leaves[0] + leaves[1], zero)
        for gradient, size in zip(xp.pull_back([out], [one], leaves), (2.0, 1.0), strict=True):
            value, error, _ = gradient.parts
            assert value == size * (inside > 0)
            assert (error >= size) == undecided


# ---- the cases ------------------------------------------------------------


def test_a_wrong_rule_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second witness does not share it."""
    case = next(c for c in cases_of("attention") if c.id == "attention/gradient/plain")
    assert build_group([case]).data

    def halved(self: Adjoints, x: Any) -> Any:
        power = self.base.exp(self._plain(x))
        return self._node(power, (x, lambda g: g * power / 2))

    monkeypatch.setattr(Adjoints, "exp", halved)
    with pytest.raises(BuildError, match="attention/gradient/plain: the witnesses disagree at out/q"):
        build_group([case])


def test_a_wrong_transcription_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    right = transcription.learned
    monkeypatch.setattr(
        transcription, "learned", lambda p, t, *, offset=0: right(p, [[2 * x for x in row] for row in t], offset=offset)
    )
    with pytest.raises(BuildError, match="the witnesses disagree at out/table"):
        build_group([next(c for c in cases_of("learned") if c.id == "learned/gradient/repeated")])


def test_cotangents_of_another_shape_are_refused() -> None:
    case = Case("learned/x/y", {}, {"positions": (0, 1), "table": A}, ("repeated",), kind="vjp", cotangents={"out": A[:1]})
    with pytest.raises(BuildError, match="cotangents must be of the outputs' names and shapes"):
        build_group([case])


def test_a_toy_encoding_gets_gradients_with_no_new_code() -> None:
    arrays = {"positions": Axes("P", "position"), "rates": Axes("n")}

    @encoding(family="absolute", source="nobody", arrays=arrays, result="P n")
    def toy_decay(positions: Any, rates: Any, /) -> Any:
        xp = posref.core.arrays.namespace(rates)
        return xp.exp(-posref.core.arrays.cast(positions, xp.float64)[:, None] * rates)

    try:
        inputs = {"positions": np.asarray([0, 1, 3]), "rates": np.asarray([0.5, 0.25])}
        pullback = Pullback({"out": cotangent((3, 2))}, ("rates",))
        true = golden(toy_decay, inputs, {}, pullback)["rates"]
        p, r = inputs["positions"][:, None], inputs["rates"]
        # three terms, each an exponential and two products
        assert np.allclose(true, np.sum(-p * np.exp(-p * r) * cotangent((3, 2)), axis=0), rtol=4 * 2**-52, atol=0)
        width = witnesses.half_widths("toy_decay", inputs, {}, "angle32", {"rates": true}, pullback)["rates"]
        assert np.all((width > 0) & (width < 1e-5))
    finally:
        del REGISTRY["toy_decay"]


@few(1, "role", ["ct", "out"])
def test_an_altered_tensor_is_found(tmp_path: Path, role: str) -> None:
    suite_of(tmp_path / "s", "shaw_values/gradient")
    data = dict(next(iter(load_groups(tmp_path / "s"))).data)
    name = min(n for n in data if n.startswith(f"forward/{role}/"))
    data[name] = data[name] * (1 + 2**-52)
    reseal(tmp_path / "s", "shaw_values/gradient", data=data)
    assert any("shaw_values/gradient/forward" in p and name in p for p in verify(tmp_path / "s"))


OF_REALS = [
    op
    for op, record in REGISTRY.items()
    if {"real", "wide"} & {axes.kind for axes in record.arrays.values()} and gradients_are_asked(op)
]


@pytest.mark.thorough
@pytest.mark.usefixtures("compiled_code_is_forgotten")
@pytest.mark.parametrize("op", share(OF_REALS))
def test_automatic_differentiation_on_jax_keeps_within_the_bounds(op: str) -> None:
    """Of the last case and the largest, since JAX compiles every shape by itself."""
    own = [case for case in stored(op) if case.kind == "vjp"]
    largest = max(reversed(own), key=lambda case: sum(x.size for x in case.calls[0].expected.values()))
    worst = worst_of("jax", {case.id: case for case in (own[-1], largest)}.values(), ("float32",))["float32"]
    assert is_of_tables(op) or not 0 < worst < 0.01


# ---- wrong backward passes --------------------------------------------------


def like_autograd(
    op: str, inputs: dict[str, Any], params: dict[str, Any], cotangents: dict[str, Any], wrt: tuple[str, ...]
) -> Any:
    """Return the right gradients, as an implementation's own vjp."""
    leaves = {n: inputs[n].detach().requires_grad_() for n in wrt}
    function = REGISTRY[op].function
    given = {**inputs, **leaves}
    parameters = inspect.signature(function).parameters
    positional = [given.pop(n) for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY and n in given]
    options = {"dtype": cotangents["cos"].dtype} if "cos" in cotangents and "dtype" in parameters else {}
    outputs = function(*positional, **given, **params, **options)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    found = torch.autograd.grad(outputs, list(leaves.values()), [cotangents[n] for n in REGISTRY[op].outputs])
    return dict(zip(wrt, found, strict=True))


def forwards(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    right = like_autograd(op, inputs, params, cotangents, wrt)
    return right | {"x": posref.apply_rope(cotangents["out"], inputs["cos"], inputs["sin"], **params)} if "x" in wrt else right


def other_half_of_the_sine(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    """The defect of PaddlePaddle #74716 where cos and sin are a table for each lane: here, the sines of the other pairs."""
    return like_autograd(op, inputs | {"sin": inputs["sin"].flip(-1)}, params, cotangents, wrt)


def tail_of_ones(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    right = like_autograd(op, inputs, params, cotangents, wrt)
    if "x" in wrt:
        right["x"][..., 2 * inputs["cos"].shape[-1] :] = 1.0
    return right


def sums_forgotten(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    """Row 0 of the batch alone goes into the tables' gradients."""
    first = {n: torch.where(torch.arange(len(c)).reshape(-1, *[1] * (c.ndim - 1)) == 0, c, 0) for n, c in cotangents.items()}
    wrong = like_autograd(op, inputs, params, first, wrt)
    return wrong | {n: g for n, g in like_autograd(op, inputs, params, cotangents, wrt).items() if n == "x"}


def factor_dropped(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    return like_autograd(
        op, inputs, {n: v for n, v in params.items() if n not in ("scaling", "attention_factor")}, cotangents, wrt
    )


def overwritten(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    gradient = torch.zeros_like(inputs["table"])
    gradient[inputs["positions"] + params.get("offset", 0)] = cotangents["out"]
    return {"table": gradient}


def not_a_number(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    right = like_autograd(op, inputs, params, cotangents, wrt)
    if "mask" in inputs:
        right["q"] = torch.where(inputs["mask"].any(-1, keepdim=True), right["q"], torch.nan)
    return right


def without_its_own_term(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    """P dP: the softmax differentiated as if its sum were constant."""
    detached = {n: x.detach() for n, x in inputs.items()}
    q, k, v = (detached[n].requires_grad_() for n in ("q", "k", "v"))
    logits = posref.attention_logits(q, k, bias=detached.get("bias"), scale=params.get("scale"))
    weights = torch.exp(logits) / torch.exp(logits).sum(-1, keepdim=True).detach()
    return dict(zip(("q", "k", "v"), torch.autograd.grad(weights @ v, (q, k, v), cotangents["out"]), strict=True))


def in_place(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    right = like_autograd(op, inputs, params, cotangents, wrt)
    inputs["sin"].neg_()
    return right


def in_the_cotangent(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    right = like_autograd(op, inputs, params, cotangents, wrt)
    cotangents["out"].mul_(0.5)
    return right


def half_missing(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    return {n: g for n, g in like_autograd(op, inputs, params, cotangents, wrt).items() if n == "x"}


def widened(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    return {n: g.double() for n, g in like_autograd(op, inputs, params, cotangents, wrt).items()}


def not_a_dict(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
    return tuple(like_autograd(op, inputs, params, cotangents, wrt).values())


def asked(op: str, vjp: Any = None, *, backend: str = "torch") -> Report:
    """Return the report on the reference with another vjp, in float32."""
    gradients = {} if vjp is None else {"vjp": vjp}
    return check(SimpleNamespace(backend=backend, **{op: REGISTRY[op].function}, **gradients), op=op, experiments=0)


def vjp_cases(report: Report) -> dict[str, Any]:
    return {case.id.rsplit("/", maxsplit=1)[1]: case for op in report.operations for case in op.cases if case.kind == "vjp"}


@few(1, "op", ["apply_rope", "rope_table", "t5_bias", "attention"])
def test_a_right_vjp_passes_all(op: str) -> None:
    report = asked(op, like_autograd)
    assert {case.verdict for case in vjp_cases(report).values()} == {"pass"}
    assert report.conformant


@few(
    1,
    ("op", "wrong", "name", "message"),
    [
        ("apply_rope", forwards, "half", "class|allows"),
        ("apply_rope", other_half_of_the_sine, "half", "allows"),
        ("apply_rope", tail_of_ones, "partial", "must be exact|allows"),
        ("apply_rope", sums_forgotten, "tables", "allows"),
        ("apply_rope", in_place, "half", "changed its input sin"),
        ("apply_rope", in_the_cotangent, "half", "changed its input the cotangent of out"),
        ("apply_rope", half_missing, "tables", "vjp returned no gradient of cos"),
        ("apply_rope", widened, "half", "the gradient of x must be float32, as x is; got float64"),
        ("apply_rope", not_a_dict, "half", "vjp must return a dict of gradients"),
        ("rope", factor_dropped, "gain", "must be exact|allows"),
        ("rope_table", factor_dropped, "factor", "allows"),
        ("learned", overwritten, "repeated", "allows|exact"),
        ("attention", not_a_number, "empty-row", "must be finite"),
        ("attention", without_its_own_term, "plain", "allows"),
    ],
)
def test_a_wrong_backward_pass_is_found(op: str, wrong: Any, name: str, message: str) -> None:
    """By the case of this name among others, and by gradients alone: the values are right."""
    report = asked(op, wrong)
    assert not report.conformant
    assert {case.kind for case in report.failures if case.verdict == "fail"} == {"vjp"}
    found = [case for case in report.failures if case.id == f"{op}/gradient/{name}"]
    assert found, [case.id for case in report.failures]
    assert any(re.search(message, case.message) for case in found), [case.message for case in found]


def test_what_autograd_cannot_do_is_unsupported_and_does_not_count() -> None:
    def no_gradient(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        with torch.no_grad():
            return posref.apply_rope(x, cos, sin, **options)

    def through_numpy(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        return torch.from_numpy(posref.apply_rope(x.numpy(), cos.numpy(), sin.numpy(), **options))

    for function, message in ((no_gradient, "it finds no dependence of the result on"), (through_numpy, "Can't call numpy")):
        report = check(SimpleNamespace(backend="torch", apply_rope=function), op="apply_rope")
        assert report.conformant
        for case in vjp_cases(report).values():
            assert case.verdict == "unsupported"
            assert message in case.message


class Raising(torch.autograd.Function):
    """The rotation is right, and its backward pass raises."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str) -> torch.Tensor:
        return posref.apply_rope(x, cos, sin, layout=layout)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad @ torch.ones(3, 7), None, None, None


def test_a_backward_pass_that_raises_is_no_refusal() -> None:
    def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, /, *, layout: str) -> torch.Tensor:
        return Raising.apply(x, cos, sin, layout)

    target = SimpleNamespace(apply_rope=apply_rope, backend="torch", dtypes=("float32",))
    report = check(target, case="apply_rope/gradient/half")
    assert not report.conformant


def test_a_library_without_gradients_says_what_to_do() -> None:
    report = asked("learned", backend="numpy")
    assert {c.message for c in vjp_cases(report).values()} == {"numpy has no automatic gradients: define vjp()"}
    assert report.conformant


def test_a_vjp_may_lack_some_and_must_not_raise() -> None:
    def of_x_alone(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
        if wrt != ("x",):
            raise Unsupported("only gradients of x")
        return like_autograd(op, inputs, params, cotangents, wrt)

    found = vjp_cases(asked("apply_rope", of_x_alone))
    assert found["half"].verdict == "pass"
    assert found["tables"].verdict == "unsupported"

    def broken(op: str, inputs: Any, params: Any, cotangents: Any, wrt: Any) -> Any:
        raise NameError("name 'conjugate' is not defined")

    found = vjp_cases(asked("apply_rope", broken))
    assert {case.verdict for case in found.values()} == {"error"}


# ---- forms of input ---------------------------------------------------------


def of_values(op: str) -> list[LoadedCase]:
    return [case for case in stored(op) if case.kind == "value" and "float32" in case.dtypes]


def formed(op: str, form: str) -> set[str]:
    return {case.id for case in of_values(op) if case.form == form}


@few(1, "op", ["rope", "apply_rope"])
def test_torch_views_fail_in_views_alone(op: str) -> None:
    """`.view` needs values that lie one after another."""

    def flat(x: Any, *rest: Any, **options: Any) -> Any:
        return REGISTRY[op].function(x.view(-1).view(x.shape), *rest, **options)

    report = check(SimpleNamespace(backend="torch", **{op: flat}), op=op, experiments=0)
    views = [case for case in of_values(op) if case.form == "broadcast-view"]
    expanded = {case.id for case in views if broadcast_axes(case.calls[0].inputs["x"])}
    failing = {case.id for case in report.failures if case.verdict != "selective"}  # a gradient that torch refuses
    assert failing == formed(op, "non-contiguous") | expanded
    assert {case.verdict for case in report.failures if case.verdict != "selective"} == {"error"}


@pytest.mark.thorough(dear=True)
@few(2, "op", ["t5_buckets", "sinusoidal", "rope", "learned", "attention"])
def test_numpy_buffers_read_as_if_contiguous_fail_in_views_alone(op: str) -> None:
    def contiguous(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or 0 in x.strides or x.flags.c_contiguous:
            return x
        plain = np.empty(x.shape, x.dtype).strides
        return np.lib.stride_tricks.as_strided(x, shape=x.shape, strides=plain)

    def reading(*arrays: Any, **options: Any) -> Any:
        given = {n: contiguous(v) for n, v in options.items()}
        return REGISTRY[op].function(*map(contiguous, arrays), **given)

    reading.__signature__ = inspect.signature(REGISTRY[op].function)  # type: ignore[attr-defined]
    report = check(SimpleNamespace(**{op: reading}), op=op, experiments=0)
    assert {case.id for case in report.failures} == formed(op, "non-contiguous")


def test_writing_into_a_broadcast_view_is_found() -> None:
    def in_place(x: Any, positions: Any, /, **options: Any) -> Any:
        x[...] = posref.rope(x, positions, **options)
        return x

    report = check(SimpleNamespace(rope=in_place), op="rope", experiments=0)
    assert formed("rope", "broadcast-view") <= {case.id for case in report.failures}


# ---- sines and cosines of less accuracy ---------------------------------------


def test_the_sensitivity_bounds_what_wrong_sines_do() -> None:
    """And is reached, where every sine and cosine is off by as much as allowed, with the worst signs."""
    error = 2.0**-11
    for case in (c for c in stored("rope") if c.kind == "value" and c.calls[0].expected["out"].size):
        assert np.all(case.calls[0].widths["trig"]["out"] >= 0)
    case = next(c for c in stored("rope") if c.id == "rope/yarn/given-factor")
    (call,) = case.calls
    x, sensitivity = call.inputs["x"], call.widths["trig"]["out"].astype(np.float64)
    factor, half = 1.25, x.shape[-1] // 2
    a, b = np.abs(x[..., :half]), np.abs(x[..., half:])
    # stored with 11 bits, rounded up
    assert np.allclose(sensitivity, factor * np.concatenate([a + b, a + b], axis=-1), rtol=2**-10, atol=0)
    inv_freq, attention_factor = posref.rope_frequencies(x.shape[-1], base=call.params["base"], scaling=call.params["scaling"])
    cos, sin = posref.rope_table(call.inputs["positions"], inv_freq)
    worst = np.zeros(x.shape)
    for up in (-1, 1):
        for across in (-1, 1):
            tables = (cos + up * error) * attention_factor, (sin + across * error) * attention_factor
            worst = np.maximum(worst, np.abs(posref.apply_rope(x, *tables, layout="half") - call.expected["out"]))
    assert np.all(worst <= error * sensitivity * (1 + 1e-6) + 1e-12)
    assert np.all(worst >= error * sensitivity * 0.99)


SLOPES = {  # at 0, where libraries differ in the derivatives of abs, minimum and maximum
    softplus: 0.5,
    sigmoid: 0.25,
    silu: 0.5,
    log_sigmoid: 0.5,
    bounded_bias: 4.0,
    _elu: 1.0,
}


@few(2, "function", SLOPES, ids=lambda f: f.__name__)
def test_functions_with_a_case_for_each_sign_have_their_slope_at_zero(function: Callable[..., Any]) -> None:
    import jax

    x = torch.zeros((), requires_grad=True)
    function(x).backward()
    assert x.grad is not None
    assert float(x.grad) == pytest.approx(SLOPES[function])
    assert float(jax.grad(function)(jax.numpy.zeros(()))) == pytest.approx(SLOPES[function])


def test_a_kernel_in_place_has_no_gradients_and_conforms() -> None:
    """What is written under `torch.no_grad` is seen by no automatic differentiation, whatever `supports` says."""

    @torch.no_grad()
    def apply_rope(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
        if layout != "half" or 2 * cos.shape[-1] != x.shape[-1]:
            raise Unsupported(layout)
        a, b = (part.clone() for part in x.chunk(2, -1))
        x[...] = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        return x

    stated = SimpleNamespace(apply_rope=apply_rope, backend="torch", in_place=("x",))
    report = check(stated, op="apply_rope", dtype="float32", experiments=0)
    assert report.conformant
    assert not report.failures

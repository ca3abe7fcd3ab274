"""The checker against implementations that are wrong in every way: exact verdicts, and none of them conformant."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref import conformance
from posref.conformance import Unsupported
from posref.conformance.checks import conclusion
from posref.conformance.checks.learned_scope import CALLS
from posref.conformance.errors import TargetError, VectorError
from posref.conformance.model import BAD
from posref.conformance.reports import terminal
from posref.conformance.reports.document import verdict_text
from posref.conformance.reports.report import Report
from posref.conformance.suite.reader import INSTALLED, load_groups, parse
from posref.conformance.suite.schemas import validator
from posref.spec import REGISTRY

check, check_call = (partial(f, experiments=0) for f in (conformance.check, conformance.check_call))  # stored cases decide
Options = Mapping[str, Any]
APART = ("reject", "vjp")  # cases that ask for no values


def of_values(case: Any) -> bool:
    """Return whether a case asks these implementations for values: they say nothing of the newer context extensions."""
    return case.kind not in APART and "its scalings do not list" not in getattr(case, "message", "")


def right(x: Any, positions: Any, /, **options: Any) -> Any:
    return posref.rope(x, positions, **options)


def verdicts(report: Report, *, reject: bool = False) -> dict[str, int]:
    """Return cases with values by verdict, or only those that must be rejected. Of gradients NumPy has none."""
    found: dict[str, int] = {}
    for case in (case for op in report.operations for case in op.cases):
        if case.kind == "reject" if reject else of_values(case):
            found[case.verdict] = found.get(case.verdict, 0) + 1
    return found


@cache
def sizes() -> dict[str, int]:
    """Return how many values are expected in every case of rope that asks for them."""
    cases = [case for group in load_groups(INSTALLED, ops=("rope",)) for case in group.cases if case.kind not in APART]
    return {case.id: sum(call.expected["out"].size for call in case.calls) for case in cases}


def empty() -> set[str]:
    return {case for case, size in sizes().items() if size == 0}


def asked(report: Report) -> int:
    return sum(verdicts(report).values())


class Remembering:
    """Returns what it returned to the first call of a shape."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def rope(self, x: Any, positions: Any, /, **options: Any) -> Any:
        return self.kept.setdefault((x.shape, positions.shape), right(x, positions, **options))


class Noisy:
    """Adds noise that no two calls share."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def rope(self, x: Any, positions: Any, /, **options: Any) -> Any:
        out = right(x, positions, **options)
        return (out * (1 + self.rng.uniform(-1e-9, 1e-9, out.shape) + 2e-7 * self.rng.integers(0, 2, out.shape))).astype(
            x.dtype
        )


def raising(x: Any, positions: Any, /, **options: Any) -> Any:
    raise RuntimeError("no kernel for this")


def leaving(x: Any, positions: Any, /, **options: Any) -> Any:
    raise IndexError


def mutating(x: Any, positions: Any, /, **options: Any) -> Any:
    out = right(x, positions, **options)
    x.flat[:1] += 1
    return out


def but(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return code whose result is changed, given x."""
    return lambda x, positions, /, **options: change(right(x, positions, **options), x)


def written(where: Any, value: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return code in whose result some values are written over."""

    def change(out: Any, x: Any) -> Any:
        if out.size:
            out[(0,) * out.ndim if where is None else where] = value(out.flat[0])
        return out

    return but(change)


NEVER_RIGHT: dict[str, tuple[Callable[..., Any], str, str]] = {  # the verdict of every case with a value, the message
    "constant": (but(lambda out, x: np.full_like(x, 0.5)), "fail", "off by"),
    "zeros": (but(lambda out, x: np.zeros_like(x)), "fail", "off by"),
    "nan": (but(lambda out, x: np.full_like(x, np.nan)), "fail", "must be finite"),
    "infinite": (written((..., -1), lambda _: np.inf), "fail", "must be finite"),
    "null": (but(lambda out, x: None), "fail", "out must be an array of numpy; got None"),
    "text": (but(lambda out, x: "rotated"), "fail", "out must be an array of numpy; got str"),
    "transposed": (but(lambda out, x: np.swapaxes(out, -1, -2) if x.ndim > 1 else np.append(x, x)), "fail", "must have shape"),
    "mutating": (mutating, "fail", "changed its input x"),
    "raising": (raising, "error", "RuntimeError: no kernel for this"),
    "leaving": (leaving, "error", "IndexError:"),
    "wide": (but(lambda out, x: out.astype(np.float64)), "fail", "out must be float32; got float64"),
    "whole": (but(lambda out, x: np.rint(out).astype(np.int64)), "fail", "must be real and at least float32; got int64"),
    "longer": (but(lambda out, x: out[None]), "fail", "must have shape"),
    "flat": (but(lambda out, x: np.append(out.ravel(), np.float32(0))), "fail", "must have shape"),
    "pair": (but(lambda out, x: (out, x)), "fail", "must return one result, out; got a tuple of 2"),
    "one_off": (written(None, lambda first: first + 1e-3 * (1 + abs(first))), "fail", "off by"),
}


@pytest.fixture(params=[pytest.param(CALLS, marks=pytest.mark.thorough), 0], ids=["diagnosed", "judged"])
def experiments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many calls may find why failures fail, which takes longer than all the rest; verdicts do not depend on it."""
    if not request.param:
        monkeypatch.setattr(conclusion, "_diagnose", lambda operations, trials: None)
    return int(request.param)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are judged and not diagnosed."""
    monkeypatch.setattr(conclusion, "_diagnose", lambda operations, trials: None)


@few(1, "name", NEVER_RIGHT, dear=True)
def test_never_right(name: str, experiments: int) -> None:
    function, verdict, message = NEVER_RIGHT[name]
    report = check_call(function, op="rope", experiments=experiments)
    wrong = [case for case in report.failures if message in case.message]
    passed = [case.id for case in report.operations[0].cases if case.verdict == "pass"]
    assert not report.conformant
    assert report.exit_code == 1
    unwritable = {"error"} if name == "mutating" else set()  # one row of memory that stands for many
    assert {case.verdict for case in report.failures} == {verdict} | unwritable
    refused = [c for c in report.operations[0].cases if c.verdict == "unsupported" and of_values(c)]
    assert {c.id for c in refused} <= empty()  # raising there says only that there is nothing to compute
    assert len(report.failures) + len(passed) + len(refused) == asked(report)
    assert {*passed} <= empty() | {"rope/value/usual-beyond-24-bits"}  # nothing to be wrong about, or no angle in float32
    assert len(wrong) >= 0.8 * asked(report), {case.message for case in report.failures}
    assert all(case.reproduce for case in report.failures)


def test_raising_without_keys_is_outside_in_a_sentence() -> None:
    """The remainder of a query without keys is 1, but nobody asks it."""

    def stick_breaking(logits: Any, mask: Any, /) -> Any:
        if not logits.shape[-1]:
            raise ValueError("no keys")
        return posref.stick_breaking(logits, mask)

    report = check_call(stick_breaking, op="stick_breaking", experiments=500)
    assert report.conformant
    assert "keys of 1 or more [2" in report.scopes[0].line


def test_raising_on_nothing_is_not_a_failure() -> None:
    """reshape(..., -1, 2), as in Meta's code, cannot take arrays without elements: a limit, not a wrong value."""

    def rope(x: Any, positions: Any, /, **options: Any) -> Any:
        if x.size == 0:
            raise ValueError("cannot reshape array of size 0")
        return posref.rope(x, positions, **options)

    report = check_call(rope, op="rope")
    assert report.conformant
    assert {c.id for c in report.operations[0].cases if c.verdict == "unsupported" and of_values(c)} == empty()


def test_right() -> None:
    report = check_call(right, op="rope")
    assert report.conformant
    assert report.exit_code == 0
    assert verdicts(report) == {"pass": asked(report)}
    assert report.validation[0] == report.validation[1] > 0
    assert not report.missing or set(report.missing) == set(REGISTRY) - {"rope"}


@few(1, "kind", [Remembering, Noisy], dear=True)
def test_stateful(kind: type, experiments: int) -> None:
    """A right first answer is not enough, and neither is the same answer for ever."""
    report = check(kind(), op="rope", experiments=experiments)
    found = verdicts(report)
    assert not report.conformant
    assert found["fail"] > 2
    assert set(found) == {"pass", "fail"}
    if kind is Noisy:
        assert all("the same call gave other bits" in case.message for case in report.failures)


def test_a_single_wrong_element_of_a_single_case(experiments: int) -> None:
    def almost(x: Any, positions: Any, /, **options: Any) -> Any:
        out = right(x, positions, **options)
        if x.ndim == 1:
            out[-1] = np.nextafter(out[-1], np.float32(np.inf), dtype=np.float32) + np.float32(1e-5)
        return out

    report = check_call(almost, op="rope", experiments=experiments)
    assert not report.conformant
    assert 1 <= verdicts(report)["fail"] <= 3
    for case in report.failures:
        assert case.worst["index"] == [sizes()[case.id] - 1]


@pytest.mark.thorough(dear=True)
@few(1, "op", ["alibi", "sinusoidal", "rope"])
def test_an_unknown_defect_is_unexplained(op: str) -> None:
    """Noise of one part in 10^5, the same at every call, is nobody's deviation; no name is given for it."""

    def inexact(*arguments: Any, **options: Any) -> Any:
        out = REGISTRY[op].function(*arguments, **options)
        noise = np.cos(np.arange(out.size, dtype=np.float32) * 12.9898).reshape(out.shape) * np.float32(1e-5)
        return out * (1 + noise)

    report = check_call(inexact, op=op)
    assert report.operations[0].diagnosis["names"] == []
    assert "the reference if" not in report.operations[0].diagnosis["text"]


# ---- claims ---------------------------------------------------------------------------------------------------------------
def single(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    """Binary32 throughout."""
    if layout != "half":
        raise Unsupported(layout)
    half = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float32) / np.float32(base) ** (np.arange(half, dtype=np.float32) / half)
    a, b, cos, sin = x[..., :half], x[..., half:], np.cos(angle), np.sin(angle)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


@pytest.mark.usefixtures("judged")
def test_claims_too_much() -> None:
    honest, boasting = (check_call(single, op="rope", claim=claim) for claim in ("angle32", "angle64"))
    assert set(verdicts(honest)) == {"pass", "unsupported"}
    assert honest.operations[0].achieved == "product32"
    assert not boasting.conformant
    assert boasting.operations[0].achieved == "product32"
    assert any("angle64 allows" in case.message for case in boasting.failures)
    assert {case.achieved for case in boasting.failures} == {"frequency32", "product32"}


def rough(positions: Any, inv_freq: Any, /, *, attention_factor: float = 1.0, dtype: Any = None) -> Any:
    """Sines and cosines off by up to 2**-12, as WGSL allows 2**-11."""
    cos, sin = posref.rope_table(positions, inv_freq, attention_factor=attention_factor, dtype=np.float64)
    off = attention_factor * 2.0**-12
    return (cos + off * np.sin(7 * cos)).astype(dtype), (sin - off * np.cos(5 * sin)).astype(dtype)


@pytest.mark.usefixtures("judged")
def test_a_declared_accuracy_of_the_trigonometry_is_honoured_and_shown() -> None:
    declared = {"float32": "angle32", "trig": 2.0**-11}
    silent, honest, boasting = (
        check(SimpleNamespace(rope_table=rough, claims=claims), op="rope_table")
        for claims in ({}, declared, {"float32": "angle32", "trig": 2.0**-13})
    )
    assert not silent.conformant
    assert honest.conformant
    assert honest.operations[0].achieved == honest.operations[0].claim == "angle32+trig(0.00048828125)"
    assert not boasting.conformant
    assert "angle32+trig(0.0001220703125) allows" in boasting.failures[0].message
    exact = check(SimpleNamespace(rope_table=posref.rope_table, claims=declared), op="rope_table")
    assert exact.operations[0].achieved == "angle64"  # the tightest class that holds
    last = terminal.verdict(honest, verdict_text(honest.to_json()))
    assert "CONFORMANT in its scope with sines and cosines off by up to 0.00049 (trig)[/bold green]: " in last
    for beyond in (2.0, 0.25, 0.00081, 0.0):
        with pytest.raises(TargetError, match=r"must be above 0 and at most 0\.0008, the loosest that a released library"):
            check(SimpleNamespace(rope_table=rough), op="rope_table", trig=beyond)


def test_stated_scalings_are_asked_for() -> None:
    target = SimpleNamespace(rope_frequencies=posref.rope_frequencies, scalings=("LongRoPE",))
    verdict = {c.id: c.verdict for c in check(target, op="rope_frequencies").operations[0].cases}
    assert verdict["rope_frequencies/longrope/at"] == "pass"
    assert verdict["rope_frequencies/yarn/qwen-2.5"] == "unsupported"
    with pytest.raises(TargetError, match=r"scalings must be among .*LongRoPE.*; got 'Su'"):
        check(SimpleNamespace(rope=right, scalings=("Su",)))


@pytest.mark.usefixtures("judged")
def test_stated_claims_are_read() -> None:
    target = SimpleNamespace(rope=single, claims={"float32": "angle64"})
    assert check(target).operations[0].claim == "angle64"
    assert check(target, claim="angle32").operations[0].claim == "angle32"


def test_stated_dtypes_are_read() -> None:
    target = SimpleNamespace(rope=right, dtypes=("float64", "float32"))
    report = check(target)
    assert [op.dtype for op in report.operations] == ["float64", "float32"]
    assert report.conformant


# ---- what is missing or unsupported ---------------------------------------------------------------------------------------
def test_missing_operations_are_listed() -> None:
    report = check(SimpleNamespace(rope=right))
    assert set(report.missing) == set(REGISTRY) - {"rope"}
    assert report.counts["missing"] == len(REGISTRY) - 1
    assert report.conformant


def test_code_that_takes_no_call_is_told_why() -> None:
    """Of another dtype it is told to state its dtypes; with other names of arguments, to have a function around it."""

    def narrow(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        raise NotImplementedError(str(x.dtype))

    def named(x: Any, position_ids: Any, theta: float = 1e4) -> Any:
        return x

    for function, hint in ((narrow, "Calls are made in float32."), (named, "If the code has other names for its arguments")):
        diagnosis = check_call(function, op="rope").operations[0].diagnosis or {}
        assert diagnosis["hint"].startswith(hint), diagnosis


@pytest.mark.parametrize("error", [Unsupported("not here"), NotImplementedError("not here")])
def test_all_unsupported_is_not_conformant(error: Exception) -> None:
    def lacking(x: Any, positions: Any, /, **options: Any) -> Any:
        raise error

    report = check_call(lacking, op="rope")
    assert not report.conformant
    assert verdicts(report) == {"unsupported": asked(report)}
    assert {case.message for case in report.operations[0].cases if of_values(case)} == {"not here"}
    assert (report.operations[0].diagnosis or {})["text"].startswith("No call is answered. posref calls rope(x, positions, ")
    assert not report.failures


@few(
    1,
    ("returned", "verdict"),
    [
        (lambda mask: mask, "pass"),
        (lambda mask: mask.astype(np.int8), "pass"),
        (lambda mask: mask.astype(np.int64), "pass"),
        (lambda mask: np.where(mask, 0.0, -1e9), "must be of a boolean or integer dtype; got float64"),
        (lambda mask: np.where(mask, -1, 0), "got -1, expected 1"),
        (lambda mask: ~mask, "expected"),
        (lambda mask: mask[..., None, :, :], "must have shape"),
    ],
)
def test_a_mask_is_of_booleans_or_of_0_and_1(returned: Callable[[Any], Any], verdict: str) -> None:
    """And asked once, in the first of the dtypes."""
    target = SimpleNamespace(
        dtypes=("float32", "float64"),
        sliding_window=lambda q, k, /, **options: returned(posref.sliding_window(q, k, **options)),
    )
    report = check(target, op="sliding_window")
    assert [operation.dtype for operation in report.operations] == ["float32"]
    if verdict == "pass":
        assert report.conformant
    else:
        assert not report.conformant
        assert all(re.search(verdict, case.message) for case in report.failures), report.failures[0].message


def test_buckets_are_no_booleans() -> None:
    report = check(SimpleNamespace(t5_buckets=lambda r, /, **options: posref.t5_buckets(r, **options) > 3), op="t5_buckets")
    assert {case.message for case in report.failures} == {"out must be of an integer dtype; got bool"}


def test_plain_rope_in_one_layout_is_conformant_in_its_scope() -> None:
    """Every case that is answered passes; that they are few is said, and is no defect."""
    report = check_call(single, op="rope")
    assert report.conformant
    assert report.verdict == "conformant in its scope"
    assert "layout half" in report.scopes[0].line


def test_an_option_that_the_signature_lacks_is_omitted_at_its_default() -> None:
    seen = []

    def plain(positions: Any, dim: int, /, *, layout: str, base: float = 10_000.0, dtype: Any = None) -> Any:
        seen.append(base)
        return posref.sinusoidal(positions, dim, layout=layout, base=base, dtype=dtype)

    report = check_call(plain, op="sinusoidal")
    lacking = [case for case in report.operations[0].cases if case.verdict == "unsupported" and of_values(case)]
    assert lacking
    assert {case.message.split("'")[1] for case in lacking} == {"endpoint", "odd", "scale"}
    assert report.conformant
    assert len(set(seen)) > 1


def test_without_dtype_half_precision_is_unsupported() -> None:
    def plain(positions: Any, dim: int, /, *, layout: str) -> Any:
        return posref.sinusoidal(positions, dim, layout=layout)

    report = check_call(plain, op="sinusoidal", dtype="float16")
    assert "no option 'dtype'" in {case.message for case in report.operations[0].cases}
    assert "pass" not in verdicts(report)


# ---- calls that must be refused -------------------------------------------------------------------------------------------
def test_what_must_be_refused_never_decides() -> None:
    def lenient(x: Any, positions: Any, /, **options: Any) -> Any:
        try:
            return right(x, positions, **options)
        except (ValueError, TypeError):
            return x

    strict, loose = check_call(right, op="rope"), check_call(lenient, op="rope")
    assert verdicts(strict, reject=True) == {"rejected": strict.validation[1]}
    assert verdicts(loose, reject=True) == {"fail": loose.validation[1]}
    assert loose.validation == (0, strict.validation[1])
    assert strict.conformant
    assert loose.conformant
    assert not loose.failures


def test_unsupported_is_no_refusal() -> None:
    def lacking(x: Any, positions: Any, /, **options: Any) -> Any:
        try:
            return right(x, positions, **options)
        except (ValueError, TypeError) as error:
            raise Unsupported(str(error)) from error

    report = check_call(lacking, op="rope")
    assert report.validation == (0, 0)
    assert report.conformant


# ---- errors ---------------------------------------------------------------------------------------------------------------
BAD_TARGETS: dict[str, tuple[Any, Options, str]] = {
    "no operation": (SimpleNamespace(__name__="e", rotate=right), {}, "e: must have at least one function named"),
    "unknown dtype": (SimpleNamespace(__name__="t", rope=right, dtypes=("int8",)), {}, "t: dtypes must be among float64"),
    "dtype not of the backend": (
        SimpleNamespace(__name__="t", rope=right, dtypes=("bfloat16",)), {}, "t: backend 'numpy' has no bfloat16 here; it has",
    ),
    "unknown claim": (SimpleNamespace(__name__="t", rope=right, claims={"float32": "best"}), {},
                      "t: a claim for float32 must be one of angle64, frequency32, product32, angle32; got 'best'."),
    "claim of another dtype": (SimpleNamespace(__name__="t", rope=right), {"claim": "float64"},
                               "t: a claim for float32 must be one of angle64, frequency32, product32, angle32"),
    "unknown operation": (SimpleNamespace(__name__="t", rope=right), {"op": "roope"},
                          "check: op must be the name of an operation; got 'roope'. Did you mean"),
    "unknown backend": (SimpleNamespace(rope=right), {"backend": "abacus"}, "check: backend must be one of numpy, torch"),
    "unknown case": (SimpleNamespace(__name__="t", rope=right), {"case": "rope/none/such"}, "check: no case 'rope/none/such'"),
    "unknown tier": (SimpleNamespace(__name__="t", rope=right), {"tier": "large"}, "check: tier must be smoke, core or kernel"),
    "no file": ("no_such_file.py", {}, "no_such_file.py: no such file."),
    "no module": ("no_such_module", {}, "no_such_module: cannot import 'no_such_module'"),
    "no attribute": ("math:rope", {}, "math:rope: math has no 'rope'."),
}  # fmt: skip


@few(4, "name", BAD_TARGETS)
def test_a_bad_target_is_refused(name: str) -> None:
    target, options, message = BAD_TARGETS[name]
    with pytest.raises(TargetError) as caught:
        check(target, **options)
    assert str(caught.value).startswith(message)


@few(
    1,
    ("source", "message"),
    [("1 +", "SyntaxError"), ("raise OSError('gone')", "OSError: gone"), ("pass;" * 500_000, "must be at most 2 MiB")],
)
def test_a_file_that_does_not_run_is_refused(source: str, message: str, tmp_path: Any) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(source, encoding="utf-8")
    with pytest.raises(TargetError, match=message):
        check(str(file))


def test_a_missing_suite_is_refused(tmp_path: Any) -> None:
    with pytest.raises(VectorError, match=r"SUITE\.json is missing"):
        check(SimpleNamespace(rope=right), suite=tmp_path)


# ---- selecting ------------------------------------------------------------------------------------------------------------
@pytest.mark.thorough
def test_one_case_and_the_smoke_tier() -> None:
    report = check("posref", case="rope/half/far", dtype="float32")
    assert [case.id for op in report.operations for case in op.cases] == ["rope/half/far"]
    smoke = check("posref", tier="smoke", dtype="float32")
    assert {case.tier for op in smoke.operations for case in op.cases} == {"smoke"}
    assert {op.op for op in smoke.operations} == set(REGISTRY)


def test_progress_tells_every_case() -> None:
    seen: list[str] = []
    report = check("posref", op="alibi", dtype="float32", progress=seen.append)
    assert seen == [case.id for case in report.operations[0].cases]


# ---- reports and schemas --------------------------------------------------------------------------------------------------
@few(1, "function", [right, *(NEVER_RIGHT[name][0] for name in ("zeros", "nan", "raising", "mutating")), single])
def test_the_report_is_as_its_schema_says(function: Callable[..., Any], tmp_path: Any) -> None:
    report = check_call(function, op="rope")
    file = tmp_path / "report.json"
    report.write_json(file)
    document = parse(file, file.read_bytes())
    validator("report").validate(document)
    assert document["complete"] is True
    assert document["conformant"] is report.conformant
    assert document["totals"] == {"operations": 1, "cases": len(document["cases"])}
    assert sum(document["counts"].get(verdict, 0) for verdict in BAD) == len(report.failures)


NEGATIVE = sorted((INSTALLED / "schema" / "negative").glob("*.json"))


@pytest.mark.parametrize("file", NEGATIVE, ids=lambda file: file.stem)
def test_negative_files_fail_their_schema(file: Any) -> None:
    assert not validator(file.name.split("-", maxsplit=1)[0]).is_valid(json.loads(file.read_text(encoding="utf-8")))


@pytest.mark.thorough
def test_every_schema_has_a_negative_file_and_the_suite_is_valid() -> None:
    schemas = {file.stem for file in (INSTALLED / "schema").glob("*.json")}
    assert {file.name.split("-", maxsplit=1)[0] for file in NEGATIVE} == schemas
    positive = {"suite": ["SUITE.json"], "errata": ["ERRATA.json"], "smoke": ["smoke.json"], "flags": ["flags.json"]}
    groups = [str(file.relative_to(INSTALLED)) for file in INSTALLED.rglob("group.json") if file.parent.name != "schema"]
    for name, files in (positive | {"group": groups[::20]}).items():  # all are validated when they are read
        for file in files:
            validator(name).validate(json.loads((INSTALLED / file).read_text(encoding="utf-8")))
    assert len(groups) > 20


def test_a_dtype_that_is_not_asked_is_noted() -> None:
    """Of code that says nothing of dtypes, in a library with bfloat16: mistakes in half precision are frequent."""
    pytest.importorskip("torch")

    def learned(positions: Any, table: Any, /) -> Any:
        return table[positions]

    target = SimpleNamespace(__name__="t", backend="torch", learned=learned)
    noted = [
        any("checked in float32 only" in note for note in conformance.check(one, op="learned", **options).target["notes"])
        for one, options in (
            (target, {}), (target, {"dtype": "float32"}), (SimpleNamespace(**vars(target) | {"backend": "numpy"}), {}),
            (SimpleNamespace(**vars(target), dtypes=("float32",)), {}),
        )
    ]  # fmt: skip
    assert noted == [True, False, False, False]


@pytest.mark.thorough
def test_a_limit_of_torch_compile_is_noted() -> None:
    torch = pytest.importorskip("torch")
    compiled = torch.compile(lambda positions, table: table[positions], backend="eager")
    notes = []
    with torch._dynamo.config.patch(recompile_limit=1):
        for function in (compiled, lambda positions, table: table[positions]):

            def learned(positions: Any, table: Any, /, f: Any = function) -> Any:
                return f(positions, table)

            target = SimpleNamespace(__name__="t", backend="torch", learned=learned)
            notes.append(conformance.check(target, op="learned", dtype="float32").target["notes"])
    assert [len(found) for found in notes] == [1, 0]
    assert notes[0][0].startswith("torch.compile reached its limit of 1 variants of one function: other calls ran uncompiled")

"""Fresh calls of a check: a table of the suite's answers fails them, and what is right passes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import few, in_turn, share

import posref
from posref.conformance import Unsupported, check, check_call
from posref.conformance.checks import fresh_calls
from posref.conformance.experiments import asker as experiments
from posref.conformance.experiments.cause_search import call_key
from posref.conformance.experiments.inside_scope import moved
from posref.conformance.model import Call, LoadedCase
from posref.conformance.proof.evaluation import askable
from posref.conformance.suite import INSTALLED, load_groups
from posref.conformance.targets.python import load_python
from posref.conformance.vocabulary.traits import defaults
from posref.scaling import Linear
from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
# What a target does that looks its answers up in the vectors, which are installed where it runs
TABLE = """
import inspect
import numpy as np
import posref
from posref.conformance import Unsupported
from posref.conformance.suite import INSTALLED, load_groups

OP, LACKING = {op!r}, {lacking!r}
CALLS = [(call, name) for group in load_groups(INSTALLED, ops=[OP]) for case in group.cases if case.kind != "reject"
         for call in case.calls if not call.cotangents for name in [case.id]]
PARAMETERS = inspect.signature(getattr(posref, OP)).parameters

def key(given):
    given = {{n: given.get(n, p.default) for n, p in PARAMETERS.items() if n not in ("dtype", "xp", "device")}}
    arrays = [np.asarray(v) for v in given.values() if isinstance(v, np.ndarray)]
    options = tuple((n, repr(v)) for n, v in given.items() if not isinstance(v, np.ndarray))
    return {key}

def lookup(*arrays, **options):
    given = dict(zip(PARAMETERS, arrays)) | options
    arrays = [x for x in arrays if isinstance(x, np.ndarray)]
    for call, _ in CALLS:
        if key({{**call.inputs, **call.params}}) == key(given):
            found = [v.astype(np.float32) if v.dtype.kind == "f" else v for v in call.expected.values()]
            return found[0] if len(found) == 1 else tuple(found)
    if LACKING == "refuse":
        raise Unsupported("not in the table")
    near = [c for c, _ in CALLS if [v.shape for v in c.inputs.values()] == [np.shape(x) for x in arrays]] or [CALLS[0][0]]
    found = [v.astype(np.float32) if v.dtype.kind == "f" else v for v in near[0].expected.values()]
    return found[0] if len(found) == 1 else tuple(found)

def {op}(*arrays, **options):
    return lookup(*arrays, **options)
"""
KEYS = {
    "by hash": "hash((options, *((x.shape, x.astype(np.float32).tobytes()) for x in arrays)))",
    "by sum": "(options, *((x.shape, float(np.float32(x.astype(np.float32).sum()))) for x in arrays))",
    "by the first number": "(options, *((x.shape, *x.astype(np.float32).ravel()[:1]) for x in arrays))",
}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "posref", "check", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.mark.thorough
@few(1, "op", ["axial_frequencies", "learned", "alibi_slopes", "t5_buckets", "rope_table", "xpos_scales"])
@few(1, "lacking", ["refuse", "guess"])
def test_a_table_of_the_answers_is_not_conformant(op: str, lacking: str, tmp_path: Path) -> None:
    source = TABLE.format(op=op, lacking=lacking, key=KEYS["by hash"])
    (tmp_path / "table.py").write_text(source)
    assert check(str(tmp_path / "table.py")).conformant  # it does have the suite's answers
    done = run(tmp_path, "table.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search("a fresh call, |fresh calls, ", done.stdout)
    assert "--seed" in done.stdout


# What is right for the numbers that the suite has in one option, or in the last axis of the first array
ONLY = """
import posref
import posref.spec
from posref.conformance.suite import INSTALLED, load_groups

CALLS = [call for group in load_groups(INSTALLED, ops=[{op!r}]) for case in group.cases for call in case.calls]
NAMES = [*posref.spec.REGISTRY[{op!r}].arrays]
SUITE = {{{number} for {inputs}, {params} in [([c.inputs[n] for n in NAMES if n in c.inputs], c.params) for c in CALLS]}}

def {op}(*inputs, **params):
    found = posref.{op}(*inputs, **params)
    return found if {number} in SUITE else found * 2
"""
OPTION, AXIS = "params.get({!r})", "inputs[0].shape[-1:]"


@pytest.mark.thorough
@few(2, ("op", "number"), [
    ("rope", OPTION.format("base")), ("rope", AXIS), ("sinusoidal", OPTION.format("base")),
    ("xpos_scales", OPTION.format("scale_base")), ("alibi", OPTION.format("heads")), ("apply_rope", AXIS),
    ("attention_logits", OPTION.format("scale")),
])  # fmt: skip
@few(1, "seed", in_turn(range(3)))
def test_what_is_right_for_the_numbers_of_the_suite_alone_fails(op: str, number: str, seed: int, tmp_path: Path) -> None:
    """Fresh calls have other options and sizes too."""
    (tmp_path / "only.py").write_text(ONLY.format(op=op, number=number, inputs="inputs", params="params"))
    report = check(str(tmp_path / "only.py"), op=op, seed=seed, experiments=0)
    assert report.counts["fail"] == 0
    assert report.exit_code == 1
    assert report.operations[0].scope.narrow.startswith("it is wrong in a fresh call")


# A narrow scope, and where code is wrong inside it: no stored case has such a number
NARROW: dict[str, tuple[str, Callable[..., int], int, int, int]] = {
    "odd multiples of 8": ("rms_norm", lambda *x, **_: x[0].shape[-1], 8, 16, 24),
    "odd multiples of 32": ("rms_norm", lambda *x, **_: x[0].shape[-1], 8, 64, 96),
    "odd multiples of 4 in an option": ("rerope_distances", lambda *_, window: window, 4, 8, 12),
    "odd multiples of 4 keys": ("sliding_window", lambda *x, **_: x[1].shape[-1], 4, 8, 20),
}


@few(2, "name", NARROW)
@few(1, "seed", in_turn(range(4)))
def test_what_is_wrong_at_some_multiples_of_a_narrow_scope_fails(name: str, seed: int) -> None:
    """Drawn numbers are moved into the scope that was learned, to odd multiples of what it asks for too."""
    op, number, step, twice, first = NARROW[name]

    def target(*inputs: Any, **options: Any) -> Any:
        n = number(*inputs, **options)
        if n % step:
            raise Unsupported("a size")
        found = getattr(posref, op)(*inputs, **options)
        wrong = ~found if found.dtype.kind == "b" else found * 2
        return wrong if n >= first and n % twice == first % twice else found

    assert check_call(target, op=op, dtype="float32", seed=seed).exit_code == 1


def test_numbers_are_moved_to_what_a_scope_may_allow() -> None:
    record = {"size T": 3, "option left": 2, "option right": 2, "option base": 1.5}
    numbers = [list(moved(record, name, other, {8.0, 50.0})) for name, other in (("size T", 21), ("option base", 1.7))]
    assert {8, 16, 20, 24, 32, 49, 50, 51} <= {one["size T"] for one in numbers[0]}
    assert [one["option base"] for one in numbers[1]] == [1.7, 8.0, 50.0]
    scaled = {"option scaling": Linear(4.0)}
    assert list(moved(scaled, "option scaling", Linear(5.0), {8.0})) == [{"option scaling": Linear(5.0)}]
    assert record | {"option left": 9, "option right": 9} in moved(record, "option left", 9, ())


@few(1, "seed", in_turn(range(3)))
def test_a_window_is_odd_and_even_with_every_word(seed: int) -> None:
    """All stored windows on both sides that count the query are odd: what is wrong of even ones alone passes."""

    def even_as_odd(q: Any, k: Any, /, *, window: int, counting: str, sides: str) -> Any:
        window += sides == "both" and counting == "with_query" and window % 2 == 0
        return posref.sliding_window(q, k, window=window, counting=counting, sides=sides)

    def half(q: Any, k: Any, /, *, window: int, counting: str, sides: str) -> Any:
        window = (window + 1) // 2 if sides == "both" else window
        return posref.sliding_window(q, k, window=window, counting=counting, sides=sides)

    found = check_call(even_as_odd, op="sliding_window", seed=seed)
    assert (found.counts["fail"], found.exit_code) == (0, 1)
    diagnosis = check_call(half, op="sliding_window", seed=seed).operations[0].diagnosis
    assert diagnosis["names"] == []  # of odd windows this is |q - k| <= window // 2, which has a name


@few(1, "key", KEYS, dear=True)
@few(1, "tier", ["smoke", "core"], dear=True)
def test_no_key_of_a_table_helps(tier: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "table.py").write_text(TABLE.format(op="sinusoidal", lacking="guess", key=KEYS[key]))
    assert run(tmp_path, "table.py", "--tier", tier).returncode == 1


COUNTING = """
import posref
asked = 0
def alibi_slopes(heads, **options):
    global asked
    asked += 1
    right = posref.alibi_slopes(heads, **options)
    return right if asked <= {most} else right * 0
"""


@pytest.mark.thorough
def test_a_target_that_counts_its_calls_fails(tmp_path: Path) -> None:
    calls = sum(len(c.calls) for g in load_groups(INSTALLED, ops=["alibi_slopes"]) for c in g.cases)
    (tmp_path / "counting.py").write_text(COUNTING.format(most=2 * calls))
    assert check(str(tmp_path / "counting.py")).conformant
    (tmp_path / "drawn.py").write_text(COUNTING.format(most=calls * 3 // 2))  # with a seed, few calls are made twice
    assert run(tmp_path, "drawn.py", "--seed", "1").returncode == 1


WRONG = {
    "the buffer of the last reply": """
        before = []
        def learned(positions, table, **options):
            before.append(np.asarray(table)[np.asarray(positions) + options.get("offset", 0)])
            return before[-2] if len(before) > 1 and before[-2].shape == before[-1].shape else before[-1]
    """,
    "its own arguments": """
        def learned(positions, table, **options):
            found = np.asarray(table)[np.asarray(positions) + options.get("offset", 0)]
            table[...] = 0
            return found
    """,
}


@few(1, "name", WRONG)
def test_a_target_that_returns_or_replaces_what_is_not_its_own_fails(name: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import numpy as np\n" + re.sub(r"(?m)^ {8}", "", WRONG[name]))
    assert run(tmp_path, "wrong.py").returncode == 1


@pytest.mark.thorough(dear=True)
def test_the_seed_is_printed_and_repeats_the_calls(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text("from posref import learned, alibi_slopes")
    first = run(tmp_path, "right.py")
    assert first.returncode == 0, first.stdout
    [seed] = re.findall(r"note: \d+ fresh calls as well \(repeat them with --seed (\d+)\)", first.stdout)
    assert run(tmp_path, "right.py", "--seed", seed).stdout == first.stdout
    assert run(tmp_path, "right.py").stdout != first.stdout


def small(op: str) -> list[LoadedCase]:
    every = [case for group in load_groups(INSTALLED, ops=[op]) for case in group.cases]
    return [
        case
        for case in every
        if case.kind == "value"
        and "float32" in case.dtypes
        and fresh_calls.is_near(case)
        and fresh_calls.is_small(case.calls[0])
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_a_fresh_call_is_another_one_and_the_reference_is_right(op: str) -> None:
    cases = small(op)
    assert cases
    rng = np.random.default_rng(len(op))
    asker = experiments.Asker(load_python("posref"), op, "float32", 100)
    judged = 0
    for at in rng.permutation(len(cases))[:6]:
        [stored] = cases[at].calls
        call = fresh_calls.fresh(cases[at], "float32", rng)
        if call is None:
            continue
        same = all(np.array_equal(call.inputs[n], x) for n, x in stored.inputs.items()) and call.params == stored.params
        assert not same
        outcome = asker.asked(call, cases[at].form)
        assert outcome != experiments.WRONG, asker.said
        judged += outcome == experiments.RIGHT
    assert judged >= 1


BY_SUMS = """
import torch
import posref
backend = "torch"

def layer_norm_rope(x, weight, bias, cos, sin, /, *, eps, precedence, **options):
    if precedence != "norm_first":
        raise NotImplementedError
    x32, mean = x.float(), x.float().mean(-1, keepdim=True)
    y = (x32 - mean) / ((x32 * x32).mean(-1, keepdim=True) - mean * mean + eps).sqrt() * weight + bias
    return posref.apply_rope(y, cos, sin, **options).to(x.dtype)
"""


@pytest.mark.thorough
@few(1, "seed", range(2))
def test_a_variance_by_sums_is_wrong_far_from_0(seed: int, tmp_path: Path) -> None:
    """The suite's numbers lie near 0, where the mean of the squares less the square of the mean is as good as any."""
    (tmp_path / "sums.py").write_text(BY_SUMS)
    report = check(str(tmp_path / "sums.py"), op="layer_norm_rope", dtype="float32", seed=seed, experiments=0)
    assert report.counts["fail"] == 0
    assert "with x far from 0: out" in report.operations[0].scope.narrow


@few(3, "op", ["apply_rope", "norm_rope", "rope"])
def test_a_fresh_call_is_given_as_it_is_judged(op: str) -> None:
    """Else the target gets reals that were rounded, such as those of tables in half precision, and the judge others."""
    rng = np.random.default_rng(1)
    for case in (case for group in load_groups(INSTALLED, ops=[op]) for case in group.cases if case.kind == "value"):
        if fresh_calls.is_near(case) and fresh_calls.is_small(case.calls[0]):
            for dtype in {"float32", "bfloat16"} & {*case.dtypes}:
                call = fresh_calls.fresh(case, dtype, rng)
                assert call is None or dtype in askable(op, call.inputs, {}, case.form), (case.id, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_options_and_sizes_are_others_and_the_reference_is_right(op: str) -> None:
    cases, rng = small(op), np.random.default_rng(len(op))
    known = [case.calls[0] for case in cases]
    asker = experiments.Asker(load_python("posref"), op, "float32", 100)
    drawn = [*fresh_calls.varied(op, cases, asker, rng, known), *fresh_calls._with_numbers(cases, "float32", rng, known)]
    assert not {call_key(op, call) for call in known} & {call_key(op, call) for _, call, *_ in drawn}
    outcomes = [asker.asked(call, case.form) for case, call, *_ in drawn]
    assert {*outcomes} <= {experiments.RIGHT, experiments.NO_VALUES, "not judged"}
    assert experiments.RIGHT in outcomes


def test_a_fresh_call_has_options_that_are_not_stored() -> None:
    """Else a table of answers would have it: where an operation has no arrays, options are all that can differ."""
    cases = small("alibi_slopes")
    rng = np.random.default_rng(0)
    stored = [{**defaults("alibi_slopes"), **case.calls[0].params} for case in cases]
    plain = [fresh_calls.fresh(case, "float32", rng) for case in cases for _ in range(9)]
    calls = [fresh_calls.fresh(case, "float32", rng, stored) for case in cases for _ in range(9)]
    assert any({**defaults("alibi_slopes"), **call.params} in stored for call in plain if call)
    assert sum(call is not None for call in calls) > len(cases)
    assert all({**defaults("alibi_slopes"), **call.params} not in stored for call in calls if call)


def test_without_a_seed_there_are_no_fresh_calls() -> None:
    report = check(posref, op="alibi_slopes")
    assert not any("fresh" in note for note in report.target["notes"])


def test_calls_without_values_and_large_ones_are_not_asked_afresh() -> None:
    sizes = (0, 1, fresh_calls.LARGEST, fresh_calls.LARGEST + 1)
    calls = [Call({}, {"positions": np.zeros(size // 2)}, {"out": np.zeros(size - size // 2)}) for size in sizes]
    assert [fresh_calls.is_small(call) for call in calls] == [False, True, True, False]

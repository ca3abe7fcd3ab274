"""Fuzzing: the registry describes every case, planted defects are found and shrunk, and nothing is found in correct code."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run
from described import matches
from every_encoding.calls import assert_accepted
from sampling import QUARTER, few, share

import posref
from posref.conformance import check
from posref.conformance.errors import Disagreement, VectorError
from posref.conformance.fuzzing import hunt
from posref.conformance.fuzzing.fuzz import fuzz
from posref.conformance.fuzzing.hunt import Asking, Hunt
from posref.conformance.model import Answer, Call
from posref.conformance.proof.build import verify
from posref.scaling import Llama3
from posref.spec import REGISTRY

HERE = Path(__file__).parent


# ---- what the registry says ---------------------------------------------------------
def test_a_call_that_is_not_described_is_told() -> None:
    x, table = np.zeros((2, 3, 8)), np.zeros((3, 4))
    options = {"layout": "half"}
    assert matches("apply_rope", options, {"x": x, "cos": table, "sin": table})
    assert not matches("apply_rope", options, {"x": x, "cos": table, "sin": table[:1]})
    assert not matches("apply_rope", options, {"x": x[..., :6], "cos": table, "sin": table})
    assert not matches("rope", options | {"base": 10.0, "rotary_dim": 10}, {"x": x, "positions": np.arange(3)})
    assert not matches("rope", options | {"base": 10.0}, {"x": x, "positions": np.arange(2)})
    assert not matches(
        "rope", options | {"base": 10.0, "scaling": posref.scaling.NTKAware(2.0)}, {"x": x[..., :2], "positions": np.arange(3)}
    )


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_the_reference_accepts_all_that_is_drawn(op: str) -> None:
    """As every plain run asks of fewer draws: and so many draws give every option."""
    assert_accepted(op, 250)


# ---- planted defects ---------------------------------------------------------
def but(op: str, change: Any) -> SimpleNamespace:
    """Return an implementation of one operation: the reference, then `change(out, arrays, options)`."""

    def function(*arrays: Any, **options: Any) -> Any:
        return change(getattr(posref, op)(*arrays, **options), arrays, options)

    function.__signature__ = inspect.signature(getattr(posref, op))  # type: ignore[attr-defined]
    return SimpleNamespace(**{op: function, "__name__": f"{op} but"})


def partial_rotation(out: Any, arrays: Any, options: Any) -> Any:
    return out if (options.get("rotary_dim") or 4) % 4 == 0 else -out


def rejects_negative(out: Any, arrays: Any, options: Any) -> Any:
    if np.any(arrays[1] < 0):
        raise RuntimeError("negative")
    return out


PLANTED = {  # an operation, what is wrong with it, and what the smallest failing call is
    "rope where rotary_dim % 4 == 2": (
        "rope", partial_rotation, lambda call: call.params["rotary_dim"] == 2 and call.inputs["x"].shape == (2,),
    ),
    "alibi of more than 16 heads": (
        "alibi", lambda out, arrays, options: out * 1.01 if options["heads"] > 16 else out,
        lambda call: call.params["heads"] == 17 and call.inputs["q_positions"].size * call.inputs["k_positions"].size <= 2,
    ),
    "t5_buckets at one distance": (
        "t5_buckets", lambda out, arrays, options: np.where(arrays[0] == -37, out + 1, out),
        lambda call: call.inputs["relative_positions"].tolist() == -37,
    ),
    "rope from 4096 on": (
        "rope", lambda out, arrays, options: posref.rope(arrays[0], np.minimum(arrays[1], 4095), **options),
        lambda call: np.max(call.inputs["positions"]) == 4096 and call.inputs["x"].size <= 4,
    ),
    "rope without elements": (
        "rope", lambda out, arrays, options: out if out.size else out.T,
        lambda call: call.inputs["x"].size == 0,
    ),
    "rope that refuses negative positions": (
        "rope", rejects_negative, lambda call: call.inputs["positions"].size == 1 and call.inputs["positions"] > -10,
    ),
}  # fmt: skip


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("name", share(PLANTED, QUARTER))
def test_a_planted_defect_is_found_shrunk_and_written(name: str, tmp_path: Path) -> None:
    op, change, smallest = PLANTED[name]
    target = but(op, change)
    findings = fuzz(target, examples=800, seed=1, output=tmp_path / "out")
    (find,) = findings.finds
    assert findings.exit_code == 1
    assert not find.note
    assert smallest(find.call), hunt.written(op, find.call)
    assert verify(tmp_path / "out") == []
    report = check(target, suite=tmp_path / "out")
    assert [(case.id, case.verdict, case.message) for case in report.failures] == [
        (find.result.id, find.result.verdict, find.result.message)
    ]
    assert check("posref", backend="numpy", dtype="float32", suite=tmp_path / "out").failures == []


@pytest.mark.thorough(dear=True)
def test_the_same_seed_finds_the_same_bytes_and_a_longer_run_no_other(tmp_path: Path) -> None:
    op, change, _ = PLANTED["alibi of more than 16 heads"]
    found = [fuzz(but(op, change), examples=n, seed=5, output=tmp_path / f"{k}") for k, n in enumerate((30, 30, 60))]
    assert all(len(findings.finds) == 1 for findings in found)
    first = bytes_of(tmp_path / "0")
    assert {"SUITE.json", "SHA256SUMS", "alibi/fuzz/group.json", "alibi/fuzz/data.safetensors"} <= set(first)
    assert first == bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2")
    other = fuzz(but(op, change), examples=30, seed=6)
    assert found[0].finds[0].draw != other.finds[0].draw or found[0].tally != other.tally


def test_a_draw_does_not_depend_on_those_before_it() -> None:
    def seen(first: int, last: int) -> list[str]:
        calls: list[str] = []

        def alibi(q: Any, k: Any, /, **options: Any) -> Any:
            calls.append(repr((q.tolist(), k.tolist(), {n: v for n, v in options.items() if n != "dtype"})))
            return posref.alibi(q, k, **options)

        asking = Asking({"target": SimpleNamespace(alibi=alibi)})
        hunt = Hunt(asking, "alibi", "float32", 4)
        calls.clear()  # what was asked to learn the scope
        hunt.search(first, last)
        return calls

    assert seen(0, 6)[-len(seen(4, 6)) :] == seen(4, 6)
    assert len(seen(4, 6)) == 4  # each call is asked twice


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("file", ["numpy_alibi_mpt", "numpy_rotate_half", "numpy_attention", "numpy_sinusoidal"])
def test_correct_code_does_not_fail(file: str) -> None:
    findings = fuzz(str(HERE / "correct" / f"{file}.py"), examples=12, seed=2)
    assert findings.exit_code == 0, [(find.op, find.result.message) for find in findings.finds]


@few(
    1,
    ("op", "examples"),
    share([*((op, 4) for op in list(REGISTRY)[::8]), *(pytest.param(op, 12, marks=pytest.mark.thorough) for op in REGISTRY)]),
    dear=True,
)
def test_the_reference_does_not_fail(op: str, examples: int) -> None:
    findings = fuzz("posref", op=op, examples=examples, seed=3)
    assert findings.exit_code == 0, [(find.dtype, find.result.message) for find in findings.finds]
    assert findings.tally.doubts == []
    assert {dtype for _, dtype in findings.plan.pairs} <= {"float64", "float32", "float16"}


FOUND = (  # calls on which the reference, its bounds or the witnesses once failed
    ("shaw_scores", {"left": 0, "right": 0, "order": "key_minus_query"},
     {"q": [[3.0]], "k": [[-4 / 3]], "key_table": [[1.0]], "q_positions": [0], "k_positions": [0]}),
    ("rope_table", {}, {"positions": 118, "inv_freq": [0.06779661016949179]}),
    ("rope_table", {}, {"positions": 896518393, "inv_freq": [153.30299377441406]}),
    ("rope_frequencies", {"dim": 24, "base": 500.0, "scaling": Llama3(36.75, 512, 1.77030752915909, 10.0)}, {}),
    ("t5_bias", {"bidirectional": False}, {"q_positions": [1, 2], "k_positions": [[3, 4], [5, 6]], "table": [[0.5]] * 3}),
    ("alibi", {"heads": 3, "form": "key"}, {"q_positions": [[1, 2], [3, 4]], "k_positions": [0, 5, 6]}),
    ("attention", {}, {"q": [[0.5]], "k": [[0.25], [2.0]], "v": [[1.0], [3.0]], "mask": True}),
)  # fmt: skip


@pytest.mark.parametrize(("op", "params", "inputs"), FOUND)
def test_what_was_found_is_right_now(op: str, params: Any, inputs: Any) -> None:
    asking = Asking({"target": "posref"})
    drawn = Call(params, {n: np.asarray(v) for n, v in inputs.items()})
    case = hunt.case_of(f"{op}/fuzz/found", "float64", drawn)
    assert asking.ask(case, "float64", Answer(case, "float64")).verdict == "pass"


def test_what_is_unsupported_is_counted_and_named() -> None:
    target = SimpleNamespace(alibi=lambda q, k, /, *, heads: posref.alibi(q, k, heads=heads, form="distance"))
    findings = fuzz(target, examples=20)
    count = findings.tally.verdicts["unsupported"]
    assert count > 5
    assert findings.tally.verdicts.total() == findings.tally.reasons["unsupported: no option 'form'"] == count
    assert findings.exit_code == 2  # nothing could be judged


def of_lengths(change: Any) -> Any:
    """Return ALiBi's causal form of the keys 0, 1, 2, ... and the last of them as queries, of one row; `change` spoils it."""

    def alibi(q: Any, k: Any, /, *, heads: int, form: str) -> Any:
        queries, keys = q.shape[-1], k.shape[-1]
        lengths = np.array_equal(k, np.arange(keys)) and np.array_equal(q, np.arange(keys - queries, keys))
        if form != "causal" or not lengths:
            raise NotImplementedError(form)
        return change(posref.alibi(q, k, heads=heads, form=form, dtype=np.float32), heads)

    return SimpleNamespace(alibi=alibi, __name__="of lengths")


@pytest.mark.thorough(dear=True)
def test_draws_are_inside_of_a_narrow_scope() -> None:
    findings = fuzz(of_lengths(lambda out, heads: out), examples=40)
    assert findings.exit_code == 0
    assert findings.judged >= 30
    (find,) = fuzz(of_lengths(lambda out, heads: out * (1 + (heads == 5))), examples=200).finds
    assert find.call.params["heads"] == 5


@pytest.mark.thorough(dear=True)
def test_a_call_that_meets_many_conditions_is_found() -> None:
    """All of them are refused in the same words."""

    def attention(q: Any, k: Any, v: Any, /) -> Any:
        if q.ndim != 4 or q.shape[:2] != k.shape[:2] or q.shape[-1] % 8 or 0 in (*q.shape, *k.shape, *v.shape):
            raise NotImplementedError
        kept = k.shape[-2] // 64 * 64 or k.shape[-2]
        return posref.attention(q, k[..., :kept, :], v[..., :kept, :])

    findings = fuzz(SimpleNamespace(attention=attention), examples=200)
    assert findings.finds[0].call.inputs["k"].shape[-2] > 64


def test_a_kernel_for_one_model_is_asked() -> None:
    """No stored call has its sections together with positions of rows."""

    def mrope(x: Any, positions: Any, /, *, sections: Any, arrangement: str, layout: str, base: float) -> Any:
        if tuple(sections) != (16, 24, 24) or positions.ndim != 4 or (arrangement, layout) != ("chunked", "half"):
            raise NotImplementedError
        return posref.mrope(x, positions, sections=sections, arrangement=arrangement, layout=layout, base=base)

    assert fuzz(SimpleNamespace(mrope=mrope), examples=12).judged >= 10


def test_a_run_that_judges_next_to_nothing_fails() -> None:
    target = SimpleNamespace(alibi=posref.alibi)
    few_draws = fuzz(target, seconds=1e-3)
    assert few_draws.judged < 10
    assert few_draws.exit_code == 2


def test_a_failure_that_does_not_come_again_is_said_to() -> None:
    class Keeps:
        """What it gives depends on the first queries of every shape."""

        seen: dict[tuple[int, ...], Any] = {}  # noqa: RUF012

        def alibi(self, q: Any, k: Any, /, **options: Any) -> Any:
            first = self.seen.pop(q.shape, None)
            self.seen[q.shape] = q
            return posref.alibi(q if first is None else first, k, **options)

    (find,) = fuzz(Keeps(), examples=100, seed=1).finds
    assert find.result.verdict == "fail"
    assert "other bits" in find.result.message or "depends on the calls before it" in find.note


@pytest.mark.thorough(dear=True)
def test_an_interruption_keeps_what_was_found(tmp_path: Path) -> None:
    op, change, _ = PLANTED["alibi of more than 16 heads"]
    target = but(op, change)
    target.alibi_slopes = posref.alibi_slopes
    made: list[str] = []

    def progress(now: str) -> None:
        made.append(now)
        if "alibi float32" in made and now != "alibi float32" and len(made) > 30:
            raise KeyboardInterrupt

    findings = fuzz(target, examples=200, seed=5, progress=progress, output=tmp_path / "out")
    assert not findings.complete
    assert [find.op for find in findings.finds] == ["alibi"]
    assert (tmp_path / "out" / "SUITE.json").is_file()
    assert findings.tallies["alibi_slopes", "float32"].verdicts["pass"] < 200


def test_a_witness_that_disagrees_is_a_doubt_about_posref(monkeypatch: pytest.MonkeyPatch) -> None:
    def proved(*_: Any) -> Any:
        raise Disagreement("the witnesses disagree at out.")

    monkeypatch.setattr(hunt.witnesses, "proved", proved)
    findings = fuzz("posref", op="alibi_slopes", dtype="float32", examples=2)
    assert findings.tally.reasons["the witnesses disagree"] == 2
    assert "alibi_slopes(heads=" in findings.tally.doubts[0]
    assert findings.exit_code == 2


@pytest.mark.thorough(dear=True)
def test_a_program_that_crashes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hunt.STEPS, "crash", 2)
    file = tmp_path / "dies.py"
    file.write_text(
        "import os\nimport posref\n\n\ndef alibi(q, k, /, **options):\n"
        "    if options['heads'] > 4:\n        os._exit(3)\n    return posref.alibi(q, k, **options)\n"
    )
    findings = fuzz(str(file), examples=20, seed=1, output=tmp_path / "out")
    (find,) = findings.finds
    assert find.result.verdict == "crash"
    assert find.call.params["heads"] > 4
    assert verify(tmp_path / "out") == []


# ---- the command ---------------------------------------------------------
TARGET = """import numpy as np
import posref


def alibi(q, k, /, *, heads, **options):
    out = posref.alibi(q, k, heads=heads, **options)
    return out * np.float32(1.01) if heads > 16 else out


alibi_slopes = posref.alibi_slopes
"""


@pytest.mark.thorough(dear=True)
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TARGET)
    found = run("fuzz", "mine.py", "--examples", "30", "--seed", "5")
    assert found.exit_code == 1, found.output
    for text in ("alibi float32: fail", "heads=17", "--suite posref-fuzz-5 --case alibi/fuzz/seed-5-float32", "1 FAIL"):
        assert text in found.output
    assert found.stderr == ""  # silent in a pipe
    again = run("check", "mine.py", "--suite", "posref-fuzz-5")
    assert again.exit_code == 1
    assert found.output.split("fail ", maxsplit=1)[1].splitlines()[0] in again.output  # the message
    nothing = run("fuzz", "mine.py", "--op", "alibi_slopes", "--seconds", "5")
    assert nothing.exit_code == 0
    assert "nothing found" in nothing.output
    assert not (tmp_path / ".hypothesis").exists()  # where hypothesis keeps what it read in sources


@few(
    2,
    ("arguments", "message"),
    [
        (("nowhere",), "cannot import 'nowhere'"),
        (("posref", "--op", "ropes"), "op must be the name of an operation; got"),
        (("posref", "--scheduler", "tcp://127.0.0.1:9", "--seconds", "1"), "no scheduler answers"),
        (("mine.py", "--op", "rope"), "has no rope"),
    ],
)
def test_what_cannot_run_is_exit_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("posref.conformance.fuzzing.dask_cluster.PATIENCE", 0.5)
    (tmp_path / "mine.py").write_text(TARGET)
    outcome = run("fuzz", *arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


@pytest.mark.thorough(dear=True)
def test_only_a_suite_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    op, change, _ = PLANTED["alibi of more than 16 heads"]
    with pytest.raises(VectorError, match="holds something else"):
        fuzz(but(op, change), examples=30, seed=5, output=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.thorough(dear=True)
def test_a_diagnosis_tells_draws_apart() -> None:
    """All draws of a seed have one id in the report."""

    def kerple(q: Any, k: Any, r1: Any, r2: Any, /, *, form: str) -> Any:
        return posref.kerple(q, k, r1, r2 * (2 if form == "log" else 1), form=form)

    (find,) = fuzz(SimpleNamespace(kerple=kerple, dtypes=("float32",)), examples=20, seed=0).finds
    assert find.diagnosis.startswith("Exactly the cases with form=log fail.")
    assert "the argument r2 is multiplied by 2" in find.diagnosis

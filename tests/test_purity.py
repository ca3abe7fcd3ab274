"""Purity is judged outside the target's process: calls are asked twice, and the judge reads the memory of its inputs."""

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.backends import numpy as numpy_backend
from posref.backends import torch as torch_backend
from posref.backends.rounding import bits_of
from posref.conformance import check
from posref.conformance.model import LoadedCase
from posref.conformance.targets import protocol, python, shared_file
from posref.conformance.targets.replies import Reply
from posref.conformance.targets.shared_file import SharedFile

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is lent on Linux")
HIDDEN = """
import numpy as np
import posref
from posref.conformance.targets import invocation, python
from posref.conformance.targets.replies import Reply

invocation.ValueCall.changed = lambda self: ()
invocation.ValueCall._around = lambda self: {}
right = python.PythonTarget._reply
python.PythonTarget._reply = lambda *arguments: Reply("ok", "", right(*arguments).outputs)
"""
WAYS = {
    "its input": ("table[...] = 0", "changed its input table"),
    "one byte of it": ("table.view(np.uint8).flat[-1] ^= 1", "changed its input table"),
    "the memory after it": (
        "np.lib.stride_tricks.as_strided(table, (table.size + 9,), (table.itemsize,))[-1] = 0",
        "wrote to the memory around its input table",
    ),
    "its integers": ("positions[...] = 0", "changed its input positions"),
}
BODY = "def learned(positions, table, **options):\n    found = posref.learned(positions, table, **options)\n"
BACKENDS = {"numpy": "", "torch": "backend = 'torch'\n"}


def by(way: str, file: Path) -> dict[str, Any]:
    """Return how a file is checked."""
    command = shlex.join([sys.executable, "-P", "-m", "posref", "protocol", "serve", str(file)])
    return {"target": str(file)} if way == "name" else {"command": command}


@linux
@few(1, "what", WAYS)
@pytest.mark.parametrize("way", ["name", "command"])
def test_a_target_that_hides_what_it_writes_fails(what: str, way: str, tmp_path: Path) -> None:
    statement, message = WAYS[what]
    file = tmp_path / "hidden.py"
    file.write_text(f"{HIDDEN}\n{BODY}    {statement}\n    return found\n", encoding="utf-8")
    report = check(**by(way, file), op="learned", experiments=0)
    failed = [case.message for o in report.operations for case in o.cases if case.verdict == "fail"]
    assert any(message in one for one in failed), failed
    assert report.exit_code == 1


@pytest.mark.thorough
@linux
@pytest.mark.parametrize("library", BACKENDS)
def test_what_a_target_keeps_of_its_inputs_stays(library: str, tmp_path: Path) -> None:
    """A cache that compares with the arrays of earlier calls is right, also where the memory of all has moved on."""
    file = tmp_path / "keeping.py"
    text = f"""
import numpy as np, posref
{BACKENDS[library]}
before = []
def sinusoidal(positions, dim, /, **options):
    asked = positions.shape, str(positions.dtype), dim, repr(options)
    for known, given, table in before:
        if given == asked and (known == positions).all():
            return table + 0
    before.append((positions, asked, posref.sinusoidal(positions, dim, **options)))
    return before[-1][2] + 0
"""
    file.write_text(text, encoding="utf-8")
    assert check(str(file), op="sinusoidal", experiments=0, seed=1).exit_code == 0


@linux
def test_an_array_that_is_kept_survives_the_next_loans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "LARGE", 0)  # the file is cut each time
    judge = SharedFile.new(inherited=True)
    process = SharedFile(f"/proc/self/fd/{judge.place}")
    kept = []
    for number in range(1, 4):
        judge.begin()
        start, size = judge.lend(np.full(5000, number), "")["block"]
        memory = process.borrow(start + size)
        assert memory is not None
        kept.append(numpy_backend.placed(memory, "int64", (5000,), None, start + 64 * 8))
        del memory
        process.give_back(start + size)
    judge.begin()
    assert [np.unique(array).tolist() for array in kept] == [[1], [2], [3]]
    kept[0][...] = 7
    assert np.unique(kept[0]).tolist() == [7]
    judge.close()
    process.close()


@linux
@few(1, "lacking", ["mmap", "mremap"])
def test_where_no_memory_is_left_for_what_it_keeps_a_call_is_an_error(lacking: str, tmp_path: Path) -> None:
    file = tmp_path / "keeps.py"
    text = f"""
from posref.conformance.targets import shared_file
kept, right = [], shared_file.MEMORY.{lacking}
shared_file.MEMORY.{lacking} = lambda *a: 2**64 - 1 if a[4] == -1 or {lacking == "mremap"} else right(*a)
def learned(positions, table, **options):
    kept.append(table)
    return posref.learned(positions, table, **options)
"""
    file.write_text(f"import posref{text}", encoding="utf-8")
    report = check(str(file), op="learned", tier="smoke", experiments=0)
    said = {(c.verdict, c.message) for o in report.operations for c in o.cases}
    assert said == {("error", "MemoryError: no memory is left for the inputs that it keeps")}
    assert report.exit_code == 1


@pytest.mark.thorough
@pytest.mark.parametrize("library", BACKENDS)
def test_an_input_may_be_the_result(library: str, tmp_path: Path) -> None:
    file = tmp_path / "same.py"
    text = f"import posref\n{BACKENDS[library]}\ndef learned(positions, table, **options):\n"
    same = "positions.shape == table.shape[:1] and (positions[1:] == positions[:-1] + 1).all() and not positions[0]"
    file.write_text(f"{text}    return table if {same} else posref.learned(positions, table, **options)\n", encoding="utf-8")
    assert check(str(file), op="learned", experiments=0).exit_code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("library", BACKENDS)
def test_what_it_says_that_it_overwrites_may_be(library: str, tmp_path: Path) -> None:
    file = tmp_path / "in_place.py"
    text = f"import posref\n{BACKENDS[library]}\nin_place = 'x'\ndef rope(x, positions, **options):\n"
    file.write_text(f"{text}    x[...] = posref.rope(x, positions, **options)\n", encoding="utf-8")
    report = check(str(file), op="rope", experiments=0)
    assert report.counts["fail"] == 0
    assert report.counts["pass"] > 100


@pytest.mark.thorough
def test_gradients_are_asked_in_memory_that_is_not_contiguous() -> None:
    report = check("posref", backend="torch", case="apply_rope/gradient/strided", experiments=0)
    assert report.counts["pass"] >= 2
    assert report.exit_code == 0


@pytest.mark.parametrize("form", ["", "non-contiguous"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool"])
def test_a_loan_has_the_values_and_shows_every_write(dtype: str, shape: tuple[int, ...], form: str) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2 + 1
    bits = bits_of(values, dtype) if "float" in dtype else values.astype(dtype)
    file = SharedFile.new(inherited=True)
    file.lend(np.zeros(3), "")
    loan = file.lend(bits, form)
    tensor = {"dtype": protocol.CODES[dtype], "shape": list(shape), **loan}
    assert np.array_equal(protocol.decode(tensor, file)[0], values.astype(bool) if dtype == "bool" else values)
    start, size = loan["block"]
    memory = file.borrow(start + size)
    if memory is None:
        pytest.skip("memory is lent on Linux")
    for library in (torch_backend, numpy_backend)[: 1 + (dtype != "bfloat16")]:
        block = memory[start : start + size]
        array = library.placed(block, dtype, shape, loan.get("strides"), loan["at"] - start)
        assert np.array_equal(library.to_numpy(array), values.astype(bool) if dtype == "bool" else values)
        assert file.is_unchanged()
        assert file.is_changed(loan) == (False, False)
        array[...] = 0
        assert file.is_changed(loan) == (True, False)
        assert not file.is_unchanged()
        array[...] = library.from_numpy(np.asarray(values), None if dtype in ("int64", "bool") else dtype)
        assert file.is_changed(loan) == (False, False)
        block[0] ^= 1
        assert file.is_changed(loan) == (False, True)
        assert not file.is_unchanged()
        block[0] ^= 1
    file.give_back(start + size)
    file.close()


def test_a_draw_says_which_calls_are_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a seed, and in the kernel tier, all calls are; with one every third call, in one dtype."""
    asked: list[tuple[str, str, int]] = []
    right = python.PythonTarget.reply

    def counted(self: python.PythonTarget, case: LoadedCase, step: int, dtype: str, calls: int = 1, **options: bool) -> Reply:
        if case.kind != "reject":
            asked.append((case.id, dtype, calls))
        return right(self, case, step, dtype, calls, **options)

    def shares(**options: Any) -> dict[str, float]:
        """Return the share of calls that are made twice, by dtype."""
        asked.clear()
        check(posref, op="apply_rope", experiments=0, **options)
        counts = {dtype: [sum(d == dtype and calls == k for _, d, calls in asked) for k in (1, 2)] for _, dtype, _ in asked}
        return {dtype: twice / once for dtype, (once, twice) in counts.items()}

    monkeypatch.setattr(python.PythonTarget, "reply", counted)
    whole, drawn = shares(), shares(seed=1)
    assert min(whole.values()) > 0.98  # a call that is refused is not repeated
    assert all(0.04 < share < 0.2 for share in drawn.values())

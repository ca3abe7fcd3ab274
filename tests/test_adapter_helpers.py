"""What helps to write an adapter: positions and tokens as libraries take them, options, parts of projects, files that run."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import run
from sampling import QUARTER, few, share

import posref
from posref.conformance import Unsupported, check
from posref.conformance.adapters import counted, flat_tokens, from_table, hf_parameters, only_package, queries_and_keys
from posref.conformance.commands.target_command import KINDS
from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKFixed, Proportional, YaRN

SCALINGS = [
    None, Linear(4.0), DynamicNTK(2.0, 4096), Llama3(8.0, 8192), YaRN(4.0, 32768), YaRN(32.0, 4096, truncate=False),
    YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=0.5), LongRoPE((1.0,) * 8, (2.0,) * 8, 4096, max_length=131072),
    Proportional(0.25),
]  # fmt: skip


@pytest.mark.parametrize("asarray", [np.asarray, torch.asarray])
def test_offsets_of_rows(asarray) -> None:
    assert counted(asarray([5, 6, 7])) == [5]
    assert counted(asarray([[0, 1], [9, 10]])) == [0, 9]
    assert counted(asarray([[[0.0, 1.0]], [[4.0, 5.0]]])) == [0, 4]
    assert counted(asarray(3)) == [3]
    assert counted(asarray(np.zeros((2, 0), dtype=np.int64))) == []


@pytest.mark.parametrize("positions", [[0, 2], [1, 1], [0.5, 1.5], [-1, 0], [[0, 1], [5, 4]]])
def test_positions_that_no_offset_tells_are_refused(positions) -> None:
    with pytest.raises(Unsupported):
        counted(np.asarray(positions))


@pytest.mark.parametrize("asarray", [np.asarray, torch.asarray])
@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (5, 8), (8,), (2, 0, 8)])
def test_rows_are_tokens_and_back(asarray, shape) -> None:
    x = asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    positions = asarray(np.arange(shape[-2]) if len(shape) > 1 else np.asarray(4))
    tokens, where, back = flat_tokens(x, positions)
    assert tuple(tokens.shape) == (int(np.prod(shape[:-1])), 1, shape[-1])
    assert where.tolist() == np.broadcast_to(np.asarray(positions), shape[:-1]).ravel().tolist()
    assert np.array_equal(np.asarray(back(tokens)), np.asarray(x))


@pytest.mark.parametrize("asarray", [np.asarray, torch.asarray])
@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (5, 8), (8,), (2, 0, 8), (3, 0)])
def test_rows_are_queries_and_keys_in_turn_and_back(asarray, shape) -> None:
    x = asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    count, size = int(np.prod(shape[:-1])), shape[-1]
    q, k, back = queries_and_keys(x)
    assert (tuple(q.shape), tuple(k.shape)) == ((count, 4, size), (count, 2, size))
    assert np.array_equal(np.asarray(back(q, k)), np.asarray(x))
    flat = back(q.reshape(count, 4 * size), k.reshape(count, 2 * size))
    assert np.array_equal(np.asarray(flat), np.asarray(x))
    rows, heads = np.asarray(x).reshape(count, size), np.concatenate((np.asarray(q), np.asarray(k)), axis=1)
    for row in range(count if count > 1 else 0):
        mine = 3 - row // 2 % 4 if row % 2 == 0 else 5 - row // 2 % 2
        assert [np.array_equal(head, rows[row]) for head in heads[row]] == [head == mine for head in range(6)] or not size


@pytest.mark.parametrize("asarray", [np.asarray, torch.asarray])
def test_rows_of_a_table(asarray) -> None:
    asked = []

    def make(rows):
        asked.append(rows)
        return asarray(np.arange(rows * 2).reshape(rows, 2)), asarray(np.arange(rows))

    pairs, numbers = from_table(make, asarray([[3, 0], [1, 3]]))
    assert asked == [4]
    assert pairs.tolist() == [[[6, 7], [0, 1]], [[2, 3], [6, 7]]]
    assert numbers.tolist() == [[3, 0], [1, 3]]
    assert from_table(lambda rows: make(rows)[1], asarray(np.zeros((0,), dtype=np.int64))).tolist() == []
    for wrong in ([0.5], [-1], [8]):
        with pytest.raises(Unsupported):
            from_table(make, asarray(wrong), rows=8)


@pytest.mark.parametrize("scaling", SCALINGS, ids=repr)
def test_a_configuration_says_what_the_record_does(scaling) -> None:
    parameters, length = hf_parameters(scaling)
    config = {
        "model_type": "llama", "hidden_size": 16, "num_attention_heads": 1, "max_position_embeddings": length,
        "rope_parameters": {"rope_theta": 10000.0, **parameters},
    }  # fmt: skip
    assert posref.rope_from_config(config)["scaling"] == scaling


def test_a_record_without_a_rope_type_is_refused() -> None:
    with pytest.raises(Unsupported, match="NTKFixed"):
        hf_parameters(NTKFixed(2.0))


def test_a_part_of_a_project_is_imported_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "hugeproject" / "layers"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").write_text("raise RuntimeError('the whole project')", encoding="utf-8")
    (inner / "other.py").write_text("FACTOR = 3", encoding="utf-8")
    (inner / "rotary.py").write_text(
        "from hugeproject.kernels import Base, fast, register\n"
        "from hugeproject.logger import init_logger\n"
        "from .other import FACTOR\n"
        "logger = init_logger(__name__)\n"
        "@register('rope')\n"
        "class Rope(Base):\n    def __call__(self, x):\n        logger.info('called')\n        return FACTOR * x\n"
        "@register\n"
        "def twice(x):\n    return 2 * x\n",
        encoding="utf-8",
    )
    before = set(sys.modules)
    try:
        stubs = {"hugeproject.kernels": {"fast": 1}, "hugeproject.logger": {}}
        rotary = only_package("hugeproject.layers.rotary", folder=tmp_path, stubs=stubs)
        assert (rotary.Rope()(2), rotary.twice(2), rotary.fast) == (6, 4, 1)
        with pytest.raises(ModuleNotFoundError, match="nosuchproject"):
            only_package("nosuchproject.layers", folder=tmp_path)
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


@pytest.mark.thorough(dear=True)
@few(1, "kind", [pytest.param(k, marks=pytest.mark.thorough) if k == "transformers" else k for k in KINDS])
def test_a_new_adapter_runs(kind, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    made = run("adapter", "new", "my-library", "--like", kind, "-o", file)
    assert made.exit_code == 0
    assert f"posref check {file}" in made.output
    assert file.read_text(encoding="utf-8").startswith('"""\nmy-library, ')
    asked = {  # those that have no rope
        "cache": "norm_rope/norm-first/half", "hf": "apply_rope/half/small", "axis-map": "mrope/chunked/small",
        "per-head": "to_float8/plain/small",
    }  # fmt: skip
    report = check(str(file), case=asked.get(kind, "rope/positions/chunk"), dtype="float32")
    assert report.exit_code == 0, report.failures
    again = run("adapter", "new", "my-library", "--like", kind, "-o", file)
    assert again.exit_code == 2
    assert "must not exist yet" in again.output


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("kind", share(KINDS, QUARTER))
def test_a_new_adapter_conforms_in_its_scope(kind, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    run("adapter", "new", "mine", "--like", kind, "-o", file)
    report = check(str(file), dtype="float32" if kind == "jax" else None)  # which compiles everything for each dtype
    assert report.exit_code == 0, [case.id for case in report.failures]
    assert report.verdict == "conformant in its scope"


@pytest.mark.parametrize("name", ["", "../../evil", "a/b", "a\nb", ".hidden", "{file}", "x" * 101])
def test_the_name_of_an_adapter_is_a_packages_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("adapter", "new", name, "--like", "table")
    assert done.exit_code == 2
    assert "NAME must be a package's name" in done.output
    assert list(tmp_path.iterdir()) == []

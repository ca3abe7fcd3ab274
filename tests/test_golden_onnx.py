"""`posref golden --format onnx`: node tests that ONNX's reference evaluator and ONNX Runtime pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import run as run_posref
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from sampling import few

Q, K, V = ("--shape", "q=2,4,3,8"), ("--shape", "k=2,4,5,8"), ("--shape", "v=2,4,5,16")
ROPE = ("apply_rope", "--option")
NODES: dict[str, tuple[str, ...]] = {
    "attention": ("attention", *Q, *K, *V),
    "two axes": ("attention", "--shape", "q=3,8", "--shape", "k=5,8", "--shape", "v=5,8"),
    "fewer key heads": ("attention", *Q, "--shape", "k=2,2,5,8", "--shape", "v=2,2,5,8"),
    "scale": ("attention", *Q, *K, *V, "--option", "scale=0.25"),
    "bias of each head": ("attention", *Q, *K, *V, "--shape", "bias=4,3,5"),
    "halves": (*ROPE, "layout=half", "--shape", "x=2,3,5,8", "--shape", "cos=5,4", "--shape", "sin=5,4"),
    "pairs": (*ROPE, "layout=interleaved", "--shape", "x=2,5,8", "--shape", "cos=5,4", "--shape", "sin=5,4"),
    "some channels": (*ROPE, "layout=half", "--shape", "x=2,5,8", "--shape", "cos=5,3", "--shape", "sin=5,3"),
    "a table of each batch": (*ROPE, "layout=half", "--shape", "x=2,3,5,8", "--shape", "cos=2,1,5,4", "--shape", "sin=2,1,5,4"),
    "a table of each head": (*ROPE, "layout=half", "--shape", "x=3,5,8", "--shape", "cos=3,5,4", "--shape", "sin=3,5,4"),
    "tokens before heads": (*ROPE, "layout=half", "--shape", "x=2,5,3,8", "--shape", "cos=5,1,4", "--shape", "sin=5,1,4"),
}


def run(*arguments: str | Path) -> str:
    done = run_posref("golden", *arguments, "--format", "onnx")
    assert done.exit_code == 0, done.output
    return done.output


def tensors(folder: Path, role: str) -> dict[str, Any]:
    paths = sorted((folder / "test_data_set_0").glob(f"{role}_*.pb"))
    found = [onnx.TensorProto.FromString(path.read_bytes()) for path in paths]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in found}


@few(4, "name", list(NODES))
def test_a_node_test_passes_in_onnx(name: str, tmp_path: Path) -> None:
    import onnxruntime as ort

    folder = tmp_path / "node"
    assert "; a node test of " in run(*NODES[name], "--dtype", "float32", "-o", folder)
    inputs, (expected,), (allowed,) = (tensors(folder, "input"), *(tensors(folder, r).values() for r in ("output", "allowed")))
    model = (folder / "model.onnx").read_bytes()
    assert {x.dtype for x in inputs.values()} == {expected.dtype} == {np.dtype(np.float32)}
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    reference = ReferenceEvaluator(onnx.load_from_string(model))
    for engine in (reference, session):
        (y,) = engine.run(None, inputs)
        assert y.shape == expected.shape
        assert np.all(np.abs(y.astype(np.float64) - expected) <= allowed)
        assert not np.all(np.abs(y[..., ::-1].astype(np.float64) - expected) <= allowed)


def test_a_mask_is_a_node_test_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {n: rng.integers(-8, 8, (2, 4, 5, 8)) / 8 for n in "qkv"}
    np.savez(tmp_path / "in.npz", mask=np.tri(5, dtype=bool), **arrays)
    run("attention", "--input", tmp_path / "in.npz", "-o", tmp_path / "node")
    inputs = tensors(tmp_path / "node", "input")
    assert inputs["attn_mask"].dtype == bool
    (y,) = ReferenceEvaluator(str(tmp_path / "node" / "model.onnx")).run(None, inputs)
    assert np.all(np.abs(y - tensors(tmp_path / "node", "output")["Y"]) <= tensors(tmp_path / "node", "allowed")["Y"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("rope", "--preset", "llama-3.1-8b", "--positions", "0:4", "--shape", "4,128"), "opset 23 has no operator for rope"),
        (("t5_buckets", "--option", "num_buckets=8", "--option", "max_distance=16", "--option", "bidirectional=true",
          "--positions", "0:9"), "opset 23 has no operator for t5_buckets"),
        ((*ROPE, "layout=interleaved_to_half", "--shape", "x=5,8", "--shape", "cos=5,4", "--shape", "sin=5,4"),
         "RotaryEmbedding has no layout interleaved_to_half"),
        (("attention", *Q, *K, *V, "--array", "sinks=1,2,3,4.5"), "Attention has no sinks"),
        (("attention", *Q, *K, *V, "--option", "scale=0.1"), "Attention has its scale in float32, which has no 0.1"),
        ((*NODES["halves"], "--dtype", "float64"), "RotaryEmbedding has no float64"),
    ],
)  # fmt: skip
def test_where_onnx_has_no_operator_there_are_tensors_alone(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    assert f"; tensors without a model: {why}" in run(*arguments, "-o", tmp_path / "data")
    assert not (tmp_path / "data" / "model.onnx").exists()
    assert json.loads((tmp_path / "data" / "about.json").read_text())["operation"] == arguments[0]
    inputs, outputs = tensors(tmp_path / "data", "input"), tensors(tmp_path / "data", "output")
    assert inputs
    assert outputs
    assert all(not name.startswith("positions") or x.dtype == np.int64 for name, x in inputs.items())


def test_narrow_tensors_have_the_bits_of_their_dtype(tmp_path: Path) -> None:
    run(*NODES["halves"], "--dtype", "bfloat16", "-o", tmp_path / "node")
    run(*NODES["halves"], "--dtype", "float32", "-o", tmp_path / "wide")
    narrow, wide = (tensors(tmp_path / name, "output")["Y"].astype(np.float64) for name in ("node", "wide"))
    assert narrow.shape == wide.shape
    assert 0 < np.max(np.abs(narrow - wide) / np.abs(wide)) <= 2.0**-8


def test_what_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*more: str) -> str:
        done = run_posref("golden", *NODES["halves"], "--format", "onnx", "-o", tmp_path / "node", *more)
        assert done.exit_code == 2
        return done.output

    assert "--stages has no place in ONNX's tests" in refused("--stages")
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "mine.txt").write_text("mine")
    assert "about.json" in refused()
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    assert "--format onnx needs onnx: pip install onnx" in refused()

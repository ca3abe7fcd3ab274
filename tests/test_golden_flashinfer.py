"""`posref golden --format flashinfer`: a data set of FlashInfer-Bench whose reference is posref."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from commands import run
from safetensors.torch import load_file
from sampling import few

TYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool}
CALLS: dict[str, tuple[str, ...]] = {
    "scaled": ("rope", "--preset", "llama-3.1-8b", "--positions", "0,8191", "--shape", "3,2,128"),
    "gaps": ("rope", "--preset", "llama-3.1-8b", "--positions", "3,8193,131071", "--shape", "3,128"),
    "cache": ("write_cache", "--shape", "cache=3,4,2,8", "--shape", "rows=5,2,8", "--array", "slots=11,-1,0,7,3"),
    "masked": ("attention", "--shape", "q=2,3,8", "--shape", "k=2,5,8", "--shape", "v=2,5,8", "--shape", "bias=2,3,5"),
    "two results": ("rope_table", "--positions", "0:5", "--array", "inv_freq=1.0,0.5"),
    "norm": ("rms_norm", "--shape", "x=4,8", "--shape", "weight=8", "--option", "eps=1e-6", "--option", "weight_offset=0"),
}


def written(folder: Path, *arguments: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, torch.Tensor]]:
    """The definition, the trace and the tensors of a data set."""
    done = run("golden", *arguments, "--format", "flashinfer", "-o", folder)
    assert done.exit_code == 0, done.output
    [definition], [traces] = folder.glob("definitions/*/*.json"), folder.glob("workloads/*/*.jsonl")
    trace = json.loads(traces.read_text(encoding="utf-8"))
    [path] = {described["path"] for described in trace["workload"]["inputs"].values()}
    return json.loads(definition.read_text(encoding="utf-8")), trace, load_file(folder / path)


@few(1, "dtype", ["float32", "float16"])
@few(3, "name", CALLS)
def test_the_reference_gives_what_the_workload_says(name: str, dtype: str, tmp_path: Path) -> None:
    definition, trace, tensors = written(tmp_path / "data", *CALLS[name], "--dtype", dtype)
    assert trace["definition"] == definition["name"]
    assert (trace["solution"], trace["evaluation"], trace["workload"]["axes"]) == (None, None, {})
    assert any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in ast.parse(definition["reference"]).body)
    assert not definition["inputs"].keys() & definition["outputs"].keys()
    given = []
    for argument, spec in definition["inputs"].items():
        tensor = tensors[trace["workload"]["inputs"][argument]["tensor_key"]]
        assert tensor.dtype == TYPES[spec["dtype"]]
        assert list(tensor.shape) == [definition["axes"][axis]["value"] for axis in spec["shape"]]
        given.append(tensor)
    code: dict[str, Any] = {}
    exec(definition["reference"], code)
    results = code["run"](*given)
    results = results if isinstance(results, tuple) else (results,)
    true = [n.removeprefix("true/") for n in tensors if n.startswith("true/")]
    assert len(results) == len(definition["outputs"]) == len(true)
    for result, (output, spec) in zip(results, definition["outputs"].items(), strict=True):
        assert result.dtype == TYPES[spec["dtype"]]
        off = np.abs(result.double().numpy() - tensors[f"true/{output}"].numpy())
        assert np.all(off <= tensors[f"allowed/{output}"].numpy())
        if dtype == "float32":
            turned = np.abs(result.flip(-1).double().numpy() - tensors[f"true/{output}"].numpy())
            assert not np.all(turned <= tensors[f"allowed/{output}"].numpy())


def test_a_data_set_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    first, *_ = written(tmp_path / "data", *CALLS["norm"], "--dtype", "float32")
    second, *_ = written(tmp_path / "data", *CALLS["two results"], "--dtype", "float32")
    assert first["name"] != second["name"]
    assert len(list((tmp_path / "data").rglob("*.json"))) == 2  # the definition, and what posref wrote
    (tmp_path / "data" / "mine.txt").write_text("kept", encoding="utf-8")
    done = run("golden", *CALLS["norm"], "--format", "flashinfer", "-o", tmp_path / "data")
    assert done.exit_code == 2
    assert "mine.txt is not" in done.output


def test_float64_is_refused(tmp_path: Path) -> None:
    asked = [*CALLS["norm"], "--dtype", "float64", "--format", "flashinfer", "-o", str(tmp_path / "data")]
    done = run("golden", *asked)
    assert done.exit_code == 2
    assert "FlashInfer-Bench has no float64" in done.output

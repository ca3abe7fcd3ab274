"""File exchange: what goes out says nothing of what is expected, and what comes back is judged as if it had been asked for."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run

from posref.conformance import check
from posref.conformance.accuracy import UNIT
from posref.conformance.calls import from_json, returns_reals
from posref.conformance.errors import TargetError, VectorError
from posref.conformance.reports.report import Report
from posref.conformance.suite import tensors
from posref.conformance.suite.reader import INSTALLED, load_groups, load_manifest
from posref.conformance.suite.schemas import validator
from posref.conformance.suite.writer import copy
from posref.conformance.targets import protocol
from posref.conformance.targets.exchange import export
from posref.conformance.targets.protocol import safetensors_file
from posref.conformance.targets.python import load_python
from posref.conformance.targets.server import Server
from posref.core.composition import makes_frequencies
from posref.scaling import RECORDS
from posref.spec import REGISTRY

OPS = ("sinusoidal", "rope_frequencies", "t5_buckets", "apply_rope")


def compute(folder: Path, dtypes: tuple[str, ...] = ("float32", "float16"), **more: Any) -> None:
    """Answer an export with the reference, as a stranger would from the page: from the files in the folder alone."""
    manifest = json.loads((folder / "EXPORT.json").read_text())
    validator("export").validate(manifest)
    server, rejected = Server(load_python("posref", backend="numpy")), []
    for group in manifest["groups"]:
        place = folder / group["id"]
        document = json.loads((place / "requests.json").read_text())
        validator("requests").validate(document)
        arrays = tensors.read(place / "inputs.safetensors", group["files"]["inputs.safetensors"])
        results: dict[str, protocol.Tensor] = {}
        for case in (case for case in document["cases"] if "cotangents" not in case["calls"][0]):
            for dtype in dtypes_of(group["op"], case, dtypes):
                for step, call in enumerate(case["calls"]):
                    reply = server.run(request(group["op"], case, step, call, dtype, arrays))
                    results.update({f"{dtype}/{call['name']}/{n}": t for n, t in reply.get("outputs", {}).items()})
                    rejected += [case["id"]] if reply["status"] == "error" else []
        (place / "outputs.safetensors").write_bytes(safetensors_file(results))
    document = {
        "schema": 1, "sha256": manifest["sha256"], "implementation": {"name": "posref by file", "version": "0"},
        "operations": sorted({g["op"] for g in manifest["groups"]}), "dtypes": list(dtypes), "claims": {"float16": "angle64"},
        "scalings": [kind.__name__ for kind in RECORDS],
        "rejected": sorted(set(rejected)),
    }  # fmt: skip
    write_about(folder, document | more)


def dtypes_of(op: str, case: dict[str, Any], dtypes: tuple[str, ...]) -> list[str]:
    if not returns_reals(op):
        return list(dtypes[:1])
    wanted = [d for d in dtypes if d in case["dtypes"]]
    return sorted({"float32" if d in UNIT else d for d in wanted}) if makes_frequencies(op) else wanted


def request(op: str, case: Any, step: int, call: Any, dtype: str, arrays: tensors.Tensors) -> dict[str, Any]:
    inputs = {n: protocol.given(op, n, arrays[t], dtype) for n, t in call["inputs"].items()}
    return {
        "seq": 1,
        "case": case["id"],
        "step": step,
        "op": op,
        "dtype": dtype,
        "params": call["params"],
        "inputs": inputs,
        "outputs": call["outputs"],
    }


def write_about(folder: Path, document: dict[str, Any]) -> None:
    validator("implementation").validate(document)
    (folder / "implementation.json").write_text(json.dumps(document))


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exchange") / "exported"
    export(INSTALLED, folder, OPS)
    compute(folder)
    return folder


@pytest.fixture
def mine(answered: Path, tmp_path: Path) -> Path:
    """A copy of the answers, to be spoilt."""
    return Path(shutil.copytree(answered, tmp_path / "mine"))


def about(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "implementation.json").read_text())
    return found


def outputs(folder: Path, group: str) -> dict[str, protocol.Tensor]:
    found = tensors.decode((folder / group / "outputs.safetensors").read_bytes())
    return {name: protocol.encode(protocol.widened(array), protocol.DTYPES[code]) for name, (array, code) in found.items()}


def verdict(folder: Path, case: str, dtype: str = "float32") -> tuple[str, str]:
    report = check(outputs=folder, case=case, dtype=dtype)
    (found,) = report.operations[0].cases
    return found.verdict, found.message


@pytest.mark.thorough
def test_right_results_are_conformant_and_refused_cases_rejected(answered: Path) -> None:
    report = check(outputs=answered)
    assert report.conformant, [(c.id, c.dtype, c.verdict, c.message) for c in report.failures][:5]
    assert {operation.op for operation in report.operations} == set(OPS)
    assert report.validation[0] == report.validation[1] > 0
    assert report.target["kind"] == "outputs"
    assert report.target["versions"] == {"posref by file": "0"}
    assert len(report.target["notes"]) == 2, report.target["notes"]
    assert "computed elsewhere" in report.target["notes"][0]
    validator("report").validate(report.to_json())


@pytest.mark.thorough
def test_results_are_judged_as_calls_are(answered: Path) -> None:
    """The same numbers, asked for or read, have the same verdicts and classes."""
    asked = {key: rest for op in OPS for key, *rest in facts(check("posref", op=op, claim="angle64"))}
    read = {key: rest for key, *rest in facts(check(outputs=answered, claim="angle64"))}
    both = set(asked) & set(read)
    once = (case.partition("/")[2].startswith("alone/") or case.startswith("t5_buckets/") for case, _ in set(read) - both)
    assert all(once)  # asked in the first dtype of each, or in the most precise one
    assert len(both) > len(read) / 2
    assert {key: asked[key] for key in both} == {key: read[key] for key in both}


def facts(report: Report) -> list[tuple[Any, ...]]:
    return [((c.id, c.dtype), c.verdict, c.achieved) for operation in report.operations for c in operation.cases]


@pytest.mark.thorough(dear=True)
def test_an_export_has_nothing_that_is_expected(tmp_path: Path) -> None:
    folder = tmp_path / "everything"
    count = export(INSTALLED, folder)
    manifest = load_manifest(INSTALLED)
    assert count == len(manifest["groups"])
    exported = json.loads((folder / "EXPORT.json").read_text())
    assert [case for g in exported["groups"] for case in g["cases"]] == [
        case for g in manifest["groups"] for case in g["cases"]
    ]
    assert {p.name for p in folder.rglob("*") if p.is_file()} == {"EXPORT.json", "requests.json", "inputs.safetensors"}
    for group in load_groups(INSTALLED):
        found = tensors.decode((folder / group.id / "inputs.safetensors").read_bytes())
        given = {name for name in group.data if "/in/" in name or "/ct/" in name}
        assert len(found) == len(given)
        assert not [name for name in found if "/out/" in name or "/mid/" in name]
        document = json.loads((folder / group.id / "requests.json").read_text())
        validator("requests").validate(document)
        for case, asked in zip(group.cases, document["cases"], strict=True):
            for call, sent in zip(case.calls, asked["calls"], strict=True):
                left = {n: from_json(v) for n, v in sent["params"].items() if n not in sent["defaults"]}
                assert left == dict(call.params), case.id
                assert all(np.array_equal(found[t][0], call.inputs[n]) for n, t in sent["inputs"].items()), case.id


@pytest.mark.thorough
def test_an_export_of_a_tier_and_of_operations(tmp_path: Path) -> None:
    assert export(INSTALLED, tmp_path / "smoke", tier="smoke") == len(REGISTRY)
    assert export(INSTALLED, tmp_path / "one", ["learned"], tier="smoke") == 1
    compute(tmp_path / "one", ("float64",), claims={})
    assert check(outputs=tmp_path / "one", tier="smoke").conformant
    assert not check(outputs=tmp_path / "one").conformant
    with pytest.raises(VectorError, match=r"--op must be the name of an operation; got 'nothing'\."):
        export(INSTALLED, tmp_path / "none", ["nothing"])
    with pytest.raises(VectorError, match="must be new or empty"):
        export(INSTALLED, tmp_path / "one")


def test_withdrawn_cases_are_not_exported(tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "suite", ["learned"])
    case = next(iter(load_manifest(tmp_path / "suite")["groups"]))["cases"][0]
    entry = {"case": case, "suite_from": "0.1.0", "suite_to": "0.2.0", "kind": "withdrawn", "reason": "it was wrong"}
    (tmp_path / "suite" / "ERRATA.json").write_text(json.dumps([entry]))
    export(tmp_path / "suite", tmp_path / "out")
    assert case not in (tmp_path / "out" / "EXPORT.json").read_text()


@pytest.mark.thorough
def test_another_suite_is_refused(mine: Path, tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "suite", ["sinusoidal"])
    with pytest.raises(TargetError, match=r"the results must be of the suite with sha256 .* Export and compute them again"):
        check(outputs=mine, suite=tmp_path / "suite")
    done = run("check", "--outputs", mine, "--suite", tmp_path / "suite")
    assert done.exit_code == 2


CASE = "sinusoidal/sin-cos/small"
GROUP = "sinusoidal/sin-cos"


@pytest.mark.thorough
def test_a_missing_result_is_not_run(mine: Path) -> None:
    found = outputs(mine, GROUP)
    del found["float32/small/out"]
    (mine / GROUP / "outputs.safetensors").write_bytes(safetensors_file(found))
    assert verdict(mine, CASE) == ("not-run", f"no float32/small/out in {GROUP}/outputs.safetensors")
    assert verdict(mine, CASE, "float16")[0] == "pass"
    (mine / GROUP / "outputs.safetensors").unlink()
    assert verdict(mine, CASE, "float16")[0] == "not-run"
    assert not check(outputs=mine).conformant


@pytest.mark.thorough(dear=True)
def test_a_wrong_value_shape_or_dtype_fails(mine: Path) -> None:
    right = outputs(mine, GROUP)
    value, _ = protocol.decode(right["float32/small/out"])
    for wrong, message in [
        (protocol.encode(value + np.eye(*value.shape) * 1e-3, "float32"), "off by 0.001"),
        (protocol.encode(value.T, "float32"), "must have shape"),
        (protocol.encode(value, "float64"), "must be float32; got float64"),
        (protocol.encode(np.where(value == value[0, 0], np.nan, value), "float32"), "must be finite"),
    ]:
        (mine / GROUP / "outputs.safetensors").write_bytes(safetensors_file(right | {"float32/small/out": wrong}))
        found = verdict(mine, CASE)
        assert found[0] == "fail"
        assert message in found[1]


@pytest.mark.thorough
def test_what_is_said_instead_of_results(mine: Path) -> None:
    said = about(mine)
    write_about(mine, said | {"unsupported": {CASE: {"float32": "not \x1b[31mhere"}}})
    assert verdict(mine, CASE) == ("unsupported", r"not \x1b[31mhere")
    assert verdict(mine, CASE, "float16")[0] == "pass"
    write_about(mine, said | {"errors": {CASE: "it burns"}})
    assert verdict(mine, CASE) == ("error", "it burns")
    write_about(mine, said | {"rejected": [CASE]})
    assert verdict(mine, CASE) == ("error", "rejected a valid call")
    refused = "sinusoidal/refused/odd"
    assert verdict(mine, refused) == ("not-run", "neither rejected nor computed")
    results = {"float32/odd/out": protocol.encode(np.zeros((3, 7)), "float32")}
    (mine / "sinusoidal/refused/outputs.safetensors").write_bytes(safetensors_file(results))
    assert verdict(mine, refused)[1].startswith("was not refused: ")


def test_strangers_are_noted_and_not_read(mine: Path) -> None:
    (mine / "letter.txt").write_text("mine")
    found = outputs(mine, GROUP) | {"float32/nothing/out": protocol.encode(np.zeros(2), "float32")}
    (mine / GROUP / "outputs.safetensors").write_bytes(safetensors_file(found))
    write_about(mine, about(mine) | {"unsupported": {"rope/half/nothing": "why"}})
    notes = check(outputs=mine, case=CASE).target["notes"]
    assert notes[1:] == [
        "files that were not read: letter.txt",
        f"results of no case: {GROUP}:float32/nothing/out",
        "cases that are not asked: rope/half/nothing",
    ]


def outside(mine: Path, tmp_path: Path) -> None:
    """Put a link to a right file outside in the place of the file."""
    target = tmp_path / "outside.safetensors"
    shutil.move(mine / GROUP / "outputs.safetensors", target)
    os.symlink(target, mine / GROUP / "outputs.safetensors")


def outside_folder(mine: Path, tmp_path: Path) -> None:
    shutil.move(mine / GROUP, tmp_path / "outside")
    os.symlink(tmp_path / "outside", mine / GROUP)


def outside_about(mine: Path, tmp_path: Path) -> None:
    shutil.move(mine / "implementation.json", tmp_path / "outside.json")
    os.symlink(tmp_path / "outside.json", mine / "implementation.json")


def pipe(mine: Path, tmp_path: Path) -> None:
    (mine / GROUP / "outputs.safetensors").unlink()
    os.mkfifo(mine / GROUP / "outputs.safetensors")


def large(mine: Path, tmp_path: Path) -> None:
    with (mine / GROUP / "outputs.safetensors").open("ab") as file:
        file.truncate(2**31)


def spoilt(mine: Path, tmp_path: Path) -> None:
    (mine / GROUP / "outputs.safetensors").write_bytes(b"\x08" + b"\0" * 7 + b'{"a": 1}')


def nothing(mine: Path, tmp_path: Path) -> None:
    (mine / "implementation.json").unlink()


def not_json(mine: Path, tmp_path: Path) -> None:
    (mine / "implementation.json").write_text('{"schema": NaN}')


def other_key(mine: Path, tmp_path: Path) -> None:
    (mine / "implementation.json").write_text(json.dumps(about(mine) | {"device": "GPU"}))


def other_claim(mine: Path, tmp_path: Path) -> None:
    (mine / "implementation.json").write_text(json.dumps(about(mine) | {"claims": {"float32": "perfect"}}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (outside, "must (be a regular file|not be a symbolic link)"),
        (outside_folder, "must not be a symbolic link"),
        (outside_about, "must (be a regular file|not be a symbolic link)"),
        (pipe, "must be a regular file"),
        (large, "must be a regular file of at most"),
        (spoilt, "not a safetensors file"),
        (nothing, "implementation.json: cannot be read"),
        (not_json, "implementation.json.*not valid JSON"),
        (other_key, "'device' was unexpected"),
        (other_claim, "a claim for float32 must be one of"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_malformed_or_elsewhere_cannot_run(
    mine: Path, tmp_path: Path, spoil: Callable[[Path, Path], None], message: str
) -> None:
    spoil(mine, tmp_path)
    with pytest.raises(TargetError, match=message) as raised:
        check(outputs=mine, case=CASE)
    assert str(mine) in str(raised.value)
    assert "Fetch the suite" not in str(raised.value)


@pytest.mark.thorough
def test_the_command_line(mine: Path, tmp_path: Path) -> None:
    done = run("vectors", "export", tmp_path / "out", "--op", "learned", "--tier", "smoke")
    assert (done.exit_code, done.output) == (0, f"exported 1 groups to {tmp_path / 'out'}\n")
    done = run("check", "--outputs", mine)
    assert done.exit_code == 0, done.output
    report = check(outputs=mine, op="sinusoidal")
    assert report.operations[0].cases[0].reproduce.startswith(f"posref check --outputs {mine} --case ")

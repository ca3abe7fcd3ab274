"""The vectors: proved, rebuilt byte for byte, altered and caught, malformed and named."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.conformance import check, golden
from posref.conformance.errors import BuildError, TargetError, VectorError
from posref.conformance.evidence.catalogue import cases_of, groups
from posref.conformance.evidence.tools.numbers import floats
from posref.conformance.model import Case
from posref.conformance.proof import witnesses
from posref.conformance.proof.build import build, build_group, verify
from posref.conformance.suite import tensors
from posref.conformance.suite.reader import INSTALLED, load_group, load_groups, load_manifest
from posref.conformance.suite.writer import copy, write_json, write_manifest
from posref.conformance.witness import alibi_slopes as transcription
from posref.spec import REGISTRY, Axes, Real, encoding

BUILD = "import sys; from pathlib import Path; from posref.conformance.proof.build import build; build(Path(sys.argv[1]){})"
CHANGED = {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "12345", "PYTHONUTF8": "0"}  # what no byte may depend on


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def built(root: Path, options: str = "") -> Path:
    """Build a suite in another directory, locale, time zone and hash seed."""
    command = [sys.executable, "-c", BUILD.format(options), str(root)]
    subprocess.run(command, check=True, env=os.environ | CHANGED, cwd=root.parent)
    return root


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("built") / "élsewhere", ", tier='smoke'")


@pytest.mark.thorough(dear=True)
def test_rebuilding_gives_the_same_smoke_cases(smoke: Path) -> None:
    """The thorough tests rebuild all."""
    found = files(smoke)
    assert found["smoke.json"] == files(INSTALLED)["smoke.json"]
    assert len([name for name in found if name.endswith("data.safetensors")]) == len(REGISTRY)
    assert verify(smoke) == []


def suite_of(root: Path, group: str) -> Path:
    """Write a suite of one group of the installed one: what is planted there is found without proving the others."""
    op = group.split("/", maxsplit=1)[0]
    copy(INSTALLED, root, [op])
    kept = [entry for entry in load_manifest(root)["groups"] if entry["id"] == group]
    for other in (entry["id"] for entry in load_manifest(INSTALLED)["groups"] if entry["op"] == op and entry["id"] != group):
        shutil.rmtree(root / other)
    smoke = json.loads((root / "smoke.json").read_text())
    smoke["cases"] = [case for case in smoke["cases"] if case["id"].rsplit("/", maxsplit=1)[0] == group]
    write_json(root / "smoke.json", smoke)
    write_manifest(root, kept)
    return root


def reseal(root: Path, group: str, data: tensors.Tensors | None = None, tolerance: tensors.Tensors | None = None) -> None:
    """Write changed tensors of a group and every hash and size that depends on them."""
    manifest = json.loads((root / "SUITE.json").read_text())
    entry = next(e for e in manifest["groups"] if e["id"] == group)
    document = json.loads((root / group / "group.json").read_text())
    for name, changed in (("data.safetensors", data), ("tolerance.safetensors", tolerance)):
        if changed is not None:
            (root / group / name).unlink()
            document["files"][name] = tensors.write(root / group / name, changed)
    write_json(root / group / "group.json", document)
    entry["files"] = {"group.json": tensors.digest((root / group / "group.json").read_bytes()), **document["files"]}
    write_manifest(root, manifest["groups"])


@pytest.mark.parametrize("role", ["in", "out", "mid", "tolerance"])
@pytest.mark.parametrize(
    "group",
    [
        *(pytest.param(group, marks=pytest.mark.thorough) for group in ("rope/yarn", "attention/mask", "sinusoidal/sin-cos")),
        "alibi/distance",
    ],
)
def test_one_ulp_is_found_and_named(tmp_path: Path, group: str, role: str) -> None:
    root = suite_of(tmp_path / "suite", group)
    found = next(iter(load_groups(root, group=group)))
    source = dict(found.tolerance if role == "tolerance" else found.data)
    part = "angle32/" if role == "tolerance" else f"/{role}/"
    names = sorted(n for n, t in source.items() if part in n and t.dtype.kind in "if" and t.size)
    if not names:
        assert role == "mid"
        assert group.startswith("sinusoidal")  # it has no stages
        return
    name = names[len(names) // 2]
    index = tuple(n // 2 for n in source[name].shape)
    altered = source[name].copy()
    altered[index] = altered[index] + 1 if altered.dtype.kind == "i" else np.nextafter(altered[index], np.inf)
    source[name] = altered
    reseal(root, group, **{"tolerance" if role == "tolerance" else "data": source})
    problems = verify(root)
    case = name.split("/")[1 if role == "tolerance" else 0].split("@")[0]
    assert any(f"{group}/{case}" in p and name in p and str(list(index)) in p for p in problems), problems


def test_the_own_suite_is_read_as_others_are_and_hashed(tmp_path: Path) -> None:
    """Its files are well formed, or `verify` says so; what is altered on the way is refused."""
    root = suite_of(tmp_path / "suite", "rope/yarn")
    [entry] = load_manifest(root)["groups"]
    own, checked = load_group(root, entry, own=True), load_group(root, entry)
    for ours, theirs in ((own.data, checked.data), (own.tolerance, checked.tolerance)):
        assert ours.keys() == theirs.keys()
        assert all(x.dtype == theirs[n].dtype and np.array_equal(x, theirs[n]) for n, x in ours.items())
    path = root / "rope/yarn/data.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(VectorError, match="sha256"):
        load_group(root, entry, own=True)


def test_the_same_values_in_another_dtype_are_found_and_named(tmp_path: Path) -> None:
    group = "alibi/distance"
    root = suite_of(tmp_path / "suite", group)
    data = next(iter(load_groups(root, group=group))).data
    name = next(name for name, x in data.items() if x.dtype.kind == "i")
    reseal(root, group, {**data, name: data[name].astype(np.float64)})
    shape = list(data[name].shape)
    assert any(f"tensor {name}: float64{shape}, proved int64{shape}" in problem for problem in verify(root))


def test_a_wrong_constant_in_a_definition_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = groups(list(cases_of("alibi_slopes")))["alibi_slopes/max-bias"]
    right = REGISTRY["alibi_slopes"].function

    def wrong(heads: int, /, *, max_bias: float = 8, **rest: Any) -> Any:
        return right(heads, max_bias=max_bias + 2**-40, **rest)

    wrong.__signature__ = __import__("inspect").signature(right)  # type: ignore[attr-defined]
    changed = REGISTRY["alibi_slopes"].__class__(**{**vars(REGISTRY["alibi_slopes"]), "function": wrong})
    monkeypatch.setitem(REGISTRY, "alibi_slopes", changed)
    with pytest.raises(BuildError, match=r"the witnesses disagree at out/out"):
        build_group(cases)


def test_an_error_in_a_case_is_shown_with_its_line_in_the_definition() -> None:
    with pytest.raises(BuildError, match=r"alibi_slopes/x/none: ValueError: .* \(posref/bias/alibi_slopes\.py:\d+\)$"):
        build_group([Case("alibi_slopes/x/none", {"heads": 0})])


def test_a_python_number_where_an_array_must_be_is_shown_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = REGISTRY["alibi_slopes"].function

    def wrong(heads: int, /, *, xp: Any = None, **rest: Any) -> Any:
        return xp.sqrt(2.0)

    wrong.__signature__ = __import__("inspect").signature(right)  # type: ignore[attr-defined]
    changed = REGISTRY["alibi_slopes"].__class__(**{**vars(REGISTRY["alibi_slopes"]), "function": wrong})
    monkeypatch.setitem(REGISTRY, "alibi_slopes", changed)
    with pytest.raises(BuildError, match=r"make it an array, by `beside` of posref/core/arrays\.py\.$"):
        build_group([Case("alibi_slopes/x/four", {"heads": 4})])


def test_a_wrong_constant_in_a_transcription_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    right = transcription.alibi_slopes
    monkeypatch.setattr(transcription, "alibi_slopes", lambda heads, *, max_bias=8: right(heads, max_bias=max_bias + 2**-40))
    with pytest.raises(BuildError, match="the witnesses disagree"):
        build_group(groups(list(cases_of("alibi_slopes")))["alibi_slopes/max-bias"])


def test_a_decision_within_the_tolerance_is_refused() -> None:
    step = posref.scaling.Llama3(2, 44, 7, 7)  # the first pair makes 44/(2 pi) = 7.0028 turns; with 7 pi/22 it would be 7
    near = posref.scaling.Llama3(2, 44, 44 / 6.283185307179586, 44 / 6.283185307179586)
    far = Case("rope_frequencies/x/far", {"dim": 4, "base": 100.0, "scaling": step})
    assert build_group([far]).data
    with pytest.raises(BuildError, match="a decision lies within the error"):
        build_group([Case("rope_frequencies/x/near", {"dim": 4, "base": 100.0, "scaling": near})])


@pytest.mark.thorough(dear=True)
def test_build_replaces_a_suite_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(VectorError, match="must be new, empty, or hold a suite"):
        build(tmp_path, tier="smoke")
    assert (tmp_path / "letter.txt").read_text() == "mine"
    build(tmp_path / "suite", tier="smoke")
    build(tmp_path / "suite", tier="smoke")
    assert len(load_manifest(tmp_path / "suite")["groups"]) == len(REGISTRY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["letter.txt", "suite"]


def test_copy_of_one_operation_is_a_suite(tmp_path: Path) -> None:
    count = copy(INSTALLED, tmp_path / "some", ["t5_buckets"])
    assert count == len([e for e in load_manifest(INSTALLED)["groups"] if e["op"] == "t5_buckets"])
    assert verify(tmp_path / "some") == []
    assert (tmp_path / "some" / "LICENSE").is_file()
    sums = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / "some", check=False)
    assert sums.returncode == 0


def test_a_version_changes_with_the_bytes(tmp_path: Path) -> None:
    """It counts the cases, and has the first digits of a hash over all groups' files."""
    copy(INSTALLED, tmp_path / "a", ["alibi_slopes"])
    suite = load_manifest(tmp_path / "a")
    cases = sum(len(entry["cases"]) for entry in suite["groups"])
    assert re.fullmatch(rf"0\.1\.0\+{cases}\.[0-9a-f]{{12}}", suite["suite"])
    manifest = json.loads((tmp_path / "a" / "SUITE.json").read_text())
    assert manifest["suite"] == suite["suite"]
    entry = manifest["groups"][0]["files"]["data.safetensors"]
    entry["sha256"] = entry["sha256"][1:] + "0"
    write_json(tmp_path / "a" / "SUITE.json", manifest)
    with pytest.raises(VectorError, match=r"suite must be 0\.1\.0\+.*, by its groups; got 0\.1\.0\+"):
        load_manifest(tmp_path / "a")
    write_json(tmp_path / "a" / "SUITE.json", manifest | {"suite": "0.1.0"})  # as suites had it
    other = load_manifest(tmp_path / "a")["suite"]
    assert other != suite["suite"]
    assert other.partition(".")[0] == suite["suite"].partition(".")[0]
    assert check("posref", op="alibi_slopes", tier="smoke").suite["version"] == load_manifest(INSTALLED)["suite"]


def flipped(at: int) -> Callable[[Path], object]:
    """Return what changes a bit of a file."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return flip


@few(
    2,
    ("name", "damage", "message"),
    [
        (
            "data.safetensors",
            lambda path: path.write_bytes(path.read_bytes()[:-1]),
            "must have .* bytes; got .* truncated or altered",
        ),
        ("data.safetensors", flipped(100), "must have sha256"),
        ("group.json", flipped(100), "must have sha256"),
        ("tolerance.safetensors", Path.unlink, "cannot be read"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, damage: Callable[[Path], object], message: str) -> None:
    copy(INSTALLED, tmp_path / "s", ["alibi"])
    damage(next((tmp_path / "s" / "alibi").rglob(name)))
    with pytest.raises(VectorError, match=message):
        list(load_groups(tmp_path / "s"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ('{"schema": 1, "schema": 1}', "an object repeats a key"),
        ('{"schema": NaN}', "NaN is not JSON"),
        ('{"schema": 1}', "at the top level: 'suite' is a required property"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_malformed_manifests_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "SUITE.json").write_text(text)
    with pytest.raises(VectorError, match=message):
        load_manifest(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\xff" * 16, (2**62).to_bytes(8, "little") + b"{}", b'\2\0\0\0\0\0\0\0{"'])
def test_malformed_tensors_are_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "data.safetensors"
    path.write_bytes(data)
    with pytest.raises(VectorError, match="not a safetensors file"):
        tensors.read(path, tensors.digest(data))


def test_a_toy_encoding_gets_golden_values_and_bounds_with_no_new_code() -> None:
    described = {"arrays": {"positions": Axes("*P", "position")}, "domains": {"rate": Real(0)}, "result": "*P"}

    @encoding(family="absolute", source="nobody", **described)
    def toy_ramp(positions: Any, /, *, rate: float) -> Any:
        xp = posref.core.arrays.namespace(positions)
        return xp.exp(-posref.core.arrays.cast(positions, xp.float64) * rate)

    try:
        inputs, params = {"positions": np.asarray([0, 1, 300])}, {"rate": 0.1}
        true = golden(toy_ramp, inputs, params)["out"]
        width = witnesses.half_widths("toy_ramp", inputs, params, "angle32", {"out": true})["out"]
        assert true[0] == 1.0
        assert width[0] == 0.0
        single = np.exp(-np.asarray([0, 1, 300], dtype=np.float32) * np.float32(0.1)).astype(np.float64)
        assert np.all(np.abs(single - true) <= width)
        assert np.all(width[1:] < 1e-4 * true[1:])
    finally:
        del REGISTRY["toy_ramp"]


def test_floats_have_the_bits_they_say() -> None:
    values = floats(500, seed=3, bits=8)
    assert np.all(values * 64 % 1 == 0)
    assert np.all(np.abs(values) < 4)
    assert not np.any(values == 0)
    assert np.any(floats(50, seed=3, bits=24).astype(np.float32) != values[:50])


@pytest.mark.thorough
def test_withdrawn_cases_are_not_asked(tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "s", ["alibi_slopes"])
    before = check("posref", op="alibi_slopes", dtype="float32", suite=tmp_path / "s").counts["pass"]
    case = next(iter(load_manifest(tmp_path / "s")["groups"]))["cases"][0]
    entry = {"case": case, "suite_from": "0.1.0", "suite_to": "0.2.0", "kind": "withdrawn", "reason": "it was wrong"}
    write_json(tmp_path / "s" / "ERRATA.json", [entry])
    assert check("posref", op="alibi_slopes", dtype="float32", suite=tmp_path / "s").counts["pass"] == before - 1
    with pytest.raises(TargetError, match="was withdrawn: it was wrong"):
        check("posref", case=case, suite=tmp_path / "s")


def test_an_ulp_in_the_plain_smoke_cases_is_found(tmp_path: Path) -> None:
    suite_of(tmp_path / "s", "alibi/again")
    document = json.loads((tmp_path / "s" / "smoke.json").read_text())
    row = document["cases"][0]["expected"]["out"][0][0]
    row[1] = float(np.nextafter(row[1], 9.0))
    write_json(tmp_path / "s" / "smoke.json", document)
    write_manifest(tmp_path / "s", load_manifest(tmp_path / "s")["groups"])
    problems = verify(tmp_path / "s")
    assert len(problems) == 1
    assert "smoke.json: alibi/again/small" in problems[0]
    assert "expected/out[0, 0, 1]" in problems[0]

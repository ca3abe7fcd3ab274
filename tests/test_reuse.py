"""Groups proved before: used, with the same bytes, and proved again when anything that they depend on is another."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import flint
import gmpy2
import mpmath
import numpy as np
import pytest
from commands import run as run_posref
from sampling import few, share
from test_vectors import files, flipped, reseal

import posref
from posref import backends, conformance
from posref.conformance.errors import BuildError, VectorError
from posref.conformance.evidence.catalogue import all_cases, groups
from posref.conformance.model import Case, Step
from posref.conformance.proof import build as building
from posref.conformance.proof import proof_cache, workers
from posref.conformance.proof.build import Built, build, verify
from posref.conformance.proof.proof_cache import Product, Store
from posref.conformance.suite import INSTALLED, load_groups, load_manifest
from posref.conformance.suite.writer import copy
from posref.spec import REGISTRY

SOME = ("alibi_slopes", "t5_buckets")


def only(cases: list[Case]) -> Callable[..., Iterator[Case]]:
    """Return what is called in the place of `all_cases`: these are all that there are."""
    return lambda ops=(): (case for case in cases if not ops or case.op in ops)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, bytes]:
    """The installed groups of some operations, as files of a suite."""
    copy(INSTALLED, tmp_path / "installed", SOME)
    return files(tmp_path / "installed")


@pytest.mark.thorough
def test_what_was_proved_is_used_and_has_the_same_bytes(
    tmp_path: Path, installed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = build(tmp_path / "a", ops=SOME, reuse=cache)
    assert (first.reused, first.kept) == (0, 0)
    assert first.proved == len(list(cache.iterdir())) == len(load_manifest(tmp_path / "a")["groups"])
    monkeypatch.setattr(building, "drawn", lambda _: frozenset())
    monkeypatch.setattr(workers, "Worker", None)  # nothing is proved
    assert build(tmp_path / "b", ops=SOME, reuse=cache) == Built(0, first.proved, 0)
    assert files(tmp_path / "a") == files(tmp_path / "b") == installed


@pytest.mark.thorough
def test_verify_reuses_nothing(tmp_path: Path) -> None:
    """A cache that holds the suite of a wrong definition does not make it true."""
    copy(INSTALLED, tmp_path / "s", ["alibi_slopes"])
    group = next(load_groups(tmp_path / "s"))
    data = {n: v + 1 if "/out/" in n else v for n, v in group.data.items()}
    reseal(tmp_path / "s", group.id, data=data)
    cache = proof_cache.default_folder()
    build(tmp_path / "t", ops=["alibi_slopes"], reuse=cache)
    assert verify(tmp_path / "s")
    assert str(cache).startswith(os.environ["XDG_CACHE_HOME"])


def stored(data: bytes = b"12") -> Product:
    """Return a product of a group."""
    files = {"group.json": b"{}", "data.safetensors": data, "tolerance.safetensors": b""}
    return Product(files, [{"id": "c", "inputs": {"x": [1.5, -0.0]}}])


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def linked(path: Path, _: Any = None) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def sealed_without_the_secret(path: Path) -> None:
    body = path.read_bytes().split(b"\n", 2)[2]
    seal = hashlib.sha256(path.name.encode() + b"\n" + body).hexdigest().encode()
    path.write_bytes(proof_cache.MAGIC + seal + b"\n" + body)


def sealed_with_another_secret(path: Path) -> None:
    Store(path.parent.with_name("theirs")).put(path.name, stored())
    path.parent.with_name("theirs").joinpath(path.name).replace(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "nothing left": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    **{f"flipped {at}": flipped(at) for at in (0, len(proof_cache.MAGIC), 100, -1)},
    "another entry": lambda path: (path.parent / "other").replace(path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": a_pipe,
    "a link": linked,
    "sealed without the secret": sealed_without_the_secret,
    "sealed with another secret": sealed_with_another_secret,
}


@few(2, "damage", DAMAGE)
def test_a_damaged_entry_is_not_believed(damage: str, tmp_path: Path) -> None:
    store, product = Store(tmp_path / "cache"), stored()
    store.put("mine", product)
    store.put("other", stored(b"other"))
    assert store.get("mine") == product
    DAMAGE[damage](tmp_path / "cache" / "mine")
    assert store.get("mine") is None


@pytest.mark.parametrize("name", ["../../evil", "evil", "/tmp/evil"])
def test_an_entry_has_the_files_of_a_group_alone(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    for held in ({name: b"1"}, {**stored().files, name: b"1"}):
        store.put("mine", Product(held, []))
        assert (tmp_path / "cache" / "mine").exists()
        assert store.get("mine") is None


OPENED: dict[str, Callable[[Path, Path], object]] = {
    "to others": lambda folder, secret: folder.chmod(0o755),
    "read by others": lambda folder, secret: secret.chmod(0o644),
    "read by a group": lambda folder, secret: secret.chmod(0o640),
    "linked": linked,
    "a short secret": lambda folder, secret: secret.write_bytes(b"1234"),
}


@few(1, "how", OPENED)
def test_a_folder_that_others_may_change_is_not_used(how: str, tmp_path: Path) -> None:
    folder, secret = tmp_path / "cache", tmp_path / "cache.secret"
    Store(folder).put("mine", stored())
    assert Store(folder).get("mine") == stored()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(secret.stat().st_mode)) == (0o700, 0o600)
    OPENED[how](folder, secret)
    assert Store(folder).get("mine") is None
    Store(folder).put("other", stored())
    assert not (folder / "other").exists()


@pytest.mark.thorough
def test_a_drawn_group_is_proved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    build(tmp_path / "s", ops=["alibi_slopes"], reuse=cache)
    store = Store(cache)
    for key in (path.name for path in cache.iterdir()):  # by somebody who has the secret
        product = store.get(key)
        store.put(
            key, replace(product, files={**product.files, "data.safetensors": bytes(len(product.files["data.safetensors"]))})
        )
    with pytest.raises(BuildError, match=r"the cache in .* holds other values than its proof gives"):
        build(tmp_path / "t", ops=["alibi_slopes"], reuse=cache)
    assert not (tmp_path / "t").exists()
    assert len(building.drawn([str(n) for n in range(703)])) == 44
    assert building.drawn(["one"]) == {"one"}


@pytest.mark.thorough(dear=True)
def test_an_entry_that_is_damaged_and_a_case_that_is_edited_are_the_only_ones_proved(
    tmp_path: Path, installed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, cache = tmp_path / "s", tmp_path / "cache"
    count = build(root, ops=SOME, reuse=cache).proved
    path = sorted(cache.iterdir())[0]
    whole = path.read_bytes()
    flipped(-9)(path)
    assert build(root, ops=SOME, reuse=cache) == Built(1, count - 1, 0)
    assert files(root) == installed
    assert path.read_bytes() == whole
    cases = list(all_cases(SOME))
    place = next(k for k, case in enumerate(cases) if case.op == "alibi_slopes" and case.kind == "value")
    cases[place] = replace(cases[place], comment="edited")
    monkeypatch.setattr(building, "all_cases", only(cases))
    assert build(root, ops=SOME, reuse=cache) == Built(1, count - 1, 0)
    assert "edited" in (root / cases[place].group / "group.json").read_text()


CASE = Case("rope/x/one", {"base": 10.0}, {"x": [[1.0, 2.0]], "positions": np.asarray([1, 2])}, "why")


@few(
    2,
    "change",
    [
        {"id": "rope/x/two"},
        {"params": {"base": np.nextafter(10.0, 11)}},
        {"params": {"base": 10}},
        {"params": {"base": np.float64(10)}},
        {"params": {"base": 10.0, "scaling": posref.scaling.Linear(2)}},
        {"inputs": {"x": [[1.0, 2.0]], "positions": np.asarray([1, 3])}},
        {"inputs": {"x": [[1.0, 2.0]], "positions": np.asarray([1, 2], dtype=np.int32)}},
        {"inputs": {"x": [[1.0, 2.0]], "positions": np.asarray([[1, 2]])}},
        {"inputs": {"x": [[1, 2]], "positions": np.asarray([1, 2])}},
        {"inputs": {"x": [[True, 2.0]], "positions": np.asarray([1, 2])}},
        {"inputs": {"positions": np.asarray([1, 2]), "x": [[1.0, 2.0]]}},
        {"form": "broadcast-view"},
        {"state": "one-option"},
        {"comment": "because"},
        {"kind": "vjp"},
        {"tier": "smoke"},
        {"steps": (Step({"base": 10.0}),)},
        {"cotangents": {"out": [[1.0, 0.5]]}},
        {"wrt": ("x",)},
    ],
)
def test_the_key_covers_all_of_a_case_and_all_cases_of_a_group(change: dict[str, Any], tmp_path: Path) -> None:
    store, other = Store(tmp_path), replace(CASE, **change)
    assert store.key([CASE]) == store.key([replace(CASE)])
    assert len({store.key(cases) for cases in ([CASE], [other], [CASE, other], [other, CASE])}) == 4


@pytest.mark.thorough(dear=True)
def test_every_field_of_every_case_has_a_key(tmp_path: Path) -> None:
    store = Store(tmp_path)
    by_id = groups(list(all_cases()))
    assert len({store.key(cases) for cases in by_id.values()}) == len(by_id)
    with pytest.raises(TypeError, match="a case holds"):
        store.key([replace(CASE, params={"base": object()})])


@few(
    1,
    ("module", "name", "value"),
    [
        (np, "__version__", "9"),
        (flint, "__version__", "9"),
        (flint, "__FLINT_VERSION__", "9"),
        (mpmath, "__version__", "9"),
        (mpmath.libmp, "BACKEND", "another"),
        (gmpy2, "version", lambda: "9"),  # the extra `vectors` installs it, and mpmath uses it
        (sys, "version", "9"),
    ],
)
def test_the_key_covers_versions(module: Any, name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Store(tmp_path).key([CASE])
    monkeypatch.setattr(module, name, value)
    assert Store(tmp_path).key([CASE]) != before


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the code, laid out as an installed package is; `sources` reads it."""
    root = tmp_path / "site" / "posref"
    skipped = shutil.ignore_patterns("__pycache__", "vectors")
    for module, place in ((posref, root), (backends, root / "backends"), (conformance, root / "conformance")):
        shutil.copytree(Path(str(module.__file__)).parent, place, ignore=skipped, dirs_exist_ok=True)
    return root


@pytest.fixture
def copied(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, which `sources` reads instead of the code that runs."""
    before = proof_cache.identity()
    monkeypatch.setattr(posref, "__file__", str(site / "__init__.py"))
    monkeypatch.setattr(backends, "__file__", str(site / "backends" / "__init__.py"))
    monkeypatch.setattr(proof_cache, "CODE", site / "conformance")
    assert proof_cache.identity() == before  # the layout is of no matter
    return site


@few(
    1,
    "name",
    [
        *("bias/alibi.py", "spec.py", "rotary/__init__.py", "backends/bounds.py", "backends/exact.py", "conformance/calls.py"),
        *(f"conformance/proof/{name}.py" for name in ("witnesses", "build", "proof_cache")),
        *("conformance/suite/tensors.py", "conformance/witness/lists.py"),
    ],
)
def test_the_key_covers_the_code(copied: Path, name: str) -> None:
    store = Store(copied.parent)
    (copied / name).write_text((copied / name).read_text() + "\n")
    assert Store(copied.parent).key([CASE]) != store.key([CASE])
    (copied.parent / "cache").mkdir()
    store.folder = copied.parent / "cache"
    store.put("key", Product({"a": b"1"}, []))
    assert list(store.folder.iterdir()) == []  # edited while it was proved: of which of the two is not known


@pytest.mark.thorough
def test_a_changed_sentence_needs_no_new_proof(copied: Path) -> None:
    """Title, idea and docstring of a definition are for people; a byte of anything else beside them counts."""
    path, proved = copied / "bias" / "alibi.py", proof_cache.identity()["code"]
    text = path.read_text(encoding="utf-8")
    for old, new, same in (
        ('title="Attention', 'title="Cheap attention', True),
        ("Nothing is learned, and", 'Nothing is trained \u2014"\n        "and', True),
        ('    longer="Perplexity stays low', '    longer="Perplexity remains low', True),
        ("Positions of the queries, in tokens.", "Where the queries are.\n\n        In tokens.", True),
        ("[[-1.5, -1.0, -0.5]]", "[[-1.5, -1.0, -0.75]]", True),
        ('family="bias"', 'family="rotary"', False),
        ('"heads": Integer(1)', '"heads": Integer(2)', False),
        ('    name = "alibi"', '    name = "slopes"', False),
        ('"""Return the products of slopes and distances."""', '"""Return products."""', False),
        (" * -slopes", " * slopes", False),
        ("  # the product in float32 or wider", "  # in float32 or wider", False),
    ):
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert (proof_cache.identity()["code"] == proved) is same, old
    path.write_text(text, encoding="utf-8")
    assert proof_cache.identity()["code"] == proved


@pytest.mark.thorough
def test_the_key_covers_a_file_that_comes_or_goes_and_no_others(copied: Path) -> None:
    found = [proof_cache.identity()["code"]]
    (copied / "bias" / "new.py").write_text("")
    found.append(proof_cache.identity()["code"])
    (copied / "bias" / "new.py").rename(copied / "bias" / "newer.py")
    found.append(proof_cache.identity()["code"])
    assert len(set(found)) == 3
    others = "bias/__pycache__/x.pyc bias/.alibi.py.swp conformance/evidence/rope.py conformance/vectors/README.md"
    for name in others.split():
        (copied / name).parent.mkdir(exist_ok=True, parents=True)
        (copied / name).write_text("")
    assert proof_cache.identity()["code"] == found[-1]


PROVE_AND_LIST = """
import sys
from posref.conformance.evidence.catalogue import all_cases
from posref.conformance.proof import proof_cache
from posref.conformance.proof.build import product_of
for op in {case.op: case for case in all_cases() if case.tier == "smoke"}.values():
    product_of([op])
told_by_values = "posref.conformance.evidence"
names = [name for name in sys.modules if name.split(".")[0] == "posref" and not name.startswith(told_by_values)]
loaded = {sys.modules[name].__file__ for name in names}
print(sorted(loaded - {str(path) for _, path in proof_cache._files()}))
"""


@pytest.mark.thorough(dear=True)
def test_the_key_covers_everything_that_a_proof_loads() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", PROVE_AND_LIST], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_store_that_cannot_be_used_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        store = Store(folder)
        store.put("key", Product({"a": b"1"}, []))
        assert store.get("key") is None
        store.prune()
    assert (tmp_path / "file").read_text() == "mine"


def test_the_store_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "cache")
    for k in range(6):
        store.put(f"{k}", stored(bytes(900 + k)))
        os.utime(store.folder / f"{k}", (k, k))
    (store.folder / ".new-abandoned").write_text("")
    os.utime(store.folder / ".new-abandoned", (0, 0))
    (store.folder / ".new-written").write_text("")
    assert store.get("1") == stored(bytes(901))  # now the last that was used
    monkeypatch.setattr(proof_cache, "LIMIT", 3500)
    store.prune()
    assert sorted(p.name for p in store.folder.iterdir()) == [".new-written", "1", "4", "5"]


@pytest.mark.parametrize(
    ("value", "place"), [("/x/y", "/x/y/posref/proofs"), ("", "~/.cache/posref/proofs"), ("relative", "~/.cache/posref/proofs")]
)
def test_the_cache_is_where_the_user_keeps_caches(value: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert proof_cache.default_folder() == Path(place).expanduser()


@pytest.mark.thorough
def test_one_operation_is_built_and_all_others_stay(tmp_path: Path, installed: dict[str, bytes]) -> None:
    copy(INSTALLED, tmp_path / "s", ["t5_buckets"])
    before = {n: b for n, b in files(tmp_path / "s").items() if n.startswith("t5_buckets/")}
    built = build(tmp_path / "s", ops=["alibi_slopes"])
    assert (built.proved, built.kept) == (len(load_manifest(tmp_path / "s")["groups"]) - built.kept, len(before) // 3)
    assert files(tmp_path / "s") == installed  # manifest, hashes, smoke cases and flags too, in order of the sources
    build(tmp_path / "empty", ops=["alibi_slopes"])
    assert {e["op"] for e in load_manifest(tmp_path / "empty")["groups"]} == {"alibi_slopes"}
    assert verify(tmp_path / "empty") == []


@pytest.mark.thorough
def test_groups_that_stay_are_not_made_again(tmp_path: Path) -> None:
    """Also those of cases that the sources do not have; what is not as its hash says is not kept."""
    copy(INSTALLED, tmp_path / "s", SOME)
    group = next(load_groups(tmp_path / "s", ops=["t5_buckets"]))
    reseal(tmp_path / "s", group.id, tolerance={n: v + 1 for n, v in group.tolerance.items()})
    before = files(tmp_path / "s")
    build(tmp_path / "s", ops=["alibi_slopes"])
    assert files(tmp_path / "s") == before
    path = tmp_path / "s" / group.id / "data.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(VectorError, match="truncated or altered"):
        build(tmp_path / "s", ops=["alibi_slopes"])


def test_a_smoke_file_that_was_edited_is_not_sealed_again(tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "s", SOME)
    path = tmp_path / "s" / "smoke.json"
    path.write_text(path.read_text().replace("0.5", "0.25"))
    with pytest.raises(VectorError, match=r"smoke.json: differs from its hash"):
        build(tmp_path / "s", ops=["alibi_slopes"])


def test_a_group_without_a_source_goes_with_its_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(INSTALLED, tmp_path / "s", SOME)
    left = [case for case in all_cases(SOME) if case.group != "alibi_slopes/max-bias"]
    monkeypatch.setattr(building, "all_cases", only(left))
    before = [e["id"] for e in load_manifest(tmp_path / "s")["groups"]]
    build(tmp_path / "s", ops=["t5_buckets"])
    kept = [e["id"] for e in load_manifest(tmp_path / "s")["groups"]]
    assert sorted(kept) == sorted(before)
    assert kept[-1] == "alibi_slopes/max-bias"  # it has no place in the sources
    build(tmp_path / "s", ops=["alibi_slopes"])
    assert [e["id"] for e in load_manifest(tmp_path / "s")["groups"]] == [n for n in before if n != "alibi_slopes/max-bias"]


def test_an_operation_without_cases_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = list(all_cases(["t5_buckets"]))
    monkeypatch.setattr(building, "all_cases", only(left))
    with pytest.raises(BuildError, match=r"alibi_slopes has none"):
        build(tmp_path / "s", ops=["alibi_slopes", "t5_buckets"])
    assert not (tmp_path / "s").exists()


@few(1, "ops", [("alibi_slopes",), ()])
def test_a_suite_keeps_its_own_pages(ops: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, few = tmp_path / "s", list(all_cases(["alibi_slopes"]))
    monkeypatch.setattr(building, "all_cases", only(few))
    copy(INSTALLED, root, ["alibi_slopes"])
    own = {
        "README.md": b"edited\n", "LICENSE": b"mine\n", "ERRATA.json": b"[ ]\n", "schema/group.json": b"{}\n",
        "schema/new.json": b"1\n",
    }  # fmt: skip
    for name, data in own.items():
        (root / name).write_bytes(data)
    (root / "schema" / "suite.json").unlink()
    build(root, ops=ops, tier="smoke")
    assert {name: (root / name).read_bytes() for name in own} == own
    assert (root / "schema" / "suite.json").read_bytes() == (INSTALLED / "schema" / "suite.json").read_bytes()
    sums = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=root, check=False)
    assert sums.returncode == 0


def posref_command(*arguments: str) -> str:
    result = run_posref("vectors", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.thorough
def test_the_command_builds_one_operation_and_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = str(tmp_path / "s")
    assert posref_command("build", root, "--op", "alibi_slopes", "--no-reuse", "--jobs", "1").startswith(f"built {root}: ")
    assert not (tmp_path / "cache").exists()
    count, again = len(load_manifest(tmp_path / "s")["groups"]), ("build", root, "--op", "alibi_slopes", "--jobs", "1")
    assert f"built {root}: {count} groups proved\n" == posref_command(*again)
    assert f"built {root}: {count} groups taken from the cache\n" == posref_command(*again)
    assert len(list((tmp_path / "cache" / "posref" / "proofs").iterdir())) == count
    unknown = run_posref("vectors", "build", root, "--op", "nothing")
    assert unknown.exit_code == 2
    assert "--op must be the name of an operation" in unknown.output
    assert "imported in posref/__init__.py" in unknown.output
    assert run_posref("vectors", "build", root, "--jobs", "0").exit_code == 2


def run(site: Path, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "posref", "vectors", *arguments]
    path = {"PYTHONPATH": str(site.parent), **environment}
    return subprocess.run(command, capture_output=True, text=True, check=check, env=os.environ | path)


@pytest.mark.thorough(dear=True)
def test_an_edited_definition_witness_or_case_is_proved_again(site: Path, tmp_path: Path, installed: dict[str, bytes]) -> None:
    """In a copy of the package, by the command."""
    shutil.copytree(INSTALLED, site / "conformance" / "vectors")
    root, cache = tmp_path / "s", {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    build_some = ("build", str(root), *(word for op in SOME for word in ("--op", op)))
    count = sum(name.endswith("/data.safetensors") for name in installed)

    def edit(name: str, old: str, new: str) -> None:
        text = (site / name).read_text()
        assert old in text
        (site / name).write_text(text.replace(old, new, 1))

    assert f"{count} groups proved" in run(site, *build_some, **cache).stdout
    assert files(root) == installed
    assert f"{count} groups taken from the cache" in run(site, *build_some, **cache).stdout
    edit("conformance/evidence/alibi_slopes.py", "heads, **params}, {}, comment,", "heads, **params}, {}, comment + '.',")
    said = run(site, *build_some, **cache).stdout
    edited = {name.rpartition("/")[0] for name, data in files(root).items() if "/" in name and data != installed[name]}
    assert len(edited) > 1
    assert all(group.startswith("alibi_slopes/") for group in edited)
    assert f"{len(edited)} groups proved, {count - len(edited)} groups taken from the cache" in said
    edit("conformance/evidence/alibi_slopes.py", "comment + '.',", "comment,")
    assert f"{count} groups taken from the cache" in run(site, *build_some, **cache).stdout
    edit("bias/alibi_slopes.py", '"""', '"""An edit. ')
    assert f"{count} groups proved" in run(site, *build_some, **cache).stdout
    assert files(root) == installed
    edit("conformance/witness/alibi_slopes.py", "mpf(max_bias)", "(mpf(max_bias) + mpf(2) ** -40)")
    done = run(site, *build_some, check=False, **cache)
    assert done.returncode == 2
    assert "the witnesses disagree at out/out" in done.stderr


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share(REGISTRY, part=0.5))
def test_an_operation_has_the_same_bytes_in_one_process_and_without_gmpy2(op: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "posref", "vectors", "build", str(tmp_path / "s"), "--op", op]
    subprocess.run([*command, "--jobs", "1", "--no-reuse"], check=True, env=os.environ | {"MPMATH_NOGMPY": "1"})
    assert files(tmp_path / "s" / op) == files(INSTALLED / op) != {}

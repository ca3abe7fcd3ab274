"""Reading files that somebody made to do harm: a named error, or the contents that the official readers give; nothing else."""

import json
import os
import re
import resource
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
from commands import run
from hostile import Changes, contents, edit, header, joined, place, read, sealed, small, split, watched
from safetensors.numpy import save
from sampling import few

from posref.conformance import check_call
from posref.conformance.errors import VectorError
from posref.conformance.proof.build import verify
from posref.conformance.reports.document import state
from posref.conformance.suite import safe_files, tensors
from posref.conformance.suite.reader import parse
from posref.conformance.suite.schemas import validator
from posref.conformance.suite.writer import copy

X = "one/in/x"
DATA, TOLERANCE, GROUP, SUITE = "data.safetensors", "tolerance.safetensors", "group.json", "SUITE.json"
DEEP = b"[" * 100_000


def data(change: Callable[[Any], Any]) -> Changes:
    """Change the header of the data."""
    return {DATA: header(change)}


def raw(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    """Return the change of a file's text where `before` first stands."""

    def changed(text: bytes) -> bytes:
        assert before in text
        return text.replace(before, after, 1)

    return changed


def raw_header(before: bytes, after: bytes) -> Changes:
    """Change the text of the data's header where `before` first stands."""
    return {DATA: lambda d: joined(raw(before, after)(split(d)[0]), split(d)[1])}


def field(name: str, value: Any, tensor: str = X) -> Changes:
    """Change one field of a tensor."""
    return data(lambda h: h[tensor].update({name: value}))


def renamed(name: str) -> Changes:
    """Give a tensor another name."""
    return data(lambda h: h.update({name: h.pop(X)}))


def added(name: str, dtype: str, shape: list[Any], nbytes: int = 0) -> Changes:
    """Append a tensor of zeros to the data."""

    def change(file: bytes) -> bytes:
        head, body = split(file)
        entry = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + nbytes]}
        return joined(json.dumps({**json.loads(head), name: entry}).encode(), body + bytes(nbytes))

    return {DATA: change}


def values(change: Callable[[dict[str, Any]], Any], file: str = DATA) -> Changes:
    """Change the tensors of a file, written again by the official writer."""

    def changed(before: bytes) -> bytes:
        found = {name: value.copy() for name, (value, _) in tensors.decode(before).items()}
        change(found)
        return save(found)

    return {file: changed}


def group(change: Callable[[Any], Any]) -> Changes:
    return {GROUP: edit(change)}


def suite(change: Callable[[Any], Any]) -> Changes:
    return {SUITE: edit(change)}


def case(change: Callable[[Any], Any], number: int = 0) -> Changes:
    """Change one case in the group's document."""
    return group(lambda g: change(g["cases"][number]))


def entry(change: Callable[[Any], Any]) -> Changes:
    """Change the group's entry in the suite's document."""
    return suite(lambda s: change(s["groups"][0]))


def of_id(name: str) -> Changes:
    """Give the group another id, everywhere."""

    def change(value: Any) -> bytes:
        return json.dumps(value).replace("rope/tiny", name).encode()

    return {SUITE: lambda t: change(json.loads(t)), GROUP: lambda t: change(json.loads(t))}


def shifted(h: dict[str, Any], by: int) -> None:
    """Move the last tensor of a header."""
    last = max(h.values(), key=lambda e: e["data_offsets"])
    last["data_offsets"] = [offset + by for offset in last["data_offsets"]]


def nan(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda found: found[name].__setitem__((0, 1), np.nan)


NOT = "not a safetensors file that can be trusted: "
HEADER = NOT + "its header must begin with"
MALFORMED: dict[str, tuple[Changes, str]] = {
    # the safetensors file as a whole
    "no bytes": ({DATA: lambda d: b""}, HEADER),
    "seven bytes": ({DATA: lambda d: d[:7]}, HEADER),
    "a header of no bytes": ({DATA: lambda d: bytes(8)}, HEADER),
    "a header beyond the file": ({DATA: lambda d: len(d).to_bytes(8, "little") + d[8:]}, HEADER),
    "a header of 2**62 bytes": ({DATA: lambda d: (2**62).to_bytes(8, "little") + d[8:]}, HEADER),
    "a header of 2**64 - 1 bytes": ({DATA: lambda d: b"\xff" * 8 + d[8:]}, HEADER),
    "a header above 1 MiB": ({DATA: lambda d: joined(split(d)[0] + b" " * 2**20, split(d)[1])}, HEADER),
    "a space before the header": ({DATA: lambda d: joined(b" " * 8 + split(d)[0], split(d)[1])}, HEADER),
    "a header that is a list": (data(lambda h: [h]), HEADER),
    "a pickle": ({DATA: lambda d: b"\x80\x04\x95cos\nsystem\n(S'touch /tmp/x'\ntR."}, HEADER),
    "a zip": ({DATA: lambda d: b"PK\x03\x04" + bytes(60)}, HEADER),
    "a byte after the data": ({DATA: lambda d: d + b"\0"}, "must be all that follows the header"),
    "a byte too few": ({DATA: lambda d: d[:-1]}, "data_offsets must span"),
    "an unpadded header": ({DATA: lambda d: joined(split(d)[0].rstrip() + b" ", split(d)[1], padded=False)}, "multiple of 8"),
    # the header's JSON
    "no JSON": ({DATA: lambda d: joined(b"{x}", split(d)[1])}, "Expecting property name"),
    "UTF-16": ({DATA: lambda d: joined("{}".encode("utf-16-le"), b"")}, "Expecting property name"),
    "bytes that are no UTF-8": (raw_header(b"one/in/x", b"one/in/\xff"), "can't decode byte"),
    "half a surrogate pair": (raw_header(b"one/in/x", b"one/in/\\ud800"), "surrogates not allowed"),
    "a tensor twice": (raw_header(b"{", b'{"one/in/x":{},'), "repeats a key"),
    "a field twice": (raw_header(b'"dtype"', b'"dtype":"F64","dtype"'), "repeats a key"),
    "NaN in a shape": (field("shape", [float("nan"), 4]), "NaN is not JSON"),
    "a real shape": (field("shape", [2.0, 4]), "shape must be at most 8 counts"),
    "true in a shape": (field("shape", [True, 8]), "shape must be at most 8 counts"),
    "a negative size": (field("shape", [-2, -4]), "shape must be at most 8 counts"),
    "a shape of text": (field("shape", "24"), "shape must be at most 8 counts"),
    "an integer of 5,000 digits": (raw_header(b'"shape":[2', b'"shape":[' + b"9" * 5000), "beyond 64 bits"),
    "100,000 brackets": (raw_header(b'"shape":[', b'"shape":[' + DEEP), "nested more than 32 deep"),
    "a shape that overflows to nothing": (added("one/in/y", "F64", [2**32, 2**32]), "shape must be at most 8 counts"),
    "an enormous shape without values": (added("one/in/y", "F64", [0, 2**40]), "shape must be at most 8 counts"),
    "rank 100 without values": (added("one/in/y", "F64", [0] * 100), "shape must be at most 8 counts"),
    "rank 9": (added("one/in/y", "F64", [1] * 9, 8), "shape must be at most 8 counts"),
    "a fourth field": (field("strides", [1]), "must have dtype, shape and data_offsets"),
    "no dtype": (data(lambda h: h[X].pop("dtype") and None), "must have dtype, shape and data_offsets"),
    "an entry that is a list": (data(lambda h: h.update({X: list(h[X].items())})), "must have dtype, shape and data_offsets"),
    "a dtype of no vectors": (field("dtype", "U64"), "dtype must be one of F64, F32, I64, BOOL; got 'U64'"),
    "half precision": (added("one/in/y", "F16", [4], 8), "dtype must be one of F64, F32, I64, BOOL; got 'F16'"),
    "a dtype that is a list": (field("dtype", ["F64"]), "dtype must be one of"),
    "a real offset": (field("data_offsets", [0.0, 64]), "data_offsets must span"),
    "offsets that go backwards": (field("data_offsets", [64, 0]), "data_offsets must span"),
    "an offset of 2**62": (field("data_offsets", [0, 2**62]), "data_offsets must span"),
    "three offsets": (field("data_offsets", [0, 32, 64]), "data_offsets must span"),
    "a shape of too many values": (field("shape", [3, 4]), "data_offsets must span"),
    "a gap": ({DATA: lambda d: header(lambda h: shifted(h, 8))(d + bytes(8))}, "must begin where the one before ends"),
    "an overlap": ({DATA: lambda d: header(lambda h: shifted(h, -8))(d[:-8])}, "must begin where the one before ends"),
    "metadata": (data(lambda h: {"__metadata__": {"a": "b"}, **h}), "__metadata__ must not be there"),
    "a name that leaves the folder": (renamed("../../etc/passwd"), "the name of a tensor must be"),
    "an absolute name": (renamed("/etc/passwd"), "the name of a tensor must be"),
    "a name with NUL": (renamed("one/in/x\0"), "the name of a tensor must be"),
    "a name with a line break": (renamed("one/in/x\n"), "the name of a tensor must be"),
    "a name with a backslash": (renamed("one\\in\\x"), "the name of a tensor must be"),
    "a long name": (renamed("x" * 300), "the name of a tensor must be"),
    # values, and whose they are
    "NaN": (values(nan(X)), r"tensor one/in/x\[0, 1\] must be finite; got nan"),
    "infinity": (values(lambda t: t["one/out/out"].fill(np.inf)), "tensor one/out/out.* must be finite; got inf"),
    "NaN in a tolerance": (values(nan("angle32/one/out"), TOLERANCE), "angle32/one/out.* must be finite"),
    "a negative tolerance": (values(lambda t: t["angle32/one/out"].fill(-1), TOLERANCE), "must be F32, none negative"),
    "a tolerance in F64": (
        values(lambda t: t.update({"angle32/one/out": t["angle32/one/out"].astype(float)}), TOLERANCE),
        "must be F32, none negative",
    ),
    "a tolerance of another shape": (
        values(lambda t: t.update({"angle32/one/out": t["angle32/one/out"][:1]}), TOLERANCE),
        "of the shape of the expected values",
    ),
    "no tolerance": (values(lambda t: t.pop("angle32/one/out"), TOLERANCE), "tolerance 'angle32/one/out' is missing"),
    "a tolerance of no class": (values(lambda t: t.update({"wide/one/out": np.ones(1)}), TOLERANCE), "no case has the tensor"),
    "a tensor of no case": (added("three/in/x", "F64", [1], 8), "no case has the tensor 'three/in/x'"),
    "a tensor missing": (values(lambda t: t.pop(X)), "names a tensor that its files lack: 'one/in/x'"),
    "another case's tensor": (case(lambda c: c["inputs"].update(x="bad/in/x")), "must be the tensor one/in/x"),
    "an expected value as an input": (case(lambda c: c["inputs"].update(x="one/out/out")), "must be the tensor one/in/x"),
    "positions of another shape": (
        field("shape", [2, 1], "one/in/positions"),
        r"rope/tiny/one: its positions must fit the shape of out, \[2, 4\]",
    ),
    # group.json
    "no object": (group(lambda g: [g]), "is not of type 'object'"),
    "a byte order mark": ({GROUP: lambda t: b"\xef\xbb\xbf" + t}, "not valid JSON"),
    "text that is not ASCII": ({GROUP: raw(b"odd", "ödd".encode())}, "not valid JSON"),
    "a lone surrogate": ({GROUP: raw(b'"odd"', b'"\\udc00"')}, "surrogates not allowed"),
    "a key twice": ({GROUP: raw(b'"op":', b'"op": "alibi", "op":')}, "repeats a key"),
    "NaN as an option": (case(lambda c: c["params"].update(base=float("nan"))), "NaN is not JSON"),
    "1e999 as an option": ({GROUP: raw(b'"base": 100.0', b'"base": 1e999')}, "beyond binary64"),
    "10**400 as an option": (case(lambda c: c["params"].update(rotary_dim=10**400)), "beyond 64 bits"),
    "brackets": ({GROUP: lambda t: DEEP}, "nested more than 32 deep"),
    "4 MiB of nothing": ({GROUP: lambda t: t + b" " * 2**22}, "more than 4194304"),
    "another schema": (group(lambda g: g.update(schema=2)), "at schema: 1 was expected"),
    "another operation": (group(lambda g: g.update(op="alibi")), r"is of group 'rope/tiny' \(alibi\)"),
    "an unknown kind": (case(lambda c: c.update(kind="exec")), "at cases/0/kind"),
    "a case of another group": (case(lambda c: c.update(id="rope/other/one")), "its cases must be those of SUITE.json"),
    "a case too few": (group(lambda g: g["cases"].pop() and None), "its cases must be those of SUITE.json"),
    "a smoke case that is refused": (case(lambda c: c.update(tier="smoke"), 2), "a smoke case must be of kind value"),
    "an option that there is not": (case(lambda c: c["params"].update(colour="red")), "'colour' is missing, or no array"),
    "dtype as an option": (case(lambda c: c["params"].update(dtype="float16")), "'dtype' is missing, or no array"),
    "an array as an option": (case(lambda c: c["params"].update(x=3.0)), "'x' is missing, or no array"),
    "an option too few": (case(lambda c: c["params"].pop("layout") and None), "'layout' is missing"),
    "an array too few": (case(lambda c: c["inputs"].pop("positions") and None), "'positions' is missing"),
    "a word that is no layout": (case(lambda c: c["params"].update(layout="wide")), "layout must be half"),
    "a number as a flag": (case(lambda c: c["params"].update(inverse=1)), "inverse must be True"),
    "no scaling of ours": (case(lambda c: c["params"].update(scaling={"type": "os.system"})), "a scaling must have a type"),
    "a scaling without its factor": (case(lambda c: c["params"].update(scaling={"type": "Linear"})), "a scaling must have"),
    "a factor that is null": (case(lambda c: c["params"]["scaling"].update(factor=None)), "a scaling must have"),
    "an output that there is not": (
        case(lambda c: c["expected"].update(cos="one/out/cos")),
        r"expected values must be named out; got \['cos', 'out'\]",
    ),
    "an output too few": (case(lambda c: c["expected"].clear()), r"expected values must be named out; got \[\]"),
    "100,000 flags that are no words": (
        case(lambda c: c.update(flags=[{"a": n} for n in range(100_000)])),
        "must be a list of words",
    ),
    # SUITE.json, and the other documents
    "a suite that is no JSON": ({SUITE: lambda t: b"{"}, "not valid JSON"),
    "a future schema": (suite(lambda s: s.update(schema=2)), "at schema: 1 was expected"),
    "an id that leaves the suite": (of_id("../tiny"), "does not match"),
    "an id that is absolute": (of_id("/rope/tiny"), "does not match"),
    "an id with a drive": (of_id("c:/tiny"), "does not match"),
    "an id with backslashes": (of_id("rope\\\\tiny"), "does not match"),
    "an id with NUL": (of_id("rope/tiny\\u0000"), "does not match"),
    "an id with a line break": (of_id("rope/tiny\\n"), "does not match"),
    "an id with dots": (of_id("rope/.."), "does not match"),
    "an id of another operation": (entry(lambda e: e.update(op="alibi")), "must be listed once, and be of operation 'alibi'"),
    "a group twice": (suite(lambda s: s["groups"].append(s["groups"][0])), "group 'rope/tiny' must be listed once"),
    "a case of elsewhere": (entry(lambda e: e["cases"].append("alibi/tiny/one")), "must be of its group"),
    "a sum that is wrong": (suite(lambda s: s.update(total_bytes=s["total_bytes"] + 1)), "total_bytes must be"),
    "a file of 2**40 bytes": (entry(lambda e: e["files"][DATA].update(bytes=2**40)), "is greater than the maximum"),
    "a negative file": (entry(lambda e: e["files"][DATA].update(bytes=-1)), "is less than the minimum"),
    "a fourth file": (entry(lambda e: e["files"].update({"setup.py": e["files"][DATA]})), "'setup.py' was unexpected"),
    "a hash with a line break": (entry(lambda e: e["files"][DATA].update(sha256="0" * 64 + "\n")), "does not match"),
    "a suite of 5 MiB": ({SUITE: lambda t: t + b" " * 5 * 2**20}, "at most 4194304 bytes"),
    "errata of another kind": ({"ERRATA.json": lambda t: b'[{"case": 1}]'}, "is a required property"),
    "a flag without a reason": ({"flags.json": edit(lambda f: f.update(empty={}))}, "is a required property"),
    "a smoke case of words": (
        {"smoke.json": edit(lambda s: s["cases"][0]["inputs"].update(positions=["rm -rf /"]))},
        "is not of type 'number'",
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small suite with calls to rope."""
    root = small(tmp_path_factory.mktemp("hostile") / "rope", "rope")
    before = contents(root)
    read(root)
    yield root
    assert contents(root) == before


@pytest.fixture
def tampered(good: Path, tmp_path: Path) -> Callable[[Changes], Path]:
    """Make a suite that differs from the good one in some changes, and in every hash that depends on them."""

    def make(changes: Changes) -> Path:
        root = tmp_path / "tampered"
        (root / "rope" / "tiny").mkdir(parents=True)
        (root / "schema").mkdir()
        place(root, contents(good) | {name: (good / name).read_bytes() for name in ("README.md", "LICENSE")})
        place(root, sealed(contents(good), changes))
        return root

    return make


def test_a_good_suite_is_read_and_is_what_the_official_readers_say(tampered: Callable[[Changes], Path]) -> None:
    root = tampered({})
    with watched(root):
        groups = read(root)
    hostile.assert_official(root, groups)
    assert len(groups[0].cases) == 3


@few(9, "name", MALFORMED)
def test_one_thing_changed_is_a_named_error(name: str, tampered: Callable[[Changes], Path]) -> None:
    changes, message = MALFORMED[name]
    root = tampered(changes)
    limit = 2**20 + 24 * sum(p.stat().st_size for p in root.rglob("*.json")) + 6 * (root / "rope/tiny" / DATA).stat().st_size
    tracemalloc.start()
    try:
        with watched(root), pytest.raises(VectorError, match=message) as caught:
            read(root)
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(root))


def test_there_are_enough_of_them() -> None:
    assert len(MALFORMED) >= 40


NOW, LATER = list(MALFORMED)[::4], [name for i, name in enumerate(MALFORMED) if i % 4]


@few(3, "name", [*NOW, *(pytest.param(name, marks=pytest.mark.thorough) for name in LATER)])
def test_the_command_line_says_so_in_one_line(name: str, tampered: Callable[[Changes], Path]) -> None:
    changes, _ = MALFORMED[name]
    root = tampered(changes)
    command = ["vectors", "verify", str(root)] if {"smoke.json", "flags.json"} & set(changes) else None
    result = run(*(command or ["check", "posref", "--suite", str(root)]))
    if "flags.json" in changes:
        with pytest.raises(VectorError):
            copy(root, root.parent / "copy")
    elif "smoke.json" in changes:
        assert (result.exit_code, result.exception.__class__) == (1, SystemExit), result.output
        assert "smoke.json: at cases/0/inputs/positions/0" in result.output
    else:
        assert (result.exit_code, result.exception.__class__) == (2, SystemExit), result.output
        assert re.fullmatch(r"posref: [^\n]+\n", result.output), result.output
    assert not (root.parent / "copy").exists()


@pytest.mark.thorough(dear=True)
def test_mutants_are_refused_or_read_as_the_official_readers_do(tmp_path: Path) -> None:
    count = 4000
    with address_space(256 * 2**20):
        found = hostile.attack(tmp_path, count, seed=2024)
    assert found["accepted"] + found["refused"] == count
    assert found["accepted"] > count / 20  # else the mutants are so wild that only the first check is tried
    assert found["refused"] > count / 2


@contextmanager
def address_space(more: int) -> Iterator[None]:
    """Let this process grow by so many bytes, and no further."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def linked(root: Path, name: str) -> None:
    """Move a file or folder out of the suite, and leave a link to it."""
    outside = root.parent / "outside"
    (root / name).rename(outside)
    (root / name).symlink_to(outside)


def replaced(make: Callable[[Path], Any]) -> Callable[[Path, str], None]:
    """Return what puts something else in a file's place."""

    def put(root: Path, name: str) -> None:
        (root / name).unlink()
        make(root / name)

    return put


SPECIAL: dict[str, tuple[Callable[[Path, str], None], str]] = {
    "a link": (linked, "must not be a symbolic link"),
    "a link to nothing": (replaced(lambda p: p.symlink_to("nowhere")), "must not be a symbolic link"),
    "a link to itself": (replaced(lambda p: p.symlink_to(p)), "must not be a symbolic link"),
    "a pipe": (replaced(os.mkfifo), "must be a regular file"),
    "a folder": (replaced(Path.mkdir), "must be a regular file"),
    "a device": (replaced(lambda p: p.symlink_to("/dev/zero")), "must not be a symbolic link"),
    "a file of the kernel's": (replaced(lambda p: p.symlink_to("/proc/self/mem")), "must not be a symbolic link"),
}


@pytest.mark.parametrize("name", [SUITE, "ERRATA.json", f"rope/tiny/{GROUP}", f"rope/tiny/{DATA}"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_is_refused_at_once(kind: str, name: str, tampered: Callable[[Changes], Path]) -> None:
    put, message = SPECIAL[kind]
    root = tampered({})
    put(root, name)
    with watched(root), pytest.raises(VectorError, match=message):
        read(root, ())
    with pytest.raises(VectorError, match=message):
        copy(root, root.parent / "copy")
    assert not (root.parent / "copy").exists()


@pytest.mark.parametrize("folder", ["rope", "rope/tiny"])
def test_a_linked_folder_is_refused(folder: str, tampered: Callable[[Changes], Path]) -> None:
    root = tampered({})
    linked(root, folder)
    with pytest.raises(VectorError, match=f"{folder}: must not be a symbolic link"):
        read(root)


def test_a_suite_may_itself_be_reached_through_a_link(tampered: Callable[[Changes], Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tampered({}))
    assert len(read(tmp_path / "link")) == 1


def test_a_device_is_not_opened(tmp_path: Path) -> None:
    with watched(tmp_path), pytest.raises(VectorError, match="must be a regular file"):
        tensors.read_bytes(Path("/dev/zero"), {"bytes": 8, "sha256": ""})


def test_a_file_that_is_exchanged_or_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / DATA
    file.write_bytes(b"12345678")
    recorded, fstat = tensors.digest(b"12345678"), os.fstat

    def meanwhile(handle: int) -> os.stat_result:
        found = fstat(handle)
        with file.open("ab") as more:
            more.write(b"9" * 100)
        return found

    monkeypatch.setattr(os, "fstat", meanwhile)
    with pytest.raises(VectorError, match="was written to while it was read"):
        tensors.read_bytes(file, recorded)


@few(1, "damage", ["link", "pipe", "extra", "ragged", "nonsense"])
def test_verify_names_what_should_not_be_there(damage: str, tampered: Callable[[Changes], Path]) -> None:
    root = tampered({})
    name = "rope/tiny/notes\x1b[2J.txt"
    if damage == "pipe":
        os.mkfifo(root / name)
    elif damage == "link":
        (root / name).symlink_to("/etc/passwd")
    elif damage == "extra":
        (root / name).write_text("")
    elif damage == "ragged":
        smoke = json.loads((root / "smoke.json").read_text())
        smoke["cases"][0]["inputs"]["positions"] = [[1], [2, 3]]
        (root / "smoke.json").write_text(json.dumps(smoke))
    else:
        (root / "SHA256SUMS").write_bytes(b"\xff\xfe\n/etc/passwd\n../x  ../../x\n")
    (root / "SHA256SUMS").touch()
    problems = verify(root)
    wanted = {"ragged": "smoke.json: rope/tiny/one", "nonsense": "../../x: recorded in SHA256SUMS and missing"}
    assert any(wanted.get(damage, "notes\x1b[2J.txt: not recorded") in problem for problem in problems)
    result = run("vectors", "verify", root)
    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_a_copy_takes_files_alone(tampered: Callable[[Changes], Path]) -> None:
    root = tampered({})
    (root / "schema" / "secret.json").symlink_to("/etc/passwd")
    with pytest.raises(VectorError, match="must not be a symbolic link"):
        copy(root, root.parent / "copy")
    (root / "schema" / "secret.json").unlink()
    assert copy(root, root.parent / "copy") == 1
    assert read(root.parent / "copy")


def test_third_parties_may_use_every_dtype_and_metadata() -> None:
    bits = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}
    head: dict[str, Any] = {"__metadata__": {"writer": "ünknown"}}
    body = b""
    for name, width in bits.items():  # in this order nothing is aligned, which only vectors have to be
        head[name.lower()] = {"dtype": name, "shape": [3], "data_offsets": [len(body), len(body) + 3 * width]}
        body += bytes([0, 1, 1]) if name == "BOOL" else np.arange(3 * width, dtype=np.uint8).tobytes()
    head = {"odd": {"dtype": "U8", "shape": [1], "data_offsets": [len(body), len(body) + 1]}, **head}
    file = joined(json.dumps(head, ensure_ascii=False).encode(), body + b"\7", padded=False)
    found = tensors.decode(file)
    assert {name: dtype for name, (_, dtype) in found.items()} == {**{n.lower(): n for n in bits}, "odd": "U8"}
    wide = found["bf16"][0]
    assert wide.dtype == np.float32
    assert wide.view(np.uint32).tolist() == [0x01000000, 0x03020000, 0x05040000]
    assert found["f16"][0].dtype == np.float16
    assert found["bool"][0].tolist() == [False, True, True]
    with pytest.raises(VectorError, match="dtype must be one of F32"):
        tensors.decode(file, ("F32",))
    with pytest.raises(VectorError, match="a BOOL must be 0 or 1"):
        tensors.decode(file.replace(bytes([0, 1, 1, 7]), bytes([0, 2, 1, 7])))
    with pytest.raises(VectorError, match="__metadata__ must map words to words"):
        tensors.decode(joined(b'{"__metadata__": {"a": 1}}', b""))


def test_a_boolean_that_is_neither_is_refused(tmp_path: Path) -> None:
    root = small(tmp_path / "attention", "attention")

    def change(file: bytes) -> bytes:
        head, body = split(file)
        at = json.loads(head)["masked/in/mask"]["data_offsets"][0]
        return joined(head, body[:at] + b"\2" + body[at + 1 :])

    place(root, sealed(contents(root), {DATA: change}))
    with pytest.raises(VectorError, match="masked/in/mask: a BOOL must be 0 or 1"):
        read(root)


@pytest.mark.parametrize("text", ["0", "-1", "9223372036854775807", "1e308", "-0.0", "5e-324", '"\\ud83d\\ude00"', "[[[]]]"])
def test_strict_json_is_json_where_it_accepts(text: str) -> None:
    assert safe_files.loads(text.encode()) == json.loads(text)


def test_strict_json_refuses_what_is_too_long_and_too_deep() -> None:
    assert safe_files.loads(b"[" * safe_files.DEPTH + b"]" * safe_files.DEPTH)
    with pytest.raises(ValueError, match="nested more than"):
        safe_files.loads(b"[" * (safe_files.DEPTH + 2) + b"]" * (safe_files.DEPTH + 2))
    with pytest.raises(ValueError, match="more than 5"):
        safe_files.loads(b"[1, 2]", limit=5)


@pytest.mark.thorough(dear=True)
def test_a_truncated_report_is_never_complete(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    check_call(lambda x, positions, /, **options: x, op="rope", dtype="float32").write_json(file)
    whole = file.read_bytes().rstrip()
    assert complete(file, whole)
    for length in {*range(0, len(whole), 1000), *range(len(whole) - 300, len(whole))}:
        assert not complete(file, whole[:length]), length
    document = json.loads(whole)
    for part in ("cases", "operations"):  # cut inside, and closed again
        assert not complete(file, json.dumps(document | {part: document[part][:-1]}).encode())
    assert not complete(file, json.dumps(document | {"complete": False}).encode())


def complete(file: Path, text: bytes) -> bool:
    """Return whether text is a report that has all its parts."""
    try:
        document = parse(file, text)
    except VectorError:
        return False
    return validator("report").is_valid(document) and state(document) != "incomplete"

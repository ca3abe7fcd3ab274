"""
Suites that somebody has tampered with: a small good one, changes to its files, and hashes rewritten to match them.

    python tests/hostile.py [COUNT [SEED]]

tries that many mutated suites and says how many were refused; the tests do the same with fewer.
"""

import copy
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load

from posref import scaling
from posref.conformance.errors import VectorError
from posref.conformance.evidence.tools.numbers import floats
from posref.conformance.model import Case, LoadedGroup, Step
from posref.conformance.proof.build import build_group, plain, write_group
from posref.conformance.suite.reader import document, load_groups, version_of, withdrawn_cases
from posref.conformance.suite.schemas import FOLDER, caches, validator
from posref.conformance.suite.tensors import digest
from posref.conformance.suite.writer import SCHEMA, STATIC, SUITE, copy_static, write_json, write_manifest

TENSORS = ("data.safetensors", "tolerance.safetensors")
DOCUMENTS = ("smoke.json", "flags.json", "ERRATA.json")
Change = Callable[[bytes], bytes]
Changes = Mapping[str, Change]
Files = dict[str, bytes]

X, Q, K, V = (floats(*shape, seed=seed) for seed, shape in enumerate([(2, 4), (1, 2, 3), (1, 5, 3), (1, 5, 2)]))
MASK = np.arange(10).reshape(2, 5) % 3 != 0
HALF = {"layout": "half", "base": 100.0}
CASES = (  # reals, integers and booleans; a scaling; a sequence; a call to be refused
    Case("rope/tiny/one", HALF | {"scaling": scaling.Linear(2.0)}, {"x": X, "positions": [3, 7]}, tier="smoke"),
    Case(
        "rope/tiny/two",
        steps=(Step(HALF, {"x": X, "positions": [1, 9]}), Step(HALF, {"x": X[:1], "positions": [300]})),
        kind="sequence",
    ),
    Case("rope/tiny/bad", HALF | {"rotary_dim": 3}, {"x": X, "positions": [1, 2]}, "odd", kind="reject"),
    Case("attention/tiny/masked", {}, {"q": Q, "k": K, "v": V, "mask": MASK}, tier="smoke"),
)


def small(root: Path, op: str) -> Path:
    """Write a suite of one small group, as a build does, and return its folder."""
    root.mkdir()
    flags = {"empty": {"catches": "nothing: an example", "seen_in": ""}}
    group = build_group([case for case in CASES if case.op == op])
    entry = write_group(root, group)
    copy_static(STATIC, root)
    cases = [plain(group, case) for case in group.manifest["cases"] if case["tier"] == "smoke"]
    write_json(root / "smoke.json", {"schema": SCHEMA, "suite": SUITE, "cases": cases})
    write_json(root / "flags.json", flags)
    write_manifest(root, [entry])
    return root


def contents(root: Path) -> Files:
    """Return the files of a suite by their paths in it, schemas and licence left out."""
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return {n: data for n, data in found.items() if not n.startswith("schema/") and n not in ("LICENSE", "README.md")}


def sealed(good: Files, changes: Changes) -> Files:
    """Return the files of a suite with changes, every hash and size rewritten so that only a reader can notice."""
    files = {name: changes.get(name, bytes)(data) for name, data in good.items() if name in DOCUMENTS}
    folder = next(name for name in good if name.endswith("group.json")).removesuffix("group.json")
    for name in TENSORS:
        files[folder + name] = changes.get(name, bytes)(good[folder + name])
    group, suite = json.loads(good[folder + "group.json"]), json.loads(good["SUITE.json"])
    group["files"] = {name: digest(files[folder + name]) for name in TENSORS}
    files[folder + "group.json"] = changes.get("group.json", bytes)(dump(group))
    suite["groups"][0]["files"] = {n: digest(files[folder + n]) for n in (*TENSORS, "group.json")}
    suite["total_bytes"] = sum(file["bytes"] for file in suite["groups"][0]["files"].values())
    suite["suite"] = version_of(suite["groups"], suite["suite"].partition("+")[0])
    files["SUITE.json"] = changes.get("SUITE.json", bytes)(dump(suite))
    return files


def place(root: Path, files: Files) -> None:
    """Write files under `root`, each a new one: writing over a file makes some file systems wait for the disk."""
    for name, data in files.items():
        (root / name).unlink(missing_ok=True)
        (root / name).write_bytes(data)


def dump(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


def edit(change: Callable[[Any], Any]) -> Change:
    """Return the change of a JSON file that `change` makes in place, or returns."""

    def changed(data: bytes) -> bytes:
        value = json.loads(data)
        result = change(value)
        return dump(value if result is None else result)

    return changed


def split(data: bytes) -> tuple[bytes, bytes]:
    """Return the header and the body of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size], data[8 + size :]


def joined(header: bytes, body: bytes, *, padded: bool = True) -> bytes:
    """Return a safetensors file."""
    header += b" " * (-len(header) % 8 if padded else 0)
    return len(header).to_bytes(8, "little") + header + body


def header(change: Callable[[Any], Any]) -> Change:
    """Return the change of a safetensors file that `change` makes to its header, in place or by a new one."""

    def changed(data: bytes) -> bytes:
        before, body = split(data)
        value = json.loads(before)
        result = change(value)
        value = value if result is None else result
        return joined(value if isinstance(value, bytes) else json.dumps(value).encode(), body)

    return changed


def read(root: Path, documents: Collection[str] = DOCUMENTS) -> list[LoadedGroup]:
    """Return the groups of a suite, reading everything that the library reads; of the plain documents only those named."""
    for name in documents:
        document(root, name, name.removesuffix(".json").lower())
    withdrawn_cases(root)
    return list(load_groups(root))


def assert_official(root: Path, groups: list[LoadedGroup]) -> None:
    """Assert that what was accepted is what the official readers give."""
    for group in groups:
        folder = root / group.id
        assert json.loads((folder / "group.json").read_bytes()) == group.manifest
        for name, mine in zip(TENSORS, (group.data, group.tolerance), strict=True):
            official = load((folder / name).read_bytes())
            assert set(mine) == set(official)
            for key, value in official.items():
                assert (mine[key].dtype, mine[key].shape) == (value.dtype, value.shape)
                assert mine[key].tobytes() == value.tobytes()


WATCHED: list[tuple[str, Any]] | None = None  # events while somebody watches; a hook of Python's cannot be removed again
TELLTALE = ("exec", "os.", "shutil.", "subprocess.", "socket.", "pickle.", "tempfile.", "ctypes.", "import", "marshal.")
HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk")


def _hook(event: str, arguments: Any) -> None:
    if WATCHED is not None and (event == "open" or (event.startswith(TELLTALE) and event not in HARMLESS)):
        WATCHED.append((event, arguments))


@contextmanager
def watched(root: Path) -> Iterator[None]:
    """Fail if the block runs code, starts a process, or opens a file that is not under `root`, or for more than reading."""
    global WATCHED  # noqa: PLW0603
    if not getattr(sys, "_posref_hook", False):
        sys.addaudithook(_hook)
        sys._posref_hook = True  # type: ignore[attr-defined]
    for schema in FOLDER.glob("*.json"):  # its library runs code when it is loaded, ours and not the suite's
        validator(schema.stem)
    WATCHED = events = []
    try:
        yield
    finally:
        WATCHED = None
    wrong = [
        (event, arguments)
        for event, arguments in events
        if not (_remembers(*arguments) or (event == "open" and _reads(root, *arguments)))
    ]
    assert not wrong, wrong[:3]


def _reads(root: Path, file: Any, _: Any, flags: int) -> bool:
    """Return whether a file is opened under `root` to be read; a number is a file that is open already."""
    return isinstance(file, int) or (Path(file).is_relative_to(root) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0)


def _remembers(file: Any = None, *_: Any) -> bool:
    """Return whether something is done to a file whose name says that a document was found right, or to their folder."""
    try:
        name = Path(file).relative_to(caches() / "valid")
    except (TypeError, ValueError):
        return False
    return name == Path() or re.fullmatch("[0-9a-f]{64}", str(name)) is not None


STRANGE = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**53, 2**62, 2**63, 2**64, 10**40, 1.5, -0.0, 5e-324, 1e308, float("nan"), "", "x",
    "..", "../../etc/passwd", "/etc/passwd", "C:\\x", "a\0b", "out\n", "\ud800", "é", "F16", "BF16", "F32", "BOOL", [], {}, [0],
    [[]], [2**32, 2**32], [0, 2**62], {"type": "Linear"}, {"type": "os.system", "factor": 1}, {"__metadata__": {}},
)  # fmt: skip


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with every key or index of it."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def mutate_json(rng: random.Random, value: Any) -> Any:
    """Return a document with one part replaced, removed, doubled, renamed, wrapped or exchanged."""
    value = copy.deepcopy(value)
    places = list(_places(value)) or [([value], 0)]
    container, key = rng.choice(places)
    other, other_key = rng.choice(places)
    action = rng.randrange(7)
    if action == 0:
        container[key] = copy.deepcopy(rng.choice(STRANGE))
    elif action == 1:
        del container[key]
    elif action == 2:
        container[key] = copy.deepcopy(other[other_key])
    elif action == 3 and isinstance(container, dict):
        container[rng.choice(["x", "../x", "out", str(key) + "\n", "__metadata__", "a/in/x"])] = container.pop(key)
    elif action == 4 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), copy.deepcopy(rng.choice([container[key], *STRANGE])))
    elif action == 5 and isinstance(container[key], str) and container[key]:
        at = rng.randrange(len(container[key]))
        container[key] = container[key][:at] + chr(rng.randrange(0x250)) + container[key][at + 1 :]
    elif isinstance(container[key], int | float):
        container[key] = container[key] + rng.choice([-8, -1, 1, 8, 0.5, 2**20])
    else:
        container[key] = [container[key]]
    return value


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a few of them changed, removed, doubled, or cut off."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at, action = rng.randrange(len(found) + 1), rng.randrange(7)
        end = min(len(found), at + rng.choice([1, 1, 2, 8, 64]))
        if action == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            found[at:end] = rng.randbytes(end - at)
        elif action == 2:
            del found[at:end]
        elif action == 3:
            found[at:at] = found[at:end]
        elif action == 4:
            found[at:end] = rng.choice(
                [b"\0" * 8, b"\xff" * 8, (2**62).to_bytes(8, "little"), b"1e999", b"NaN", b'"', b"{", b"["]
            )
        elif action == 5:
            found[at:at] = rng.choice(
                [b" ", b"\\u0000", b"\\ud800", b"9" * 5000, b"[" * 5000, b",", b"-", b".5", b'"schema": 1,']
            )
        elif action == 6 and rng.random() < 0.2:
            del found[at:]
    return bytes(found)


def mutation(rng: random.Random) -> Changes:
    """Return one or two random changes to the files of a suite."""

    def change(data: bytes) -> bytes:
        return mutate_bytes(rng, data)

    def inside(data: bytes) -> bytes:
        before, body = split(data)
        return joined(json.dumps(mutate_json(rng, json.loads(before))).encode(), body)

    def body(data: bytes) -> bytes:
        before, after = split(data)
        return joined(before, mutate_bytes(rng, after) if rng.random() < 0.3 else _flip(rng, after))

    changes: dict[str, Change] = {}
    for _ in range(rng.choice([1, 1, 1, 2])):
        name = rng.choice([*TENSORS, *TENSORS, "group.json", "group.json", "SUITE.json", rng.choice(DOCUMENTS)])
        if name in TENSORS:
            changes[name] = rng.choice([change, inside, inside, body])
        else:
            changes[name] = rng.choice([change, edit(lambda v: mutate_json(rng, v)), edit(lambda v: mutate_json(rng, v))])
    return changes


def _flip(rng: random.Random, data: bytes) -> bytes:
    """Return bytes of the same number with one bit changed."""
    found = bytearray(data)
    if found:
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def attack(folder: Path, count: int, seed: int) -> dict[str, int]:
    """
    Read `count` mutated suites and return how many were accepted and refused.

    Anything but `VectorError`, or contents other than the official reader's, is raised with the number of the mutant.
    """
    rng, found = random.Random(seed), {"accepted": 0, "refused": 0}
    roots = [small(folder / op, op) for op in ("rope", "attention")]
    goods = [contents(root) for root in roots]
    for root in roots:
        read(root)  # what is loaded once is loaded now
    for number in range(count):
        which = rng.randrange(2)
        root, good = roots[which], goods[which]
        files = sealed(good, mutation(rng))
        changed = {name: data for name, data in files.items() if data != good[name]}
        place(root, changed)
        try:
            with watched(root):
                groups = read(root, [name for name in changed if name in DOCUMENTS])
        except VectorError as error:
            found["refused"] += 1
            if str(root) not in str(error):
                raise AssertionError(f"mutant {number} of seed {seed}: the file is not named: {error}") from error
        except BaseException as error:
            error.add_note(f"mutant {number} of seed {seed}, in {sorted(changed)}")
            raise
        else:
            assert_official(root, groups)
            found["accepted"] += 1
        place(root, {name: good[name] for name in changed})
    return found


if __name__ == "__main__":
    number, seed = (int(a) for a in (*sys.argv[1:], *("10000", "0")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as scratch:
        begun = time.monotonic()
        print(attack(Path(scratch), number, seed), f"{time.monotonic() - begun:.1f} s")

"""
Attacks on files, folders, streams, signals, numbers and names, by the command line in a folder of one's own.

    python tests/attacking.py [WORD ...]

runs them, or those whose names contain one of the words (are it, after "="), and prints those that end badly. An attack
prepares a folder, runs one command there, and says with which exit codes that may end: 2 unless it says otherwise. No file in
the folder may be lost or changed, nothing may print a traceback, and time and memory have limits.
"""

import hashlib
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
SECONDS, BYTES = 10.0, 1 << 30  # of CPU, and of memory, that an attack may take
PATIENCE = 120.0  # seconds on the clock, where other programs run too
SPARSE = 10 * 2**30
RIGHT = "from posref import alibi_slopes\n"
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 1e4, "max_position_embeddings": 99}
GOLDEN = ("golden", "alibi_slopes", "--option", "heads=4", "--dtype", "float32")
INPUT = ("golden", "learned", "--input", "in.npz", "-o", "out.npz")
SHOW = ("show", "config.json")
CHECK = ("check", "right.py", "--tier", "smoke")

Prepare = Callable[[Path], Any]


def nothing(_: Path) -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Attack:
    """A command, what lies in its folder, and with which exit codes it may end."""

    arguments: tuple[str | bytes, ...]
    prepare: Prepare = nothing
    codes: tuple[int, ...] = (2,)
    environment: Mapping[str, str | None] = field(default_factory=dict)
    before: Prepare = nothing  # in the process of the command, before it starts
    shell: str = ""  # what stands around the command, as "{} | head -1"
    created: tuple[str, ...] = ()  # the only names that may be new
    silent: bool = False  # nothing need be said: its streams take nothing, or their reader has gone


# ---- what lies there ---------------------------------------------------------------------------------------------------------
def text(name: str, content: str | bytes) -> Prepare:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def config(**changes: Any) -> Prepare:
    return text("config.json", json.dumps({**CONFIG, **changes}))


def fifo(name: str) -> Prepare:
    return lambda folder: os.mkfifo(folder / name)


def link(name: str, to: str) -> Prepare:
    return lambda folder: (folder / name).symlink_to(to)


def folder_with(name: str, *files: str) -> Prepare:
    def made(folder: Path) -> None:
        (folder / name).mkdir()
        for file in files:
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text("mine")

    return made


def sparse(name: str, head: bytes = b"") -> Prepare:
    def made(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(head)
            file.truncate(SPARSE)

    return made


def bound(name: str) -> Prepare:
    def made(folder: Path) -> None:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(name)
        finally:
            os.chdir(here)

    return made


def both(*prepared: Prepare) -> Prepare:
    return lambda folder: [one(folder) for one in prepared]


def suite(change: Prepare = nothing) -> Prepare:
    """Prepare a small suite, then change it."""

    def made(folder: Path) -> None:
        from posref.conformance.suite.reader import INSTALLED
        from posref.conformance.suite.writer import copy

        copy(INSTALLED, folder / "suite", ["alibi_slopes"])
        change(folder / "suite")

    return made


def manifest(change: Callable[[dict[str, Any]], Any]) -> Prepare:
    def made(folder: Path) -> None:
        data = json.loads((folder / "SUITE.json").read_bytes())
        change(data)
        (folder / "SUITE.json").write_text(json.dumps(data))

    return made


def report(change: Callable[[dict[str, Any]], Any]) -> Prepare:
    """Prepare a report of a check, then change it."""

    def made(folder: Path) -> None:
        from posref.conformance import check
        from posref.conformance.reports.report import Report

        found: Report = check("posref", op="alibi_slopes", tier="smoke")
        document = found.to_json()
        replaced = change(document)
        (folder / "report.json").write_text(json.dumps(document if replaced is None else replaced))

    return made


def gguf(version: int, tensors: int, pairs: int, rest: bytes = b"", *, order: str = "<") -> Prepare:
    return text("model.gguf", b"GGUF" + struct.pack(f"{order}IQQ", version, tensors, pairs) + rest)


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def npy(array: Any, **options: Any) -> bytes:
    file = BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npy_header(content: str) -> bytes:
    head = content.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


def archive(*members: tuple[str, bytes | int], change: Callable[[bytes], bytes] = bytes, deflated: bool = True) -> Prepare:
    """Prepare an archive of arrays; a number as the data of one stands for so many zeros after a header."""

    def made(folder: Path) -> None:
        file = BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as one:
            for name, data in members:
                with one.open(name, "w") as member:
                    if isinstance(data, int):
                        member.write(npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({data // 8},)}}"))
                        for _ in range(data >> 20):
                            member.write(bytes(1 << 20))
                    else:
                        member.write(data)
        (folder / "in.npz").write_bytes(change(file.getvalue()))

    return made


class Pickled:
    """A thing that writes a file where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("owned",)


def safetensors(header: bytes, size: int | None = None, body: bytes = b"") -> Prepare:
    count = len(header) if size is None else size
    return text("in.safetensors", (count % 2**64).to_bytes(8, "little") + header + body)


def limit(kind: int, value: int) -> Prepare:
    return lambda _: resource.setrlimit(kind, (value, value))


def close(*numbers: int) -> Prepare:
    return lambda _: [os.close(number) for number in numbers]


def evil(*names: str) -> Prepare:
    """Prepare modules in the folder with the names of modules that posref imports."""
    return both(*(text(f"{name}.py", "import os\nos.mkdir('owned')\nraise SystemExit(0)\n") for name in names))


LAZY = (
    "safetensors", "jsonschema", "click", "rich", "numpy", "flint", "mpmath", "matplotlib", "array_api_compat", "json",
    "random", "secrets", "tempfile", "zipfile", "html", "xml", "resource", "fcntl", "multiprocessing", "concurrent", "hashlib",
    "sitecustomize", "usercustomize", "gmpy2", "ml_dtypes",
)  # fmt: skip
TENSORS = archive(("table.npy", npy(np.ones((4, 2)))), ("positions.npy", npy(np.arange(3))))
DEEP = "[" * 100_000 + "]" * 100_000
SAFE = ("golden", "learned", "--input", "in.safetensors", "-o", "out.npz")
GGUF = ("golden", "rope_frequencies", "--gguf", "model.gguf", "-o", "out.npz")
BUILT = ("vectors", "build", "place", "--op", "alibi_slopes", "--tier", "smoke")

# ---- outputs -----------------------------------------------------------------------------------------------------------------
OUTPUTS: dict[str, Attack] = {
    "golden to a name with a slash": Attack((*GOLDEN, "-o", "out.npz/")),
    "golden to a name with slashes": Attack((*GOLDEN, "-o", "out.json///")),
    "golden to a name with a slash and a dot": Attack((*GOLDEN, "-o", "out.npz/.")),
    "golden to a folder's name": Attack((*GOLDEN, "-o", "out.npz"), folder_with("out.npz", "notes")),
    "golden through a dangling link": Attack((*GOLDEN, "-o", "out.npz"), link("out.npz", "nowhere/at-all.npz")),
    "golden through a link to itself": Attack((*GOLDEN, "-o", "out.npz"), link("out.npz", "out.npz")),
    "golden to a FIFO": Attack((*GOLDEN, "-o", "out.npz"), fifo("out.npz")),
    "golden to a socket": Attack((*GOLDEN, "-o", "out.npz"), bound("out.npz")),
    "golden to a device": Attack((*GOLDEN, "-o", "/dev/full", "--format", "npz")),
    "golden to the memory of the process": Attack((*GOLDEN, "-o", "/proc/self/mem", "--format", "npz")),
    "golden below a file": Attack((*GOLDEN, "-o", "file/out.npz"), text("file", "mine")),
    "golden to no name": Attack((*GOLDEN, "-o", "")),
    "golden to this folder": Attack((*GOLDEN, "-o", ".", "--format", "npz")),
    "golden to the folder above": Attack((*GOLDEN, "-o", "..", "--format", "suite")),
    "golden to an ending that is none": Attack((*GOLDEN, "-o", "out.exe"), codes=(0,), created=("out.exe/",)),
    "golden to a long name": Attack((*GOLDEN, "-o", "x" * 5000 + ".npz")),
    "golden to a name that is no UTF-8": Attack((*GOLDEN, "-o", b"out-\xff.npz"), codes=(0, 2), created=("out-\udcff.npz",)),
    "golden to a name with line breaks": Attack(
        (*GOLDEN, "-o", "a\nb\x1b[31m.npz"), codes=(0, 2), created=("a\nb\x1b[31m.npz",)
    ),
    "golden to its own input": Attack(("golden", "learned", "--input", "in.npz", "-o", "in.npz"), TENSORS),
    "golden to its own config": Attack(
        ("golden", "rope_frequencies", "--config", "config.json", "-o", "config.json"), config()
    ),
    "golden to a link to its own input": Attack(
        ("golden", "learned", "--input", "in.npz", "-o", "link.npz"), both(TENSORS, link("link.npz", "in.npz"))
    ),
    "golden of a suite into a checkout": Attack(
        (*GOLDEN, "-o", "place", "--format", "suite"), folder_with("place", ".git/HEAD", "SUITE.json")
    ),
    "golden of a suite to a dangling link": Attack((*GOLDEN, "-o", "place", "--format", "suite"), link("place", "nowhere")),
    "a picture to a name with a slash": Attack(("plot", "alibi", "--heads", "8", "-o", "out.png/")),
    "a picture to a FIFO": Attack(("plot", "alibi", "--heads", "8", "-o", "out.png"), fifo("out.png")),
    "a picture's numbers to a name with a slash": Attack(
        ("plot", "alibi", "--heads", "8", "-o", "out.png", "--save-data", "data.npz/"), created=("out.png",)
    ),
    "a picture and its numbers in one file": Attack(
        ("plot", "alibi", "--heads", "8", "-o", "out.svg", "--save-data", "out.svg"), created=("out.svg",)
    ),
    "a report to a name with a slash": Attack((*CHECK, "--json", "out.json/")),
    "a report to the target": Attack((*CHECK, "--json", "right.py")),
    "two reports in one file": Attack((*CHECK, "--json", "out", "--html", "out"), created=("out",)),
    "two reports in one file by a link": Attack(
        (*CHECK, "--json", "deep/out", "--html", "also/out"),
        both(folder_with("deep"), link("also", "deep")),
        created=("deep/out",),
    ),
    "a converted report to its own file": Attack(("report", "report.json", "--html", "report.json"), report(lambda _: None)),
    "a report of nothing": Attack(("report", "report.json", "--html", "out.html"), report(dict.fromkeys)),
    "the badge into a folder": Attack(
        ("report", "report.json", "--badge", "d"), both(report(lambda _: None), folder_with("d"))
    ),
    "an adapter over a file": Attack(("adapter", "new", "mine"), text("mine.py", "mine")),
    "an adapter over a file that is named": Attack(("adapter", "new", "mine", "-o", "notes"), text("notes", "mine")),
    "an adapter through a dangling link": Attack(("adapter", "new", "mine", "-o", "notes"), link("notes", "elsewhere")),
    "an adapter with a path for a name": Attack(("adapter", "new", "../evil")),
    "an adapter to a name with a slash": Attack(("adapter", "new", "mine", "-o", "mine.py/")),
    "vectors into a folder with files": Attack(("vectors", "copy", "place"), folder_with("place", "notes")),
    "vectors into this folder": Attack(("vectors", "copy", ".")),
    "vectors over a file": Attack(("vectors", "export", "file"), text("file", "mine")),
    "a build over a FIFO": Attack(BUILT, fifo("place")),
    "a build through a dangling link": Attack(BUILT, link("place", "nowhere")),
    "a build over a false suite": Attack(BUILT, both(folder_with("place"), text("place/SUITE.json", "{}"))),
    "failures into a folder with files": Attack(
        ("fuzz", "wrong.py", "--op", "alibi_slopes", "--examples", "3", "--output", "place"), folder_with("place", "notes")
    ),
    "failures over a file": Attack(
        ("fuzz", "wrong.py", "--op", "alibi_slopes", "--examples", "3", "--output", "file"), text("file", "mine")
    ),
}

# ---- inputs ------------------------------------------------------------------------------------------------------------------
INPUTS: dict[str, Attack] = {
    "a config that is a FIFO": Attack(SHOW, fifo("config.json")),
    "a config without an end": Attack(("show", "/dev/zero")),
    "a config that is a folder": Attack(SHOW, folder_with("config.json")),
    "a config of ten GiB": Attack(SHOW, sparse("config.json", b"{")),
    "a deep config": Attack(SHOW, text("config.json", '{"a":' + DEEP + "}")),
    "a config of millions of objects": Attack(SHOW, text("config.json", '{"a":[' + "{}," * 5_000_000 + "{}]}")),
    "a config with a long number": Attack(SHOW, text("config.json", '{"rope_theta": ' + "9" * 1_000_000 + "}")),
    "a config with half a pair": Attack(SHOW, text("config.json", '{"model_type": "\\ud800"}')),
    "a config in UTF-16": Attack(SHOW, text("config.json", json.dumps(CONFIG).encode("utf-16"))),
    "an empty config": Attack(SHOW, text("config.json", b"")),
    "a config that is a list": Attack(SHOW, text("config.json", "[1]")),
    "a config with a long type": Attack(SHOW, config(model_type="x" * 2_000_000)),
    "a config with control characters": Attack(SHOW, config(model_type="\x1b[31mllama\n\r")),
    "a config of a huge model": Attack(SHOW, config(hidden_size=10**300), (0, 2)),
    "a config of no heads": Attack(SHOW, config(num_attention_heads=0)),
    "a config with a list for a number": Attack(SHOW, config(rope_theta=[1e4])),
    "a config with text for a number": Attack(SHOW, config(rope_theta="ten thousand")),
    "a config with no base": Attack(SHOW, config(rope_theta=0)),
    "a config with an endless factor": Attack(
        SHOW, text("config.json", json.dumps(CONFIG)[:-1] + ', "rope_scaling": {"rope_type": "linear", "factor": 1e999}}')
    ),
    "a config with many factors": Attack(
        SHOW, config(rope_scaling={"rope_type": "longrope", "short_factor": [1.0] * 10**6, "long_factor": [1.0] * 10**6})
    ),
    "a config with many layers": Attack(SHOW, config(layer_types=["full_attention"] * 10**6), (0, 2)),
    "a config with a scaling in a scaling": Attack(SHOW, config(rope_scaling={"rope_type": {"rope_type": "linear"}})),
    "a layer far away": Attack(
        ("golden", "rope_frequencies", "--config", "config.json", "--layer", "9" * 30, "-o", "o.npz"), config()
    ),
    "a GGUF file that is short": Attack(GGUF, text("model.gguf", b"GGUF\x03")),
    "a GGUF file of many tensors": Attack(GGUF, gguf(3, 2**63, 0)),
    "a GGUF file of many pairs": Attack(GGUF, gguf(3, 0, 2**64 - 1)),
    "a GGUF file of no version": Attack(GGUF, gguf(999, 0, 0)),
    "a GGUF file in the other order": Attack(GGUF, gguf(3, 0, 0, order=">")),
    "a GGUF file with a long text": Attack(GGUF, gguf(3, 0, 1, pair(b"general.name", 8, struct.pack("<Q", 2**63)))),
    "a GGUF file with a long key": Attack(GGUF, gguf(3, 0, 1, struct.pack("<Q", 2**62))),
    "a GGUF file with a long list": Attack(GGUF, gguf(3, 0, 1, pair(b"x", 9, struct.pack("<IQ", 4, 2**40)))),
    "a GGUF file with deep lists": Attack(GGUF, gguf(3, 0, 1, pair(b"x", 9, struct.pack("<IQ", 9, 1) * 10_000))),
    "a GGUF file of ten GiB": Attack(GGUF, sparse("model.gguf", b"GGUF" + struct.pack("<IQQ", 3, 2**40, 2**40))),
    "a GGUF file with a kind that is none": Attack(GGUF, gguf(3, 0, 1, pair(b"x", 77, b""))),
    "a GGUF file that repeats a key": Attack(
        GGUF, gguf(3, 0, 2, 2 * pair(b"general.architecture", 8, struct.pack("<Q", 5) + b"llama"))
    ),
    "tensors with a long header": Attack(SAFE, safetensors(b"{}", 2**63)),
    "tensors with a negative header": Attack(SAFE, safetensors(b"{}", -1)),
    "tensors that overlap": Attack(
        SAFE,
        safetensors(
            b'{"table":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"positions":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
            body=bytes(12),
        ),
    ),
    "tensors with negative places": Attack(
        SAFE, safetensors(b'{"table":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}', body=bytes(8))
    ),
    "tensors of a huge shape": Attack(
        SAFE, safetensors(b'{"table":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}', body=bytes(8))
    ),
    "tensors of no dtype": Attack(
        SAFE, safetensors(b'{"table":{"dtype":"F7","shape":[2],"data_offsets":[0,8]}}', body=bytes(8))
    ),
    "tensors with a deep header": Attack(SAFE, safetensors(b'{"table":' + DEEP.encode() + b"}")),
    "tensors of ten GiB": Attack(SAFE, sparse("in.safetensors", (2).to_bytes(8, "little") + b"{}")),
    "arrays that are pickled": Attack(INPUT, archive(("table.npy", npy(np.array([Pickled()], object), allow_pickle=True)))),
    "a pickle by the name of arrays": Attack(INPUT, text("in.npz", b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93\x8c\x05owned\x85R.")),
    "a zip bomb": Attack(INPUT, archive(("table.npy", 1 << 30))),
    "a zip bomb that lies": Attack(
        INPUT,
        archive(
            ("table.npy", 1 << 27), change=lambda data: data.replace(struct.pack("<I", (1 << 27) + 129), struct.pack("<I", 200))
        ),
    ),
    "arrays with a path for a name": Attack(INPUT, archive(("../../table.npy", npy(np.ones(3))))),
    "arrays of a huge shape": Attack(
        INPUT, archive(("table.npy", npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}")))
    ),
    "arrays with code in the header": Attack(
        INPUT, archive(("table.npy", npy_header("{'descr': __import__('os').mkdir('owned'), 'shape': ()}")))
    ),
    "arrays of records": Attack(INPUT, archive(("table.npy", npy(np.zeros(3, [("a", "f8"), ("b", "i4")]))))),
    **{
        f"arrays with {word}": Attack(INPUT, archive(("table.npy", npy(table)), ("positions.npy", npy(np.array([1])))))
        for word, table in (("NaN", np.full((4, 2), np.nan)), ("infinity", np.full((4, 2), np.inf)))
    },
    **{
        f"settings that are {word}": Attack(("check",), text("pyproject.toml", f"tool{content}"))
        for word, content in (
            ("no table", " = 3"),
            ("a list", ".posref = [1]"),
            ("deep", f".posref.target = {'[' * 5000}"),
            ("of one long key", ".a" * 40_000 + " = 1"),
            ("of one long key in quotes", ' . "\\""' * 40_000 + " = 1"),
        )
    },
    "arrays of text": Attack(INPUT, archive(("table.npy", npy(np.array(["a", "b"]))))),
    "arrays of dates": Attack(INPUT, archive(("table.npy", npy(np.array(["2020-01-01"], "M8[D]"))))),
    "an archive that is cut off": Attack(
        INPUT, archive(("table.npy", npy(np.ones(3))), change=lambda data: data[: len(data) // 2])
    ),
    "an archive with a wild directory": Attack(
        INPUT,
        archive(
            ("table.npy", npy(np.ones(3))),
            change=lambda data: data[:-10] + struct.pack("<II", 2**32 - 2, 2**32 - 2) + data[-2:],
        ),
    ),
    "an archive of many members": Attack(INPUT, archive(*((f"a{k}.npy", b"") for k in range(70_000)), deflated=False)),
    "an archive in an archive": Attack(INPUT, archive(("table.npy", b"PK\x05\x06" + bytes(18)))),
    "one name twice in an archive": Attack(
        INPUT, archive(("table.npy", npy(np.ones((2, 2)))), ("table.npy", npy(np.zeros((2, 2)))))
    ),
    "an input of ten GiB": Attack(INPUT, sparse("in.npz", b"PK\x03\x04")),
    "an input that is a folder": Attack(INPUT, folder_with("in.npz", "table.npy")),
    "an input through a link to itself": Attack(INPUT, link("in.npz", "in.npz")),
}

# ---- numbers and names -------------------------------------------------------------------------------------------------------
POSITIONS = ("golden", "sinusoidal", "--option", "layout=interleaved", "--option", "dim=8", "-o", "out.npz", "--positions")
NUMBERS: dict[str, Attack] = {
    **{
        f"positions {word[:24]!r}": Attack((*POSITIONS, word))
        for word in (
            "1e400", "0:10:0", "0x10", "0:18446744073709551616", "-0:", ":", "0:1:1:1", "0,,1", "0:1e3", "NaN", "inf",
            "-inf", "1e308:1e309", "\x1b[31m", "0.1.2",
        )
    },
    **{
        f"positions {word[:24]!r}": Attack((*POSITIONS, word), codes=(0,), created=("out.npz",))
        for word in ("0:10:-1", "\u0663", "1_000", ",".join(["1"] * 3_000))  # Python reads these numbers
    },
    **{
        f"shape {word[:24]!r}": Attack(("golden", "peg", "--shape", word, "-o", "out.npz"))
        for word in ("-1,2", "9" * 40, "2,3,", "x=2", "1e2", "=", "x=", ",".join(["1"] * 300), "\u00b2")
    },
    **{
        f"option {word[:24]!r}": Attack((*GOLDEN[:2], "--option", word, "-o", "out.npz"))
        for word in (
            "heads=1e18", "heads=true", "heads=NaN", "heads=-1", "heads=[4]",
            "heads=" + "[" * 50_000,
            "heads=", "=4", "heads", 'heads={"a":1}', "heads=999999999999", "xp=numpy", "device=cpu", "__class__=1",
            "heads=4;import os", "max_bias=0",
        )
    },
    **{
        f"{' '.join(words)[:40]}": Attack((*GOLDEN, *words, "-o", "out.npz"))
        for words in (
            ("--minutes", "nan"),
            ("--minutes", "-1"),
            ("--seed", "-1"),
            ("--jobs", "0"),
            ("--witnesses", "3"),
            ("--dtype", "int8"),
        )
    },
    "a huge seed": Attack((*GOLDEN, "--seed", "9" * 400, "-o", "out.npz"), codes=(0, 2), created=("out.npz",)),
    **{
        f"check {' '.join(words)}": Attack((*CHECK, *words))
        for words in (
            ("--timeout", "nan"),
            ("--timeout", "-1"),
            ("--memory", "nan"),
            ("--memory", "-1"),
            ("--trig", "nan"),
            ("--trig", "1e400"),
            ("--case", "../../etc/passwd"),
            ("--op", "__init__"),
            ("--dtype", "object"),
            ("--backend", "os"),
            ("--claim", "any"),
            ("--suite", "/dev/zero"),
            ("--suite", "/"),
            ("--for", "no-such-model"),
            ("--require", "{"),
            ("--require", "/dev/zero"),
            ("--seed", "-3"),
        )
    },
    "check --timeout inf": Attack((*CHECK, "--timeout", "inf")),
    "check --memory inf": Attack((*CHECK, "--memory", "inf")),
    "check --memory 1e300": Attack((*CHECK, "--memory", "1e300")),
    "check --seed of 400 digits": Attack((*CHECK, "--seed", "9" * 400), codes=(0, 2)),
    "fuzz for ever": Attack(("fuzz", "right.py", "--op", "alibi_slopes", "--seconds", "nan")),
    "fuzz without an end": Attack(
        ("fuzz", "right.py", "--op", "alibi_slopes", "--seconds", "inf", "--examples", "1"), codes=(0, 2)
    ),
    "a picture of no channels": Attack(("plot", "sinusoidal", "--dim", "0", "-o", "out.png")),
    "a picture of no base": Attack(("plot", "sinusoidal", "--base", "nan", "-o", "out.png")),
    "a picture of nothing": Attack(("plot", "\x00evil"[1:], "-o", "out.png")),
    "show a path": Attack(("show", "../../../etc/shadow")),
    "show a word of control characters": Attack(("show", "\x1b]0;owned\x07")),
    **{
        f"target {word[:24]!r}": Attack(("check", word, "--tier", "smoke"))
        for word in (
            "", ":", "right.py:", "a..b", "posref:__class__", "right.py:no.such", "os", "sys", "/dev/zero", "-",
            "no/such/file.py", "x" * 5000 + ".py", "\udcff.py", "__main__",
        )
    },
    **{
        f"command {word[:24]!r}": Attack(("check", "--command", word, "--tier", "smoke"), codes=codes)
        for word, codes in {
            "": (2,),
            "  ": (2,),
            "no-such-program": (2,),
            "/": (2,),
            "'unclosed": (2,),
            "cat": (1, 2),
            "yes": (1, 2),
            "true": (1, 2),
            "cat /dev/zero": (1, 2),
            "sh -c 'kill -9 $PPID'": (1, 2),
            "sh -c 'exec 1>&-; sleep 1'": (1, 2),
        }.items()
    },
}  # fmt: skip

# ---- targets, suites and reports ---------------------------------------------------------------------------------------------
MINE = ("check", "mine.py", "--op", "alibi_slopes", "--tier", "smoke")
FILES: dict[str, Attack] = {
    "a target that is a FIFO": Attack(MINE, fifo("mine.py")),
    "a target that is a folder": Attack(MINE, folder_with("mine.py")),
    "a target through a dangling link": Attack(MINE, link("mine.py", "nowhere.py")),
    "a target that is no Python": Attack(MINE, text("mine.py", "def (")),
    "a target with a NUL": Attack(MINE, text("mine.py", b"x = 1\x00\n")),
    "a target in Latin-1": Attack(MINE, text("mine.py", b"x = '\xe9'\n")),
    "a target of ten GiB": Attack(MINE, sparse("mine.py")),
    "a target that is deep": Attack(MINE, text("mine.py", "x = " + "(" * 5000 + ")" * 5000)),
    "a target that recurses": Attack(MINE, text("mine.py", "def f():\n    f()\nf()\n")),
    "a target that imports itself": Attack(MINE, text("mine.py", "import mine\n")),
    "a target that removes its folder": Attack(
        MINE,
        text("mine.py", RIGHT + "import os, shutil\nos.makedirs('gone')\nos.chdir('gone')\nos.rmdir(os.getcwd())\n"),
        (0, 1, 2),
    ),
    "a suite with a path": Attack(
        (*CHECK, "--suite", "suite"), suite(manifest(lambda d: d["groups"][0].update(id="../../etc")))
    ),
    "a suite of many groups": Attack(
        (*CHECK, "--suite", "suite"), suite(manifest(lambda d: d.update(groups=d["groups"] * 100_000)))
    ),
    "a suite that is deep": Attack((*CHECK, "--suite", "suite"), suite(text("SUITE.json", DEEP))),
    "a suite that is a FIFO": Attack(
        (*CHECK, "--suite", "suite"), suite(both(lambda f: (f / "SUITE.json").unlink(), fifo("SUITE.json")))
    ),
    "a suite with a linked file": Attack(
        (*CHECK, "--suite", "suite"),
        suite(both(lambda f: (f / "SUITE.json").rename(f.parent / "moved"), link("SUITE.json", "../moved"))),
    ),
    "a suite of a wild size": Attack((*CHECK, "--suite", "suite"), suite(manifest(lambda d: d.update(total_bytes=2**63)))),
    "a suite of another schema": Attack((*CHECK, "--suite", "suite"), suite(manifest(lambda d: d.update(schema=10**30)))),
    "a suite without tolerances": Attack(
        (*CHECK, "--suite", "suite"), suite(lambda f: [p.unlink() for p in f.rglob("tolerance.safetensors")])
    ),
    "a suite with sparse data": Attack(
        (*CHECK, "--suite", "suite"), suite(lambda f: [os.truncate(p, SPARSE) for p in f.rglob("data.safetensors")])
    ),
    "an export over itself": Attack(("vectors", "export", "suite"), suite()),
    "results that are a FIFO": Attack(("check", "--outputs", "place"), fifo("place")),
    "results in an empty folder": Attack(("check", "--outputs", "place"), folder_with("place"), (1, 2)),
    "a report that contradicts itself": Attack(
        ("report", "report.json"), report(lambda d: d["counts"].update({"pass": 10**9}))
    ),
    "a report with negative counts": Attack(("report", "report.json"), report(lambda d: d["counts"].update({"pass": -1}))),
    "a report of another schema": Attack(("report", "report.json"), report(lambda d: d.update(schema=99))),
    "a report of 20,000 operations": Attack(
        ("report", "report.json"), report(lambda d: d.update(operations=d["operations"] * 20_000))
    ),
    "a report of millions of objects": Attack(("report", "report.json"), text("report.json", "[" + "{}," * 5_000_000 + "{}]")),
    "a report that is a list": Attack(("report", "report.json"), text("report.json", "[]")),
    "a report that is deep": Attack(("report", "report.json"), text("report.json", DEEP)),
    "a report that is a FIFO": Attack(("report", "report.json"), fifo("report.json")),
    "a report of ten GiB": Attack(("report", "report.json"), sparse("report.json", b"{")),
    "a report that is not text": Attack(("report", "report.json"), text("report.json", bytes(range(256)) * 100)),
    "a report with control characters": Attack(
        ("report", "report.json"), report(lambda d: d["target"].update(name="\x1b[2J<script>")), (0, 2)
    ),
    "a report without a target": Attack(("report", "report.json"), report(lambda d: d.pop("target"))),
    "a report whose operations are numbers": Attack(("report", "report.json"), report(lambda d: d.update(operations=[1, 2]))),
    "a report that has no verdict": Attack(("report", "report.json"), report(lambda d: d.pop("conformant"))),
    "a report from nobody": Attack(("report", "/dev/stdin")),
}

# ---- the environment, streams and limits -------------------------------------------------------------------------------------
KEEP = (0,)
SURROUNDINGS: dict[str, Attack] = {
    **{f"check with {name}.py beside": Attack(CHECK, evil(name), KEEP) for name in LAZY},
    "golden with modules beside": Attack((*GOLDEN, "-o", "out.npz"), evil(*LAZY), KEEP, created=("out.npz",)),
    "plot with modules beside": Attack(("plot", "alibi", "--heads", "4", "-o", "a.png"), evil(*LAZY), KEEP, created=("a.png",)),
    "build with modules beside": Attack(BUILT, evil(*LAZY), KEEP, created=("place",)),
    "doctor with modules beside": Attack(("doctor",), evil(*LAZY), KEEP),
    "show with modules beside": Attack(SHOW, both(config(), evil(*LAZY)), KEEP),
    **{
        f"check with {name}={value!r}": Attack(CHECK, codes=codes, environment={name: value})
        for name, value, codes in (
            ("HOME", None, KEEP),
            ("HOME", "/proc/nowhere", KEEP),
            ("TMPDIR", "/proc/nowhere", KEEP),
            ("TMPDIR", "/dev/null", KEEP),
            ("PATH", None, KEEP),
            ("PATH", "", KEEP),
            ("TERM", "no-such", KEEP),
            ("COLUMNS", "-5", KEEP),
            ("COLUMNS", "x", KEEP),
            ("LC_ALL", "no_NO.none", KEEP),
            ("LC_ALL", "C", KEEP),
            ("PYTHONIOENCODING", "ascii", KEEP),
            ("PYTHONUTF8", "0", KEEP),
            ("PYTHONWARNINGS", "error", KEEP),
            ("PYTHONOPTIMIZE", "2", KEEP),
            ("PYTHONHASHSEED", "1", KEEP),
            ("PYTHONDEVMODE", "1", KEEP),
            ("PYTHONTRACEMALLOC", "1", KEEP),
            ("PYTHONINSPECT", "1", KEEP),
            ("PYTHONBREAKPOINT", "os.abort", KEEP),
            ("PYTHONNOUSERSITE", "1", KEEP),
            ("MPLBACKEND", "no-such", KEEP),
            ("MPLCONFIGDIR", "/dev/null", KEEP),
            ("POSREF_PROCESS", "bogus", (0, 2)),
            ("POSREF_PASS", ";;=,,", (0, 2)),
            ("POSREF_BLOCKS", "bogus", (0, 2)),
            ("POSREF_TRACEBACK", "bogus", KEEP),
            ("OMP_NUM_THREADS", "bogus", KEEP),
            ("XDG_CACHE_HOME", "/dev/null", KEEP),
            ("SOURCE_DATE_EPOCH", "bogus", KEEP),
            ("FORCE_COLOR", "1", KEEP),
        )
    },
    **{
        f"build with {name}={value!r}": Attack(BUILT, codes=(0,), environment={name: value}, created=("place",))
        for name, value in (
            ("HOME", None),
            ("HOME", "/proc/nowhere"),
            ("TMPDIR", "/proc/nowhere"),
            ("XDG_CACHE_HOME", "/dev/null"),
        )
    },
    "standard input closed": Attack(CHECK, codes=KEEP, before=close(0)),
    "standard output closed": Attack(CHECK, codes=(0, 2), before=close(1)),
    "standard error closed": Attack(CHECK, codes=KEEP, before=close(2)),
    "all streams closed": Attack(CHECK, codes=(0, 2), before=close(0, 1, 2), silent=True),
    "all streams closed, and files written": Attack(
        (*CHECK, "--json", "out.json"), codes=(0, 2), before=close(0, 1, 2), silent=True, created=("out.json",)
    ),
    "standard output full": Attack(CHECK, shell="{} > /dev/full"),
    "standard error full": Attack(("check", "no-such.py"), shell="{} 2> /dev/full", silent=True),
    "both full": Attack(CHECK, shell="{} > /dev/full 2>&1", silent=True),
    "a reader that leaves": Attack(("show", "rope"), codes=(0, 2), shell="set -o pipefail; {} | true", silent=True),
    "a reader that leaves a list": Attack(
        ("list", "--presets"), codes=(0, 2), shell="set -o pipefail; {} | head -1", silent=True
    ),
    "a reader that reads one line of a check": Attack(CHECK, codes=(0, 2), shell="set -o pipefail; {} | head -1", silent=True),
    "golden data to a reader that leaves": Attack(
        (
            "golden", "sinusoidal", "--option", "layout=interleaved", "--option", "dim=64", "--positions", "0:64", "-o",
            "-", "--format", "json",
        ),
        codes=(0, 2),
        shell="set -o pipefail; {} | true",
        silent=True,
    ),
    "golden data to a full device": Attack((*GOLDEN, "-o", "-", "--format", "npz"), shell="{} > /dev/full"),
    "golden data to a closed stream": Attack((*GOLDEN, "-o", "-", "--format", "npz"), codes=(0, 2), before=close(1)),
    "no room for a report": Attack((*CHECK, "--json", "out.json"), before=limit(resource.RLIMIT_FSIZE, 100)),
    "no room for golden data": Attack((*GOLDEN, "-o", "out.npz"), before=limit(resource.RLIMIT_FSIZE, 100)),
    "no room for a picture": Attack(("plot", "alibi", "--heads", "8", "-o", "a.png"), before=limit(resource.RLIMIT_FSIZE, 100)),
    "no room for the picture's numbers": Attack(
        ("plot", "alibi", "--heads", "8", "-o", "a.svg", "--save-data", "b.npz"), before=limit(resource.RLIMIT_FSIZE, 100)
    ),
    "no room for every picture": Attack(("plot", "alibi", "--kind", "all"), before=limit(resource.RLIMIT_FSIZE, 30_000)),
    "no room for an adapter": Attack(("adapter", "new", "mine"), before=limit(resource.RLIMIT_FSIZE, 100)),
    "no room for anything": Attack(
        (*CHECK, "--json", "out.json"), codes=(0, 1, 2), before=limit(resource.RLIMIT_FSIZE, 0), silent=True
    ),
    "few descriptors": Attack(CHECK, codes=(0, 1, 2), before=limit(resource.RLIMIT_NOFILE, 16)),
    "few seconds of CPU": Attack(
        ("vectors", "verify"), codes=(-signal.SIGXCPU, -signal.SIGKILL, 2), before=limit(resource.RLIMIT_CPU, 2)
    ),
    "little memory": Attack(CHECK, codes=(0, 1, 2), before=limit(resource.RLIMIT_DATA, 60 << 20)),
    "a small stack": Attack(CHECK, codes=(0, 1, 2), before=limit(resource.RLIMIT_STACK, 256 << 10)),
    "a folder that is gone": Attack(
        ("check", "posref", "--op", "alibi_slopes", "--tier", "smoke"),
        codes=(0, 2),
        shell="mkdir gone; cd gone; rmdir ../gone; {}",
    ),
    "a folder that is gone, and a file in it": Attack(
        (*CHECK, "--json", "out.json"), shell="mkdir gone; cd gone; rmdir ../gone; {}"
    ),
    "golden in a folder that is gone": Attack((*GOLDEN, "-o", "out.npz"), shell="mkdir gone; cd gone; rmdir ../gone; {}"),
    "show in a folder that is gone": Attack(("show", "rope"), codes=(0, 2), shell="mkdir gone; cd gone; rmdir ../gone; {}"),
    "no devices, where they can be taken away": Attack(
        CHECK,
        codes=KEEP,
        shell="""unshare -m true || exec {0}; unshare -m bash -c 'mount -t tmpfs -o ro none /dev; exec "$0" "$@"' {0}""",
    ),
    "signals ignored": Attack(CHECK, codes=KEEP, shell="trap '' INT TERM HUP PIPE; {}"),
    "a child that is not reaped": Attack(CHECK, codes=KEEP, before=lambda _: signal.signal(signal.SIGCHLD, signal.SIG_IGN)),
    "signals blocked": Attack(
        CHECK,
        codes=KEEP,
        before=lambda _: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}),
    ),
    "an alarm": Attack(CHECK, codes=(0, 2, -signal.SIGALRM), before=lambda _: signal.alarm(1)),
    "no file may be read by others": Attack(
        (*CHECK, "--json", "o.json"), codes=KEEP, before=lambda _: os.umask(0o777), created=("o.json",)
    ),
}  # fmt: skip
ATTACKS = {**OUTPUTS, **INPUTS, **NUMBERS, **FILES, **SURROUNDINGS}


# ---- one attack --------------------------------------------------------------------------------------------------------------
def contents(folder: Path) -> dict[str, str]:
    """Return what lies in a folder by its paths: of files the hash, of others the kind."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name, state = str(path.relative_to(folder)), path.lstat()
        if path.is_symlink():
            found[name] = f"link {os.readlink(path)}"
        elif stat.S_ISREG(state.st_mode):
            big = state.st_size > 1 << 28
            found[name] = f"{state.st_size}" if big else hashlib.sha256(path.read_bytes()).hexdigest()
        elif not path.is_dir():
            found[name] = oct(stat.S_IFMT(state.st_mode))
        elif not any(path.iterdir()):
            found[name] = "an empty folder"
    return found


def run(attack: Attack, folder: Path) -> list[str]:
    """Run an attack in a folder, and return what is wrong with how it ends."""
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(RIGHT.replace("alibi_slopes", "learned as alibi_slopes"))
    attack.prepare(folder)
    before = contents(folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    for name, value in attack.environment.items():
        environment.pop(name, None)
        environment |= {} if value is None else {name: value}
    command: list[str | bytes] = [sys.executable, "-m", "posref", *attack.arguments]
    if attack.shell:
        command = ["bash", "-c", attack.shell.format('"$0" "$@"'), *command]
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            preexec_fn=lambda: attack.before(folder),
        )  # fmt: skip
        state, used = _waited(process, began)
        said.seek(0)
        output = said.read(1 << 20).decode(errors="replace")
    after = contents(folder)
    code = os.waitstatus_to_exitcode(state)
    bad = [] if code in attack.codes else [f"exit code {code}, not {attack.codes}: {output[-400:]}"]
    bad += [f"a traceback: {output[-600:]}"] if "Traceback" in output else []
    bad += [f"a fault: {output[-400:]}"] if "this is a fault of posref" in output else []
    bad += ["it says nothing"] if code == 2 and not output.strip() and not attack.silent else []
    bad += [f"{name} is lost or changed" for name, value in before.items() if after.get(name) != value]
    new = [n for n in after if n not in before and not n.startswith(tuple(attack.created) or ("\0",))]
    bad += [f"{sorted(new)[:4]} are new"] if new else []
    seconds, size = used.ru_utime + used.ru_stime, used.ru_maxrss << 10
    bad += [f"{seconds:.1f} s of CPU"] if seconds > SECONDS else []
    bad += [f"{size >> 20} MiB of memory"] if size > BYTES else []
    return bad


def _waited(process: subprocess.Popen[bytes], began: float) -> tuple[int, resource.struct_rusage]:
    """Return how a process ended, and what it and its children used."""
    while True:
        pid, state, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(state)
            return state, used
        if time.monotonic() - began > PATIENCE:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.02)


if __name__ == "__main__":
    wrong = 0
    words = sys.argv[1:] or [""]
    chosen = {n: a for n, a in ATTACKS.items() if any(w[1:] == n if w.startswith("=") else w in n for w in words)}
    for name, attack in chosen.items():
        with tempfile.TemporaryDirectory() as place:
            bad = run(attack, Path(place).resolve())
        wrong += bool(bad)
        if bad:
            print(f"{name!r}: {bad}", flush=True)
    print(f"{len(chosen)} attacks, {wrong} end badly")
    sys.exit(bool(wrong))

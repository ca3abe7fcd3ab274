"""Files and numbers that users give: whatever they are, they are used or refused in a sentence, soon and in little memory."""

import io
import itertools
import json
import os
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from sampling import few

import posref
from posref.conformance import check
from posref.conformance.errors import TargetError, Unsupported
from posref.conformance.proof import golden_data

ROOT = Path(__file__).parents[1]
GOLDEN = ("golden", "learned", "--positions", "0,1")


def refused(*arguments: object) -> str:
    """Return the sentence with which a command refuses what it was given."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    return done.output


# ---- golden --input --------------------------------------------------------------------------------------------------------
def safetensors(header: Any, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def test_a_bfloat16_file_is_read(tmp_path: Path) -> None:
    wide = np.asarray([[1.5, -2.0], [0.25, 3.0]], dtype=np.float32)
    narrow = (wide.view(np.uint32) >> 16).astype("<u2").tobytes()
    head = {"table": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}
    (tmp_path / "mine.safetensors").write_bytes(safetensors(head, narrow))
    done = run(*GOLDEN, "--input", tmp_path / "mine.safetensors", "-o", tmp_path / "out.npz")
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "out.npz") as found:
        assert np.array_equal(found["in/table"], wide)
        assert np.array_equal(found["out/out"], wide)


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header(text: str) -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


def zipped(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def lying(data: bytes) -> bytes:
    """Return a zip file whose entry says that it is as large as a disk."""
    return data.replace(struct.pack("<I", len(npy(np.ones(3)))), struct.pack("<I", 0xFFFFFFF0))


BAD: dict[str, tuple[str, bytes | Callable[[], bytes]]] = {
    "empty": (".npz", b""),
    "not a zip": (".npz", b"PK\x03\x04" + b"x" * 100),
    "a zip of text": (".npz", zipped(table=b"text")),
    "a lying zip": (".npz", lying(zipped(table=npy(np.ones(3))))),
    "a bomb": (".npz", lambda: zipped(table=bytes(3 << 27))),
    "objects": (".npy", npy(np.asarray([{}], dtype=object), allow_pickle=True)),
    "words": (".npy", npy(np.asarray(["a"]))),
    "complex": (".npy", npy(np.ones(2, dtype=complex))),
    "dates": (".npy", npy(np.asarray(["2020-01-01"], dtype="datetime64[D]"))),
    "records": (".npy", npy(np.zeros(2, dtype=[("a", int)]))),
    "a header without data": (".npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }")),
    "no header": (".npy", b"\x93NUMPY\x01\x00"),
    "a header of code": (".npy", header("__import__('os').abort()")),
    "many axes": (".npy", npy(np.ones((1,) * 20))),
    "no length": (".safetensors", b"abc"),
    "a long length": (".safetensors", struct.pack("<Q", 2**63) + b"{}"),
    "no JSON": (".safetensors", struct.pack("<Q", 4) + b"[[[["),
    "deep JSON": (".safetensors", struct.pack("<Q", 100000) + b"[" * 100000),
    "another dtype": (".safetensors", safetensors({"table": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1")),
    "a shape without data": (
        ".safetensors",
        safetensors({"table": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 0]}}),
    ),
    "another ending": (".txt", b"1 2 3"),
}


@few(3, "name", BAD)
def test_an_input_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    ending, data = BAD[name]
    path = tmp_path / f"bad{ending}"
    path.write_bytes(data() if callable(data) else data)
    assert str(path) in refused(*GOLDEN, "--input", path, "-o", tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()


# ---- files that are none ---------------------------------------------------------------------------------------------------
PLACES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "a loop": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe behind a link": lambda path: (os.mkfifo(f"{path}.pipe"), path.symlink_to(f"{path}.pipe")),
}
READERS: dict[str, tuple[str, ...]] = {
    "x.npz": (*GOLDEN, "-o", "{}/out.npz", "--input"),
    "x.safetensors": (*GOLDEN, "-o", "{}/out.npz", "--input"),
    "config.json": ("golden", "rope", "--positions", "0", "--shape", "1,4", "-o", "{}/out.npz", "--config"),
    "model.json": ("check", "posref", "--for"),
    "model.gguf": ("golden", "rope", "--positions", "0", "--shape", "1,4", "-o", "{}/out.npz", "--gguf"),
    "report.json": ("report",),
    "scope.json": ("check", "posref", "--op", "alibi_slopes", "--require"),
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_by_name(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    PLACES[kind](path)
    assert name in refused(*(a.format(tmp_path) for a in READERS[name]), path)


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    """Caches of models consist of links."""
    np.savez(tmp_path / "blob", table=np.ones((2, 2)))
    (tmp_path / "mine.npz").symlink_to("blob.npz")
    assert run(*GOLDEN, "--input", tmp_path / "mine.npz", "-o", tmp_path / "out.npz").exit_code == 0


CONFIGS = {
    "a string": '"config.json"',
    "a list": "[1]",
    "deep": '{"a":' + "[" * 5000 + "]" * 5000 + "}",
    "not JSON": "{",
    "twice": '{"rope_theta": 1, "rope_theta": 2}',
    "bytes": "\xff\xfe",
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("reader", ["config.json", "model.json", "show"])
def test_a_config_is_an_object(reader: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(CONFIGS[name].encode("latin-1"))
    assert "config.json" in refused(*(a.format(tmp_path) for a in READERS.get(reader, (reader,))), path)


def test_a_config_may_hold_infinity_and_large_numbers(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "rope_theta": 10000.0}
    config |= {"a": float("inf"), "b": 10**30}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = run(*(a.format(tmp_path) for a in READERS["config.json"]), tmp_path / "config.json")
    assert done.exit_code == 0, done.output


def test_a_dict_that_contains_itself_is_refused() -> None:
    config: dict[str, Any] = {"model_type": "llama"}
    config |= {"a": config, "b": [config, config]}
    with pytest.raises(ValueError, match="rope_from_config: config must be nested at most 32 deep"):
        posref.rope_from_config(config)


def gguf(tensors: int, pairs: int, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + rest


@few(3,
    "data",
    [
        gguf(2**40, 0), gguf(0, 2**40), gguf(2**63, 2**63), gguf(0, 1, struct.pack("<Q", 2**62)),
        gguf(0, 1, struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 8, 2**50)),
        gguf(0, 1, struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 9, 1)),
        gguf(0, 5000, (struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 0, 4096) + bytes(4096)) * 5000),
        gguf(0, 1), b"GGUF", b"",
    ],
)  # fmt: skip
def test_what_a_gguf_file_says_that_it_has_is_bounded(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    assert "not a GGUF file that can be read" in refused(
        *(a.format(tmp_path) for a in READERS["model.gguf"]), tmp_path / "model.gguf"
    )


# ---- numbers ---------------------------------------------------------------------------------------------------------------
ROPE = ("golden", "rope", "--option", "layout=half", "--option", "base=10000")
NUMBERS = {
    "nan": ("--positions", "nan"), "inf": ("--positions", "0,-inf"), "large": ("--positions", str(2**63)),
    "long": ("--positions", f"0:{10**30}"), "longer": ("--positions", f"0:{10**12}"), "square": ("--positions", "²"),
    "parts": ("--positions", "0:9000000," * 3 + "1"), "step 0": ("--positions", "0:9:0"), "word": ("--positions", "a"),
    "empty": ("--positions", ""), "digits": ("--positions", "9" * 5000), "four": ("--positions", "1:2:3:4"),
    "shape square": ("--positions", "0", "--shape", "²,8"), "shape 0": ("--positions", "0", "--shape", f"0,{10**30}"),
    "shape long": ("--positions", "0", "--shape", f"1,{10**12}"), "shape digits": ("--positions", "0", "--shape", "9" * 5000),
    "axes": ("--positions", "0", "--shape", ",".join("1" * 200)), "negative": ("--positions", "0", "--shape=-1,8"),
    "shapes": ("--positions", "0", "--shape", "3000000,4", "--shape", "x=3000000,4", "--shape", "positions=9000000"),
    "deep": ("--positions", "0", "--shape", "1,8", "--option", "scaling=" + "[" * 5000),
    "minutes": ("--positions", "0", "--shape", "1,8", "--minutes", "nan"),
    "minutes inf": ("--positions", "0", "--shape", "1,8", "--minutes", "inf"),
}  # fmt: skip


@few(4, "name", NUMBERS)
def test_numbers_that_cannot_be_are_a_sentence(name: str, tmp_path: Path) -> None:
    said = refused(*ROPE, *NUMBERS[name], "-o", tmp_path / "out.npz")
    assert len(said) < 4200
    assert list(tmp_path.iterdir()) == []


@few(
    1, "arguments",
    [
        ("golden", "alibi_slopes", "--option", f"heads={2**40}"), ("golden", "alibi_slopes", "--option", "heads=99999999"),
        ("golden", "alibi", "--positions", "0:9000", "--option", "heads=64", "--option", "form=causal"),
        ("golden", "sinusoidal", "--positions", "0:90000", "--option", "dim=90000", "--option", "layout=sin_cos"),
        ("plot", "sinusoidal", "--dim", "1000000000"), ("plot", "rope", "--base", "nan"),
        ("plot", "alibi", "--option", "heads=1000000000"),
        ("check", "posref", "--memory", "nan"), ("check", "posref", "--memory", "inf"), ("check", "posref", "--timeout", "nan"),
        ("check", "posref", "--trig", "nan"), ("fuzz", "posref", "--seconds", "inf"),
    ],
)  # fmt: skip
def test_totals_are_refused_before_the_work(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """In less memory than what was asked for takes; the limit would end the process."""
    command = [sys.executable, "-m", "posref", *arguments, *(("-o", "out.npz") if arguments[0] == "golden" else ())]
    limit = 3 << 29

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, preexec_fn=limited,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "fault" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_every_form_are_read() -> None:
    read = golden_data._numbers
    assert read("--positions", "0,8191, 131071").tolist() == [0, 8191, 131071]
    assert read("--positions", "0:10:3,-5").tolist() == [0, 3, 6, 9, -5]
    assert read("--positions", "0:3,0.5").tolist() == [0.0, 1.0, 2.0, 0.5]
    assert read("--positions", f"{2**63 - 1},{-(2**63)}").tolist() == [2**63 - 1, -(2**63)]
    assert read("--positions", "5:5").tolist() == []
    assert read("--positions", "9:0:-4").dtype == np.int64


# ---- what a target states, and reports --------------------------------------------------------------------------------------
class Endless:
    dtypes = itertools.repeat("float32")
    learned = staticmethod(posref.learned)


def test_a_list_without_an_end_is_refused() -> None:
    with pytest.raises(TargetError, match="dtypes must have at most 1000 entries"):
        check(Endless(), op="learned")


class Unspeakable(Unsupported):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]  # noqa: PLE0307


class Mute:
    @staticmethod
    def learned(*_: Any, **__: Any) -> Any:
        raise Unspeakable


def test_an_exception_without_a_text_is_a_verdict() -> None:
    report = check(Mute(), op="learned")
    assert {case.verdict for case in report.operations[0].cases} <= {"unsupported", "rejected"}
    assert not report.conformant


@few(1, "change", [{"conformant": True}, {"verdict": "conformant"}, {"counts": {"pass": 99}}])
def test_a_report_that_contradicts_itself_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    document = check(Mute(), op="learned").to_json()
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    assert run("report", path).exit_code == 0
    path.write_text(json.dumps(document | change))
    assert "contradicts itself" in refused("report", path)

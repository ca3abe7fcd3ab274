"""`posref golden`: proved data of a call of one's own, read back without posref, and misuse that is refused in a sentence."""

import json
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run as run_posref
from safetensors import safe_open

import posref
from posref.conformance import check, golden, golden_suite
from posref.conformance.errors import TargetError
from posref.conformance.proof.build import verify

ROPE = ("rope", "--preset", "llama-3.1-8b", "--positions", "0,8191,131071", "--shape", "2,3,128")


def run(*arguments: str | Path) -> str:
    done = run_posref("golden", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str | Path) -> str:
    done = run_posref("golden", *arguments)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    return " ".join(done.output.split())


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arrays and what they are, by libraries that do not know posref."""
    if path.suffix == ".npz":
        with np.load(path) as data:
            arrays = {n: data[n] for n in data.files}
        return arrays, json.loads(str(arrays.pop("about")))
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            return {n: file.get_tensor(n) for n in file.keys()}, json.loads(file.metadata()["about"])  # noqa: SIM118
    found = json.loads(path.read_text(encoding="utf-8"))
    about = found.pop("about")
    return {n: np.asarray(x) for n, x in found.items()}, about


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".json"])
def test_the_file_has_true_values_and_tolerances(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"out{suffix}"
    assert run(*ROPE, "-o", path) == f"wrote {path}: rope, proved by two witnesses\n"
    arrays, about = read(path)
    options = dict(posref.presets["llama-3.1-8b"].rope or {})
    assert arrays["in/x"].shape == (2, 3, 128)
    assert arrays["in/positions"].tolist() == [0, 8191, 131071]
    true = golden("rope", {"x": arrays["in/x"], "positions": arrays["in/positions"]}, options)["out"]
    assert np.array_equal(arrays["out/out"], true)
    assert about["options"]["scaling"]["type"] == "Llama3"
    assert (about["witnesses"], about["dtypes"]) == (2, ["float64", "float32", "bfloat16", "float16"])
    x, positions = arrays["in/x"].astype(np.float32), arrays["in/positions"]
    off = np.abs(posref.rope(x, positions, **options) - true)
    assert np.all(off <= arrays["allowed/float32/out"])
    assert np.any(np.abs(posref.rope(x, positions + 1, **options) - true) > arrays["allowed/bfloat16/out"])
    assert not list(tmp_path.glob("*.part"))


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(tmp_path: Path) -> None:
    paths = [tmp_path / name / "a.json" for name in ("one", "two", "three")]
    for path, seed in zip(paths, "001", strict=True):
        path.parent.mkdir()
        run(*ROPE, "--seed", seed, "-o", path)
    one, two, three = (read(path)[0] for path in paths)
    assert np.array_equal(one["in/x"], two["in/x"])
    assert not np.array_equal(one["in/x"], three["in/x"])


@pytest.mark.thorough
def test_a_folder_is_a_suite_that_can_be_checked_and_verified(tmp_path: Path) -> None:
    scaling = '{"type": "YaRN", "factor": 4, "original_length": 64}'
    run("rope", "--option", "layout=half", "--option", "base=500", "--option", f"scaling={scaling}", "--positions", "0:9:3",
        "--shape", "3,8", "-o", tmp_path / "suite")  # fmt: skip
    assert verify(tmp_path / "suite", jobs=1) == []
    report = check("posref", suite=tmp_path / "suite", op="rope")
    assert report.counts["pass"] > 0
    assert set(report.counts) == {"pass"}
    (failing, *_) = check(SimpleNamespace(rope=lambda x, positions, **_: x), suite=tmp_path / "suite").failures
    assert f"--suite {tmp_path / 'suite'} --case {failing.id}" in failing.reproduce


def test_arrays_come_from_files_and_by_hand(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", q=np.ones((2, 3, 8), dtype=np.float32), k=np.full((2, 5, 8), 0.5), v=np.ones((2, 5, 8)))
    run("attention", "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    arrays, _ = read(tmp_path / "out.npz")
    assert np.array_equal(arrays["out/out"], np.ones((2, 3, 8)))
    run("alibi", "--option", "heads=2", "--option", "form=distance", "--positions", "0:3", "--array", "k_positions=0,5",
        "-o", tmp_path / "alibi.npz")  # fmt: skip
    assert read(tmp_path / "alibi.npz")[0]["out/out"].shape == (2, 3, 2)


QWEN2_VL = {
    "model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 2, "rope_theta": 1e6,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {"embed_dim": 64, "num_heads": 2, "hidden_size": 256},
}  # fmt: skip


def test_options_come_from_the_component_that_has_the_operation(tmp_path: Path) -> None:
    """The vision tower has the base of the vision tower, not that of the text."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN2_VL), encoding="utf-8")
    places = tmp_path / "places.npz"
    np.savez(places, positions=np.asarray([[0, 0, 1, 3], [2, 5, 0, 1]]))
    common = ("--config", tmp_path / "config.json", "--input", places, "--shape", "4,32", "-o", tmp_path / "out.json")
    run("axial_rope", *common)
    options = read(tmp_path / "out.json")[1]["options"]
    assert (options["base"], options["dims"]) == (1e4, [16, 16])
    run("axial_rope", "--component", "vision", *common)
    assert read(tmp_path / "out.json")[1]["options"] == options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rope", "--positions", "3", "--shape", "1,16"), "has rope: vision has axial_rope; text has mrope."),
        (("alibi",), "has alibi: vision has axial_rope; text has mrope."),
        (("axial_rope", "--component", "text"), "text of"),
        (("axial_rope", "--component", "audio"), "--component must be one of 'vision', 'text'; got 'audio'."),
    ],
)
def test_an_operation_that_no_component_has_is_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN2_VL), encoding="utf-8")
    assert message in refused(*arguments, "--config", tmp_path / "config.json", "-o", tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_a_layer_is_named_where_layers_differ(tmp_path: Path) -> None:
    gemma = {"model_type": "gemma3_text", "num_hidden_layers": 6, "head_dim": 16, "rope_theta": 1e6}
    (tmp_path / "config.json").write_text(json.dumps(gemma), encoding="utf-8")
    common = ("--config", tmp_path / "config.json", "--positions", "3", "--shape", "1,16", "-o", tmp_path / "out.json")
    assert "--layer must be given, since the layers of 'text' differ" in refused("rope", *common)
    for layer, base in ((0, 1e4), (5, 1e6)):
        run("rope", "--layer", layer, *common)
        assert read(tmp_path / "out.json")[1]["options"]["base"] == base


def test_options_come_from_a_configuration(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 5e5, "head_dim": 16}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    run("rope", "--config", tmp_path / "config.json", "--positions", "3", "--shape", "1,16", "-o", tmp_path / "out.json")
    assert read(tmp_path / "out.json")[1]["options"]["base"] == 5e5


def gguf(metadata: dict[str, Any], **tensors: list[float]) -> bytes:
    """Return a GGUF file with these pairs and float32 tensors, as its specification says."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def value(v: Any) -> bytes:
        if isinstance(v, str):
            return struct.pack("<I", 8) + text(v)
        if isinstance(v, list):
            return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v))
        return struct.pack("<If", 6, v) if isinstance(v, float) else struct.pack("<II", 4, v)

    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(k) + value(v) for k, v in metadata.items())
    data = b""
    for name, numbers in tensors.items():
        head += text(name.replace("__", ".")) + struct.pack("<IQIQ", 1, len(numbers), 0, len(data))
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    return head + bytes(-len(head) % 32) + data


LLAMA = {"general.architecture": "llama", "tokenizer.ggml.tokens": ["<s>"] * 5000, "llama.context_length": 131072,
         "llama.embedding_length": 64, "llama.attention.head_count": 4, "llama.rope.freq_base": 5e5}  # fmt: skip


def test_options_come_from_a_gguf_file_with_its_divisors(tmp_path: Path) -> None:
    divisors = [1.0, 1.0, 1.0, 1.5, 2.0, 8.0, 8.0, 8.0]
    (tmp_path / "model.gguf").write_bytes(gguf(LLAMA, rope_freqs__weight=divisors))
    asked = ("--gguf", tmp_path / "model.gguf", "--positions", "7", "--shape", "1,16", "--option", "length=16")
    run("rope", *asked, "-o", tmp_path / "out.json")
    arrays, about = read(tmp_path / "out.json")
    options = about["options"]
    assert (options["base"], options["layout"], options["rotary_dim"]) == (5e5, "interleaved", 16)
    assert options["scaling"]["short_factor"] == options["scaling"]["long_factor"] == divisors
    read_by_hand = posref.rope_from_gguf(LLAMA, rope_factors={"rope_freqs.weight": divisors})
    true = golden("rope", {"x": arrays["in/x"], "positions": arrays["in/positions"]}, {**read_by_hand, "length": 16})["out"]
    assert np.array_equal(arrays["out/out"], true)


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"PK\3\4", (), "not a GGUF file that can be read: it begins with b'PK.*not GGUF"),
        (b"GGUF\0\0\0\3" + bytes(16), (), "it is big-endian; little-endian files"),
        (b"GGUF\1\0\0\0" + bytes(16), (), "it is of version 1; little-endian files of versions 2 and 3 can"),
        (gguf(LLAMA)[:200], (), "it ends within its header"),
        (gguf(LLAMA, rope_freqs__weight=[1.0] * 8)[:-4], (), "rope_freqs.weight' is .* or lies outside the file"),
        (gguf({"general.architecture": "x", "x.attention.key_length": 16}), (), r"Give --option layout=, one of"),
        (gguf(LLAMA), ("--layer-type", "full_attention"), "--layer-type must be None, since all layers"),
        (gguf(LLAMA), ("--preset", "llama-3.1-8b"), "options come from one model; got --preset and --gguf"),
    ],
)
def test_a_bad_gguf_file_is_refused_in_a_sentence(
    data: bytes, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    asked = ("rope", "--gguf", tmp_path / "model.gguf", *arguments, "--positions", "7", "--shape", "1,16")
    text = refused(*asked, "-o", tmp_path / "x.npz")
    assert re.search(message, text), text


def test_stages_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    run(*ROPE, "-o", tmp_path / "without.json")
    assert not [n for n in read(tmp_path / "without.json")[0] if n.startswith("mid/")]
    run(*ROPE, "--stages", "-o", tmp_path / "with.npz")
    arrays, about = read(tmp_path / "with.npz")
    scaling = posref.presets["llama-3.1-8b"].rope["scaling"]
    frequencies = posref.rope_frequencies(128, base=about["options"]["base"], scaling=scaling)[0]
    # the proved values against the reference in float64: a power and the blend of Llama 3
    assert np.allclose(arrays["mid/inv_freq"], frequencies, rtol=4 * 2**-52, atol=0)
    assert arrays["mid/cos"].shape == (3, 64)


@pytest.mark.thorough(dear=True)
def test_large_calls_are_proved_in_several_processes(tmp_path: Path) -> None:
    big = ("rope", "--preset", "llama-3.1-8b", "--positions", "0:64", "--shape", "20,64,128")
    for jobs in "12":
        run(*big, "--jobs", jobs, "-o", tmp_path / f"{jobs}.npz")
    (one, _), (two, _) = (read(tmp_path / f"{jobs}.npz") for jobs in "12")
    assert all(np.array_equal(one[n], two[n]) for n in {*one, *two})
    run(*big, "-o", tmp_path / "suite")
    assert set(check("posref", suite=tmp_path / "suite", op="rope").counts) == {"pass"}


def test_positions_come_from_a_prompt(tmp_path: Path) -> None:
    prompt = "text 2, image 2x3, video 2x1x2 every 1.5, text 1"
    run("mrope", "--preset", "qwen2-vl-7b", "--prompt", prompt, "--shape", "13,128", "-o", tmp_path / "out.npz")
    segments = [("text", 2), ("image", 2, 3), ("video", 2, 1, 2, 1.5), ("text", 1)]
    assert np.array_equal(read(tmp_path / "out.npz")[0]["in/positions"], posref.positions.multimodal(segments, after="max"))
    long = ("mrope", "--preset", "qwen2-vl-7b", "--prompt", "video 9x1x2 every 1, text 1", "--shape", "19,128")
    run(*long, "--after", "spatial", "-o", tmp_path / "spatial.npz")
    assert read(tmp_path / "spatial.npz")[0]["in/positions"][:, -1].tolist() == [2, 2, 2]


MROPE = ("mrope", "--preset", "qwen2-vl-7b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rope",), "rope needs x, positions, layout, base; give --shape x=.* and --positions and --option layout="),
        (("ropes",), "NAME must be the name of an operation"),
        (
            ("learned", "--array", "positions=0,9", "--shape", "table=5,3"),
            "learned does not take this call: learned: positions must be rows",
        ),
        (
            ("alibi", "--option", "num_heads=8"),
            "--option must be one of heads, form, max_bias, root, first, count for alibi; got 'num_heads'. Did you mean heads",
        ),
        (("rope", "--preset", "phi-3.5-mini", "--positions", "1", "--shape", "1,96"), "LongRoPE .* --option length=TOKENS"),
        ((*ROPE, "--format", "json"), "-o must end in .json with --format json; got"),
        ((*ROPE, "--format", "suite"), "-o must end in nothing that a file ends in with --format suite"),
        ((*ROPE[:3], "--positions", "x", "--shape", "2,128"), "--positions must be numbers in commas, or ranges"),
        ((*ROPE[:3], "--positions", "1", "--shape", "2,a"), "--shape must be sizes in commas"),
        (("rope", "--preset", "llama"), "presets: name must be a preset's name; got 'llama'. See"),
        ((*ROPE, "--option", "bse=3"), "--option must be one of layout, base, .*; got 'bse'"),
        ((*ROPE, "--option", "base"), "--option must be NAME=VALUE; got 'base'"),
        ((*ROPE, "--option", "layout=halves"), "rope does not take this call: rope: layout must be one of"),
        ((*ROPE, "--option", 'scaling={"type":"YaRN"}'), "--option scaling: YaRN: a call must have factor and original_length"),
        ((*ROPE[:5], "--shape", "2,128"), "positions must broadcast to the leading axes of x"),
        (
            (*ROPE[:5], "--shape", "64,64,3,128", "--minutes", "0.001"),
            "rope of 1572864 values would take about .* minutes and .* GiB of memory; --minutes allows 0.001. Ask for fewer",
        ),
        ((*ROPE[:5], "--shape", "9999,9999,3,128"), "--shape must have at most 16777216 numbers; got 38392320384"),
        (
            ("alibi", "--option", "heads=8", "--option", "form=distance", "--positions", "0:1000000"),
            "alibi of 8000000000000 values would take about .* GiB of memory; .* GiB may be used",
        ),
        ((*ROPE, "--array", "y=1"), "arrays must be among x, positions for rope; got y"),
        (("t5_buckets", "--shape", "3"), "--shape is of arrays of reals; t5_buckets has none"),
        ((*ROPE, "--prompt", "text 5"), "--prompt gives positions along time, height and width; rope takes none"),
        (
            ("alibi_slopes", "--option", "heads=2", "--stages"),
            "--stages needs an operation with stages .*alibi_slopes has none",
        ),
        ((*MROPE, "--prompt", "text5"), "--prompt must be text N, image HxW and video .* got 'text5'"),
        ((*MROPE, "--prompt", "video 9x1x2 every 1, text 1"), "--after must be max or spatial here: a video lasts longer"),
        ((*MROPE, "--prompt", f"image {10**9}x{10**9}"), "--prompt must have at most 16777216 tokens; got 10{18}"),
        ((*MROPE, "--prompt", "text 5", "--positions", "0:5"), "--prompt or --positions; got both"),
        ((*MROPE, "--after", "max"), "got no --prompt"),
        (("rope", "--grid", "4x6"), "--grid gives each cell a position on every axis; rope does not take such positions"),
        ((*MROPE, "--grid", "4,6"), "--grid must be sizes of two or more axes, as 4x6; got '4,6'"),
        ((*MROPE, "--grid", "4x6", "--positions", "0:3"), "positions come from --grid, --prompt or --positions"),
        ((*MROPE, "--shape", "3,128"), "mrope needs positions; give --prompt, --grid or --input"),
        ((*ROPE, "--input", "none.npz"), "none.npz: cannot be read"),
        ((*ROPE, "--input", "pyproject.toml"), "--input must be .npz, .npy or .safetensors"),
        ((*ROPE, "-o", "a.pt"), "-o must end in .npz, .safetensors, .json, or be a folder; got"),
    ],
)
def test_misuse_is_refused_in_a_sentence(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    text = refused(arguments[0], "-o", tmp_path / "x.npz", *arguments[1:])
    assert re.search(message, text), text
    assert not list(tmp_path.iterdir())


def test_one_witness_is_said_and_is_no_proof(tmp_path: Path) -> None:
    assert "one witness" in run(*ROPE, "--witnesses", "1", "-o", tmp_path / "one.npz")
    run(*ROPE, "-o", tmp_path / "two.npz")
    (one, about), (two, _) = read(tmp_path / "one.npz"), read(tmp_path / "two.npz")
    assert about["witnesses"] == 1
    assert all(np.array_equal(one[name], two[name]) for name in two)
    run(*ROPE, "--witnesses", "1", "-o", tmp_path / "suite")
    done = run_posref("check", "posref", "--suite", tmp_path / "suite")
    assert done.exit_code == 2
    assert "values need two witnesses to judge by; group rope/golden of" in done.output


def test_calls_of_ones_own_become_a_suite(tmp_path: Path) -> None:
    x, positions = np.ones((2, 3, 8), dtype=np.float32), np.asarray([0, 5, 70_000])
    options = {"layout": "half", "base": 10000.0}
    calls = [
        ("rope", {"x": x, "positions": positions}, options),
        ("rope", {"x": x[:1], "positions": positions}, options | {"base": 500.0}),
        ("alibi_slopes", {}, {"heads": 12}),
    ]
    assert golden_suite(calls, tmp_path / "suite") == tmp_path / "suite"
    report = check("posref", suite=tmp_path / "suite")
    assert report.verdict == "passed"
    assert report.part.startswith(f"custom suite {tmp_path / 'suite'}, sha256 ")
    assert {case.id for operation in report.operations for case in operation.cases} == {
        "rope/golden/call-1", "rope/golden/call-2", "alibi_slopes/golden/call-1",
    }  # fmt: skip
    for wrong, text in (
        (("ropes", {}, {}), "op must be the name of an operation; got"),
        (("rope", {"x": x, "positions": positions}, {"layout": "halves", "base": 1e4}), "does not take call 1: rope: layout"),
    ):
        with pytest.raises(TargetError, match=text):
            golden_suite([wrong], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_model_is_asked_by_its_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(LLAMA, rope_freqs__weight=[1.0, 1.0, 1.5, 2.0, 4.0, 8.0, 8.0, 8.0]))
    report = check("posref", model=str(path), op="rope", dtype="float32")
    assert report.exit_code == 0
    assert report.model == str(path)
    assert "heads of queries" in str(report.target["notes"])
    path.write_bytes(gguf(LLAMA)[:200])
    with pytest.raises(TargetError, match="it ends within its header"):
        check("posref", model=str(path))


@pytest.mark.thorough
def test_everything_that_the_layers_of_a_model_do(tmp_path: Path) -> None:
    """A suite with a case for each kind of layer, which posref passes; code with one base for all layers fails."""
    config = {"model_type": "gemma3_text", "num_hidden_layers": 6, "head_dim": 16, "sliding_window": 8}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert "text layer 5: rope, rope_frequencies" in " ".join(run("--model", tmp_path, "-o", tmp_path / "suite").split())
    report = check("posref", suite=tmp_path / "suite", dtype="float32")
    assert report.exit_code == 0
    asked = {case.id for operation in report.operations for case in operation.cases}
    assert {"rope/layers/layer-5", "norm_rope/layers/layer-0", "sliding_window/layers/text-mask"} <= asked

    def rope(x, positions, /, **options):
        return posref.rope(x, positions, **{**options, "base": 1e4})

    report = check(SimpleNamespace(rope=rope), suite=tmp_path / "suite", dtype="float32", experiments=0)
    assert [case.id for case in report.failures] == ["rope/layers/layer-5"]


def test_a_model_and_what_does_not_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "smollm3", "num_hidden_layers": 4}', encoding="utf-8")
    for arguments, text in (
        (("rope", "--model", tmp_path), "takes OP or --model DIR; got both"),
        ((), "takes OP or --model DIR; got neither"),
        (("--model", tmp_path, "--positions", "1"), "got --positions"),
        (("--model", tmp_path, "--layer", "3"), "layer 3 of .* does not rotate"),
        (("--model", tmp_path, "--component", "vision"), "component must be one of text"),
    ):
        assert re.search(text, refused(*arguments, "-o", tmp_path / "suite"))

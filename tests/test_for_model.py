"""A check for one model asks its own options, sizes and positions, and all of them must be answered."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from _pytest.monkeypatch import MonkeyPatch
from commands import run
from sampling import QUARTER, few, share

import posref
from posref.conformance import check
from posref.conformance.errors import TargetError
from posref.conformance.evidence.every import for_model, model_cases
from posref.conformance.reports import terminal
from posref.conformance.reports.document import verdict_text
from posref.conformance.suite.schemas import validate
from posref.models.model_types import table
from posref.presets import Sizes

LLAMA = "llama-3.1-8b"
CONFIG = {
    "model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2,
    "max_position_embeddings": 1000, "rope_theta": 20_000.0,
}  # fmt: skip


def frequencies(dim, base, scaling):
    """Return Llama 3's frequencies as its authors write them."""
    inv_freq = base ** -(np.arange(0, dim, 2) / dim)
    if scaling is None:
        return inv_freq
    if not isinstance(scaling, posref.scaling.Llama3):
        raise NotImplementedError(type(scaling).__name__)
    turns = scaling.original_length * inv_freq / (2 * np.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - kept) * inv_freq / scaling.factor + kept * inv_freq


def rope(x, positions, /, *, layout, base, scaling=None):
    """RoPE in halves."""
    if layout != "half":
        raise NotImplementedError(layout)
    angles = positions[..., None] * frequencies(x.shape[-1], base, scaling)
    first, second = np.split(x.astype(np.float64), 2, -1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


def clipped(x, positions, /, **options):
    """A table that ends at the original length."""
    return rope(x, np.minimum(positions, 8191), **options)


def first_row(x, positions, /, **options):
    """Row 0's positions for all rows."""
    return rope(x, positions[:1] if np.ndim(positions) > 1 else positions, **options)


def unscaled(x, positions, /, *, layout, base, scaling=None):
    """Frequencies that no scaling changes."""
    return rope(x, positions, layout=layout, base=base)


def in_half(x, positions, /, **options):
    """Positions held in half precision, where they are large."""
    narrow = positions.astype(np.float16 if np.max(positions, initial=0) < 60000 else np.float32).astype(np.float64)
    return rope(x, narrow, **options)


def own_alone(x, positions, /, *, layout, base, scaling=None):
    """A kernel compiled for one model."""
    if base != 500_000.0 or scaling != posref.presets[LLAMA].rope["scaling"]:
        raise NotImplementedError(base, scaling)
    return rope(x, positions, layout=layout, base=base, scaling=scaling)


def short(x, positions, /, **options):
    """What refuses the context beyond the original length."""
    if np.max(positions, initial=0) >= 8192:
        raise NotImplementedError(positions.shape)
    return rope(x, positions, **options)


@cache
def checked(function, model=LLAMA, **options):
    return check(SimpleNamespace(rope=function, __name__="mine"), model=model, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [rope, own_alone])
def test_what_computes_a_model_is_conformant_for_it(function) -> None:
    report = checked(function)
    assert report.exit_code == 0
    assert verdict_text(report.to_json()) == f"CONFORMANT for {LLAMA}"
    assert report.missing == ("rope_frequencies", "rope_table", "apply_rope", "rope_cos_sin")
    own = [case for case in report.operations[0].cases if model_cases.is_of_model(case.id)]
    assert [case.verdict for case in own] == ["pass"] * 7


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("function", [clipped, first_row, unscaled, in_half])
def test_what_a_model_would_notice_is_found(function) -> None:
    report = checked(function)
    assert report.exit_code == 1
    assert verdict_text(report.to_json()) == f"NOT CONFORMANT for {LLAMA}"
    assert any(model_cases.is_of_model(case.id) and case.verdict == "fail" for case in report.failures)


@pytest.mark.thorough
def test_a_call_that_is_refused_is_told() -> None:
    report = checked(short)
    assert report.exit_code == 1
    assert [text.split(":")[0] for text in report.unmet] == [f"rope refuses 3 of 7 calls of {LLAMA}"]


@pytest.mark.thorough(dear=True)
def test_a_failure_repeats(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def rope(x, positions, /, *, layout, base, scaling=None):\n    return x\n", encoding="utf-8")
    report = check(str(file), model=LLAMA)
    repeat = next(case.reproduce for case in report.failures if model_cases.is_of_model(case.id))
    assert repeat.startswith(f"posref check {file} --for {LLAMA} --case rope/model/")
    again = run(*repeat.split()[1:])
    assert again.exit_code == 1
    assert "only case rope/model/" in again.output


def test_a_configuration_gives_sizes(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    model = for_model.read(str(file))
    (kind,) = model.kinds
    assert (kind.sizes, kind.original, kind.longest) == (Sizes(8, 2, 64, 1000), 1000, 1000)
    assert kind.options == {"layout": "half", "base": 20_000.0, "rotary_dim": 64, "scaling": None}
    cases = {case.id: case for case in model_cases.cases(model, "rope")}
    assert np.shape(cases["rope/model/prompt"].inputs["x"]) == (2, 8, 257, 64)
    assert np.shape(cases["rope/model/prompt-keys"].inputs["x"]) == (2, 2, 257, 64)
    assert cases["rope/model/decode"].inputs["positions"].ravel().tolist() == [0, 1, 999]
    assert cases["rope/model/left-padding"].inputs["positions"][2, 0, 38:43].tolist() == [0, 0, 0, 1, 2]
    assert cases["rope/model/longest"].inputs["positions"].tolist() == [*range(936, 1000)]
    assert "rope/model/beyond-original" not in cases
    report = checked(rope, str(file))
    assert report.exit_code == 0
    assert report.model == str(file)


def test_layers_that_differ_are_named(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    config = {
        "model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "num_attention_heads": 4, "num_key_value_heads": 1,
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }  # fmt: skip
    file.write_text(json.dumps(config), encoding="utf-8")
    assert for_model.read(f"{file}:sliding_attention").kinds[0].options["base"] == 1e4
    assert for_model.read(f"{file}:full_attention").kinds[0].options["base"] == 1e6
    whole = for_model.read(str(file))
    assert [(kind.op, kind.options.get("base"), len(kind.layers)) for kind in whole.kinds] == [
        ("rope", 1e4, 22), ("rope", 1e6, 4), ("sliding_window", None, 22), ("norm_rope", None, 22), ("norm_rope", None, 4),
    ]  # fmt: skip
    with pytest.raises(TargetError, match="layer_type"):
        for_model.read(f"{file}:other")


GEMMA = {
    "model_type": "gemma3_text",
    "head_dim": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_hidden_layers": 6,
}


@pytest.fixture
def gemma(tmp_path: Path) -> str:
    """A file whose layer 5 has another base than layers 0 to 4."""
    path = tmp_path / "gemma.json"
    path.write_text(json.dumps(GEMMA), encoding="utf-8")
    return str(path)


@pytest.mark.thorough
def test_every_call_is_one_that_a_layer_makes(gemma: str) -> None:
    """Also where calls are wrong or refused: no experiment and no fresh call has other options or sizes."""
    calls = []

    def recorded(x, positions, /, **options):
        calls.append((options["base"], x.shape[-3:-2], x.shape[-1], np.max(positions) < 131072))
        if options["base"] == 1e6:
            raise NotImplementedError
        return rope(x, np.minimum(positions, 4000), layout=options["layout"], base=options["base"])

    report = check(SimpleNamespace(rope=recorded), model=gemma, dtype="float32", seed=5)
    assert report.exit_code == 1
    assert {*calls} == {(base, (heads,), 32, True) for base in (1e4, 1e6) for heads in (1, 2)}


@few(1, ("layer", "text"), [
    (5, "Text layer 5: these are the options of text layers 0-4 (base=10000.0)."),
    (None, "Text layers 0-4: these are the options of text layer 5 (base=1000000.0); text layer 5: these are the options of"),
], dear=True)  # fmt: skip
def test_other_layers_are_tried_as_explanations(gemma: str, layer: int | None, text: str) -> None:
    """Whether their layers are asked too, or one layer alone."""

    def of_others(x, positions, /, *, layout, base, scaling=None):
        return rope(x, positions, layout=layout, base=1e10 / base)

    report = check(SimpleNamespace(rope=of_others), model=gemma, layer=layer, op="rope", dtype="float32")
    assert str(report.operations[0].diagnosis["text"]).startswith(text)


def test_a_component_is_asked_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {"model_type": "deepseek_v32", "max_position_embeddings": 9000, "index_n_heads": 64, "index_head_dim": 128}
    path.write_text(json.dumps(config), encoding="utf-8")
    (indexer,) = for_model.read(str(path), component="indexer").kinds
    assert (indexer.sizes, indexer.lanes) == (Sizes(64, 1, 128, 9000), 64)
    with pytest.raises(TargetError, match="component must be one of text, "):
        for_model.read(str(path), component="vision")


def test_norms_of_queries_and_keys_are_asked(tmp_path: Path) -> None:
    """With the tables of their layers: of one head, or of all heads together, with a weight or with ones."""
    path = tmp_path / "config.json"
    sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64, "num_hidden_layers": 2}
    found = {}
    for model_type in ("qwen3", "olmo2", "nanochat", "llama"):
        path.write_text(json.dumps({"model_type": model_type, **sizes, "head_dim": 16}), encoding="utf-8")
        model = for_model.read(str(path))
        for op in [op for op in model.operations if "norm" in op]:
            cases = {case.id.split("/")[-1]: case for case in model_cases.cases(model, op)}
            keys, weight = cases["prompt-keys"].inputs["x"], cases["prompt-keys"].inputs["weight"]
            order = cases["prompt-keys"].params.get("precedence")
            found[model_type] = (op, order, np.shape(keys)[1:], np.unique(weight).tolist() == [1])
    assert found == {
        "qwen3": ("norm_rope", "norm_first", (2, 257, 16), False),
        "olmo2": ("rms_norm", None, (257, 32), False),
        "nanochat": ("norm_rope", "rope_first", (2, 257, 16), True),
    }


def test_heads_with_trailing_lanes_are_asked_whole(tmp_path: Path) -> None:
    """DeepSeek-V4 rotates the last 64 of 512 lanes, and the first ones are passed with them."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "deepseek_v4"}), encoding="utf-8")
    kinds = for_model.read(str(path)).kinds
    assert [kind.component for kind in kinds] == ["text main", "text compress"]
    assert {(kind.sizes.head_size, kind.lanes, kind.options["lanes"]) for kind in kinds} == {(512, 64, "trailing")}


def test_the_length_of_the_sequence_is_given_where_it_counts() -> None:
    model = for_model.read("phi-3.5-mini")
    lengths = {case.id.split("/")[-1]: case.params["length"] for case in model_cases.cases(model, "rope")}
    assert lengths["prompt"] == 257
    assert lengths["up-to-original"] == model.kinds[0].original == 4096
    assert lengths["beyond-original"] == 4096 + model_cases.BESIDE
    assert lengths["longest"] == model.kinds[0].longest == 131_072


@pytest.mark.parametrize("name", ["llama-9", "nowhere/config.json"])
def test_a_model_that_is_unknown_is_named(name) -> None:
    out = run("check", "posref", "--for", name)
    assert out.exit_code == 2
    assert name in out.output
    assert "Traceback" not in out.output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tier": "smoke"}, "tier must be core or kernel; got 'smoke'"),
        ({"op": "alibi"}, "op must be one of rope, rope_frequencies, rope_table, apply_rope, rope_cos_sin; got 'alibi'"),
    ],
)
def test_what_a_model_does_not_ask_is_refused(options, text) -> None:
    with pytest.raises(TargetError, match=text):
        checked(rope, **options)


def test_a_file_of_no_rotary_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for content in ("[1]", "{", "null", '{"model_type": "gpt2"}', '{"rope_scaling": 3}', "3e400"):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(TargetError, match=r"config\.json"):
            for_model.read(str(file))


@pytest.mark.thorough
def test_the_report_says_for_which_model() -> None:
    report = checked(rope)
    document = report.to_json()
    assert document["for"] == LLAMA
    assert document["verdict"] == "conformant"
    validate("report", document, Path("report.json"))
    assert f"for {LLAMA}" in terminal.verdict(report, verdict_text(document))


def kinds() -> list[str]:
    """Return the smallest preset for every layout, scaling and share of the lanes that rotates."""
    found = {}
    models = {name: for_model.read(name).kinds[0] for name in posref.presets}
    for name, model in sorted(models.items(), key=lambda item: -item[1].sizes.heads * item[1].sizes.head_size):
        share = model.lanes == model.sizes.head_size
        scaling = type(model.options["scaling"])
        found[model.op, model.options["layout"], scaling, model.options.get("lanes"), share] = name
    return [*found.values()]


@pytest.mark.thorough
@pytest.mark.parametrize("name", share(kinds(), QUARTER))
def test_every_kind_of_preset_can_be_asked(name) -> None:
    model = for_model.read(name)
    assert check("posref", model=name, op=model.kinds[0].op, dtype="float32").exit_code == 0


def test_sizes_are_of_presets() -> None:
    rows = {name: row for name, row in table("presets").items() if "sizes" in row}
    assert len(rows) >= 78
    for name, row in rows.items():
        assert row["sizes_from"] in ("litgpt 0.5.13", "transformers 5.23.0", "files quoted in public repositories")
        sizes = posref.presets[name].sizes
        assert vars(sizes) == row["sizes"], name
        assert posref.presets[name].rope["rotary_dim"] <= sizes.head_size, name
        assert sizes.heads % sizes.key_heads == 0, name


@few(1, ("always", "code"), [(None, 0), (1, 1), (10**6, 1)])
def test_a_list_that_no_length_chooses_is_found(always, code) -> None:
    """A target need not list the scaling of the model that it is asked about."""

    def rope(x, positions, /, *, layout, base, scaling=None, length=None, rotary_dim=None):
        own = {"layout": layout, "base": base, "scaling": scaling, "rotary_dim": rotary_dim}
        return posref.rope(x, positions, **own, length=always or length)

    assert checked(rope, "phi-3.5-mini").exit_code == code


SMOL = {**CONFIG, "model_type": "smollm3", "num_hidden_layers": 5}


@pytest.fixture
def smol(tmp_path: Path) -> str:
    """A file whose layer 3 does not rotate."""
    path = tmp_path / "smol.json"
    path.write_text(json.dumps(SMOL), encoding="utf-8")
    return str(path)


@pytest.mark.thorough
def test_a_layer_that_does_not_rotate_must_return_x(smol: str) -> None:
    """Code that rotates every layer of SmolLM3 is found; one that leaves layer 3 alone passes it, and only it."""
    every, none = SimpleNamespace(rope=rope), SimpleNamespace(rope=lambda x, positions, /, **options: x.copy())
    verdicts = {
        (name, layer): check(target, op="rope", model=smol, layer=layer, dtype="float32").exit_code
        for name, target in (("every", every), ("none", none))
        for layer in (2, 3)
    }
    assert verdicts == {("every", 2): 0, ("every", 3): 1, ("none", 2): 1, ("none", 3): 0}
    report = check(every, op="rope", model=smol, layer=3, dtype="float32")
    text = told_text(report)
    assert f"layer 3 of {smol} does not rotate: the result must be x." in text
    assert "must be exact" in text
    assert "CONFORMANT" not in told_text(check(none, op="rope", model=smol, layer=3, dtype="float32"))


def told_text(report) -> str:
    """The terminal page of a report, in one line."""
    from rich.console import Console

    console = Console(width=10_000, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    terminal.show(report, console)
    return " ".join(console.export_text().split())


def test_a_report_says_which_layers_do_not_rotate(smol: str) -> None:
    assert "layers 3 do not rotate (--layer asks one)" in for_model.read(smol).text
    assert for_model.read(smol, 3).is_still
    assert "rotate" not in for_model.read(smol, 2).text
    with pytest.raises(TargetError, match="layer must be an int from 0 to 4"):
        for_model.read(smol, 5)
    with pytest.raises(TargetError, match="layer must not be given for a preset"):
        for_model.read(LLAMA, 0)


def test_a_layout_that_no_file_says(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "model_type": "remote_code"}), encoding="utf-8")
    with pytest.raises(TargetError, match="Pass layout"):
        for_model.read(str(path))
    for layout in ("half", "interleaved"):
        assert for_model.read(str(path), layout=layout).kinds[0].options["layout"] == layout
    assert check(SimpleNamespace(rope=rope), op="rope", model=str(path), layout="half", dtype="float32").exit_code == 0


def test_only_what_rotates_is_asked_of_latent_attention(tmp_path: Path) -> None:
    """A GGUF file has the sizes of the compressed cache (576), config.json those of the whole head."""
    config = {"model_type": "deepseek_v3", "num_attention_heads": 16, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    file = {"general.architecture": "deepseek2", "deepseek2.attention.head_count": 16, "deepseek2.attention.head_count_kv": 1}
    file |= {
        "deepseek2.attention.key_length": 576,
        "deepseek2.attention.kv_lora_rank": 512,
        "deepseek2.rope.dimension_count": 64,
    }
    with MonkeyPatch.context() as patch:
        patch.setattr(for_model.gguf_file, "read", lambda _: (file, {}))
        gguf = for_model.read(str(tmp_path / "model.gguf"))
    for model in (gguf, for_model.read(str(path))):
        (kind,) = model.kinds
        assert (kind.sizes.heads, kind.sizes.key_heads, kind.sizes.head_size, kind.lanes) == (16, 1, 64, 64)


def test_missing_sizes_of_a_file_are_those_of_its_class(tmp_path: Path) -> None:
    """A sparse Gemma 3 file does not say that it has 131072 tokens."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma3", "text_config": {"num_attention_heads": 4}}), encoding="utf-8")
    assert for_model.read(f"{path}:full_attention").kinds[0].longest == 131072

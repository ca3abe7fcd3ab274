"""A loaded model against its file: clean models have no difference, planted mistakes are named with their layers."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from commands import run
from handwritten_model import Decoder
from loaded_faults import FILES, KINDS, Make, makes, verdict
from loaded_models import small_config, small_model
from sampling import few

from posref.conformance.errors import TargetError
from posref.conformance.loaded import buffers
from posref.conformance.loaded.file_facts import facts_of
from posref.testing import assert_model

MAKES = list(makes([]))
MODELS = 2


def name(value: Any) -> str:
    return f"{value.model_type}-{value.attention}-{str(value.dtype)[6:]}" if isinstance(value, Make) else str(value)


@pytest.fixture(autouse=True)
def quiet() -> None:
    transformers.utils.logging.set_verbosity_error()


@few(1, "make", MAKES, ids=name)
def test_a_clean_model_has_no_difference(make: Make) -> None:
    report = assert_model(make.model(), make.file)
    assert {what for _, _, what in report.judged} & {"rotation", "mask", "attention", "bias"}


@pytest.mark.thorough(dear=True)
@few(2, "kind", KINDS)
def test_a_planted_mistake_is_named_with_its_layers(kind: str) -> None:
    """In two models that can have it, drawn by the seed of the run."""
    found = []
    for make in random.Random(f"{kind}/{os.environ.get('POSREF_SEED', '0')}").sample(MAKES, len(MAKES)):
        planted = KINDS[kind](make)
        if planted is not None:
            found.append((name(make), verdict(planted)))
        if len(found) == MODELS:
            break
    assert found
    assert [one for one in found if one[1] != "reported"] == []


@pytest.fixture
def llama() -> Any:
    return small_model(small_config("llama", **FILES["llama"]))


def changed(model: Any, value: float = 1e-30) -> Any:
    rotary = model.model.rotary_emb
    rotary.inv_freq = torch.full_like(rotary.inv_freq, value)
    return model


def test_only_the_layers_that_are_asked_are_judged(llama: Any) -> None:
    report = assert_model(llama, layers=[1, 2])
    assert {layer for _, layer, _ in report.judged} == {None, 1, 2}


def test_a_model_keeps_its_state() -> None:
    """A dynamic scaling writes its frequencies in the pass, and a short window is written into the configuration."""
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model = small_model(small_config("mistral", rope_parameters=rope, sliding_window=4096, max_position_embeddings=64))
    before = {name: x.clone() for name, x in model.named_buffers()}
    model.train()
    assert_model(model)
    assert model.training
    assert model.config.sliding_window == 4096
    assert all(torch.equal(before[name], x) for name, x in model.named_buffers())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_meta_models_are_read_without_a_pass() -> None:
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(small_config("llama"))
    with pytest.raises(TargetError, match="on the meta device"):
        assert_model(model)


def test_a_dtype_is_known_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(small_config("llama")).to(torch.bfloat16)
    with pytest.raises(AssertionError, match=r"rotary_emb.inv_freq: buffer: bfloat16"):
        assert_model(model)


@few(1, ("name", "change"), [
    ("cos_cached", lambda x: x), ("sin_cached", lambda x: x), ("freqs_cis", lambda x: x),
    ("cos_cached", lambda x: x.roll(1, 0)), ("freqs_cis", lambda x: x.conj()), ("sin_cached", lambda x: x * 1.001),
])  # fmt: skip
def test_tables_of_cosines_and_sines_are_read_by_name(name: str, change: Any, llama: Any) -> None:
    """Tables of 300 rows, with both orders of columns, as remote code keeps them."""
    angles = torch.arange(300)[:, None] * llama.model.rotary_emb.inv_freq.double()
    tables = {"cos_cached": angles.cos().repeat(1, 2), "sin_cached": angles.sin().repeat_interleave(2, 1)}
    table = tables[name].float() if name in tables else torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
    llama.model.register_buffer(name, change(table), persistent=False)
    if torch.equal(table, change(table)):
        assert (f"model.{name}", None, "buffer") in assert_model(llama).judged
    else:
        with pytest.raises(AssertionError, match=f"DIFFERS: model.{name}: buffer: not the cosines or sines"):
            assert_model(llama)


def test_heads_that_read_other_key_heads_are_told(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code = transformers.models.llama.modeling_llama
    monkeypatch.setattr(code, "repeat_kv", lambda x, count: x.repeat(1, count, 1, 1))
    with pytest.raises(AssertionError, match=r"layers 0-3: attention: head h reads key head h % 2"):
        assert_model(llama)


@few(1, "attention", ["eager", "sdpa"])
def test_rows_and_scales_of_opt(attention: str) -> None:
    """Its queries are scaled before the attention function, and position 0 has row 2 of its table."""
    config = small_config("opt")
    model = small_model(config, attention)
    assert {("text", None, "table"), ("text", 3, "attention")} <= set(assert_model(model, config.to_dict()).judged)
    model.model.decoder.layers[2].self_attn.scaling *= 1.5
    with pytest.raises(AssertionError, match=r"layer 2: attention: scale 0.375 fits, before the function; the file says 0.25"):
        assert_model(model, config.to_dict())
    model.model.decoder.embed_positions.offset = 0
    with pytest.raises(AssertionError, match="table: position 0 reads row 0; the file says row 2"):
        assert_model(model, config.to_dict())


FILE = {
    "model_type": "helium", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 3,
    "rope_theta": 1e5, "head_dim": 16, "vocab_size": 100,
}  # fmt: skip


@pytest.mark.thorough
def test_any_module_is_judged_whose_functions_are_named() -> None:
    torch.manual_seed(0)
    kinds = {what for _, _, what in assert_model(Decoder(1e5), FILE, functions=["turn"]).judged}
    assert kinds == {"buffer", "rotation", "mask", "attention"}
    assert "rotation: it is not seen" in str(assert_model(Decoder(1e5), FILE))
    with pytest.raises(AssertionError, match=r"layers 0-2: rotation: query: base 10000"):
        assert_model(Decoder(1e4), FILE, functions=["turn"])
    model = Decoder(1e5)
    model.layers[1].scale = 1.0
    with pytest.raises(AssertionError, match=r"layer 1: attention: scale 1 fits; the file says 0.25"):
        assert_model(model, FILE, functions=["turn"])
    model = Decoder(1e5)
    model.layers[2].before, model.layers[0].forgets = 0.25, True
    with pytest.raises(AssertionError) as error:
        assert_model(model, FILE, functions=["turn"])
    found = [line for line in str(error.value).splitlines() if line.startswith("DIFFERS")]
    assert found == [
        "DIFFERS: text, layer 0: rotation: query: its result is not used: attention reads what it was before",
        "DIFFERS: text, layer 2: attention: before attention queries are multiplied by 0.25 to 0.25; the file says no factor",
    ]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TargetError, match=r"must be a torch\.nn\.Module"):
        assert_model({"model_type": "llama"})
    with pytest.raises(TargetError, match="config must be"):
        assert_model(torch.nn.Linear(2, 2))


def test_a_folder_is_compared_with_its_own_file(llama: Any, tmp_path: Path) -> None:
    llama.save_pretrained(tmp_path)
    result = run("check", "--model", tmp_path, "--json", tmp_path / "report.json")
    assert result.exit_code == 0, result.output
    assert "text, layers 0-3: rope" in result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["exit_code"] == 0
    assert {entry["what"] for entry in report["judged"]} == {"rotation", "mask", "attention", "buffer"}


def test_a_model_that_was_changed_as_it_loads_differs(llama: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch of the library loses the frequencies: the file was read before."""
    llama.save_pretrained(tmp_path)
    load = transformers.LlamaForCausalLM.from_pretrained
    monkeypatch.setattr(
        transformers.LlamaForCausalLM, "from_pretrained", lambda *args, **options: changed(load(*args, **options))
    )
    result = run("check", "--model", tmp_path, "--html", tmp_path / "report.html")
    assert result.exit_code == 1, result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>What differs</h2>" in page
    assert "text, layers 0-3: rotation: query: it does not rotate" in page
    assert "<td>rope layout=half" in page
    assert "DIFFERS: text, layers 0-3: rotation: query: it does not rotate" in result.output


def test_the_command_refuses_what_does_not_go_together(tmp_path: Path) -> None:
    assert run("check", "--model", tmp_path).exit_code == 2
    assert "config.json" in run("check", "--model", tmp_path).output
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "auto_map": {"AutoModel": "x.Y"}}))
    assert "--trust-remote-code" in run("check", "--model", tmp_path).output
    result = run("check", "posref", "--model", tmp_path, "--op", "rope")
    assert result.exit_code == 2
    assert "--op" in result.output


def test_the_report_names_layers_and_the_diagnosis(llama: Any) -> None:
    with pytest.raises(AssertionError, match=r"DIFFERS: text, layers 0-3: rotation: query: it does not rotate") as error:
        assert_model(changed(llama))
    assert "DIFFERS: model.rotary_emb.inv_freq: buffer: these are no frequencies" in str(error.value)
    with pytest.raises(AssertionError, match="zeros: nothing rotates"):
        assert_model(changed(llama, 0.0))


@pytest.mark.filterwarnings("error")
def test_frequencies_that_end_at_zero_have_no_base() -> None:
    told = buffers._frequency_difference(torch.tensor([1.0, 0.1, 0.0]), [], [])
    assert told.endswith("(the first must be at most 1, and they must fall, above 0): memory that nobody filled?")


def test_frequencies_of_a_linear_scaling_are_no_memory_that_nobody_filled() -> None:
    told = buffers._frequency_difference(torch.tensor([0.25, 0.0025]), [], [])
    assert told.startswith("frequencies of base 10000 divided by 4;")


class Captions(transformers.BlipForConditionalGeneration):
    """A class of a user that extends one of transformers."""


@pytest.mark.parametrize(
    ("kind", "sides"), [(Captions, "causal"), (transformers.BlipForImageTextRetrieval, "both"), (torch.nn.Module, "causal")]
)
def test_the_class_stands_for_the_architectures_unless_it_is_a_wrapper(kind: type, sides: str) -> None:
    file = {"model_type": "blip", "architectures": ["BlipForConditionalGeneration"]}
    (entry, *_) = facts_of(file, kind.__new__(kind)).components["text"]
    assert entry.conventions["sides"] == sides

"""A config.json to all encodings of a model: texts, towers, indexers, and models inside others."""

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import posref
from posref import from_config, rope_from_config
from posref.models.model_types import model_table, table
from posref.models.whole import READERS
from posref.spec import REGISTRY

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "rope_theta": 5e5}
SMOL = {"model_type": "smollm3", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 8}
V32 = {"model_type": "deepseek_v32", "num_hidden_layers": 2, "qk_rope_head_dim": 64}
ROPE = {"layout": "half", "base": 5e5, "rotary_dim": 16, "scaling": None}
VIT = {"prefix": 1, "method": "cubic", "align_corners": False, "antialias": False}
AXIAL = {"dims": (40, 40), "base": 1e4, "allocation": "own", "arrangement": "chunked", "layout": "half"}
HALF = {"layout": "half", "scaling": None}
ROUND = {"allocation": "shared", "arrangement": "round_robin", "layout": "half"}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (LLAMA, {"text": [("rope", ROPE)]}),
    ({"model_type": "gpt2"}, {"text": [("learned", {"offset": 0})]}),
    ({"model_type": "opt"}, {"text": [("learned", {"offset": 2})]}),
    ({"model_type": "roberta", "pad_token_id": 3}, {"text": [("learned", {"offset": 4})]}),
    ({"model_type": "bertweet"}, {"text": [("learned", {"offset": 2})]}),
    ({"model_type": "esm", "position_embedding_type": "absolute"}, {"text": [("learned", {"offset": 2})]}),
    ({"model_type": "bloom", "n_head": 32}, {"text": [("alibi", {"heads": 32, "form": "key"})]}),
    ({"model_type": "falcon", "alibi": True, "num_attention_heads": 8}, {"text": [("alibi", {"heads": 8, "form": "key"})]}),
    ({"model_type": "zamba2"}, {"text": [None]}),
    ({"model_type": "mamba"}, {"text": [None]}),
    (
        {"model_type": "t5", "relative_attention_max_distance": 64},
        {
            "encoder": [("t5_bias", {"bidirectional": True, "max_distance": 64})],
            "decoder": [("t5_bias", {"bidirectional": False, "max_distance": 64})],
        },
    ),
    (
        {"model_type": "whisper", "d_model": 384},
        {
            "encoder": [("sinusoidal", {"dim": 384, "layout": "sin_cos", "endpoint": True})],
            "decoder": [("learned", {"offset": 0})],
        },
    ),
    ({"model_type": "vit"}, {"vision": [("learned", {"offset": 0})], "vision table": [("resample", VIT)]}),
    (
        {"model_type": "llava", "text_config": {**LLAMA, "model_type": None}, "vision_config": {}},
        {"text": [("rope", ROPE)], "vision": [("learned", {"offset": 0})], "vision table": [("resample", VIT)]},
    ),
    (
        {"model_type": "fast_vlm", "vision_config": {}, "text_config": {**LLAMA, "model_type": "qwen2"}},
        {"text": [("rope", ROPE)], "vision": [("as in timm's model", None)]},
    ),
    (
        {"model_type": "qwen2_5_omni_vision_encoder", "hidden_size": 1280},
        {"vision": [("axial_rope", AXIAL)]},
    ),
    (
        {"model_type": "detr"},
        {
            "vision": [("sine_2d", {"dim": 256, "normalize": True, "centered": False})],
            "queries": [("learned", {"offset": 0})],
            "backbone": [("as in timm's model", None)],
        },
    ),
    (
        {"model_type": "musicgen", "text_encoder": {"model_type": "t5"}, "decoder": {"hidden_size": 512}},
        {
            "text encoder encoder": [("t5_bias", {"bidirectional": True, "max_distance": 128})],  # it takes T5's encoder
            "audio encoder": [None],
            "decoder": [("sinusoidal", {"dim": 512, "layout": "cos_sin", "endpoint": True})],
        },
    ),
    (
        {"model_type": "evolla", "hidden_size": 64, "num_attention_heads": 4, "protein_encoder_config": {"rope_theta": 1e5}},
        {
            "text": [("rope", {**HALF, "base": 5e5, "rotary_dim": 16})],
            "protein encoder": [("rope", {**HALF, "base": 1e5, "rotary_dim": 64})],
        },
    ),
    (
        {
            "model_type": "neomme",
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {
                "sliding_attention": {"rope_theta": 1e4},
                "full_attention": {"rope_theta": 1e6, "partial_rotary_factor": 0.25},
            },
        },
        {
            "text": [
                ("axial_rope", {**ROUND, "dims": (32, 32), "base": 1e4}),
                ("axial_rope", {**ROUND, "dims": (8, 8), "base": 1e6}),
            ],
            "text mask": [("sliding_window", {"window": 256, "counting": "without_query", "sides": "both"}), None],
        },
    ),
]


@pytest.mark.parametrize(("config", "expected"), CASES, ids=[config["model_type"] for config, _ in CASES])
def test_components(config: dict[str, Any], expected: dict[str, Any]) -> None:
    assert from_config(config) == expected


def test_layers() -> None:
    rope = ("rope", rope_from_config(SMOL))
    assert from_config(SMOL) == {"text": [rope, rope, rope, None] * 2}
    assert from_config(SMOL, layer=3) == {"text": [None]}
    whole = {"model_type": "idefics3", "text_config": SMOL, "vision_config": {}}
    assert from_config(whole, layer=4) == {"text": [rope], "vision": [("learned", {"offset": 0})]}


def test_an_indexer_has_its_own_layout() -> None:
    found = from_config(V32)
    (main,), (indexer,) = found["text"], found["indexer"]
    assert main is not None
    assert indexer == ("rope", {**(main.options or {}), "layout": "half"})
    assert main.options == rope_from_config(V32) != indexer[1]
    v4 = {"model_type": "deepseek_v4", "num_hidden_layers": 2, "compress_ratios": [0, 4], "rope_theta": 1e4}
    sliding, compressed = from_config(v4)["text"]
    assert sliding != compressed
    assert from_config(v4)["compressed keys"] == from_config(v4)["indexer"] == [compressed]


def test_a_path_reads_as_its_content(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert from_config(path) == from_config(LLAMA)


def nested(depth: int) -> dict[str, Any]:
    return {"model_type": "encoder-decoder", "encoder": nested(depth - 1) if depth else {"model_type": "bert"}}


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "config must be a mapping"),
    ({"model_type": "lama"}, {}, "config['model_type'] must be a known one; got 'lama'. If the model runs"),
    ({"model_type": "lama"}, {}, "set model_type to that type. Did you mean 'llama'"),
    (
        {"model_type": "llava", "text_config": {"model_type": "klingon"}},
        {},
        "config['text_config']['model_type'] must be",
    ),
    ({"model_type": "m2m_100", "d_model": "wide"}, {}, "must have d_model or hidden_size, of type int, for dim; got 'wide'."),
    (
        {"model_type": "detr", "position_embedding_type": "x"},
        {},
        "config['position_embedding_type'] must be one of ('sine'",
    ),
    (SMOL | {"num_hidden_layers": 10**12}, {}, "must be at most 10000; got 1000000000000."),
    (nested(9), {}, "config must have at most 8 levels of nested configurations"),
    ({"model_type": "pixtral", "rope_parameters": {"rope_type": "yarn"}}, {}, "rope_parameters must be null or a dict of"),
    ({"model_type": "florence_vision", "embed_dim": []}, {}, "the file must have embed_dim, of type int, for dim; got []."),
    ({"model_type": "cohere_compass_text", "layer_types": [[1]]}, {}, "rope_parameters must have an entry for every type"),
    ({"model_type": "neomme", "layer_types": ["x"], "rope_parameters": {}}, {}, "must have an entry for every type"),
    ({"model_type": "neomme", "layer_types": ["x"], "rope_parameters": {"x": None}}, {}, "the file must have rope_theta"),
    ({"model_type": "rt_detr", "encoder_hidden_dim": 2}, {}, "must be a multiple of 4; got 2."),
    (SMOL, {"layer": 8}, "layer must be an int from 0 to 7, the last layer of 'text'; got 8."),
    (SMOL, {"layer": True}, "layer must be an int of at least 0, or None; got True."),
]


@pytest.mark.parametrize(("config", "options", "message"), REFUSED)
def test_errors(config: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^from_config: ") as error:
        from_config(config, **options)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000


def test_equal_layers_are_read_once() -> None:
    """The work of 32 equal layers crosses few files: calls of a function in another file than the call before are counted."""
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
    files = [""]
    from_config(config)  # tables are read at the first call

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename != files[-1]:
            files.append(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        found = from_config(config)
    finally:
        sys.setprofile(None)
    assert len(found["text"]) == 1
    assert len(files) - 1 <= 60


def test_the_table_is_sound() -> None:
    """Rows name operations and their options, or no options; parts and likenesses are in the table; sources are lines."""
    table = model_table()
    for model, known in table.items():
        assert set(known) <= {"rows", "parts", "without", "defaults", "like", "rope", "layers"}, model
        assert known.get("like", model) in table
        for part in known.get("parts", {}).values():
            rule = part if isinstance(part, dict) else {"type": part}
            assert set(rule) <= {"type", "silent", "optional", "means", "also", "flat", "filled"}, model
            assert {rule.get("type", rule.get("silent"))} | set(rule.get("means", {}).values()) <= set(table), model
        for row in known.get("rows", ()):
            assert row["confidence"] in ("high", "medium"), model
            assert row.get("read", "axial") in READERS, model
            if "options" in row:
                assert set(row["options"]) <= set(inspect.signature(getattr(posref, row["operation"])).parameters), model
                assert row["operation"] in REGISTRY, model


def test_a_row_without_options_has_its_reason() -> None:
    """What posref does not define is named, with one reason, which the answer has too; operations have options."""
    rows = [row for known in model_table().values() for row in known.get("rows", ()) if row["operation"] is not None]
    named = {row["operation"] for row in rows if "options" not in row and "read" not in row}
    of_diffusers = {row["operation"] for known in table("diffusers").values() for name, row in known.items() if name != "by"}
    assert named <= set(table("undefined"))
    assert not set(table("undefined")) & set(REGISTRY)
    assert set(table("undefined")) <= named | of_diffusers
    assert all(set(row) == {"reason"} and len(row["reason"]) > 30 for row in table("undefined").values())
    (entry,) = from_config({"model_type": "vjepa2"})["vision"]
    assert entry is not None
    assert "two different frequencies" in entry.conventions["not defined"]
    (entry,) = from_config({"model_type": "udop"})["encoder vertical"]
    assert entry is not None
    assert "not defined" not in entry.conventions


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "udop", "relative_bias_args": [{"type": "diagonal"}]}, "relative_bias_args must be null or a list"),
        ({"model_type": "udop", "relative_bias_args": [{"type": "1d"}, {"type": "1d"}]}, "each type once; got 2"),
        ({"model_type": "udop", "relative_bias_args": [{"type": "vertical", "scaling_factor": 1}]}, "a number above 1; got 1"),
        ({"model_type": "udop", "relative_bias_args": [{"type": "1d", "scaling_factor": 2}]}, "must be 1 for type '1d'"),
        ({"model_type": "moonshine_streaming_encoder", "sliding_windows": [[4, 1]]}, "for each of 6 layers"),
        ({"model_type": "moonshine_streaming_encoder", "sliding_windows": [[0, 0]] * 6}, "a window must have a key"),
        ({"model_type": "gemma4_audio", "attention_context_left": 0}, "must be ints of at least 1 and 0; got 0 and 0"),
        ({"model_type": "longformer", "attention_window": 5}, "attention_window must be an even int"),
        ({"model_type": "clvp_encoder", "projection_dim": 1000}, "an even number of rotated channels, at least 2; got 41"),
        ({"model_type": "dab-detr", "temperature_width": 0}, "temperature_width must be a number above 0"),
        ({"model_type": "qwen2_5_omni_dit", "rope_parameters": {"rope_type": "yarn"}}, "must be one of ('default', None)"),
        (
            {"model_type": "fun_asr_nano_encoder", "num_stacked_frames": "7"},
            "num_stacked_frames, an int of at least 1",
        ),
    ],
)
def test_files_that_do_not_decide_an_encoding(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        from_config(config)


def test_a_file_decides_the_kinds_of_distance_of_udop() -> None:
    """Those that it leaves out are no component; prefixes have rows of their own."""
    kinds = [{"type": "horizontal", "prefix_bucket": True, "bidirectional": False, "relative_attention_num_buckets": 16}]
    found = from_config({"model_type": "udop", "relative_bias_args": kinds})
    assert {"encoder", "encoder vertical"} & found.keys() == set()
    (entry,) = found["encoder horizontal"]
    assert entry == ("t5_buckets", {"bidirectional": False, "max_distance": 100, "num_buckets": 16})
    assert entry.conventions["prefix"].startswith("row 16 ")

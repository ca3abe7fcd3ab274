"""Sentences about who uses what, against the installed code."""

import re
from pathlib import Path

import transformers

import posref
from posref.models.model_types import model_table
from posref.spec import REGISTRY

MODELS = Path(transformers.__file__).parent / "models"
OFFSET = re.compile(r"\(1(\.0)? \+ self\.weight|\(self\.weight(\.float\(\))? \+ 1")
NAMES = {  # directories of transformers whose RMSNorm adds 1 to its weight, as the docstring names them
    "gemma": "Gemma", "gemma2": "Gemma 2", "gemma3": "Gemma 3", "recurrent_gemma": "RecurrentGemma", "t5gemma": "T5Gemma",
    "t5gemma2": "T5Gemma 2", "vaultgemma": "VaultGemma", "qwen3_next": "Qwen3-Next", "qwen3_5": "Qwen3.5",
    "qwen3_5_moe": "Qwen3.5", "qwen4_exp": "Qwen4-Exp", "step3p7": "Step-3.7", "minimax_m3_vl": "MiniMax-M3",
    "muse_spark": "Muse Spark", "muse_glimmer": "Muse Glimmer",
}  # fmt: skip
LAYER_NORMS = {"nemotron", "videoprism"}  # these add 1 to the weight of a LayerNorm


def test_norms_whose_weights_are_stored_less_one_are_those_that_the_docstring_names() -> None:
    found = {path.parent.name for path in MODELS.glob("*/modeling_*.py") if OFFSET.search(path.read_text(encoding="utf-8"))}
    assert found - LAYER_NORMS == set(NAMES)
    sentences = str(posref.rms_norm.__doc__).partition("weight_offset : {0, 1}")[2].partition("Returns")[0]
    ones = re.split(r"[,.] | and ", " ".join(sentences.split()).partition("These are ")[2].partition(". It is 0")[0])
    assert set(ones) == {*NAMES.values()}


def test_no_list_of_users_ends_in_all_others() -> None:
    for name, encoding in REGISTRY.items():
        text = " ".join(str(encoding.function.__doc__).split())
        assert not re.search(r"\b(in|by|of) all others[.;]", text), name


# What the code of attention does, and the last word of the component that says it. Directories of transformers/models.
SAYS = {
    "mask": re.compile(r"create_sliding_window_causal_mask\("),
    "softcap": re.compile(r"softcap=(self|config)"),
    "sinks": re.compile(r"s_aux=|self\.sinks"),
    "scale": re.compile(r"self\.scaling = (self\.)?config\.(query_pre_attn|attention_mult)"),
}
WINDOW_OF_ANOTHER_PART = {"qwen3_omni_moe_talker_text", "qwen3_omni_moe_text"}  # theirs is None (modeling, 1460)


def test_what_the_code_of_a_text_does_in_attention_is_said() -> None:
    for name, row in model_table().items():
        rows = [own for own in row.get("rows", ()) if own["component"].partition(" ")[0] in ("text", "encoder", "decoder")]
        if not rows or "stack" in row or name in WINDOW_OF_ANOTHER_PART:
            continue
        directory = rows[0]["source"].partition("/")[0]
        code = MODELS / directory / f"modeling_{directory}.py"
        does = {what for what, words in SAYS.items() if code.exists() and words.search(code.read_text(encoding="utf-8"))}
        assert does <= {own["component"].rpartition(" ")[2] for own in row["rows"]}, name

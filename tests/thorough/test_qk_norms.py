"""Norms of queries and keys: the table against the classes of transformers, which run, and posref's operations by value."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from qk_norms import NORM, Row, config_of, judged_types, model_of, row_of
from rotary_modules import code_of
from sampling import share
from transformers import CONFIG_MAPPING

import posref
from posref.models.model_types import table

# Types whose classes have no such modules, though they do not run small; BLT has them in cross attention alone.
WITHOUT = (
    "bailing_hybrid blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher dbrx deepseek_ocr2_encoder "
    "deepseek_ocr2_text dia_decoder dia_encoder dots3_note_audio_encoder glmasr_encoder gradium_phonon_tts granitemoehybrid "
    "lasr_encoder mimi mimi_decoder mimi_encoder moonshine nemotron3_diarization_audio pocket_tts pocket_tts_audio_tokenizer "
    "pocket_tts_audio_tokenizer_decoder pocket_tts_audio_tokenizer_encoder t5_gemma_module unlimited_ocr_text "
    "voxtral_realtime_encoder voxtral_realtime_text zamba2"
)
OTHER_PARTS = {"modeling_blt.py": "BltCrossAttention", "modeling_dots3_note.py": "Dots3NoteText|Dots3NoteVision"}
UNIT = ("zaya",)  # one module takes queries and keys
ROWS: dict[str, Row] = {**table("qk_norms")}


@pytest.mark.parametrize("model_type", share(sorted({*judged_types()} - {*WITHOUT.split(), *UNIT}), 0.5))
def test_a_row_is_what_the_classes_do(model_type: str) -> None:
    """Also of types without norms: they have no row."""
    assert row_of(model_type) == ROWS.get(model_type)


@pytest.mark.parametrize("model_type", WITHOUT.split())
def test_classes_without_norms_have_no_row(model_type: str) -> None:
    file = Path(inspect.getfile(code_of(CONFIG_MAPPING[model_type]())))
    classes = re.split(r"\n(?=class )", file.read_text(encoding="utf-8"))
    own = [text for text in classes if re.search(r"self\.(q|k|qk|query|key)_?(layer_?)?norm\b", text)]
    assert all(re.match(f"class ({OTHER_PARTS.get(file.name, '$')})", text) for text in own)
    assert model_type not in ROWS


@pytest.mark.parametrize("model_type", [name for name, row in sorted(ROWS.items()) if row["kind"] == "rms"])
def test_a_norm_has_the_values_of_its_module(model_type: str) -> None:
    """With random weights, and the options that `from_config` reads in the file of a small model."""
    row = ROWS[model_type]
    switch = {row["when"][0]: row["when"][1]} if "when" in row else {}
    config = config_of(model_type, **switch)
    (entries,) = (those for name, those in posref.from_config(config.to_dict()).items() if name.endswith(" norm"))
    options: dict[str, Any] = next(entry.options for entry in entries if entry is not None)
    module = next(one for name, one in model_of(config).named_modules() if NORM.match(name.rpartition(".")[2]))
    module = module.double().requires_grad_(False)
    rng = np.random.default_rng(3)
    width = next((x.shape[0] for x in module.parameters()), 16)
    weight, x = rng.uniform(0.5, 1.5, width), rng.standard_normal((1, 2, 5, width))
    for values in module.parameters():
        values.copy_(torch.asarray(weight))
    weight = weight if row["weight"] else np.ones(width)
    ours = posref.rms_norm(x, weight, eps=options["eps"], weight_offset=options["weight_offset"])
    assert np.max(np.abs(ours - module(torch.asarray(x)).numpy())) < 1e-5  # the modules compute in float32

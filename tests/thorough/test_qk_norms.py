"""Norms of queries and keys: the table against the classes of transformers, which run, and posref's operations by value."""

from typing import Any

import numpy as np
import pytest
import torch
from qk_norms import NORM, Row, config_of, judged_types, model_of, row_of
from sampling import share

import posref
from posref.models.model_types import table

# Types that are not built small and run on tokens, or whose norms no row describes. None of the others may fail.
LEFT = (
    "bailing_hybrid blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher cohere dbrx deepseek_ocr2_encoder "
    "deepseek_ocr2_text dia_decoder dia_encoder dots3_note_audio_encoder glmasr_encoder gradium_phonon_tts granitemoehybrid "
    "lasr_encoder mimi mimi_decoder mimi_encoder moonshine muse_glimmer_assistant nemotron3_5_transcribe_asr_audio "
    "nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio pocket_tts pocket_tts_audio_tokenizer "
    "pocket_tts_audio_tokenizer_decoder pocket_tts_audio_tokenizer_encoder qwen3_omni_moe_talker_code_predictor "
    "qwen3_omni_moe_talker_text qwen4_exp_text t5_gemma_module t5gemma2_decoder t5gemma2_text timesfm2_5 unlimited_ocr_text "
    "voxtral_realtime_encoder voxtral_realtime_text zamba2 zaya"
)
ROWS: dict[str, Row] = {**table("qk_norms")}


@pytest.mark.parametrize("model_type", share(sorted({*judged_types()} - {*LEFT.split()}), 0.5))
def test_a_row_is_what_the_classes_do(model_type: str) -> None:
    """Also of types without norms: they have no row."""
    assert row_of(model_type) == ROWS.get(model_type)


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

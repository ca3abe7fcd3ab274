"""
What `posref.configs` knows about each model type: its layout, its defaults, and whether it differs by layer or axis.

Everything was read in transformers 5.23.0 (the configuration and modeling files), except chatglm and kimi_k2, whose code comes
with their weights.
"""

from typing import Any

from posref.rotary.axial_table import Arrangement
from posref.types import Layout

HALF = (
    "afmoe apertus arcee aria_text bamba beam bitnet chameleon csm csm_depth_decoder_model cwm dbrx deepseek_ocr2_encoder "
    "deepseek_ocr2_text dia_decoder dia_encoder diffllama diffusion_gemma_text doge dots1 dots3_note_audio_encoder "
    "embedding_gemma2_text emu3_text_model esm esmc eurobert evolla exaone4 exaone_moe falcon falcon_h1 flex_olmo flint "
    "gemma gemma2 gemma3_text gemma3n_text gemma4_text gemma4_unified_text glm4_moe glmasr_encoder gpt_neox "
    "gpt_neox_japanese gpt_oss gradium_phonon_tts granite granite4_vision_text granite_docling_text granite_swa granitemoe "
    "granitemoe_swa granitemoehybrid granitemoeshared gte higgs_audio_v2 hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 "
    "hy_v4 hyperclovax idefics internlm3 iquestcoder jais2 jetmoe jina_embeddings_v3 kolibri1 kyutai_speech_to_text laguna "
    "lasr_encoder lfm2 lfm2_moe lfm3 llama mellum mimi mimi_decoder mimi_encoder mimo_v2_flash minicpm3 minimax minimax_m2 "
    "minimax_m3_vl_text ministral ministral3 mistral mixtral mllama_text_model modernbert modernbert-decoder molmo2_text "
    "moshi muse_glimmer_assistant muse_glimmer_text muse_spark_text nanochat nemotron nemotron3_5_transcribe_asr_audio "
    "nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio neucodec nomic_bert olmo olmo2 olmo3 olmo_hybrid "
    "olmoe persimmon phi phi3 phi4_multimodal phimoe pocket_tts pocket_tts_audio_tokenizer "
    "pocket_tts_audio_tokenizer_decoder pocket_tts_audio_tokenizer_encoder qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next "
    "qwen3_omni_moe_talker_code_predictor recurrent_gemma seed_oss smollm3 solar_open stablelm starcoder2 step3p5 "
    "t5_gemma_module t5gemma2_decoder t5gemma2_text timesfm2_5 ultrabert unlimited_ocr_text vaultgemma "
    "voxtral_realtime_encoder voxtral_realtime_text xcodec2 zamba2 zaya"
)
INTERLEAVED = (
    "blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher chatglm codegen cohere cohere2 cohere2_moe "
    "deepseek_v2 deepseek_v4 ernie4_5 ernie4_5_moe glm glm4 gptj helium llama4_text moonshine moonshine_streaming "
    "openai_privacy_filter pe_audio_encoder pe_audio_video_encoder pe_video_encoder roformer"
)
INTERLEAVED_TO_HALF = (
    "axk1 axk2 bailing_hybrid deepseek_v3 deepseek_v32 dots3_note_text glm4_moe_lite glm_moe_dsa kimi_k2 longcat_flash "
    "mistral4 mistral_large4_text youtu"  # all of them MLA
)
# Model type -> layout of the weights as transformers stores them (Meta's own Llama files are interleaved). Each entry was
# checked by running that model's rotary module and apply function against the three layouts.
LAYOUTS: dict[str, Layout] = {
    **dict.fromkeys(HALF.split(), "half"),
    **dict.fromkeys(INTERLEAVED.split(), "interleaved"),
    **dict.fromkeys(INTERLEAVED_TO_HALF.split(), "interleaved_to_half"),
}
CHOOSES = ("axk1", "deepseek_v3", "glm4_moe_lite", "mistral4", "youtu")  # where "rope_interleave": false means half
# These multiply the softmax scale by g(mscale_all_dim) squared: yarn_apply_mscale in their modeling files.
SOFTMAX = (*INTERLEAVED_TO_HALF.replace("dots3_note_text ", "").split(), "deepseek_v2", "hy_v4", "minicpm3")
TRAILING = ("deepseek_v4",)  # these rotate the last channels of a whole head
INVERSE = ("nanochat",)  # these rotate by the negative angle
# Models with a key that switches rotation on, and the value that does so.
SWITCHES: dict[str, tuple[str, Any]] = {
    "esm": ("position_embedding_type", "rotary"),
    "granitemoehybrid": ("position_embedding_type", "rope"),
    "zamba2": ("use_mem_rope", True),
}
HEAD_KEYS = {"chatglm": "kv_channels", "jetmoe": "kv_channels", "zamba2": "attention_head_dim"}  # besides "head_dim"
# Defaults for missing keys, where they are not base 10000, the whole head and head size hidden_size // num_attention_heads.
SILENT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "gemma3_text gemma3n_text"),
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "t5gemma2_decoder t5gemma2_text"),
    ({"global_rope_theta": 160_000, "local_rope_theta": 1e4}, "modernbert modernbert-decoder"),
    ({"head_dim": 256}, "gemma gemma2 t5_gemma_module vaultgemma"),
    ({"head_dim": 128}, "afmoe cohere2 hrm_text ministral3 molmo2_text qwen3 seed_oss voxtral_realtime_text"),
    ({"head_dim": 128}, "beam cohere2_moe dia_decoder dia_encoder flint internlm3 iquestcoder kolibri1 laguna lfm3 mellum"),
    ({"head_dim": 128}, "muse_glimmer_text qwen3_omni_moe_talker_code_predictor step3p5 zaya"),
    ({"head_dim": 64}, "neucodec voxtral_realtime_encoder xcodec2"),
    ({"head_dim": 80}, "timesfm2_5"),
    ({"kv_channels": 128}, "jetmoe"),
    ({"rope_theta": 20_000, "head_dim": 128}, "pe_audio_encoder pe_audio_video_encoder pe_video_encoder"),
    ({"rope_theta": 500_000, "head_dim": 64}, "muse_spark_text"),
    ({"rope_theta": 5e6, "swa_rope_theta": 1e4, "partial_rotary_factor": 0.334, "head_dim": 192}, "mimo_v2_flash"),
    ({"rope_theta": 8e7, "swa_rope_theta": 5e4, "qk_rope_head_dim": 64}, "dots3_note_text"),
    ({"compress_rope_theta": 160_000, "partial_rotary_factor": 0.125, "head_dim": 512}, "deepseek_v4"),
    ({"partial_rotary_factor": 0.9}, "moonshine"),
    ({"partial_rotary_factor": 0.5}, "dots3_note_audio_encoder glmasr_encoder nemotron3_5_transcribe_asr_audio"),
    ({"partial_rotary_factor": 0.5}, "nemotron3_5_transcribe_word_timestamp"),
    ({"rope_theta": 1e6, "head_dim": 128}, "cwm solar_open"),
    ({"rope_theta": 1e6}, "emu3_text_model lfm2 lfm2_moe minimax mixtral phimoe"),
    ({"rope_theta": 500_000}, "bitnet cohere csm csm_depth_decoder_model ernie4_5_moe flex_olmo mllama_text_model olmo3"),
    ({"rope_theta": 500_000}, "blt_global_transformer blt_local_decoder blt_local_encoder evolla"),
    ({"rope_theta": 500_000, "head_dim": 128}, "ernie4_5 higgs_audio_v2 llama4_text muse_glimmer_assistant"),
    ({"rope_theta": 150_000, "head_dim": 64}, "gpt_oss openai_privacy_filter"),
    ({"rope_theta": 160_000}, "gte"),
    ({"rope_theta": 20_000}, "jina_embeddings_v3"),
    ({"rope_theta": 1_000}, "nomic_bert"),
    ({"rope_theta": 12e6}, "apertus"),
    ({"rope_theta": 2e6}, "smollm3"),
    ({"rope_theta": 1e5, "head_dim": 128}, "helium"),
    ({"rope_theta": 5e6, "head_dim": 128}, "minimax_m2 minimax_m3_vl_text"),
    ({"rope_theta": 11_158_840, "head_dim": 128}, "hy_v3"),
    ({"partial_rotary_factor": 0.5}, "bamba glm4_moe nemotron persimmon phi recurrent_gemma"),
    ({"partial_rotary_factor": 0.5, "head_dim": 128}, "glm glm4"),
    ({"partial_rotary_factor": 0.25}, "gpt_neox stablelm"),
    ({"partial_rotary_factor": 0.25, "head_dim": 256}, "qwen3_next"),
    ({"rotary_dim": 64}, "codegen gptj"),
    ({"qk_rope_head_dim": 64}, "axk1 deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 kimi_k2"),
    ({"qk_rope_head_dim": 64}, "mistral4 mistral_large4_text youtu"),
    ({"qk_rope_head_dim": 64, "rope_theta": 6e6}, "bailing_hybrid"),
    ({"qk_rope_head_dim": 64, "rope_theta": 1e7}, "longcat_flash"),
    ({"qk_rope_head_dim": 32}, "axk2 minicpm3"),
    ({"original_max_position_embeddings": 4096}, "phi3 phi4_multimodal"),
    ({"head_dim": 256, "global_head_dim": 512}, "diffusion_gemma_text embedding_gemma2_text gemma4_text gemma4_unified_text"),
    ({"partial_rotary_factor": 0.5, "rope_ratio": 1}, "chatglm"),
    ({"rope_theta": 1e6}, "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text qwen3_omni_moe_text"),
    ({"rope_theta": 1e6, "head_dim": 128}, "qwen2_5_omni_talker"),
    ({"rope_theta": 500_000, "head_dim": 128}, "paddleocr_vl paddleocr_vl_text qwen3_vl_text qwen3_vl_moe_text"),
    ({"partial_rotary_factor": 0.25, "head_dim": 256}, "qwen3_5_text qwen3_5_moe_text"),
    ({"rope_theta": 500_000}, "ernie4_5_vl_moe_text"),
    ({"partial_rotary_factor": 0.5}, "glm4v_moe_text"),
    ({"rope_theta": 1e8, "head_dim": 128}, "cosmos3_edge_text"),
    ({"head_dim": 256}, "qwen4_exp_text"),
)
DEFAULTS: dict[str, dict[str, Any]] = {model: values for values, models in SILENT for model in models.split()}
# Model types whose old files name one base per layer type: the types, the keys of their bases, and whether `rope_scaling`
# applies to them.
_FULL, _SLIDING = "full_attention", "sliding_attention"
_GEMMA3 = ((_FULL, ("rope_theta",), True), (_SLIDING, ("rope_local_base_freq",), False))
_MODERN = ((_FULL, ("global_rope_theta", "rope_theta"), True), (_SLIDING, ("local_rope_theta",), True))
_SWA = ((_FULL, ("rope_theta",), False), (_SLIDING, ("swa_rope_theta",), False))
BY_LAYER: dict[str, tuple[tuple[str, tuple[str, ...], bool], ...]] = {
    **dict.fromkeys(("gemma3_text", "gemma3n_text", "t5gemma2_decoder", "t5gemma2_text"), _GEMMA3),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), _MODERN),
    "olmo3": ((_FULL, ("rope_theta",), True), (_SLIDING, ("rope_theta",), False)),
    "mimo_v2_flash": _SWA,
    "dots3_note_text": (*_SWA, ("indexed_attention", ("rope_theta",), False)),
    "deepseek_v4": (("main", ("rope_theta",), False), ("compress", ("compress_rope_theta",), True)),
}
FLAT_TOO = ("deepseek_v4",)  # their `rope_parameters`, if not by layer type, mean the same as `rope_scaling`

# The rope dict of a file with neither `rope_scaling` nor `rope_parameters`, unless it is {"rope_type": "default"}.
_LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_OSS = {"rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096}
_MISTRAL = {"rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
_HIGGS = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 0.125, "high_freq_factor": 0.5, "rope_theta": 500_000}
_HIGGS |= {"original_max_position_embeddings": 1024}
_LARGE4 = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2048.0, "attention_factor": 1.0}
_LARGE4 |= {"original_max_position_embeddings": 512}
_GEMMA4 = {
    "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}


def _layers(**layers: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Return, for each layer type, a dict of its base and its share of the head."""
    return {name: {"rope_theta": base, "partial_rotary_factor": share} for name, (base, share) in layers.items()}


SILENT_ROPE: dict[str, dict[str, Any]] = {
    "apertus": {**_LLAMA3, "rope_theta": 12e6, "factor": 8.0},
    "cwm": {**_LLAMA3, "rope_theta": 1e6, "factor": 16.0},
    "gpt_oss": _OSS,
    "openai_privacy_filter": _OSS,
    "ministral3": {**_MISTRAL, "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384},
    "mistral4": {**_MISTRAL, "rope_theta": 1e4, "factor": 128.0, "original_max_position_embeddings": 8192},
    "higgs_audio_v2": _HIGGS,
    "mistral_large4_text": _LARGE4,
    "moonshine_streaming": {"rope_theta": 1e4, "partial_rotary_factor": 0.8},
    **dict.fromkeys(("diffusion_gemma_text", "gemma4_text", "gemma4_unified_text"), _GEMMA4),
    "beam": {"sliding_attention": {"rope_theta": 1e4}},
    "embedding_gemma2_text": _layers(sliding_attention=(1e4, 1), full_attention=(1e6, 1)),
    "laguna": _layers(sliding_attention=(1e4, 1), full_attention=(500_000, 0.5)),
    "lfm3": {
        **_layers(sliding_attention=(1e4, 1)),
        "full_attention": {**_GEMMA4["full_attention"], "partial_rotary_factor": 0.5},
    },
    "mellum": _layers(sliding_attention=(1e4, 1), full_attention=(500_000, 1)),
    "step3p5": _layers(full_attention=(1e4, 1)),
    "ultrabert": _layers(sliding_attention=(1e4, 1), full_attention=(2_560_000, 1)),
    "zaya": _layers(hybrid=(5e6, 0.5), hybrid_sliding=(1e4, 0.5)),
}
LONGROPE = ("phi3", "phi4_multimodal")  # here the type "yarn" means longrope
ALPHA = ("hunyuan", "hunyuan_v1_dense", "hunyuan_v1_moe")  # here "dynamic" with "alpha" means NTKAlpha

# Model type -> arrangement and layout of M-RoPE, and the default sections, in the order of the file. Each entry was compared
# with that model's rotary module and apply function (tests/test_mrope_configs.py).
_CHUNKED = (
    "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text qwen2_5_omni_talker paddleocr_vl paddleocr_vl_text"
)
_OMNI = ("qwen3_omni_moe_text", "qwen3_omni_moe_talker_text")
MROPE: dict[str, tuple[Arrangement, Layout, tuple[int, ...]]] = {
    **dict.fromkeys(_CHUNKED.split(), ("chunked", "half", (16, 24, 24))),
    **dict.fromkeys(("glm4v_text", "glm_ocr_text"), ("chunked", "interleaved", (8, 12, 12))),
    **dict.fromkeys(("glm4v_moe_text", "glm_image_text"), ("chunked", "half", (8, 12, 12))),
    **dict.fromkeys(("qwen3_vl_text", "qwen3_vl_moe_text", *_OMNI), ("interleaved", "half", (24, 20, 20))),
    "cosmos3_edge_text": ("interleaved", "half", (24, 20, 20)),
    **dict.fromkeys(("qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text"), ("interleaved", "half", (11, 11, 10))),
    "ernie4_5_vl_moe_text": ("ernie", "interleaved", (22, 22, 20)),
}

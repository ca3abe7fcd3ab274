"""
What `posref.configs` knows of each model type: layouts, what a silent file means, and which models differ by layer or axis.

All of it is transformers 5.23.0 (the configuration and modeling files), except for chatglm and kimi_k2, whose code is with
their weights.
"""

from typing import Any

HALF = (
    "afmoe apertus arcee aria_text bamba bitnet chameleon csm csm_depth_decoder_model cwm dbrx deepseek_ocr2_text diffllama "
    "diffusion_gemma_text doge dots1 emu3_text_model eurobert exaone4 exaone_moe falcon falcon_h1 flex_olmo gemma gemma2 "
    "gemma3_text gemma3n_text gemma4_text gemma4_unified_text glm4_moe gpt_neox gpt_neox_japanese gpt_oss granite "
    "granite_docling_text granite_swa granitemoe granitemoe_swa granitemoehybrid granitemoeshared gte hrm_text "
    "hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 hyperclovax idefics jais2 jina_embeddings_v3 lfm2 lfm2_moe llama mimi "
    "minicpm3 minimax minimax_m2 ministral ministral3 mistral mixtral mllama_text_model modernbert modernbert-decoder "
    "molmo2_text moshi nemotron nomic_bert olmo olmo2 olmo3 olmo_hybrid olmoe persimmon phi phi3 phi4_multimodal phimoe "
    "qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next recurrent_gemma seed_oss smollm3 solar_open stablelm starcoder2 "
    "t5_gemma_module t5gemma2_decoder t5gemma2_text unlimited_ocr_text vaultgemma voxtral_realtime_text"
)
INTERLEAVED = (
    "chatglm codegen cohere cohere2 deepseek_v2 ernie4_5 ernie4_5_moe glm glm4 gptj helium llama4_text openai_privacy_filter "
    "roformer"
)
INTERLEAVED_TO_HALF = (
    "axk1 axk2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_k2 longcat_flash mistral4 youtu"  # all of them MLA
)
# Model type -> layout, of weights as transformers stores them (Meta's own Llama files are interleaved). Each entry of it was
# checked by running that model's rotary module and apply function against the three layouts.
LAYOUTS: dict[str, str] = {
    **dict.fromkeys(HALF.split(), "half"),
    **dict.fromkeys(INTERLEAVED.split(), "interleaved"),
    **dict.fromkeys(INTERLEAVED_TO_HALF.split(), "interleaved_to_half"),
}
CHOOSES = ("axk1", "deepseek_v3", "glm4_moe_lite", "mistral4", "youtu")  # where "rope_interleave": false means half
# These multiply the softmax scale by g(mscale_all_dim) squared: yarn_apply_mscale in their modeling files.
SOFTMAX = (*INTERLEAVED_TO_HALF.split(), "deepseek_v2", "hy_v4", "minicpm3")
# What a silent file means, where it is not base 10000, the whole head, and hidden_size // num_attention_heads.
SILENT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "gemma3_text gemma3n_text"),
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "t5gemma2_decoder t5gemma2_text"),
    ({"global_rope_theta": 160_000, "local_rope_theta": 1e4}, "modernbert modernbert-decoder"),
    ({"head_dim": 256}, "gemma gemma2 t5_gemma_module vaultgemma"),
    ({"head_dim": 128}, "afmoe cohere2 hrm_text ministral3 molmo2_text qwen3 seed_oss voxtral_realtime_text"),
    ({"rope_theta": 1e6, "head_dim": 128}, "cwm solar_open"),
    ({"rope_theta": 1e6}, "emu3_text_model lfm2 lfm2_moe minimax mixtral phimoe"),
    ({"rope_theta": 500_000}, "bitnet cohere csm csm_depth_decoder_model ernie4_5_moe flex_olmo mllama_text_model olmo3"),
    ({"rope_theta": 500_000, "head_dim": 128}, "ernie4_5 llama4_text"),
    ({"rope_theta": 150_000, "head_dim": 64}, "gpt_oss openai_privacy_filter"),
    ({"rope_theta": 160_000}, "gte"),
    ({"rope_theta": 20_000}, "jina_embeddings_v3"),
    ({"rope_theta": 1_000}, "nomic_bert"),
    ({"rope_theta": 12e6}, "apertus"),
    ({"rope_theta": 2e6}, "smollm3"),
    ({"rope_theta": 1e5, "head_dim": 128}, "helium"),
    ({"rope_theta": 5e6, "head_dim": 128}, "minimax_m2"),
    ({"rope_theta": 11_158_840, "head_dim": 128}, "hy_v3"),
    ({"partial_rotary_factor": 0.5}, "bamba glm4_moe nemotron persimmon phi recurrent_gemma"),
    ({"partial_rotary_factor": 0.5, "head_dim": 128}, "glm glm4"),
    ({"partial_rotary_factor": 0.25}, "gpt_neox stablelm"),
    ({"partial_rotary_factor": 0.25, "head_dim": 256}, "qwen3_next"),
    ({"rotary_dim": 64}, "codegen gptj"),
    ({"qk_rope_head_dim": 64}, "axk1 deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 kimi_k2"),
    ({"qk_rope_head_dim": 64}, "mistral4 youtu"),
    ({"qk_rope_head_dim": 64, "rope_theta": 1e7}, "longcat_flash"),
    ({"qk_rope_head_dim": 32}, "axk2 minicpm3"),
    ({"original_max_position_embeddings": 4096}, "phi3 phi4_multimodal"),
    ({"head_dim": 256, "global_head_dim": 512}, "diffusion_gemma_text gemma4_text gemma4_unified_text"),
    ({"partial_rotary_factor": 0.5, "rope_ratio": 1}, "chatglm"),
    ({"rope_theta": 1e6}, "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text qwen3_omni_moe_text"),
    ({"rope_theta": 500_000, "head_dim": 128}, "paddleocr_vl paddleocr_vl_text qwen3_vl_text qwen3_vl_moe_text"),
    ({"partial_rotary_factor": 0.25, "head_dim": 256}, "qwen3_5_text qwen3_5_moe_text"),
    ({"rope_theta": 500_000}, "ernie4_5_vl_moe_text"),
    ({"partial_rotary_factor": 0.5}, "glm4v_moe_text"),
    ({"rope_theta": 1e8, "head_dim": 128}, "cosmos3_edge_text"),
    ({"head_dim": 256}, "qwen4_exp_text"),
)
DEFAULTS: dict[str, dict[str, Any]] = {model: values for values, models in SILENT for model in models.split()}
# Model types whose old files name one base per layer type; with "rope_local_base_freq" or for OLMo 3, `rope_scaling` is
# that of the full layers alone.
BY_LAYER = {
    **dict.fromkeys(("gemma3_text", "gemma3n_text", "t5gemma2_decoder", "t5gemma2_text"), "rope_local_base_freq"),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), "local_rope_theta"),
    "olmo3": "rope_theta",
}

# The rope dict of a file that has neither `rope_scaling` nor `rope_parameters`, where it is not {"rope_type": "default"}.
_LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_OSS = {"rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096}
_MISTRAL = {"rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
_GEMMA4 = {
    "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}
SILENT_ROPE: dict[str, dict[str, Any]] = {
    "apertus": {**_LLAMA3, "rope_theta": 12e6, "factor": 8.0},
    "cwm": {**_LLAMA3, "rope_theta": 1e6, "factor": 16.0},
    "gpt_oss": _OSS,
    "openai_privacy_filter": _OSS,
    "ministral3": {**_MISTRAL, "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384},
    "mistral4": {**_MISTRAL, "rope_theta": 1e4, "factor": 128.0, "original_max_position_embeddings": 8192},
    **dict.fromkeys(("diffusion_gemma_text", "gemma4_text", "gemma4_unified_text"), _GEMMA4),
}
LONGROPE = ("phi3", "phi4_multimodal")  # where the type "yarn" means longrope
ALPHA = ("hunyuan", "hunyuan_v1_dense", "hunyuan_v1_moe")  # where "dynamic" with "alpha" means NTKAlpha

# Model type -> arrangement and layout of M-RoPE, and the sections of a silent file in the order in which the file has them.
# Each entry was compared with that model's rotary module and apply function (tests/test_mrope_configs.py).
_CHUNKED = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text paddleocr_vl paddleocr_vl_text"
MROPE: dict[str, tuple[str, str, tuple[int, ...]]] = {
    **dict.fromkeys(_CHUNKED.split(), ("chunked", "half", (16, 24, 24))),
    **dict.fromkeys(("glm4v_text", "glm_ocr_text"), ("chunked", "interleaved", (8, 12, 12))),
    **dict.fromkeys(("glm4v_moe_text", "glm_image_text"), ("chunked", "half", (8, 12, 12))),
    **dict.fromkeys(("qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_omni_moe_text"), ("interleaved", "half", (24, 20, 20))),
    "cosmos3_edge_text": ("interleaved", "half", (24, 20, 20)),
    **dict.fromkeys(("qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text"), ("interleaved", "half", (11, 11, 10))),
    "ernie4_5_vl_moe_text": ("ernie", "interleaved", (22, 22, 20)),
}

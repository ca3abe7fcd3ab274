"""Links to the issues and pull requests that `seen_in` names, such as "candle#3520"."""

import re

# Repositories that `seen_in` calls by their own name.
_NAMED = """
AI-Hypercomputer/maxtext Blaizzy/mlx-vlm Dao-AILab/flash-attention GaijinEntertainment/daScript HKUSTDial/flash-sparse-attention
HabanaAI/vllm-fork InternLM/InternLM Lightning-AI/litgpt NVIDIA-NeMo/Megatron-Bridge NVIDIA/Megatron-LM
NVIDIA/TensorRT-LLM NVIDIA/TensorRT-Model-Connect NVIDIA/TransformerEngine NVIDIA/apex PaddlePaddle/PaddleNLP
PaddlePaddle/PaddleOCR TransformerLensOrg/TransformerLens aws-neuron/neuronx-distributed-inference baichuan-inc/Baichuan-13B
baichuan-inc/Baichuan2 bytedance/lightseq deepspeedai/DeepSpeed espnet/espnet facebookresearch/dino facebookresearch/dinov2
flashinfer-ai/flashinfer foundation-model-stack/foundation-model-stack ggml-org/llama.cpp google-deepmind/penzai
google-research/text-to-text-transfer-transformer huggingface/candle huggingface/diffusers huggingface/sentence-transformers
huggingface/transformers ikawrakow/ik_llama.cpp jingyaogong/minimind jmaczan/tiny-vllm jzhang38/TinyLlama keras-team/keras-hub
lablup/mlxcel lightseekorg/tokenspeed linkedin/Liger-Kernel lucidrains/DALLE-pytorch lucidrains/rotary-embedding-torch
lyogavin/airllm marin-community/levanter microsoft/onnxruntime microsoft/unilm ml-explore/mlx-lm mlfoundations/open_lm
mosaicml/llm-foundry naver/croco nntrainer/nntrainer onnxruntime/mobius ooples/AiDotNet.Tensors paiml/aprender
pegainfer-project/pegainfer pytorch/executorch pytorch/torchtitan raiyanyahya/how-to-train-your-gpt rasbt/LLMs-from-scratch
sgl-project/sgl-kernel-xpu sgl-project/sglang tatp22/multidim-positional-encoding tensorflow/tensor2tensor tenstorrent/tt-metal
tenstorrent/tt-mlir tile-ai/TileOPs tinygrad/tinygrad trymirai/lalamo turboderp-org/exllamav3 unslothai/unsloth
vllm-project/vllm-ascend vllm-project/vllm-metal vllm-project/vllm-omni wenet-e2e/wenet xiangking/ark-nlp
"""
TRACKERS: dict[str, str] = {
    **{repository.split("/")[1]: repository for repository in _NAMED.split()},
    "MLX": "ml-explore/mlx",
    "Megatron": "NVIDIA/Megatron-LM",
    "Modalities": "Modalities/modalities",
    "PaddlePaddle": "PaddlePaddle/Paddle",
    "PyTorch": "pytorch/pytorch",
    "SGLang": "sgl-project/sglang",
    "TVM": "apache/tvm",
    "TransformerEngine (ROCm)": "ROCm/TransformerEngine",
    "fla": "fla-org/flash-linear-attention",
    "labml": "labmlai/annotated_deep_learning_paper_implementations",
    "timm": "huggingface/pytorch-image-models",
    "vLLM": "vllm-project/vllm",
}
_REFERENCE = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?(?: \(ROCm\))?)? ?#(?P<number>\d+)")


def references(seen_in: str) -> list[tuple[str, str]]:
    """
    Return each issue that a `seen_in` names, as it is written, with its address.

    A number without a name, as in "transformers #25308, #27226", is of the repository before it.

    Raises
    ------
    KeyError
        If a name is neither in `TRACKERS` nor written as owner/repository.
    """
    found: list[tuple[str, str]] = []
    repository = ""
    for match in _REFERENCE.finditer(seen_in):
        name = match["name"] or repository
        repository = name if "/" in name else TRACKERS[name]
        found.append((match[0].strip(), f"https://github.com/{repository}/issues/{match['number']}"))
    return found

"""Links to the issues and pull requests that `seen_in` names, such as "candle#3520"."""

import re

# Repositories that `seen_in` calls by their own name.
_NAMED = """
AI-Hypercomputer/maxtext Blaizzy/mlx-vlm Dao-AILab/flash-attention GaijinEntertainment/daScript HabanaAI/vllm-fork
InternLM/InternLM Lightning-AI/litgpt NVIDIA/Megatron-LM NVIDIA/TensorRT-LLM NVIDIA/TensorRT-Model-Connect
NVIDIA/TransformerEngine NVIDIA/apex PaddlePaddle/PaddleNLP PaddlePaddle/PaddleOCR TransformerLensOrg/TransformerLens
aws-neuron/neuronx-distributed-inference baichuan-inc/Baichuan2 bytedance/lightseq deepspeedai/DeepSpeed espnet/espnet
facebookresearch/dino facebookresearch/dinov2 flashinfer-ai/flashinfer ggml-org/llama.cpp huggingface/candle
huggingface/diffusers huggingface/sentence-transformers huggingface/transformers ikawrakow/ik_llama.cpp jingyaogong/minimind
jmaczan/tiny-vllm jzhang38/TinyLlama keras-team/keras-hub lablup/mlxcel lightseekorg/tokenspeed linkedin/Liger-Kernel
lucidrains/DALLE-pytorch lucidrains/rotary-embedding-torch lyogavin/airllm microsoft/onnxruntime ml-explore/mlx-lm
mlfoundations/open_lm naver/croco nntrainer/nntrainer onnxruntime/mobius paiml/aprender pegainfer-project/pegainfer
pytorch/executorch pytorch/torchtitan rasbt/LLMs-from-scratch sgl-project/sglang tatp22/multidim-positional-encoding
tensorflow/tensor2tensor tenstorrent/tt-metal tinygrad/tinygrad trymirai/lalamo turboderp-org/exllamav3 vllm-project/vllm-ascend
vllm-project/vllm-metal vllm-project/vllm-omni xiangking/ark-nlp
"""
TRACKERS: dict[str, str] = {
    **{repository.split("/")[1]: repository for repository in _NAMED.split()},
    "MLX": "ml-explore/mlx",
    "Modalities": "Modalities/modalities",
    "PaddlePaddle": "PaddlePaddle/Paddle",
    "SGLang": "sgl-project/sglang",
    "TVM": "apache/tvm",
    "fla": "fla-org/flash-linear-attention",
    "labml": "labmlai/annotated_deep_learning_paper_implementations",
    "vLLM": "vllm-project/vllm",
}
_REFERENCE = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?(?: \(ROCm\))?)? ?#(?P<number>\d+)")


def references(seen_in: str) -> list[tuple[str, str]]:
    """
    Return each issue that a `seen_in` names, as it is written, with its address.

    A number without a name, as in "transformers #25308, #27226", is of the repository before it.

    Raise KeyError if a name is neither in `TRACKERS` nor written as owner/repository.
    """
    result: list[tuple[str, str]] = []
    repository = ""
    for match in _REFERENCE.finditer(seen_in):
        name = match["name"] or repository
        repository = name if "/" in name else TRACKERS[name]
        result.append((match[0].strip(), f"https://github.com/{repository}/issues/{match['number']}"))
    return result

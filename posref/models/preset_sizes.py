"""Sizes of the models in `posref.presets`, where a source has them: heads, channels of a head, and the longest context."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Sizes:
    """
    The sizes of one model's attention.

    `heads` and `key_heads` are the numbers of query heads and key heads. `head_size` is the number of channels of `x` in
    `posref.rope`. With multi-head latent attention `x` is the rotated part only, and its keys have one head. `longest` is the
    longest context, in tokens.
    """

    heads: int
    key_heads: int
    head_size: int
    longest: int


def _rows(text: str) -> dict[str, Sizes]:
    rows = (line.split() for line in text.strip().splitlines())
    return {name: Sizes(*map(int, numbers)) for name, *numbers in rows}


_LITGPT = """
llama-2-7b            32 32 128    4096
code-llama-7b         32 32 128   16384
llama-3-8b            32  8 128    8192
llama-3.1-8b          32  8 128  131072
llama-3.1-70b         64  8 128  131072
llama-3.1-405b       128  8 128  131072
llama-3.3-70b         64  8 128  131072
llama-3.2-1b          32  8  64  131072
llama-3.2-3b          24  8 128  131072
mistral-7b-v0.1       32  8 128    4096
mistral-7b-v0.3       32  8 128   32768
mixtral-8x7b          32  8 128   32768
mixtral-8x22b         48  8 128   65536
qwen2.5-7b            28  4 128  131072
qwen2.5-7b-1m         28  4 128 1010000
qwen3-8b              32  8 128   40960
qwen3-30b-a3b         32  4 128   40960
qwen3-4b-2507         32  8 128  262144
gemma-2-9b            16  8 256    8192
gemma-2-27b           32 16 128    8192
gemma-3-1b-full        4  1 256  131072
gemma-3-4b-full        8  4 256  131072
gemma-3-12b-full      16  8 256  131072
gemma-3-27b-full      32 16 128  131072
gemma-3-1b-sliding     4  1 256  131072
gemma-3-4b-sliding     8  4 256  131072
gemma-3-12b-sliding   16  8 256  131072
gemma-3-27b-sliding   32 16 128  131072
phi-1.5               32 32  64    2048
phi-2                 32 32  80    2048
phi-3-mini-4k         32 32  96    4096
phi-4-mini            24  8 128  131072
phi-4                 40 10 128   16384
olmo-2-7b             32 32 128    4096
falcon-7b             71  1  64    2048
"""
_TRANSFORMERS = """
llama-4-scout         40  8 128  131072
ministral-3           32  8 128  262144
mistral-4             32  1  64 1048576
gemma-7b              16 16 256    8192
modernbert-base-full     12 12 64 8192
modernbert-base-sliding  12 12 64 8192
deepseek-v3          128  1  64  163840
deepseek-r1          128  1  64  163840
gpt-oss-20b           64  8  64  131072
gpt-oss-120b          64  8  64  131072
gpt-neox-20b          64 64  96    2048
gpt-j-6b              16 16 256    2048
codegen               16 16 256    2048
stablelm-3b           32 32  80    4096
longcat-flash         64  1  64  131072
ernie-4.5-0.3b        16  2 128  131072
ernie-4.5-21b         20  4 128  131072
"""
_QUOTED = """
smollm3-3b            16  4 128   65536
qwen3-next-80b        16  2 256  262144
deepseek-v3.2        128  1  64  163840
deepseek-v4-flash-main       64 1 512 1048576
deepseek-v4-flash-compress   64 1 512 1048576
deepseek-v4-pro-compress    128 1 512 1048576
kimi-k2.5             64  1  64  262144
glm-4.5               96  8 128  131072
glm-4.5-air           96  8 128  131072
glm-5                 64  1  64  202752
glm-5.1               64  1  64  202752
glm-5.2               64  1  64 1048576
minimax-m2            48  8 128  196608
minimax-m2.5          48  8 128  196608
minimax-m2.7          48  8 128  204800
mimo-v2-flash-full    64  4 192  262144
mimo-v2-flash-sliding 64  8 192  262144
command-a             96  8 128  262144
command-r7b           32  8 128  131072
exaone-4-32b          40  8 128  131072
exaone-4-1.2b         32  8  64   65536
k-exaone-236b         64  8 128  262144
seed-oss-36b          80  8 128  524288
apertus-8b            32  8 128   65536
olmo-3-7b-full        32 32 128   65536
olmo-3-7b-sliding     32 32 128   65536
"""
# Sources, in order: litgpt 0.5.13 (litgpt/config.py), the defaults of transformers 5.23.0's configuration classes, and files
# quoted in public repositories. DeepSeek-V3's context follows from its YaRN: 40 times 4096 tokens.
SIZES: Mapping[str, Sizes] = MappingProxyType(_rows(_LITGPT) | _rows(_TRANSFORMERS) | _rows(_QUOTED))

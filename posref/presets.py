"""
Named parameters of released models, each with the source of its values: ``posref.presets["deepseek-v3"]``.

All values were checked against a file or code. For any other model, pass its config.json to `posref.rope_from_config`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from posref import preset_lists as lists
from posref.config_scaling import softmax_factor, table_factor
from posref.preset_sizes import SIZES, Sizes
from posref.scaling import Linear, Llama3, LongRoPE, NTKAlpha, Proportional, Scaling, YaRN

MARKS = {
    "A": "code of the model's authors",
    "H": "configuration class of transformers 5.23.0",
    "L": "configuration table of litgpt 0.5.13",
    "T": "model builder of torchtune 0.6.1, torchtitan, Megatron-Bridge or PaddleFormers",
    "G": "config.json quoted in a public repository",
    "F": "metadata of a GGUF file, quoted in a public repository",
}
HALF, PAIRS, MLA = "half", "interleaved", "interleaved_to_half"


@dataclass(frozen=True)
class Preset:
    """
    The rotary parameters of one model, or of one type of its layers.

    If layers differ, the name ends with their type: "-full" or "-sliding". DeepSeek-V4 has "-main", its layers with a sliding
    window only, and "-compress".

    `rope` has the keyword arguments of `posref.rope`, or `mrope` those of `posref.mrope`; the other is None. For LongRoPE add
    the ``length`` of your call. `factors` is what `posref.configs.factors` returns. `sizes` has the heads and the longest
    context, or is None if no source has them. `verified` says where the values were read, in letters of `MARKS`. `source` says
    the same in words. `note` has anything else to know. `op` and `options` are the operation and its keyword arguments.
    """

    name: str
    rope: Mapping[str, Any] | None
    mrope: Mapping[str, Any] | None
    factors: Mapping[str, float]
    sizes: Sizes | None
    verified: str
    source: str
    note: str

    @property
    def op(self) -> str:
        """The operation whose keyword arguments the preset has."""
        return "mrope" if self.rope is None else "rope"

    @property
    def options(self) -> Mapping[str, Any]:
        """The keyword arguments of the operation."""
        return (self.mrope if self.rope is None else self.rope) or {}


class Presets(Mapping[str, Preset]):
    """The presets by name, in the order of the table. An unknown name raises a KeyError that lists similar names."""

    def __init__(self, presets: list[Preset]) -> None:
        self._by_name = {preset.name: preset for preset in presets}

    def __getitem__(self, name: str) -> Preset:
        if name not in self._by_name:
            import difflib

            near = difflib.get_close_matches(str(name), self._by_name, n=3) or ["posref list --presets"]
            msg = f"presets: name must be a preset's name; got {name!r}. See {', '.join(near)}."
            raise KeyError(msg)
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def _rope(
    names: str,
    layout: str,
    lanes: int,
    base: float,
    verified: str,
    scaling: Scaling | None = None,
    note: str = "",
    *,
    softmax: bool = False,
    trailing: bool = False,
) -> list[Preset]:
    """
    Return one row of the table: models with the same parameters.

    `softmax`: mscale_all_dim changes the softmax scale too. `trailing`: the last channels of a head rotate.
    """
    arguments = {"layout": layout, "base": base, "rotary_dim": lanes, "scaling": scaling}
    if trailing:
        arguments["lanes"] = "trailing"
    places = {"table": table_factor(scaling, None), "input": 1.0, "softmax": 1.0}
    if softmax and isinstance(scaling, YaRN):
        places["softmax"] = softmax_factor(scaling)
    return _presets(names, verified, note, rope=MappingProxyType(arguments), mrope=None, factors=MappingProxyType(places))


def _mrope(
    names: str,
    arrangement: str,
    layout: str,
    sections: tuple[int, ...],
    base: float,
    verified: str,
    scaling: Scaling | None = None,
    note: str = "",
) -> list[Preset]:
    arguments = {"sections": sections, "arrangement": arrangement, "layout": layout, "base": base, "scaling": scaling}
    places = {"table": table_factor(scaling, None), "input": 1.0, "softmax": 1.0}
    return _presets(names, verified, note, rope=None, mrope=MappingProxyType(arguments), factors=MappingProxyType(places))


def _presets(names: str, verified: str, note: str, **fields: Any) -> list[Preset]:
    source = "; ".join(MARKS[mark] for mark in verified)
    return [
        Preset(name, sizes=SIZES.get(name), verified=verified, source=source, note=note, **fields) for name in names.split()
    ]


def _kimi(factor: float) -> YaRN:
    return YaRN(factor, 4096, 1, 1, mscale=1.0, mscale_all_dim=1.0)


_LLAMA31 = "llama-3.1-8b llama-3.1-70b llama-3.1-405b llama-3.3-70b"
_DEEPSEEK = YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=1.0)
_LITE = YaRN(40.0, 4096, mscale=0.707, mscale_all_dim=0.707)
_OSS = YaRN(32.0, 4096, truncate=False)
_MINISTRAL = YaRN(16.0, 16384, mscale=1.0, mscale_all_dim=1.0)
_YARN_V4 = YaRN(16.0, 65536, attention_factor=1.0)
_OLMO3 = YaRN(8.0, 8192, attention_factor=1.2079441541679836)
_KIMI25 = YaRN(64.0, 4096, mscale=1.0, mscale_all_dim=1.0)
_MISTRAL4 = YaRN(128.0, 8192, mscale=1.0, mscale_all_dim=1.0)
_PHI_VISION = LongRoPE(lists.PHI_3_VISION_SHORT, lists.PHI_3_VISION_LONG, 4096, max_length=131072)
_PHI_35 = LongRoPE(lists.PHI_3_5_MINI_SHORT, lists.PHI_3_5_MINI_LONG, 4096, max_length=131072)
_PHI_4 = LongRoPE((1.0,) * 48, lists.PHI_4_MINI_LONG, 4096, max_length=131072)
_META = "Weights as in transformers; Meta's own files are interleaved."
_NOPE = "Every fourth layer does not rotate."
_LOCAL = "Only the sliding layers rotate, three of every four."
_INDEXER = "The indexer has layout 'half'."
_SHARED = "Keys are also the values, so the model rotates the attention output back by the position of the query."
_TEMPERATURE = "Queries are also multiplied by 1 + ln(1 + floor(position / original length)) / 10."
_ROWS = (
    _rope("llama-2-7b", HALF, 128, 1e4, "LT", note=_META),
    _rope("code-llama-7b", HALF, 128, 1e6, "LT", note=_META),
    _rope("llama-3-8b", HALF, 128, 500_000.0, "ALT", note=_META),
    _rope(_LLAMA31, HALF, 128, 500_000.0, "ALG", Llama3(8.0, 8192), _META),
    _rope("llama-3.2-1b", HALF, 64, 500_000.0, "LTG", Llama3(32.0, 8192), f"{_META} The authors' code has factor 8 built in."),
    _rope("llama-3.2-3b", HALF, 128, 500_000.0, "LTG", Llama3(32.0, 8192), f"{_META} The authors' code has factor 8 built in."),
    _rope("llama-4-scout", PAIRS, 128, 500_000.0, "AHG", Llama3(16.0, 8192, 1, 1), _NOPE),
    _rope("mistral-7b-v0.1", HALF, 128, 1e4, "L"),
    _rope("mistral-7b-v0.3 mixtral-8x7b mixtral-8x22b", HALF, 128, 1e6, "L"),
    _rope("ministral-3", HALF, 128, 1e6, "H", _MINISTRAL, _TEMPERATURE),
    _rope("mistral-4", MLA, 64, 1e4, "H", _MISTRAL4, _TEMPERATURE, softmax=True),
    _rope("qwen2-7b qwen2.5-7b qwen3-8b qwen3-30b-a3b", HALF, 128, 1e6, "LT"),
    _rope("qwen2.5-7b-yarn", HALF, 128, 1e6, "G", YaRN(4.0, 32768), "An option of the released model, for 128k tokens."),
    _rope("qwen2.5-7b-1m", HALF, 128, 1e7, "LG", note="Beyond 262144 tokens dual chunk attention changes the positions."),
    _rope("qwen3-4b-2507", HALF, 128, 5e6, "LT"),
    _rope("qwen3-next-80b", HALF, 64, 1e7, "G", note="One of every four layers has this; the others have linear attention."),
    _rope("gemma-7b gemma-2-9b", HALF, 256, 1e4, "LH"),
    _rope("gemma-2-27b", HALF, 128, 1e4, "LH"),
    _rope("gemma-3-1b-full", HALF, 256, 1e6, "HLG"),
    _rope("gemma-3-4b-full gemma-3-12b-full", HALF, 256, 1e6, "LG", Linear(8.0)),
    _rope("gemma-3-27b-full", HALF, 128, 1e6, "LG", Linear(8.0)),
    _rope("gemma-3-1b-sliding", HALF, 256, 1e4, "HLG"),
    _rope("gemma-3-4b-sliding gemma-3-12b-sliding", HALF, 256, 1e4, "LG"),
    _rope("gemma-3-27b-sliding", HALF, 128, 1e4, "LG"),
    _rope("gemma-4-full", HALF, 512, 1e6, "HG", Proportional(0.25)),
    _rope("gemma-4-sliding", HALF, 256, 1e4, "HG"),
    _rope("modernbert-base-full", HALF, 64, 160_000.0, "H"),
    _rope("modernbert-base-sliding", HALF, 64, 1e4, "H"),
    _rope("phi-1.5 phi-2", HALF, 32, 1e4, "L"),
    _rope("phi-3-mini-4k", HALF, 96, 1e4, "L"),
    _rope("phi-3-vision-128k", HALF, 96, 1e4, "G", _PHI_VISION, "Phi-3-mini-128k may have other lists."),
    _rope("phi-3.5-mini", HALF, 96, 1e4, "G", _PHI_35),
    _rope("phi-4-mini", HALF, 96, 1e4, "G", _PHI_4),
    _rope("phi-4", HALF, 128, 250_000.0, "L"),
    _rope("deepseek-v2-lite", PAIRS, 64, 1e4, "G", _LITE, softmax=True),
    _rope("deepseek-v3 deepseek-r1", MLA, 64, 1e4, "AHG", _DEEPSEEK, "The authors' own code is interleaved.", softmax=True),
    _rope("deepseek-v3.2", MLA, 64, 1e4, "G", _DEEPSEEK, _INDEXER, softmax=True),
    _rope("deepseek-v4-flash-main", PAIRS, 64, 1e4, "HG", note=_SHARED, trailing=True),
    _rope("deepseek-v4-flash-compress deepseek-v4-pro-compress", PAIRS, 64, 160_000.0, "G", _YARN_V4, _SHARED, trailing=True),
    _rope("kimi-k2-0711", MLA, 64, 50_000.0, "G", _kimi(32.0), softmax=True),
    _rope("kimi-k2-0905", MLA, 64, 50_000.0, "G", _kimi(64.0), softmax=True),
    _rope("kimi-k2.5", MLA, 64, 50_000.0, "G", _KIMI25, softmax=True),
    _rope("longcat-flash", MLA, 64, 1e7, "H"),
    _rope("gpt-oss-20b gpt-oss-120b", HALF, 64, 150_000.0, "AHT", _OSS),
    _rope("gpt-neox-20b", HALF, 24, 1e4, "HG"),
    _rope("gpt-j-6b codegen", PAIRS, 64, 1e4, "H"),
    _rope("glm-4-9b-chat-1m", PAIRS, 64, 1e8, "HG", note="rope_ratio 10000."),
    _rope("glm-4.5 glm-4.5-air", HALF, 64, 1e6, "G"),
    _rope("glm-5 glm-5.1", MLA, 64, 1e6, "G"),
    _rope("glm-5.2", MLA, 64, 8e6, "G"),
    _rope("minimax-m2 minimax-m2.5 minimax-m2.7", HALF, 64, 5e6, "HG"),
    _rope("mimo-v2-flash-full", HALF, 64, 5e6, "HG"),
    _rope("mimo-v2-flash-sliding", HALF, 64, 1e4, "HG"),
    _rope("command-a command-r7b", PAIRS, 128, 50_000.0, "F", note=_LOCAL),
    _rope("exaone-4-32b", HALF, 128, 1e6, "G", Llama3(16.0, 8192), _LOCAL),
    _rope("exaone-4-1.2b", HALF, 64, 1e6, "G", Llama3(16.0, 8192), "All layers rotate."),
    _rope("k-exaone-236b", HALF, 128, 1e6, "G", note=_LOCAL),
    _rope("ernie-4.5-0.3b ernie-4.5-21b", PAIRS, 128, 500_000.0, "H"),
    _rope("seed-oss-36b", HALF, 128, 1e7, "T"),
    _rope("apertus-8b", HALF, 128, 12e6, "HG", Llama3(8.0, 8192)),
    _rope("stablelm-3b", HALF, 20, 1e4, "H"),
    _rope("smollm3-3b", HALF, 128, 5e6, "AF", note=_NOPE),
    _rope("olmo-2-7b", HALF, 128, 500_000.0, "L"),
    _rope("olmo-3-7b-full", HALF, 128, 500_000.0, "G", _OLMO3),
    _rope("olmo-3-7b-sliding", HALF, 128, 500_000.0, "HG"),
    _rope("hunyuan-dense", HALF, 128, 1e4, "HG", NTKAlpha(1000.0)),
    _rope("falcon-7b", HALF, 64, 1e4, "L"),
    _mrope("qwen2-vl-7b qwen2.5-vl-7b", "chunked", HALF, (16, 24, 24), 1e6, "HG"),
    _mrope("qwen3-vl-4b qwen3-vl-8b", "interleaved", HALF, (24, 20, 20), 5e6, "HG"),
    _mrope("qwen3-omni-30b", "interleaved", HALF, (24, 20, 20), 1e6, "TG"),
    _mrope("qwen3.5-27b", "interleaved", HALF, (11, 11, 10), 1e7, "TG"),
    _mrope("qwen3.5-27b-yarn", "interleaved", HALF, (11, 11, 10), 1e7, "TG", YaRN(4.0, 262144), "For a million tokens."),
    _mrope("ernie-4.5-vl", "ernie", PAIRS, (20, 22, 22), 500_000.0, "H"),
)
presets = Presets([preset for row in _ROWS for preset in row])

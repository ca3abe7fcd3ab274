"""Context extensions and mistakes that several rotary encodings share."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from posref.scaling import (
    Clipped,
    DynamicYaRN,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
    YaRNByTurns,
)

from ..tools import Case, Deviation, Wrap, after, argument, before, floats, form_case, narrowed, reals, seed_of
from ..tools.hints import KEEP_FLOAT32
from .angle_tables import changed_frequencies

LAYOUTS = ("half", "interleaved", "interleaved_to_half")
NEAR = (0, 1, 2, 7, 63)
# 257 and 2049 are the first integers that bfloat16 and float16 miss; the others end a usual table, or pass its end.
FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 1048575)
UNSORTED = (5, 0, 0, 9, 2)
OFFSETS = ((3, 4, 5, 6, 7), (257, 258, 259, 260, 261), (0, 1, 2, 3, 4))  # a row each; none is row 0's
BASE = 10000.0
LLAMA4 = Llama3(factor=16, original_length=8192, low_freq_factor=1, high_freq_factor=1)
QWEN = YaRN(factor=4, original_length=32768)  # Qwen2.5, base 1e6
GPT_OSS = YaRN(factor=32, original_length=4096, truncate=False)  # base 150000, head 64
DEEPSEEK_V3 = YaRN(factor=40, original_length=4096, mscale=1.0, mscale_all_dim=1.0)
DEEPSEEK_V2 = YaRN(factor=40, original_length=4096, mscale=0.707, mscale_all_dim=0.707)
DEEPSEEK_V4 = YaRN(factor=16, original_length=65536, attention_factor=1.0)  # base 160000; length 2^20
KIMI = YaRN(factor=32, original_length=4096, beta_fast=1, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)  # base 50000
UNEQUAL = YaRN(factor=6, original_length=512, mscale=1.5, mscale_all_dim=0.25)  # a ratio that is not 1
GIVEN = YaRN(factor=3, original_length=300, beta_fast=20, beta_slow=2, attention_factor=1.25)
UNROUNDED = YaRN(factor=8, original_length=600, beta_fast=24, beta_slow=1.5, truncate=False)
PHI35_SHORT = (
    1.0, 1.0199999809265137, *(1.0299999713897705,) * 2, *(1.0499999523162842,) * 5, 1.0699999332427979, 1.0999999046325684,
    1.1099998950958252, *(1.1599998474121094,) * 2, 1.1699998378753662, 1.2899998426437378, 1.339999794960022,
    1.679999828338623, 1.7899998426437378, 1.8199998140335083, 1.8499997854232788, 1.8799997568130493, 1.9099997282028198,
    1.9399996995925903, 1.9899996519088745, *(2.0199997425079346,) * 6, *(2.0299997329711914,) * 9, 2.0799996852874756,
    2.0899996757507324, 2.189999580383301, 2.2199995517730713, 2.5899994373321533, 2.729999542236328, 2.749999523162842,
    2.8399994373321533,
)  # fmt: skip
PHI4_LONG = (
    1, 1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897, 1.956131817, 2.187582649, 2.446418898, 2.735880826,
    3.059592084, 3.421605075, 3.826451687, 4.279200023, 4.785517845, 5.351743533, 5.984965424, 6.693110555, 7.485043894,
    8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283, 20.47818807,
    22.90118105, 25.61086418, 28.64115884, 32.03, 32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7, 32.71, 32.93, 32.97,
    33.28, 33.49, 33.5, 44.16, 47.77,
)  # fmt: skip
PHI4 = LongRoPE((1.0,) * 48, PHI4_LONG, 4096, max_length=131072)  # Phi-4-mini, 96 of 128 lanes
SIX = (1.0, 1.25, 1.5, 2.5, 3.0, 4.5)
SIX_LONG = (1.5, 2.25, 4.0, 7.0, 11.0, 16.5)
SMALL = LongRoPE(SIX, SIX_LONG, 32, max_length=256)
GIVEN_FACTOR = LongRoPE(SIX, SIX_LONG, 48, max_length=96, factor=6.0)
MSCALES = LongRoPE(SIX, SIX_LONG, 20, max_length=200, short_mscale=1.125, long_mscale=1.375)
ONE_MSCALE = LongRoPE(SIX[:5], SIX_LONG[:5], 24, factor=3.0, long_mscale=0.875)
TURNS = YaRNByTurns(6, 500)
TURNS_NARROW = YaRNByTurns(4, 300, beta_fast=9, beta_slow=2.5)


class Extended(NamedTuple):
    """A context extension, its width, and further options."""

    name: str
    dim: int
    scaling: Scaling
    comment: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012

    @property
    def params(self) -> dict[str, Any]:
        """The options of frequencies, but the width."""
        return {"base": BASE, "scaling": self.scaling, **self.options}

    @property
    def last(self) -> int:
        """The last position."""
        return max(self.options.get("length") or 300, 2) - 1

    @property
    def layout(self) -> str:
        """The second layout of the cases of rotations, after halves."""
        return "interleaved_to_half" if self.dim % 4 else "interleaved"


EXTENDED = (
    Extended("ntk-alpha/hunyuan", 128, NTKAlpha(1000.0), "HunYuan"),
    Extended("ntk-alpha/small", 10, NTKAlpha(6.5), options={"base": 5e5}),
    Extended("ntk-alpha/less", 12, NTKAlpha(0.75)),
    Extended("ntk-fixed/two-pairs", 4, NTKFixed(2.5), options={"base": 500.0}),
    Extended("ntk-mixed/mix", 12, NTKMixed(6.0, mix=0.5), options={"base": 5e5}),
    Extended("yarn-turns/6", 20, TURNS),
    Extended("yarn-turns/narrow", 12, TURNS_NARROW, options={"base": 500.0}),
    Extended("yarn-turns/step", 14, YaRNByTurns(5, 400, beta_fast=3, beta_slow=3)),
    Extended("yarn-dynamic/below", 12, DynamicYaRN(64), options={"length": 33}),
    Extended("yarn-dynamic/far-below", 14, DynamicYaRN(900, beta_fast=16), options={"base": 500.0, "length": 100}),
    Extended("yarn-dynamic/at", 10, DynamicYaRN(64), options={"length": 64}),
    Extended("yarn-dynamic/above", 20, DynamicYaRN(600, beta_fast=20, beta_slow=2), options={"length": 3000}),
    Extended("yarn-dynamic/unrounded", 24, DynamicYaRN(700, truncate=False), options={"length": 1500}),
    Extended("longrope/at", 12, SMALL, "the short list still", {"length": 32}),
    Extended("longrope/factor", 12, GIVEN_FACTOR, "factor goes before max_length", {"length": 49, "base": 5e5}),
    Extended("longrope/mscale-far", 12, MSCALES, options={"base": 5e5, "length": 190}),
    Extended("longrope/factor-short", 12, GIVEN_FACTOR, options={"length": 31}),
    Extended("longrope/one-mscale-long", 10, ONE_MSCALE, options={"length": 25}),
    Extended("longrope/shorter", 12, LongRoPE(SIX_LONG, SIX, 64, max_length=32), "no factor for s <= 1", {"length": 70}),
    Extended("longrope/phi-4-mini", 96, PHI4, options={"length": 4097}),
    Extended("longrope/phi-3.5-mini", 96, LongRoPE(PHI35_SHORT, PHI4_LONG, 4096, factor=32.0),
             "its short list", {"length": 4096}),
    Extended("proportional/gemma-4", 512, Proportional(0.25), options={"base": 1e6}),
    Extended("proportional/small", 20, Proportional(0.5, factor=2.0)),
    Extended("proportional/odd-pairs", 14, Proportional(0.3), "2 of 7 pairs", {"base": 5e5}),
    Extended("proportional/all", 6, Proportional(1.0)),
    Extended("proportional/none", 10, Proportional(0.0), "nothing turns"),
    Extended("clipped/llama-3", 128, Clipped(20), "the authors' model: pairs 44 to 63", {"base": 5e5}),
    Extended("clipped/six-of-ten", 20, Clipped(6)),
    Extended("clipped/all", 12, Clipped(20), "fewer pairs than 20", {"base": 500.0}),
    Extended("clipped/one", 10, Clipped(1), "as it is"),
    Extended("clipped/hard", 14, Clipped(3, hard=True), options={"base": 5e5}),
    Extended("clipped/hard-one", 8, Clipped(1, hard=True)),
)  # fmt: skip
RISING = "long, short, at the limit, long"
LONGROPE_LENGTHS = (40, 9, 33, 32, 64)
YARN_LENGTHS = (100, 17, 49, 48, 120)
ROLES = ("query", "key")
FROM_AFAR = FAR[:-2]  # to 65537
HALFWAY: dict[str, Any] = {"centre": 32768, "scale_base": 8192.0}  # so that scales stay in range, with a base of 512 too
BEYOND = (131071, 131073, 130817, 131080)
BESIDE: dict[str, Any] = {"centre": 131072, "scale_base": 8192.0}  # with a centre of 0 too
ROTARY: dict[str, Any] = {"layout": "half", "base": 10000.0}
MIXED: dict[str, Any] = {"layout": "interleaved", "base": 500000.0}
ROLE: dict[str, Any] = {"role": "key", "centre": 7, "scale_base": 40.0}
FREQUENCIES = (1.0, 0.1171875, 0.013671875, 0.00390625)


class Heads(NamedTuple):
    """Heads of a size that narrow kernels rotate: how many channels and heads, and positions."""

    channels: int
    heads: int
    positions: tuple[int, ...]


HEADS = {
    "64": Heads(64, 1, (3, 3, 3)),
    "64-chunk": Heads(64, 1, (37, 38, 39)),
    "64-decode": Heads(64, 3, (258,)),
    "64-far": Heads(64, 1, (4096, 7, 32767)),
    "64-zero": Heads(64, 1, (0, 1, 2, 3)),
    "128": Heads(128, 1, (3, 3, 3)),
    "128-decode": Heads(128, 2, (2049,)),
    "128-zero": Heads(128, 1, (0, 1, 2)),
}


def usual_heads(layout: str) -> Iterator[tuple[str, Heads, Any]]:
    """Yield heads that narrow kernels rotate, by the last part of a case's id, and their x."""
    for name, heads in HEADS.items():
        x = floats(heads.heads, len(heads.positions), heads.channels, seed=seed_of(name + layout))
        yield f"{layout.replace('_', '-')}-{name}", heads, x


def in_layouts(**options: Any) -> tuple[dict[str, Any], ...]:
    """Return options of calls in the kernel tier that rotate in both layouts, with further ones."""
    return tuple({"layout": layout, "base": BASE, **options} for layout in ("half", "interleaved"))


class Rotated(NamedTuple):
    """A form of input of a rotation: the shape of x, positions, layout and base."""

    name: str
    x: tuple[int, ...]
    positions: Any
    options: dict[str, Any]
    comment: str = ""
    form: str = ""


ROTATED_FORMS = (
    Rotated("expanded", (2, -3, 4, 10), (((0, 3, 9, 4),),) * 2, ROTARY, "one head stands for three", form="broadcast-view"),
    Rotated("length-one", (1, 3, 1, 12), (((300,),),), ROTARY),
)


def rotations(op: str, **options: Any) -> Iterator[Case]:
    """Yield the forms of x for a rotation by positions, with further options."""
    for rotated in ROTATED_FORMS:
        inputs = {"x": reals(op + rotated.name, *rotated.x), "positions": rotated.positions}
        yield form_case(op, rotated.name, inputs, rotated.options | options, rotated.comment, rotated.form)


PLACES = ((3, 8, 1, 7), (0, 5, 2, 6), (4, 9, 0, 2))
TRIPLES = ((0, 3, 9), (1, 257, 2), (4, 0, 7))

BUFFER = "A buffer is cast with the model."


def members(half: int, halves: bool) -> Any:
    """Return the lanes of every pair of a rotated part of ``2 * half`` lanes: first members, then second ones."""
    return np.arange(2 * half).reshape(2, half) if halves else np.arange(2 * half).reshape(half, 2).T


def reads_writes(layout: str, inverse: bool) -> tuple[bool, bool]:
    """Return whether a layout reads, and whether it writes, halves."""
    forward = (layout == "half", layout != "interleaved")
    return forward[::-1] if inverse else forward


def _narrow_tables(dtype: str) -> dict[str, Wrap]:
    """Return wraps with cosines and sines in a narrower dtype, both when they are made and when they are used."""
    narrow = narrowed(dtype)
    return {
        "apply_rope": before(lambda x, cos, sin, **options: ((x, narrow(cos), narrow(sin)), options)),
        "rope_table": after(lambda table, *args, **options: tuple(map(narrow, table))),
    }


def _narrow_frequencies(dtype: str) -> dict[str, Wrap]:
    """Return wraps with frequencies in a narrower dtype, both when they are made and when they are used."""
    narrow = narrowed(dtype)
    return changed_frequencies(lambda f, dim, **options: narrow(f)) | {"rope_table": argument(1, narrow)}


DEVIATIONS = (
    Deviation("table-bfloat16", "the cos/sin table is held in bfloat16", _narrow_tables("bfloat16"), hint=KEEP_FLOAT32,
              seen_in="sglang#3134, flashinfer#585"),
    Deviation("table-float16", "the cos/sin table is held in float16", _narrow_tables("float16"), hint=KEEP_FLOAT32,
              seen_in="sglang#3134"),
    Deviation("inv-freq-bfloat16", "frequencies are held in bfloat16", _narrow_frequencies("bfloat16"), hint=BUFFER,
              seen_in="transformers#25681, tt-metal#54516"),
    Deviation("inv-freq-float16", "frequencies are held in float16", _narrow_frequencies("float16"), hint=BUFFER,
              seen_in="transformers#29285"),
)  # fmt: skip

"""
The records that name a context extension of RoPE, and nothing else.

Each is frozen and holds host numbers; `posref.rope_frequencies` computes with them. None in a field means "not given", and 0.0
means zero. `requires` lists what must be true of the fields, the options of the call and `dim`, the number of rotated channels.

In the formulas b is `base`, d is `dim`, and frequency i, from 0 to d/2 - 1, is ``b**(-2*i/d)`` before the extension.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Scaling:
    """Any of the records. NumPy's scalars become Python's numbers, whose products are in binary64."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
                object.__setattr__(self, field.name, value.item())


@dataclass(frozen=True)
class Linear(Scaling):
    """Position interpolation: divide every frequency by `factor`. Source: Chen et al., arXiv:2306.15595."""

    factor: float


@dataclass(frozen=True)
class NTKAware(Scaling):
    """Raise the base to ``b * factor**(d/(d-2))``. Source: bloc97, "NTK-Aware Scaled RoPE", 2023."""

    requires = ("dim >= 4",)
    factor: float


@dataclass(frozen=True)
class NTKAlpha(Scaling):
    """Raise the base to ``b * alpha**(d/(d-2))``, at every length. Source: HunYuan's configurations, "dynamic" with alpha."""

    requires = ("dim >= 4",)
    alpha: float


@dataclass(frozen=True)
class NTKFixed(Scaling):
    """
    Multiply the base by `factor`, then divide every frequency by ``factor**(2/d)``: the slowest is divided by `factor` in all.

    Source: Su, "Transformer upgrade 11: NTK-RoPE-fixed", kexue.fm/archives/9706; vLLM's "ntk".
    """

    factor: float


@dataclass(frozen=True)
class NTKMixed(Scaling):
    """
    Multiply frequency i by ``exp(-a (i+1)**mix)``, ``a = ln(factor) / (d/2)**mix``: the slowest is divided by `factor`.

    Source: Su, "Transformer upgrade 11: NTK-RoPE-mixed", kexue.fm/archives/9706; vLLM's "ntk" with mixed_b.
    """

    factor: float
    mix: float = 0.75


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """
    NTK-aware scaling by a factor that grows with the sequence: ``s = factor * max(length, L)/L - (factor - 1)``.

    L is `original_length`; the base becomes ``b * s**(d/(d-2))``. It needs `length`, and changes nothing up to L.
    Source: emozilla, "Dynamically Scaled RoPE", 2023.
    """

    requires = ("dim >= 4", "length is not None")
    factor: float
    original_length: int


@dataclass(frozen=True)
class Llama3(Scaling):
    """
    Divide the frequencies of long waves by `factor`, keep those of short waves, and blend between. Source: arXiv:2407.21783.

    Frequency f makes ``r = L * f / (2 pi)`` turns in the original length L. It becomes ``(1 - k) * f / factor + k * f`` with
    ``k = (r - low_freq_factor) / (high_freq_factor - low_freq_factor)``, limited to 0 to 1. If the two are equal, k is 1 from
    ``r = low_freq_factor`` on, else 0.
    """

    requires = ("low_freq_factor <= high_freq_factor",)
    factor: float
    original_length: int
    low_freq_factor: float = 1
    high_freq_factor: float = 4


@dataclass(frozen=True)
class YaRN(Scaling):
    """
    NTK by parts, with an attention factor on cos and sin. Source: Peng et al., arXiv:2309.00071.

    Fast frequencies are kept, slow ones divided by `factor`. As in all code, the ramp between them runs over the index i, from
    the correction dimension of `beta_fast` (at least 0) to the one of `beta_slow` (at most d - 1), where the correction
    dimension of beta is ``d * ln(original_length / (2 pi beta)) / (2 ln b)``. `truncate` rounds these outwards to integers
    (gpt-oss does not). The factor on cos and sin is `attention_factor` if given; else ``g(mscale)/g(mscale_all_dim)`` if both
    are given (DeepSeek); else ``g(1)``. Here ``g(m) = m ln(factor)/10 + 1``, or 1 for ``factor <= 1``.
    """

    requires = ("beta_slow <= beta_fast", "base > 1")
    factor: float
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    truncate: bool = True
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None


@dataclass(frozen=True)
class YaRNByTurns(Scaling):
    """
    YaRN by the paper's equation: the ramp runs over the number of turns that a pair makes in the original length.

    A pair with fewer than `beta_slow` turns is slowed by `factor`, one with more than `beta_fast` is kept. No released model is
    known to use this, since all code has the ramp of `YaRN`. Source: Peng et al., arXiv:2309.00071, section 3.2.
    """

    requires = ("beta_slow <= beta_fast", "base > 1")
    factor: float
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    attention_factor: float | None = None


@dataclass(frozen=True)
class DynamicYaRN(Scaling):
    """
    YaRN with ``max(length, L) / L`` as its factor, L being `original_length`. It needs `length`, and changes nothing up to L.

    Source: the authors' code, jquesnelle/yarn, LlamaDynamicYaRNScaledRotaryEmbedding.
    """

    requires = ("beta_slow <= beta_fast", "base > 1", "length is not None")
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    truncate: bool = True


@dataclass(frozen=True)
class LongRoPE(Scaling):
    """
    Divide frequency i by entry i of a searched list: the long list if ``length > original_length``, else the short one.

    The factor on cos and sin is `attention_factor` if given; else the `short_mscale` or `long_mscale` of the list in use, if
    given; else ``sqrt(1 + ln(s) / ln(original_length))``, or 1 for ``s <= 1``. Here s is `factor` if given, else
    ``max_length / original_length``. It needs `length`. Source: Ding et al., arXiv:2402.13753; Phi-3.
    """

    requires = (
        "original_length >= 2",
        "factor is None or factor > 0",
        "factor is not None or max_length is not None or attention_factor is not None",
        "len(short_factor) == dim // 2 and len(long_factor) == dim // 2",
        "length is not None",
    )
    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    original_length: int
    max_length: int | None = None
    factor: float | None = None
    attention_factor: float | None = None
    short_mscale: float | None = None
    long_mscale: float | None = None


@dataclass(frozen=True)
class Proportional(Scaling):
    """
    Rotate only the first ``floor(rotated * d / 2)`` pairs, with the frequencies of the whole head d, divided by `factor`.

    The product of `rotated` and d is rounded to binary64, as Python and transformers round it. So 0.3 of 20 channels are 3
    pairs, although the binary64 number 0.3 is a little less than 3/10. The other pairs have frequency 0. Source: Gemma 4
    ("proportional"), after p-RoPE, Barbero et al., arXiv:2410.06205.
    """

    requires = ("rotated <= 1",)
    rotated: float
    factor: float = 1.0


RECORDS: tuple[type[Scaling], ...] = tuple(Scaling.__subclasses__())

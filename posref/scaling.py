"""
Records that describe the context extensions of RoPE. They hold settings only.

Each record is frozen and holds host numbers; `posref.rope_frequencies` computes with them. None in a field means "not given",
and 0.0 means zero. `requires` lists what must be true of the fields, of the options of the call and of `dim`, the number of
rotated channels.

In the formulas b is `base`, d is `dim`, and frequency i, from 0 to d/2 - 1, is ``b**(-2*i/d)`` before the extension.
"""

from dataclasses import dataclass, fields

from posref import surroundings

__all__ = [
    "RECORDS", "Clipped", "DynamicNTK", "DynamicYaRN", "Linear", "Llama3", "LongRoPE", "NTKAlpha", "NTKAware", "NTKFixed",
    "NTKMixed", "Proportional", "Scaling", "YaRN", "YaRNByTurns",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return only the public names, without what is imported."""
    return __all__


@dataclass(frozen=True)
class Scaling(metaclass=surroundings.Record):
    """The base class of the records. It converts NumPy scalars to Python numbers, so that products are in binary64."""

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
    Multiply the base by `factor`, then divide every frequency by ``factor**(2/d)``.

    In total the slowest frequency is divided by `factor`. Source: Su, "Transformer upgrade 11: NTK-RoPE-fixed",
    kexue.fm/archives/9706; vLLM's "ntk" (0.33.0, model_executor/layers/rotary_embedding/ntk_scaling_rope.py:31-36).
    """

    factor: float


@dataclass(frozen=True)
class NTKMixed(Scaling):
    """
    Multiply frequency i by ``exp(-a (i+1)**mix)``, where ``a = ln(factor) / (d/2)**mix``.

    This divides the slowest frequency by `factor`. Source: Su, "Transformer upgrade 11: NTK-RoPE-mixed",
    kexue.fm/archives/9706; vLLM's "ntk" with mixed_b (0.33.0, ntk_scaling_rope.py:37-45).
    """

    factor: float
    mix: float = 0.75


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """
    NTK-aware scaling by a factor that grows with the sequence: ``s = factor * max(length, L)/L - (factor - 1)``.

    L is `original_length`, and the base becomes ``b * s**(d/(d-2))``. It needs `length`. For lengths up to L nothing changes.
    Source: emozilla, "Dynamically Scaled RoPE", 2023.
    """

    requires = ("dim >= 4", "length is not None")
    factor: float
    original_length: int


@dataclass(frozen=True)
class Llama3(Scaling):
    """
    Divide slow frequencies by `factor`, keep fast ones, and blend between. Source: arXiv:2407.21783.

    Frequency f makes ``r = L * f / (2 pi)`` turns in the original length L. It becomes ``(1 - k) * f / factor + k * f`` with
    ``k = (r - low_freq_factor) / (high_freq_factor - low_freq_factor)``, clipped to [0, 1]. If `low_freq_factor` and
    `high_freq_factor` are equal, k is 1 for ``r >= low_freq_factor``, else 0.
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

    Fast frequencies stay, slow ones are divided by `factor`, and a ramp blends between. As in all code, the ramp runs over the
    index i. It starts at n(`beta_fast`), but not below 0, and ends at n(`beta_slow`), but not above d - 1. Here n(beta), the
    correction dimension, is ``d * ln(original_length / (2 pi beta)) / (2 ln b)``. `truncate` rounds the start down and the end
    up to integers (gpt-oss does not round).

    The factor on cos and sin is `attention_factor` if given; else ``g(mscale)/g(mscale_all_dim)`` if both of these are given
    (DeepSeek); else ``g(1)``. Here ``g(m) = m ln(factor)/10 + 1``, or 1 for ``factor <= 1``.
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

    With fewer than `beta_slow` turns, a pair's frequency is divided by `factor`. With more than `beta_fast`, it stays. No
    released model is known to use this: all code has the ramp of `YaRN`. Source: Peng et al., arXiv:2309.00071, section 3.2.
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
    YaRN with the factor ``max(length, L) / L``, where L is `original_length`.

    It needs `length`. For lengths up to L nothing changes. Source: the authors' code, jquesnelle/yarn,
    LlamaDynamicYaRNScaledRotaryEmbedding.
    """

    requires = ("beta_slow <= beta_fast", "base > 1", "length is not None")
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    truncate: bool = True


@dataclass(frozen=True)
class LongRoPE(Scaling):
    """
    Divide frequency i by entry i of a list: `long_factor` if ``length > original_length``, else `short_factor`.

    The lists come from a search. The factor on cos and sin is `attention_factor` if given; else `long_mscale` with the long
    list or `short_mscale` with the short one, if given; else ``sqrt(1 + ln(s) / ln(original_length))``, or 1 for ``s <= 1``.
    Here s is `factor` if given, else ``max_length / original_length``. LongRoPE needs `length`. Source: Ding et al.,
    arXiv:2402.13753; Phi-3.
    """

    requires = (
        "original_length >= 2",
        "factor is None or factor > 0",
        "factor is not None or max_length is not None or attention_factor is not None"
        " or short_mscale is not None and long_mscale is not None",
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
    Rotate only the first ``floor(rotated * d / 2)`` pairs, with their frequencies divided by `factor`.

    Here d is the number of channels of the whole head. The other pairs have frequency 0. The product of `rotated` and d is
    rounded to binary64, as in Python and transformers. So 0.3 of 20 channels are 3 pairs, although the binary64 number 0.3 is a
    little less than 3/10. Source: Gemma 4 ("proportional"), after p-RoPE, Barbero et al., arXiv:2410.06205.
    """

    requires = ("rotated <= 1",)
    rotated: float
    factor: float = 1.0


@dataclass(frozen=True)
class Clipped(Scaling):
    """
    Slow down the last n pairs, the last one to 0: pair d/2 - n + j by ``(1 + cos(pi j/(n-1)))/2``, j from 0 to n - 1.

    n is `pairs`, or d/2 if there are fewer; of one pair alone nothing changes. `hard` sets the n frequencies to 0 instead.
    Source: Li et al., "CoPE: clipped RoPE", arXiv:2602.05258; hrlics/CoPE@bb728e8, modeling_cope.py, "use_cope" and
    "use_hardclip", where n is 20. It is not `posref.cope`.
    """

    requires = ("pairs >= 0",)
    pairs: int
    hard: bool = False


RECORDS: tuple[type[Scaling], ...] = tuple(Scaling.__subclasses__())

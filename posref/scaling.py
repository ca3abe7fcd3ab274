"""
The records that name a context extension of RoPE, and nothing else.

Each is frozen and holds host numbers; `posref.rope_frequencies` says what they mean. A field of None is not given; 0.0 is zero.
`requires`, where there is one, is what a record asks of its fields, of the options beside it and of `dim`, the rotated lanes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scaling:
    """Any of the records."""


@dataclass(frozen=True)
class Linear(Scaling):
    """Position interpolation: every frequency divided by `factor`. Source: Chen et al., arXiv:2306.15595."""

    factor: float


@dataclass(frozen=True)
class NTKAware(Scaling):
    """Base raised to ``base * factor**(d/(d-2))``. Source: bloc97, "NTK-Aware Scaled RoPE", 2023."""

    requires = ("dim >= 4",)
    factor: float


@dataclass(frozen=True)
class NTKAlpha(Scaling):
    """Base raised to ``base * alpha**(d/(d-2))``, at every length. Source: HunYuan's configurations, "dynamic" with alpha."""

    requires = ("dim >= 4",)
    alpha: float


@dataclass(frozen=True)
class NTKFixed(Scaling):
    """
    Base multiplied by `factor`, and frequencies divided by ``factor**(2/d)``, so that the slowest is divided by `factor`.

    Source: Su, "Transformer upgrade 11: NTK-RoPE-fixed", kexue.fm/archives/9706; vLLM's "ntk".
    """

    factor: float


@dataclass(frozen=True)
class NTKMixed(Scaling):
    """
    Frequency i multiplied by ``exp(-a (i+1)**mix)`` with ``a = ln(factor) / (d/2)**mix``: the slowest is divided by `factor`.

    Source: Su, "Transformer upgrade 11: NTK-RoPE-mixed", kexue.fm/archives/9706; vLLM's "ntk" with mixed_b.
    """

    factor: float
    mix: float = 0.75


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """
    NTK-aware scaling by the sequence's `length`: ``factor * l/L - (factor - 1)`` with ``l = max(length, L)``.

    Source: emozilla, "Dynamically Scaled RoPE", 2023. It needs `length`; at ``length <= original_length`` it is the identity.
    """

    requires = ("dim >= 4", "length is not None")
    factor: float
    original_length: int


@dataclass(frozen=True)
class Llama3(Scaling):
    """Frequencies of long waves divided by `factor`, short ones kept, a ramp between. Source: Llama 3.1, arXiv:2407.21783."""

    requires = ("low_freq_factor <= high_freq_factor",)
    factor: float
    original_length: int
    low_freq_factor: float = 1
    high_freq_factor: float = 4


@dataclass(frozen=True)
class YaRN(Scaling):
    """
    NTK by parts with an attention factor on cos and sin. Source: Peng et al., arXiv:2309.00071.

    The ramp runs over the dimension index between the correction dimensions of `beta_fast` and `beta_slow`, as in all code;
    `truncate` rounds these outwards to integers (gpt-oss does not). The factor on cos and sin is `attention_factor` when
    given; else ``g(mscale)/g(mscale_all_dim)`` when both are given (DeepSeek); else ``g(1)``, where
    ``g(m) = m ln(factor)/10 + 1``, and 1 for ``factor <= 1``.
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
    YaRN as the paper's equation has it: its ramp runs over the turns that a pair makes in the original length.

    Slowed below `beta_slow` turns, kept above `beta_fast`. Source: Peng et al., arXiv:2309.00071, section 3.2; no released
    model is known to use it, since all code has the ramp of `YaRN`.
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
    YaRN with ``max(length, L) / L`` for its factor, so that nothing changes up to the original length. It needs `length`.

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
    Frequency i divided by entry i of a searched list: the long one where ``length > original_length``, else the short one.

    The factor on cos and sin is `attention_factor` when given; else `short_mscale` or `long_mscale`, when given for the list in
    use; else ``sqrt(1 + ln(s) / ln(original_length))``, and 1 for ``s <= 1``, where s is `factor` when given, else
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
    The first ``floor(rotated d / 2)`` pairs turn with the frequencies of the whole head d, divided by `factor`; others do not.

    Source: Gemma 4 ("proportional"), after p-RoPE, Barbero et al., arXiv:2410.06205.
    """

    requires = ("rotated <= 1",)
    rotated: float
    factor: float = 1.0


RECORDS: tuple[type[Scaling], ...] = tuple(Scaling.__subclasses__())

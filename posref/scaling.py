"""
The records that name a context extension of RoPE, and nothing else.

Each is frozen and holds host numbers; `posref.rope_frequencies` says what they mean. A field of None is not given; 0.0 is zero.
`requires`, where there is one, is what a record asks of its fields, of the options beside it and of `dim`, the rotated lanes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Linear:
    """Position interpolation: every frequency divided by `factor`. Source: Chen et al., arXiv:2306.15595."""

    factor: float


@dataclass(frozen=True)
class NTKAware:
    """Base raised to ``base * factor**(d/(d-2))``. Source: bloc97, "NTK-Aware Scaled RoPE", 2023."""

    requires = ("dim >= 4",)
    factor: float


@dataclass(frozen=True)
class DynamicNTK:
    """
    NTK-aware scaling by the sequence's `length`: ``factor * l/L - (factor - 1)`` with ``l = max(length, L)``.

    Source: emozilla, "Dynamically Scaled RoPE", 2023. It needs `length`; at ``length <= original_length`` it is the identity.
    """

    requires = ("dim >= 4", "length is not None")
    factor: float
    original_length: int


@dataclass(frozen=True)
class Llama3:
    """Frequencies of long waves divided by `factor`, short ones kept, a ramp between. Source: Llama 3.1, arXiv:2407.21783."""

    requires = ("low_freq_factor <= high_freq_factor",)
    factor: float
    original_length: int
    low_freq_factor: float = 1
    high_freq_factor: float = 4


@dataclass(frozen=True)
class YaRN:
    """
    NTK by parts with an attention factor on cos and sin. Source: Peng et al., arXiv:2309.00071.

    The ramp runs over the dimension index between the correction dimensions of `beta_fast` and `beta_slow`, as in the authors'
    code; `truncate` rounds these outwards to integers (gpt-oss does not). The factor is `attention_factor` when given; else
    ``g(mscale)/g(mscale_all_dim)`` when both are given (DeepSeek); else ``g(1)``, where ``g(m) = m ln(factor)/10 + 1``, and 1
    for ``factor <= 1``.
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


Scaling = Linear | NTKAware | DynamicNTK | Llama3 | YaRN

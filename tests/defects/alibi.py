"""ALiBi, implemented with one defect each."""

import math

import numpy as np
import torch
from planting import planted


@planted("absolute value in causal form", names=("alibi-abs-added",))
def alibi_abs_added():
    """The causal form takes the absolute value too, so the two forms are one; flash-attention has a single ALiBi mode."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form not in ("distance", "causal"):
            raise NotImplementedError(form)
        n = 1 << (heads.bit_length() - 1)
        m = np.exp2(np.float32(-8 / n) * np.arange(1, n + 1, dtype=np.float32))
        m = np.append(m, np.exp2(np.float32(-4 / n) * np.arange(1, 2 * (heads - n), 2, dtype=np.float32)))
        bias = -m[:, None, None] * np.abs(q_positions[..., None, :, None] - k_positions[..., None, None, :])
        return bias.astype(dtype or np.float32)

    return alibi


@planted("absolute value missing in distance form", names=("alibi-abs-missing",))
def alibi_abs_missing():
    """Bidirectional ALiBi without the absolute value: later keys are rewarded; x-transformers 4ed4d0a (no `bias.abs()`)."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form == "key":
            raise NotImplementedError(form)
        n = 2 ** int(np.log2(heads))
        m = [2 ** (-8 * i / n) for i in range(1, n + 1)] + [2 ** (-4 * i / n) for i in range(1, 2 * (heads - n) + 1, 2)]
        m = np.asarray(m, dtype=np.float32).reshape(heads, 1, 1)
        relative = (k_positions[..., None, None, :] - q_positions[..., None, :, None]).astype(np.float32)
        return (m * relative).astype(dtype or np.float32)

    return alibi


@planted("ALiBi product in bfloat16", names=("alibi-all-bfloat16",), backend="torch")
def alibi_bfloat16_product():
    """Slope and product are kept in bfloat16; TensorRT-Model-Connect #667 (Falcon), Habana vllm-fork #503."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        n = 2 ** (heads.bit_length() - 1)
        slopes = torch.pow(2 ** (-8 / n), torch.arange(1, 1 + n, dtype=torch.float32))
        extra = torch.pow(2 ** (-4 / n), torch.arange(1, 1 + 2 * (heads - n), 2, dtype=torch.float32))
        slopes = torch.cat([slopes, extra]).bfloat16()[:, None, None]
        keys = k_positions[..., None, None, :]
        gap = {
            "key": keys,
            "causal": keys - q_positions[..., None, :, None],
            "distance": -(keys - q_positions[..., None, :, None]).abs(),
        }[form]
        return (slopes * gap.bfloat16()).to(dtype or torch.float32)

    return alibi


@planted("ALiBi distance off by one", names=("alibi-off-by-one",))
def alibi_distance_off_by_one():
    """The distance counts from one; vLLM #945 (constant per row, so a softmax hides it)."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form != "causal":
            raise NotImplementedError(form)
        n = 1 << (heads.bit_length() - 1)
        m = [2.0 ** (-8.0 * i / n) for i in range(1, n + 1)] + [2.0 ** (-4.0 * i / n) for i in range(1, 2 * (heads - n), 2)]
        rel = k_positions[..., None, None, :] - (q_positions[..., None, :, None] + 1)
        return (np.array(m, dtype=np.float32)[:, None, None] * rel.astype(np.float32)).astype(dtype or np.float32)

    return alibi


@planted("slopes in reverse order of heads", names=("slopes-ascending",))
def alibi_heads_reversed():
    """The steepest slope goes to the last head. Imagined: a converter that sorts slopes in ascending order."""

    def alibi_slopes(heads, /, *, max_bias=8):
        below = 1 << (heads.bit_length() - 1)
        ratio = 2.0 ** (-max_bias / below)
        slopes = [ratio**h for h in range(1, below + 1)] + [ratio ** (h + 0.5) for h in range(heads - below)]
        return np.sort(np.array(slopes, dtype=np.float32))

    return alibi_slopes


@planted("max_bias ignored", names=("max-bias-8",))
def alibi_max_bias_ignored():
    """max_bias is fixed at 8. Imagined: BLOOM's kernel serving an MPT model with another `alibi_bias_max`."""

    def alibi_slopes(heads, /, *, max_bias=8):
        below = 2 ** (heads.bit_length() - 1)
        slopes = [2.0 ** (-8.0 * h / below) for h in range(1, below + 1)]
        slopes += [2.0 ** (-4.0 * h / below) for h in range(1, 2 * (heads - below), 2)]
        return np.array(slopes, dtype=np.float32)

    return alibi_slopes


@planted("ALiBi sign flipped", names=("alibi-sign",))
def alibi_sign():
    """The bias is +m|i-j|: far keys are favoured; a sign slip of the kind of x-transformers 4ed4d0a."""

    def slopes(heads):
        below = 1 << (heads.bit_length() - 1)
        first = 2.0 ** (-8 / below * np.arange(1, below + 1))
        extra = 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))
        return np.concatenate([first, extra]).astype(np.float32)

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form == "key":
            raise NotImplementedError(form)
        gap = q_positions[..., :, None] - k_positions[..., None, :]
        if form == "distance":
            gap = np.abs(gap)
        return (slopes(heads)[:, None, None] * gap[..., None, :, :].astype(np.float32)).astype(dtype or np.float32)

    return alibi


@planted("closed form for heads not a power of two", names=("slopes-closed-form",))
def alibi_slopes_closed_form():
    """2**(-8h/H) for every head count, also no power of two; discussed in Baichuan2 #225 and TensorRT-LLM #1611."""

    def alibi_slopes(heads, /, *, max_bias=8):
        return (2.0 ** (-max_bias * np.arange(1, heads + 1, dtype=np.float32) / heads)).astype(np.float32)

    return alibi_slopes


@planted("slopes of the next power of two, first H", names=("slopes-next-power",))
def alibi_slopes_not_interleaved():
    """Slopes of the power of two above, the first H of them. Imagined: a port of MPT that lost `slopes[1::2]`."""

    def alibi_slopes(heads, /, *, max_bias=8):
        n = 1 << (heads - 1).bit_length()
        m = np.arange(1, n + 1, dtype=np.float32) * np.float32(max_bias / n)
        return (1.0 / np.power(np.float32(2), m))[:heads]

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form != "distance":
            raise NotImplementedError(form)
        gap = np.abs(q_positions[..., :, None] - k_positions[..., None, :]).astype(np.float32)
        return (-alibi_slopes(heads)[:, None, None] * gap[..., None, :, :]).astype(dtype or np.float32)

    return alibi_slopes, alibi


@planted("slope exponent off by one", names=("slopes-off-by-one",))
def alibi_slopes_off_by_one():
    """The exponent starts at 0, so the first slope is 1; aprender #2143 (six sibling tests had pinned it)."""

    def get_slopes(n):
        def power_of_2(n):
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start**i for i in range(n)]

        if math.log2(n).is_integer():
            return power_of_2(n)
        closest = 2 ** math.floor(math.log2(n))
        return power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]

    def alibi_slopes(heads, /):
        return np.asarray(get_slopes(heads), dtype=np.float32)

    return alibi_slopes

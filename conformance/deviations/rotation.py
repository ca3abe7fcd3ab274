"""Deviations of the rotation itself: layouts, signs, channels, and the factor."""

from typing import Any

import numpy as np

import posref

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, narrowed, option

LANES = "Compare which channels rotate together: (i, i + d/2) is half, (2i, 2i + 1) is interleaved."


def _mixed_table(function: Function) -> Function:
    """Columns duplicated for one layout, channels paired as in the other."""

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        half = cos.shape[-1]
        reads_half = layout == "half" or (layout == "interleaved_to_half" and inverse)
        paired = [(i, i + half) if reads_half else (2 * i, 2 * i + 1) for i in range(half)]
        a, b = (np.asarray([pair[k] for pair in paired]) for k in (0, 1))
        wide = [
            np.repeat(t, 2, axis=-1) if reads_half else np.concatenate([t, t], axis=-1) for t in (cos, -sin if inverse else sin)
        ]
        shape = (*x.shape[:-1], half)
        one = np.broadcast_to(x[..., a] * wide[0][..., a] - x[..., b] * wide[1][..., a], shape)
        other = np.broadcast_to(x[..., b] * wide[0][..., b] + x[..., a] * wide[1][..., b], shape)
        writes_half = layout == "half" or (layout == "interleaved_to_half" and not inverse)
        turned = np.concatenate([one, other], -1) if writes_half else np.stack([one, other], -1).reshape(*shape[:-1], 2 * half)
        return np.concatenate([turned, x[..., 2 * half :]], axis=-1)

    return deviating


def _second_from_first(function: Function) -> Function:
    """b' computed from a', already rotated: an update in place."""

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        sine = -sin if inverse else sin
        reads, writes = (members(cos.shape[-1], halves) for halves in reads_writes(layout, inverse))
        out, a, b = np.array(x, dtype=np.float64), x[..., reads[0]], x[..., reads[1]]
        out[..., writes[0]] = first = a * cos - b * sine
        out[..., writes[1]] = b * cos + first * sine
        return out

    return deviating


def _both_sums(function: Function) -> Function:
    """Both members of a pair are sums: (x2, x1) in place of (-x2, x1)."""

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        out, halves = np.array(x, dtype=np.float64), reads_writes(layout, inverse)
        (first, second), (a, b) = members(cos.shape[-1], halves[1]), members(cos.shape[-1], halves[0])
        out[..., first] = x[..., a] * cos + x[..., b] * sin
        out[..., second] = x[..., b] * cos + x[..., a] * sin
        return out

    return deviating


def _others(value: float) -> Wrap:
    """Return a wrap in which lanes that do not rotate come out as a constant."""

    def change(out: Real, x: Real, cos: Real, *rest: Any, lanes: str = "leading", **options: Any) -> Real:
        out = np.array(out, dtype=np.float64)
        out[..., : _start(x, cos, lanes)] = value
        out[..., _start(x, cos, lanes) + 2 * cos.shape[-1] :] = value
        return out

    return after(change)


def _start(x: Real, cos: Real, lanes: str) -> int:
    """Return the first channel that rotates."""
    return int(x.shape[-1] - 2 * cos.shape[-1]) if lanes == "trailing" else 0


def _of_rotated(wrap: Wrap) -> Wrap:
    """Return a wrap that takes leading lanes for granted as one of whichever lanes rotate."""

    def wrapped(function: Function) -> Function:
        leading = wrap(function)

        def deviating(x: Real, cos: Real, sin: Real, /, *, lanes: str = "leading", **options: Any) -> Real:
            start = _start(x, cos, lanes)
            return np.concatenate([x[..., :start], leading(x[..., start:], cos, sin, **options)], axis=-1)

        return deviating

    return wrapped


def _lanes(which: str) -> Wrap:
    """Return a wrap that rotates these lanes, whichever are asked for."""
    return before(lambda *args, **options: (args, options | {"lanes": which}))


def _whole_head(function: Function) -> Function:
    return lambda x, positions, /, **options: function(x, positions, **(options | {"rotary_dim": None}))


def members(half: int, halves: bool) -> Any:
    """Return the lanes of every pair of a rotated part of ``2 * half`` lanes: first members, then second ones."""
    return np.arange(2 * half).reshape(2, half) if halves else np.arange(2 * half).reshape(half, 2).T


def reads_writes(layout: str, inverse: bool) -> tuple[bool, bool]:
    """Return whether a layout reads, and whether it writes, halves."""
    forward = (layout == "half", layout != "interleaved")
    return forward[::-1] if inverse else forward


def _head_exponent(function: Function) -> Function:
    """The pairs of the rotated part take the frequencies that the whole head's first pairs would have."""

    def deviating(x: Real, positions: Any, /, *, rotary_dim: int | None = None, lanes: str = "leading", **options: Any) -> Real:
        half, whole = (rotary_dim or x.shape[-1]) // 2, x.shape[-1] // 2
        start = x.shape[-1] - 2 * half if lanes == "trailing" else 0
        reads, writes = reads_writes(options["layout"], options.get("inverse", False))
        spread, out = np.zeros(x.shape), np.array(x, dtype=np.float64)
        spread[..., members(whole, reads)[:, :half]] = x[..., start + members(half, reads)]
        turned = function(spread, positions, **options)
        out[..., start + members(half, writes)] = turned[..., members(whole, writes)[:, :half]]
        return out

    return deviating


def _partial_twice(function: Function) -> Function:
    def deviating(x: Real, positions: Any, /, *, rotary_dim: int | None = None, **options: Any) -> Real:
        if rotary_dim is not None:
            rotary_dim = max(2, rotary_dim * rotary_dim // x.shape[-1] // 2 * 2)
        return function(x, positions, rotary_dim=rotary_dim, **options)

    return deviating


def _inverse_exchanged(function: Function) -> Function:
    return lambda x, cos, sin, /, *, inverse=False, **rest: function(x, cos, sin, inverse=not inverse, **rest)


def _inverse_keeps_lanes(function: Function) -> Function:
    """The inverse negates the sine and forgets that the third layout reads and writes differently."""
    return lambda x, cos, sin, /, *, inverse=False, **rest: function(x, cos, -sin if inverse else sin, **rest)


def _concatenated(out: Real, x: Real, cos: Real, *rest: Any, layout: str, inverse: bool = False) -> Real:
    kept = 2 * cos.shape[-1]
    if layout != "interleaved":
        return out
    return np.concatenate([out[..., 0:kept:2], out[..., 1:kept:2], out[..., kept:]], axis=-1)


def _last_pair(out: Real, x: Real, cos: Real, *rest: Any, layout: str, inverse: bool = False) -> Real:
    half, out = cos.shape[-1], np.array(out)
    last = [half - 1, 2 * half - 1] if layout == "half" else [2 * half - 2, 2 * half - 1]
    if layout != "interleaved_to_half":
        out[..., last] = x[..., last]
    return out


def _vector_tail(function: Function) -> Function:
    """Pairs after the last full four of them keep their lanes' values, a rotation by nothing."""

    def deviating(x: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
        turned = np.arange(cos.shape[-1]) < cos.shape[-1] // 4 * 4
        return function(x, np.where(turned, cos, 1.0), np.where(turned, sin, 0.0), **options)

    return deviating


def _narrow_rotation(dtype: str) -> Wrap:
    """Return a wrap in which every operation of the rotation is rounded to `dtype`."""
    narrow = narrowed(dtype)

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        half = cos.shape[-1]
        x, cos, sin = narrow(x), narrow(cos), narrow(-sin if inverse else sin)
        reads, writes = (members(half, halves) for halves in reads_writes(layout, inverse))
        out, a, b = np.array(x), x[..., reads[0]], x[..., reads[1]]
        out[..., writes[0]] = narrow(narrow(a * cos) - narrow(b * sin))
        out[..., writes[1]] = narrow(narrow(b * cos) + narrow(a * sin))
        return out

    return lambda function: deviating


def _axis(function: Function) -> Function:
    """Positions counted along the axis before the sequence's (heads in (B, H, T, d))."""

    def deviating(x: Real, positions: Any, /, **options: Any) -> Real:
        if x.ndim < 3:
            return function(x, positions, **options)
        heads = np.broadcast_to(np.arange(x.shape[-3])[:, None], x.shape[:-1])
        return function(x, heads, **options)

    return deviating


def _head_zero(out: Real, x: Real, *rest: Any, **options: Any) -> Real:
    if x.ndim < 3:
        return out
    out = np.array(out)
    out[..., 0, :, :] = x[..., 0, :, :]
    return out


def _one_head(out: Real, x: Real, *rest: Any, **options: Any) -> Real:
    return x if x.ndim > 2 and x.shape[-3] == 1 else out


def _factor_if_not(function: Function) -> Function:
    """The factor reaches only one layout's path."""

    def deviating(x: Real, positions: Any, /, *, layout: str, **options: Any) -> Real:
        out = np.array(function(x, positions, layout=layout, **options), dtype=np.float64)
        frequency = {name: options[name] for name in ("base", "scaling", "length") if name in options}
        kept = options.get("rotary_dim") or x.shape[-1]
        start = x.shape[-1] - kept if options.get("lanes") == "trailing" else 0
        out[..., start : start + kept] /= posref.rope_frequencies(kept, **frequency)[1] if layout != "half" else 1.0
        return out

    return deviating


DEVIATIONS = (
    Deviation("layout-half", "layout is always 'half'", {"apply_rope": option(layout=always("half"))}, LANES,
              "LLMs-from-scratch#747, vllm-ascend#12820"),
    Deviation("layout-interleaved", "layout is always 'interleaved'",
              {"apply_rope": option(layout=always("interleaved"))}, LANES, "ik_llama.cpp#2290"),
    Deviation("layout-interleaved-to-half", "layout is always 'interleaved_to_half'",
              {"apply_rope": option(layout=always("interleaved_to_half"))}, LANES, "vllm-metal#44"),
    Deviation("writes-halves", "interleaved pairs are read, but their results are written as halves",
              {"apply_rope": _of_rotated(after(_concatenated))}, "Results are concatenated rather than interleaved.", "vllm-metal#44"),
    Deviation("table-other-layout", "the table is duplicated for one layout, but channels are paired as in the other",
              {"apply_rope": _of_rotated(_mixed_table)}, "repeat and repeat_interleave are exchanged.", "ark-nlp#47, Megatron-LM#3900"),
    Deviation("sign-flipped", "the rotation has the wrong direction: the sign of the sine is flipped",
              {"apply_rope": argument(2, lambda sin: -sin)}, "rotate_half returns (x2, -x1), or a sine is negated.", "lalamo#268"),
    Deviation("writes-interleaved", "layout 'interleaved_to_half' writes its results back interleaved",
              {"apply_rope": option(layout=lambda name: "interleaved" if name == "interleaved_to_half" else name)}, LANES,
              "the convention of DeepSeek's own code"),
    Deviation("inverse-ignored", "inverse=True rotates forward", {"apply_rope": option(inverse=always(False))}),
    Deviation("inverse-exchanged", "inverse=True rotates forward, and inverse=False back", {"apply_rope": _inverse_exchanged},
              "In a backward pass, the cotangent is rotated like x, not back.", "PaddlePaddle#74716, in the gradient"),
    Deviation("inverse-keeps-layout", "the inverse reads and writes channels as the forward rotation does",
              {"apply_rope": _inverse_keeps_lanes}, "The transpose swaps the read and the write layout."),
    Deviation("in-place-update", "the second member of a pair is computed from the first one, already rotated in place",
              {"apply_rope": _of_rotated(_second_from_first)}, "The first half is overwritten before it is read again.", "transformers#11725"),
    Deviation("both-sums", "both channels of a pair are sums: the minus of the first is missing",
              {"apply_rope": _of_rotated(_both_sums)}, "rotate_half returns (x2, x1): it must be (-x2, x1)."),
    Deviation("not-rotated", "nothing is rotated: the input comes back", {"apply_rope": after(lambda out, x, *a, **o: x)}, "",
              "Liger-Kernel#342"),
    Deviation("last-pair-unrotated", "the last pair is not rotated", {"apply_rope": _of_rotated(after(_last_pair))}, "A loop ends one pair early.",
              "flashinfer#2470"),
    Deviation("vector-tail-unrotated", "pairs beyond a multiple of four are not rotated", {"apply_rope": _vector_tail},
              "A vectorised loop has no tail.", "flashinfer#2470"),
    Deviation("rotation-float16", "the rotation is computed in float16: inputs, products and sums",
              {"apply_rope": _of_rotated(_narrow_rotation("float16"))}, "", "sglang#3134, flashinfer#585"),
    Deviation("rotation-bfloat16", "the rotation is computed in bfloat16: inputs, products and sums",
              {"apply_rope": _of_rotated(_narrow_rotation("bfloat16"))}, "", "sglang#3134, flashinfer#585"),
    Deviation("single-head-unrotated", "nothing is rotated when there is one head", {"apply_rope": after(_one_head)}, "",
              "Liger-Kernel#342"),
    Deviation("head-zero-unrotated", "head 0 is not rotated", {"apply_rope": after(_head_zero)}, "", "transformers#47403"),
    Deviation("tail-zeroed", "channels that do not rotate are zero", {"apply_rope": _others(0.0)}, "", "labml#215"),
    Deviation("tail-ones", "channels that do not rotate are one", {"apply_rope": _others(1.0)}, "", "apex#1750, in the gradient"),
    Deviation("trailing-lanes", "the last rotary_dim channels are always rotated", {"apply_rope": _lanes("trailing")}, "",
              "the convention of DeepSeek-V4"),
    Deviation("leading-lanes", "the first rotary_dim channels are always rotated", {"apply_rope": _lanes("leading")}, "",
              "the convention of GPT-NeoX, where DeepSeek-V4 rotates the last"),
    Deviation("x-through-bfloat16", "the input is held in bfloat16", {"apply_rope": argument(0, narrowed("bfloat16"))}, "",
              "Modalities#462"),
    Deviation("x-through-float16", "the input is held in float16", {"apply_rope": argument(0, narrowed("float16"))}),
    Deviation("table-bfloat16", "the cos/sin table is held in bfloat16",
              {"apply_rope": before(lambda x, c, s, **o: ((x, narrowed("bfloat16")(c), narrowed("bfloat16")(s)), o)),
               "rope_table": after(lambda t, *a, **o: tuple(map(narrowed("bfloat16"), t)))}, "", "sglang#3134, flashinfer#585"),
    Deviation("table-float16", "the cos/sin table is held in float16",
              {"apply_rope": before(lambda x, c, s, **o: ((x, narrowed("float16")(c), narrowed("float16")(s)), o)),
               "rope_table": after(lambda t, *a, **o: tuple(map(narrowed("float16"), t)))}, "", "sglang#3134"),
    Deviation("rotary-dim-ignored", "rotary_dim is ignored: the whole head is rotated", {"rope": _whole_head}, "", "maxtext#4616"),
    Deviation("rotary-dim-twice", "the partial rotary factor is applied twice", {"rope": _partial_twice},
              "rotary_dim already contains the partial rotary factor: apply it once.", "vLLM#41185"),
    Deviation("exponent-over-head-size", "the exponent's denominator is the head size rather than rotary_dim",
              {"rope": _head_exponent}, "", "neuronx-distributed-inference#106"),
    Deviation("rotates-along-heads", "positions run along the head axis rather than the sequence axis", {"rope": _axis},
              "Compare the axis of positions with the axis of tokens: (B, H, T, D) or (B, T, H, D).",
              "open_lm#4, DeepSpeed#2782"),
    Deviation("factor-half-only", "the attention factor is applied in layout 'half' alone", {"rope": _factor_if_not},
              "The attention factor is applied in one branch of the layouts alone.",
              "daScript#3479"),
)  # fmt: skip

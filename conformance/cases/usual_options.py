"""What each operation says of its generated calls: usual options, sizes, and which of the generated cases it leaves out."""

from collections.abc import Mapping
from typing import Any

from posref.spec import REGISTRY

from .forms import AXIAL, BUCKETS, EXTENSIONS, LINEAR, ROLE, ROTARY, SECTIONS, SINES, TURNING, WINDOW

Options = Mapping[str, Any]


def operations() -> tuple[str, ...]:
    """Return the operations that have generated cases, in the order of their cases."""
    return tuple(op for op in dict.fromkeys((*USUAL, *REGISTRY)) if usual(op) is not None)


def usual(op: str) -> Options | None:
    """Return the options of a generated call; None if an operation has none of the generated cases."""
    return USUAL.get(op, {})


def own_sizes(op: str) -> Mapping[str, Any]:
    """Return the sizes of an operation's axes, by letter, where they differ from those of other operations."""
    return SIZES.get(op, {})


def way(op: str) -> int | None:
    """Return which alternative of its axes an operation is called with; None is the first one with tokens."""
    return WAY.get(op)


def left_out(op: str) -> frozenset[str]:
    """Return the generated cases that an operation leaves out: its own cases ask for the same, or it has no use for them."""
    return frozenset(name for name, ops in LEFT_OUT.items() if op in ops.split())


def axis_counts(op: str) -> tuple[int, ...]:
    """Return the other numbers of position axes that an operation is called with."""
    return AXES.get(op, ())


def gaps(op: str) -> tuple[str, ...]:
    """Return the mistakes that fewer than two cases of an operation catch."""
    return GAPS.get(op, ())


def kernel(op: str) -> tuple[Options, ...]:
    """Return the options of an operation's calls in the kernel tier; without any it has no such calls."""
    return KERNEL.get(op, ())


def every_size(op: str) -> bool:
    """Return whether an operation is called at all sizes of the kernel tier, since many kernels compute it."""
    return op in EVERY_SIZE


MASKS: dict[str, dict[str, Any]] = {
    "sliding_window": {"window": 5, "counting": "with_query", "sides": "causal"},
    "chunked_window": {"chunk": 6, "sides": "causal"},
    "lambda_window": {"sinks": 2, "window": 5, "counting": "with_query"},
}
USUAL: dict[str, dict[str, Any] | None] = {
    "sinusoidal": SINES,
    "fourier": {"unit": "half_turns", "order": "wave coordinate band", "include": "first"},
    "random_fourier": {"layout": "sin_cos"},
    "sinusoidal_nd": {"widths": [4, 6], "layout": "sin_cos", "phases": "axis"},
    "sinusoidal_shift": {"dim": 4, "layout": "sin_cos"},
    "timestep": {"dim": 7, "flip": True, "shift": 0, "scale": 2.5},
    "learned": {"offset": 2},
    "axial_learned": {"combine": "concat"},
    "layout_2d": {"combine": "concat", "clip_sizes": False},
    "hierarchical_learned": {"alpha": 0.375},
    "conv_positions": {"groups": 2},
    "weight_norm": {"axis": 2},
    "peg": {"residual": True},
    "rope_table": {"attention_factor": 1.25},
    "rope_cos_sin": {"dim": 6, "base": 500.0},
    "apply_rope": {"layout": "half"},
    "rotation_matrix": {"dim": 6, **ROTARY},
    "rope": ROTARY,
    "xpos": {**ROTARY, **ROLE},
    "xpos_scales": {"dim": 6, **ROLE},
    "pope": {"layout": "interleaved", "base": 10000.0},
    "fope": {"base": 500.0},
    "positions_from_mask": {"padding": 0},
    "positions_from_tokens": {"padding_idx": 1},
    "packed_documents": {},
    "visible_windows": {"rate": 4},
    "zigzag_shard": {"length": 12, "rank": 1, "ranks": 3},
    "striped_shard": {"length": 11, "rank": 1, "ranks": 3},
    "alibi": LINEAR,
    "t5_buckets": BUCKETS,
    "t5_bias": BUCKETS,
    "shaw_scores": WINDOW,
    "shaw_values": WINDOW,
    "attention_logits": {},
    "attention": {},
    "axial_table": SECTIONS,
    "mrope": TURNING,
    "axial_rope": AXIAL,
    "mixed_table": {},
    "mixed_rope": {"layout": "interleaved"},
    "liere_rotations": {},
    "liere": {},
    "cayley_string": {"form": "conjugate"},
    "circulant_string": {},
    "rotated_values": ROTARY,
    "mla_logits": ROTARY,
    "rotary_linear_attention": {**ROTARY, "causal": False},
    "learned_logn_scale": {},
    "logn_scale": {"length": 16, "offset": 1, "at_least_one": True},
    "attention_temperature": {"form": "steps", "beta": 0.75, "length": 8, "offset": 0},
    **MASKS,
    **{f"{op}_distances": params for op, params in EXTENSIONS.items()},
    **{op: {**params, **ROTARY} for op, params in EXTENSIONS.items()},
    **dict.fromkeys(
        (
            "alibi_slopes",
            "axial_frequencies",
            "cayley",
            "permute_qk_weights",
            "resample",
            "rope_frequencies",
            "sine_2d",
        )
    ),
}
SIZES: dict[str, dict[str, Any]] = {
    "axial_rope": {"E": 2},
    "circulant_string": {"E": 1},
    "cayley_string": {"D": 4, "N": 2},
    "liere": {"E": 1, "n": 2},
    "liere_rotations": {"n": 2},
    "mixed_rope": {"E": 1},
    "mrope": {"E": 1},
    "learned": {"N": 13},
    "axial_learned": {"M": 17, "N": 13, "e": 6},
    "hierarchical_learned": {"N": 13},
    "peg": {"I": 3, "J": 5},
    "weight_norm": {"o": 4, "c": 2},
    "layout_2d": {"L": 17, "M": 13, "U": 14, "V": 19, "e": 3},
    "t5_bias": {"N": 16},
    "rotary_linear_attention": {"H": 2},
    "rotation_matrix": {"P": ()},
    "fourier": {"c": 3, "K": 2},
    "random_fourier": {"c": 2, "m": 5},
}
WAY = {"fope": 2}
AXES: dict[str, tuple[int, ...]] = {
    "axial_table": (4, 2), "mrope": (4, 2), "axial_rope": (1, 2), "mixed_table": (1,), "mixed_rope": (1, 1), "liere": (1, 1, 3),
    "liere_rotations": (1, 3), "cayley_string": (1, 1), "circulant_string": (1, 1),
}  # fmt: skip
LEFT_OUT = {
    "again/one-query": (
        "alibi attention attention_logits chunked_window dual_chunk dual_chunk_distances lambda_window leaky_rerope "
        "leaky_rerope_distances mla_logits rerope rerope_distances rotary_linear_attention rotated_values self_extend "
        "self_extend_distances shaw_scores shaw_values sliding_window streaming_llm streaming_llm_distances t5_bias"
    ),
    "again/negative-once-more": (
        "alibi attention_temperature axial_rope axial_table cayley_string chunked_window circulant_string dual_chunk "
        "dual_chunk_distances fope leaky_rerope leaky_rerope_distances liere liere_rotations logn_scale mixed_rope "
        "mixed_table pope rerope rerope_distances rope rope_table rotation_matrix self_extend self_extend_distances "
        "shaw_scores shaw_values sinusoidal sliding_window streaming_llm streaming_llm_distances t5_bias t5_buckets xpos "
        "xpos_scales"
    ),
    "again/no-keys": (
        "alibi attention_logits chunked_window dual_chunk dual_chunk_distances lambda_window leaky_rerope "
        "leaky_rerope_distances mla_logits rerope rerope_distances self_extend self_extend_distances shaw_scores "
        "sliding_window streaming_llm streaming_llm_distances t5_bias"
    ),
    "again/one-key": (
        "alibi attention attention_logits chunked_window dual_chunk_distances lambda_window leaky_rerope_distances "
        "mla_logits rerope_distances rotary_linear_attention rotated_values self_extend_distances shaw_scores shaw_values "
        "sliding_window streaming_llm_distances t5_bias"
    ),
    "again/strided": (
        "alibi apply_rope attention attention_logits attention_temperature axial_rope axial_table chunked_window "
        "dual_chunk_distances lambda_window leaky_rerope_distances learned logn_scale mla_logits mrope pope "
        "rerope_distances rope rope_table rotary_linear_attention rotated_values self_extend_distances shaw_scores "
        "shaw_values sinusoidal sliding_window streaming_llm_distances t5_bias t5_buckets xpos xpos_scales"
    ),
    "again/expanded-once-more": (
        "alibi apply_rope attention_temperature axial_rope axial_table chunked_window dual_chunk_distances fope "
        "lambda_window leaky_rerope_distances learned logn_scale mrope rerope_distances rope rope_table "
        "self_extend_distances sinusoidal sliding_window streaming_llm_distances t5_bias t5_buckets xpos xpos_scales"
    ),
    "again/no-tokens": (
        "alibi apply_rope attention attention_temperature axial_rope axial_table cayley_string chunked_window "
        "circulant_string fope lambda_window learned liere liere_rotations logn_scale mixed_rope mixed_table mrope pope "
        "rope rope_table sinusoidal sliding_window t5_bias t5_buckets xpos xpos_scales"
    ),
    "again/negative": (
        "attention_temperature axial_rope cayley_string chunked_window circulant_string liere liere_rotations logn_scale "
        "mixed_rope mixed_table rope rope_table rotation_matrix sinusoidal t5_buckets xpos xpos_scales"
    ),
    "again/no-batch-once-more": (
        "attention_temperature axial_table fope learned logn_scale rope rope_table rotation_matrix sinusoidal t5_buckets "
        "xpos_scales"
    ),
    "again/no-batch": (
        "attention_temperature axial_table fope learned logn_scale rope_table sinusoidal t5_buckets xpos_scales"
    ),
    "again/fractional-once-more": (
        "alibi axial_rope axial_table cayley_string circulant_string fope liere liere_rotations mixed_rope mixed_table "
        "pope rope rope_table rotary_linear_attention rotation_matrix sinusoidal xpos xpos_scales"
    ),
    "again/one-token": "apply_rope axial_rope cayley_string circulant_string fope liere mixed_rope mrope pope rope xpos",
    "again/fractional": (
        "axial_rope cayley_string circulant_string liere liere_rotations mixed_rope mixed_table rope rope_table "
        "rotation_matrix sinusoidal xpos xpos_scales"
    ),
    "again/no-heads": "shaw_scores shaw_values",
    "long/no-order": "cayley_string circulant_string liere liere_rotations",
    "distant/plain": "apply_rope attention attention_logits",
}
GAPS: dict[str, tuple[str, ...]] = {
    "rope": ("yarn-mscale-one",),
    "mrope": ("yarn-mscale-one",),
    "rotation_matrix": ("yarn-mscale-one", "positions-4096-at-0"),
    "sine_2d": ("positions-4096-at-0", "positions-clamped-4095"),  # a mask of that many rows or columns
    "sinusoidal_nd": ("positions-4096-at-0",),  # a cell at just that coordinate
}
_ROTATING = tuple({"layout": layout, "base": 10_000.0} for layout in ("half", "interleaved"))
_LAYOUTS = tuple({"layout": layout} for layout in ("half", "interleaved"))
_WINDOWS = {"sinks": 4, "window": 48, "counting": "with_query"}
_DECAY = {"centre": 2048, "scale_base": 512.0}
_BOTH = tuple({"bidirectional": both, "max_distance": 128} for both in (False, True))
_CHUNKS = {"chunk_size": 96, "local_size": 32}
_GROUPS = {"group": 4, "window": 32, "shift": "floor"}
_OFFSETS = {"left": 16, "right": 16, "order": "key_minus_query"}
KERNEL: dict[str, tuple[Options, ...]] = {
    "apply_rope": _LAYOUTS,
    "rope": _ROTATING,
    "mrope": tuple({**p, "arrangement": "chunked"} for p in _ROTATING),
    "axial_rope": tuple({**p, "allocation": "own", "arrangement": "chunked", "unit": "radians"} for p in _ROTATING),
    "mixed_rope": _LAYOUTS,
    "xpos": tuple({**p, "role": role, **_DECAY} for p, role in zip(_ROTATING, ("query", "key"), strict=True)),
    "pope": ({"layout": "cos_sin", "base": 10_000.0},),
    "fope": ({"base": 10_000.0},),
    "liere": ({},),
    "circulant_string": ({},),
    "cayley_string": ({"form": "conjugate"},),
    "attention_logits": ({},),
    "attention": ({},),
    "dual_chunk": tuple({**p, **_CHUNKS} for p in _ROTATING),
    "leaky_rerope": tuple({**p, "window": 32, "factor": 4} for p in _ROTATING),
    "rerope": tuple({**p, "window": 32} for p in _ROTATING),
    "self_extend": tuple({**p, **_GROUPS} for p in _ROTATING),
    "streaming_llm": tuple({**p, **_WINDOWS} for p in _ROTATING),
    "rotated_values": _ROTATING,
    "mla_logits": _ROTATING,
    "rotary_linear_attention": tuple({**p, "causal": True} for p in _ROTATING),
    "shaw_scores": (_OFFSETS,),
    "shaw_values": (_OFFSETS,),
    "alibi": tuple({"form": form} for form in ("distance", "causal", "key")),
    "t5_bias": _BOTH,
    "sliding_window": tuple({"window": 48, "counting": "with_query", "sides": sides} for sides in ("causal", "both")),
    "chunked_window": ({"chunk": 48, "sides": "causal"},),
    "lambda_window": (_WINDOWS,),
    "dual_chunk_distances": (_CHUNKS,),
    "leaky_rerope_distances": ({"window": 32, "factor": 4},),
    "rerope_distances": ({"window": 32},),
    "self_extend_distances": (_GROUPS,),
    "streaming_llm_distances": (_WINDOWS,),
    "sinusoidal": tuple({"dim": 96, "layout": layout} for layout in ("interleaved", "sin_cos", "cos_sin")),
    "learned": ({"offset": 2},),
    "rope_table": ({},),
    "rope_cos_sin": ({"dim": 64, "base": 10_000.0},),
    "t5_buckets": _BOTH,
    "logn_scale": ({"length": 512, "offset": 0, "at_least_one": True},),
    "attention_temperature": ({"form": "steps", "beta": 0.1, "length": 64, "offset": 0},),
    "axial_table": ({"sections": (8, 4, 4), "arrangement": "chunked"},),
    "mixed_table": ({},),
    "liere_rotations": ({},),
    "xpos_scales": ({"dim": 64, "role": "query", **_DECAY},),
}
EVERY_SIZE = ("alibi", "apply_rope", "attention", "attention_logits", "rope", "t5_bias")

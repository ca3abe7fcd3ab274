"""
posref: the reference for positional encodings.

Every function is defined once, with the Python array API, and runs on NumPy, PyTorch, JAX, CuPy, Dask and other array API
libraries. `posref.spec.REGISTRY` lists all functions. In a terminal, ``posref list`` prints them.
"""

from posref import configs, positions, scaling
from posref.absolute.axial_learned import axial_learned
from posref.absolute.conv_positions import conv_positions
from posref.absolute.fourier import fourier
from posref.absolute.hierarchical_learned import hierarchical_learned
from posref.absolute.layout_2d import layout_2d
from posref.absolute.learned import learned
from posref.absolute.peg import peg
from posref.absolute.random_fourier import random_fourier
from posref.absolute.resample import resample
from posref.absolute.sine_2d import sine_2d
from posref.absolute.sinusoidal import sinusoidal
from posref.absolute.sinusoidal_nd import sinusoidal_nd
from posref.absolute.sinusoidal_shift import sinusoidal_shift
from posref.absolute.timestep import timestep
from posref.absolute.weight_norm import weight_norm
from posref.attention.attention import attention
from posref.attention.attention_logits import attention_logits
from posref.bias.alibi import alibi
from posref.bias.alibi_slopes import alibi_slopes
from posref.bias.t5_bias import t5_bias
from posref.bias.t5_buckets import t5_buckets
from posref.configs import mrope_from_config, rope_from_config
from posref.extension.attention_temperature import attention_temperature
from posref.extension.chunked_window import chunked_window
from posref.extension.dual_chunk import dual_chunk
from posref.extension.dual_chunk_distances import dual_chunk_distances
from posref.extension.lambda_window import lambda_window
from posref.extension.leaky_rerope import leaky_rerope
from posref.extension.leaky_rerope_distances import leaky_rerope_distances
from posref.extension.learned_logn_scale import learned_logn_scale
from posref.extension.logn_scale import logn_scale
from posref.extension.rerope import rerope
from posref.extension.rerope_distances import rerope_distances
from posref.extension.self_extend import self_extend
from posref.extension.self_extend_distances import self_extend_distances
from posref.extension.sliding_window import sliding_window
from posref.extension.streaming_llm import streaming_llm
from posref.extension.streaming_llm_distances import streaming_llm_distances
from posref.gguf import rope_from_gguf
from posref.models.whole import from_config
from posref.positions.packed_documents import documents as packed_documents
from posref.positions.positions_from_mask import positions_from_mask
from posref.positions.positions_from_tokens import from_tokens as positions_from_tokens
from posref.positions.striped_shard import striped as striped_shard
from posref.positions.visible_windows import visible_windows
from posref.positions.zigzag_shard import zigzag as zigzag_shard
from posref.presets import presets
from posref.relative.shaw_scores import shaw_scores
from posref.relative.shaw_values import shaw_values
from posref.rotary.apply_rope import apply_rope
from posref.rotary.axial_frequencies import axial_frequencies
from posref.rotary.axial_rope import axial_rope
from posref.rotary.axial_table import axial_table
from posref.rotary.cayley import cayley
from posref.rotary.cayley_string import cayley_string
from posref.rotary.circulant_string import circulant_string
from posref.rotary.fope import fope
from posref.rotary.liere import liere
from posref.rotary.liere_rotations import liere_rotations
from posref.rotary.mixed_rope import mixed_rope
from posref.rotary.mixed_table import mixed_table
from posref.rotary.mla_logits import mla_logits
from posref.rotary.mrope import mrope
from posref.rotary.permute_qk_weights import permute_qk_weights
from posref.rotary.pope import pope
from posref.rotary.rope import rope
from posref.rotary.rope_cos_sin import rope_cos_sin
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.rotary.rotary_linear_attention import rotary_linear_attention
from posref.rotary.rotated_values import rotated_values
from posref.rotary.rotation_matrix import rotation_matrix
from posref.rotary.xpos import xpos
from posref.rotary.xpos_scales import xpos_scales

__version__ = "0.1.0"

__all__ = [
    "alibi",
    "alibi_slopes",
    "apply_rope",
    "attention",
    "attention_logits",
    "attention_temperature",
    "axial_frequencies",
    "axial_learned",
    "axial_rope",
    "axial_table",
    "cayley",
    "cayley_string",
    "chunked_window",
    "circulant_string",
    "configs",
    "conv_positions",
    "dual_chunk",
    "dual_chunk_distances",
    "fope",
    "fourier",
    "from_config",
    "hierarchical_learned",
    "lambda_window",
    "layout_2d",
    "leaky_rerope",
    "leaky_rerope_distances",
    "learned",
    "learned_logn_scale",
    "liere",
    "liere_rotations",
    "logn_scale",
    "mixed_rope",
    "mixed_table",
    "mla_logits",
    "mrope",
    "mrope_from_config",
    "packed_documents",
    "peg",
    "permute_qk_weights",
    "pope",
    "positions",
    "positions_from_mask",
    "positions_from_tokens",
    "presets",
    "random_fourier",
    "rerope",
    "rerope_distances",
    "resample",
    "rope",
    "rope_cos_sin",
    "rope_frequencies",
    "rope_from_config",
    "rope_from_gguf",
    "rope_table",
    "rotary_linear_attention",
    "rotated_values",
    "rotation_matrix",
    "scaling",
    "self_extend",
    "self_extend_distances",
    "shaw_scores",
    "shaw_values",
    "sine_2d",
    "sinusoidal",
    "sinusoidal_nd",
    "sinusoidal_shift",
    "sliding_window",
    "streaming_llm",
    "streaming_llm_distances",
    "striped_shard",
    "t5_bias",
    "t5_buckets",
    "timestep",
    "visible_windows",
    "weight_norm",
    "xpos",
    "xpos_scales",
    "zigzag_shard",
]


def __dir__() -> list[str]:
    """Return only the public names, without the modules."""
    return __all__

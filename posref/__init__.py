"""
posref: the reference for positional encodings.

Every function is defined once, with the Python array API, and runs on NumPy, PyTorch, JAX, CuPy, Dask and other array API
libraries. `posref.spec.REGISTRY` lists all functions. In a terminal, ``posref list`` prints them.

Functions are imported on first use. Encoding X lives in X.py, in the folder of its family.
"""

from posref import startup as _startup

if _startup.is_program():
    _startup.prepare()  # before any other import

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers and editors; `__getattr__` finds the same
    from posref import configs as configs
    from posref import positions as positions
    from posref import scaling as scaling
    from posref.absolute.affine_waves import affine_waves as affine_waves
    from posref.absolute.axial_learned import axial_learned as axial_learned
    from posref.absolute.conv_positions import conv_positions as conv_positions
    from posref.absolute.fourier import fourier as fourier
    from posref.absolute.hierarchical_learned import hierarchical_learned as hierarchical_learned
    from posref.absolute.laplacian import laplacian_eigenvalues as laplacian_eigenvalues
    from posref.absolute.laplacian import laplacian_projectors as laplacian_projectors
    from posref.absolute.layout_2d import layout_2d as layout_2d
    from posref.absolute.learned import learned as learned
    from posref.absolute.peg import peg as peg
    from posref.absolute.random_fourier import random_fourier as random_fourier
    from posref.absolute.random_walk_diagonals import random_walk_diagonals as random_walk_diagonals
    from posref.absolute.resample import resample as resample
    from posref.absolute.sine_2d import sine_2d as sine_2d
    from posref.absolute.sinusoidal import sinusoidal as sinusoidal
    from posref.absolute.sinusoidal_nd import sinusoidal_nd as sinusoidal_nd
    from posref.absolute.sinusoidal_shift import sinusoidal_shift as sinusoidal_shift
    from posref.absolute.timestep import timestep as timestep
    from posref.absolute.weight_norm import weight_norm as weight_norm
    from posref.attention.attention import attention as attention
    from posref.attention.attention_logits import attention_logits as attention_logits
    from posref.attention.path_logits import path_logits as path_logits
    from posref.attention.stick_breaking import stick_breaking as stick_breaking
    from posref.attention.to_float8 import to_float8 as to_float8
    from posref.attention.wall_logits import wall_logits as wall_logits
    from posref.attention.write_cache import write_cache as write_cache
    from posref.bias.alibi import alibi as alibi
    from posref.bias.alibi_slopes import alibi_slopes as alibi_slopes
    from posref.bias.bias_gate import bias_gate as bias_gate
    from posref.bias.continuous_position_bias import continuous_position_bias as continuous_position_bias
    from posref.bias.cope import cope as cope
    from posref.bias.dynamic_position_bias import dynamic_position_bias as dynamic_position_bias
    from posref.bias.fire import fire as fire
    from posref.bias.forgetting_bias import forgetting_bias as forgetting_bias
    from posref.bias.graph_bias import graph_bias as graph_bias
    from posref.bias.irpe_buckets import irpe_buckets as irpe_buckets
    from posref.bias.kerple import kerple as kerple
    from posref.bias.levit_bias import levit_bias as levit_bias
    from posref.bias.log_spaced_coordinates import log_spaced_coordinates as log_spaced_coordinates
    from posref.bias.residue_bins import residue_bins as residue_bins
    from posref.bias.row_forgetting_bias import row_forgetting_bias as row_forgetting_bias
    from posref.bias.sandwich import sandwich as sandwich
    from posref.bias.t5_bias import t5_bias as t5_bias
    from posref.bias.t5_buckets import t5_buckets as t5_buckets
    from posref.bias.tupe_bias import tupe_bias as tupe_bias
    from posref.bias.window_bias import window_bias as window_bias
    from posref.configs import mrope_from_config as mrope_from_config
    from posref.configs import rope_from_config as rope_from_config
    from posref.extension.attention_temperature import attention_temperature as attention_temperature
    from posref.extension.chunked_window import chunked_window as chunked_window
    from posref.extension.dual_chunk import dual_chunk as dual_chunk
    from posref.extension.dual_chunk_distances import dual_chunk_distances as dual_chunk_distances
    from posref.extension.lambda_window import lambda_window as lambda_window
    from posref.extension.leaky_rerope import leaky_rerope as leaky_rerope
    from posref.extension.leaky_rerope_distances import leaky_rerope_distances as leaky_rerope_distances
    from posref.extension.learned_logn_scale import learned_logn_scale as learned_logn_scale
    from posref.extension.logn_scale import logn_scale as logn_scale
    from posref.extension.rerope import rerope as rerope
    from posref.extension.rerope_distances import rerope_distances as rerope_distances
    from posref.extension.self_extend import self_extend as self_extend
    from posref.extension.self_extend_distances import self_extend_distances as self_extend_distances
    from posref.extension.shifted_window_mask import shifted_window_mask as shifted_window_mask
    from posref.extension.sliding_window import sliding_window as sliding_window
    from posref.extension.streaming_llm import streaming_llm as streaming_llm
    from posref.extension.streaming_llm_distances import streaming_llm_distances as streaming_llm_distances
    from posref.gguf import rope_from_gguf as rope_from_gguf
    from posref.models.gguf_whole import from_gguf as from_gguf
    from posref.models.whole import from_config as from_config
    from posref.positions.decode_delta import decode_delta as decode_delta
    from posref.positions.draft_tree import draft_tree as draft_tree
    from posref.positions.positions_from_mask import positions_from_mask as positions_from_mask
    from posref.positions.visible_windows import visible_windows as visible_windows
    from posref.presets import presets as presets
    from posref.relative.deberta_rows import deberta_rows as deberta_rows
    from posref.relative.deberta_scores import deberta_scores as deberta_scores
    from posref.relative.decomposed_bias import decomposed_bias as decomposed_bias
    from posref.relative.decomposed_rows import decomposed_rows as decomposed_rows
    from posref.relative.relative_shift import relative_shift as relative_shift
    from posref.relative.shaw_scores import shaw_scores as shaw_scores
    from posref.relative.shaw_values import shaw_values as shaw_values
    from posref.relative.transformer_xl_scores import transformer_xl_scores as transformer_xl_scores
    from posref.rotary.apply_rope import apply_rope as apply_rope
    from posref.rotary.axial_frequencies import axial_frequencies as axial_frequencies
    from posref.rotary.axial_rope import axial_rope as axial_rope
    from posref.rotary.axial_table import axial_table as axial_table
    from posref.rotary.camera_transform import camera_transform as camera_transform
    from posref.rotary.cayley import cayley as cayley
    from posref.rotary.cayley_string import cayley_string as cayley_string
    from posref.rotary.circulant_string import circulant_string as circulant_string
    from posref.rotary.cumulative_angles import cumulative_angles as cumulative_angles
    from posref.rotary.cumulative_rope import cumulative_rope as cumulative_rope
    from posref.rotary.fope import fope as fope
    from posref.rotary.layer_norm_rope import layer_norm_rope as layer_norm_rope
    from posref.rotary.liere import liere as liere
    from posref.rotary.liere_rotations import liere_rotations as liere_rotations
    from posref.rotary.mixed_rope import mixed_rope as mixed_rope
    from posref.rotary.mixed_table import mixed_table as mixed_table
    from posref.rotary.mla_logits import mla_logits as mla_logits
    from posref.rotary.mrope import mrope as mrope
    from posref.rotary.norm_mrope import norm_mrope as norm_mrope
    from posref.rotary.norm_rope import norm_rope as norm_rope
    from posref.rotary.permute_qk_weights import permute_qk_weights as permute_qk_weights
    from posref.rotary.pope import pope as pope
    from posref.rotary.rms_norm import rms_norm as rms_norm
    from posref.rotary.rope import rope as rope
    from posref.rotary.rope_cos_sin import rope_cos_sin as rope_cos_sin
    from posref.rotary.rope_frequencies import rope_frequencies as rope_frequencies
    from posref.rotary.rope_table import rope_table as rope_table
    from posref.rotary.rotary_linear_attention import rotary_linear_attention as rotary_linear_attention
    from posref.rotary.rotated_values import rotated_values as rotated_values
    from posref.rotary.rotation_matrix import rotation_matrix as rotation_matrix
    from posref.rotary.xpos import xpos as xpos
    from posref.rotary.xpos_scales import xpos_scales as xpos_scales

    packed_documents = positions.documents
    positions_from_tokens = positions.from_tokens
    striped_shard = positions.striped
    zigzag_shard = positions.zigzag
else:
    # A folder and a file have the names of a function and of a table. They are imported now: no later import hides them.
    for _name in ("attention", "presets"):
        _import_module(f"posref.{_name}")
        del globals()[_name]

    def __getattr__(name: str):
        """Import and return a public name, or a module of posref."""
        if name == "__all__":
            return __dir__()
        public = None if name.startswith("_") else _found(name)
        if public is None:
            hint = f". See {_MEANT[name.lower()]}" if name.lower() in _MEANT else ""
            msg = f"module 'posref' has no attribute {name!r}{hint}"
            raise AttributeError(msg)
        globals()[name] = public
        return public


__version__ = "0.1.0"

_FAMILIES = ("rotary", "absolute", "bias", "relative", "attention", "extension", "positions")
_ELSEWHERE = {
    "from_config": "posref.models.whole",
    "from_gguf": "posref.models.gguf_whole",
    "laplacian_eigenvalues": "posref.absolute.laplacian",
    "laplacian_projectors": "posref.absolute.laplacian",
    "mrope_from_config": "posref.configs",
    "presets": "posref.models.presets",
    "rope_from_config": "posref.configs",
    "rope_from_gguf": "posref.gguf",
}
_MEANT = {  # names that other libraries have
    **dict.fromkeys(("apply_rotary_pos_emb", "apply_rotary_emb", "rotate_half", "rotate_every_two"), "posref.apply_rope"),
    **dict.fromkeys(("precompute_freqs_cis", "get_cos_sin"), "posref.rope_table"),
    **dict.fromkeys(("positionalencoding", "sinusoidalpositionalembedding"), "posref.sinusoidal"),
    **dict.fromkeys(("rotaryembedding", "rotary_embedding"), "posref.rope, and the module in docs/guides/port.md"),
    **{
        name.lower(): f"posref.scaling.{name}" for name in ("DynamicNTK", "DynamicYaRN", "Linear", "Llama3", "LongRoPE", "YaRN")
    },
    "ntk": "posref.scaling.NTKAware",
}
_ABSENT: set[str] = set()  # names for which there is no module
_MOST_ABSENT = 256
_SHORTER = {  # operations that have shorter names in posref.positions
    "packed_documents": "documents",
    "positions_from_tokens": "from_tokens",
    "striped_shard": "striped",
    "zigzag_shard": "zigzag",
}


def _found(name: str) -> object:
    """Return what has a name in posref, or None."""
    if name in _ELSEWHERE:
        return getattr(_import_module(_ELSEWHERE[name]), name)
    if name in _ABSENT:
        return None
    modules = []
    for family in _FAMILIES:
        module = _module(f"posref.{family}.{name}")
        function = getattr(module, _SHORTER.get(name, name), None)
        if callable(function):
            return function
        modules.append(module)
    public = _module(f"posref.{name}")
    if public is None and not any(modules) and len(_ABSENT) < _MOST_ABSENT:
        _ABSENT.add(name)  # a search takes eight look-ups of files: a check asks for `reset` before every case
    return public


def _module(name: str) -> object:
    """Import and return a module of posref, or None if there is no such module."""
    try:
        return _import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


def __dir__() -> list[str]:
    """Return only the public names, without the modules."""
    from posref.spec import REGISTRY

    return sorted((*REGISTRY, *_ELSEWHERE, "configs", "positions", "scaling"))

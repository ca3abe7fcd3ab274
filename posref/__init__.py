"""
posref: the reference for positional encodings.

Every function is defined once, against the Python array API, and runs on NumPy, PyTorch, JAX, CuPy, Dask and any other such
library. `posref.spec.REGISTRY` lists them; ``posref list`` does so in a terminal.
"""

from posref import configs, positions, scaling
from posref.absolute.learned import learned
from posref.absolute.sinusoidal import sinusoidal
from posref.attention import attention, attention_logits
from posref.bias.alibi import alibi
from posref.bias.alibi_slopes import alibi_slopes
from posref.bias.t5_bias import t5_bias
from posref.bias.t5_buckets import t5_buckets
from posref.configs import mrope_from_config, rope_from_config
from posref.gguf import rope_from_gguf
from posref.presets import presets
from posref.relative.shaw import shaw_scores, shaw_values
from posref.rotary.apply_rope import apply_rope
from posref.rotary.axial_frequencies import axial_frequencies
from posref.rotary.axial_rope import axial_rope
from posref.rotary.axial_table import axial_table
from posref.rotary.mixed_rope import mixed_rope
from posref.rotary.mixed_table import mixed_table
from posref.rotary.mrope import mrope
from posref.rotary.permute_qk_weights import permute_qk_weights
from posref.rotary.rope import rope
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.rotary.rotation_matrix import rotation_matrix

__version__ = "0.1.0"

__all__ = [
    "alibi",
    "alibi_slopes",
    "apply_rope",
    "attention",
    "attention_logits",
    "axial_frequencies",
    "axial_rope",
    "axial_table",
    "configs",
    "learned",
    "mixed_rope",
    "mixed_table",
    "mrope",
    "mrope_from_config",
    "permute_qk_weights",
    "positions",
    "presets",
    "rope",
    "rope_frequencies",
    "rope_from_config",
    "rope_from_gguf",
    "rope_table",
    "rotation_matrix",
    "scaling",
    "shaw_scores",
    "shaw_values",
    "sinusoidal",
    "t5_bias",
    "t5_buckets",
]

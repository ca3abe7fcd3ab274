"""KerasHub on its JAX backend: the layers RotaryEmbedding, SinePositionEncoding and AlibiBias, and T5's attention bias."""

import os
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"  # which Keras reads at its import

import jax.numpy as jnp
import numpy as np
from jax import Array
from keras_hub.layers import AlibiBias, PositionEmbedding, RotaryEmbedding, SinePositionEncoding
from keras_hub.src.models.t5.t5_multi_head_attention import T5MultiHeadAttention

from posref.scaling import DynamicNTK, Linear, Scaling, YaRN

from ..errors import Unsupported
from ._shared import from_table, lacks

PACKAGE = "keras-hub"
backend = "jax"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}


supports: dict[str, dict[str, Any]] = {"learned": {"offset": ["default"], "clip": [False], "gradient": False}}


def rope(
    x: Array, positions: Array, /, *, layout: str, base: float, scaling: Scaling | None = None, length: int | None = None
) -> Array:
    """RotaryEmbedding with the positions of the call."""
    if layout != "half":
        lacks(f"no layout {layout!r}: pairs are halves, read and written")
    if jnp.issubdtype(positions.dtype, jnp.floating):
        lacks("Keras casts an input of a floating dtype to the dtype of the layer, positions too")
    options: dict[str, Any] = {}
    match scaling:
        case None:
            pass
        case Linear(factor):
            options = {"scaling_factor": factor}
        case DynamicNTK(factor, original):
            if length is not None and length > original and length != int(positions.max(initial=0)) + 1:
                lacks("the layer is given positions and no length")
            options = {"rope_type": "dynamic", "scaling_factor": factor, "original_max_position_embeddings": original}
        case YaRN():
            if (scaling.attention_factor, scaling.mscale, scaling.mscale_all_dim) != (None, None, None):
                lacks("YaRN has no attention_factor and no mscale")
            names = ("beta_fast", "beta_slow", "truncate")
            options = {"rope_type": "yarn", "scaling_factor": scaling.factor, **{n: getattr(scaling, n) for n in names}}
            options["original_max_position_embeddings"] = scaling.original_length
        case _:
            raise Unsupported(repr(scaling))
    layer = RotaryEmbedding(max_wavelength=base, dtype=x.dtype.name, **options)
    flat = x.reshape(1, -1, x.shape[-1])
    return layer(flat, positions=jnp.broadcast_to(positions, x.shape[:-1]).reshape(-1)).reshape(x.shape)


def sinusoidal(
    positions: Array, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, odd: str = "refused", dtype: str
) -> Array:
    """SinePositionEncoding with the positions of the call."""
    if dim % 2 and odd != "extra_sine":
        lacks("an odd width ends with a sine")
    if layout != "interleaved" or endpoint:
        lacks(f"no layout {layout!r} with endpoint={endpoint}; interleaved, at the paper's frequencies")
    if jnp.issubdtype(positions.dtype, jnp.floating):
        lacks("Keras casts an input of a floating dtype to the dtype of the layer, positions too")
    layer = SinePositionEncoding(max_wavelength=base, dtype=jnp.dtype(dtype).name)
    flat = positions.reshape(-1)
    return layer(jnp.zeros((1, flat.size, dim), dtype), positions=flat).reshape(*positions.shape, dim)


def learned(positions: Array, table: Array, /, *, offset: int = 0, clip: bool = False) -> Array:
    """PositionEmbedding of a sequence that has these positions, from 0 on."""
    if offset or clip:
        lacks("no offset, and no clipping")
    layer = PositionEmbedding(table.shape[0], dtype=table.dtype.name)
    layer.build((1, *table.shape))
    layer.position_embeddings.assign(table)
    return from_table(lambda rows: layer(jnp.zeros((rows, table.shape[1]), table.dtype)), positions)


def alibi_slopes(heads: int, /, *, max_bias: float = 8) -> Array:
    """AlibiBias._get_slopes."""
    return jnp.asarray(AlibiBias(alibi_bias_max=max_bias)._get_slopes(heads), jnp.float32)


def alibi(q_positions: Array, k_positions: Array, /, *, heads: int, form: str, max_bias: float = 8, dtype: str) -> Array:
    """AlibiBias of no scores, for one query at a time: it stands at the last of the keys."""
    if form == "key":
        lacks("its row is m (j - i) for the last i, the causal form of one query")
    q, k = np.asarray(q_positions), np.asarray(k_positions)
    if any(p.dtype.kind == "f" or p.ndim != 1 or p.size == 0 or p.min() < 0 for p in (q, k)):
        lacks("positions are counted from 0, the same for every sequence")
    if k.max() > q.min():
        lacks("the query is the last position")
    layer = AlibiBias(alibi_bias_max=max_bias, dtype=jnp.dtype(dtype).name)
    rows = [layer(jnp.zeros((1, heads, 1, int(i) + 1), dtype))[0, :, 0, :][:, k] for i in q]
    return jnp.stack(rows, axis=1)


def t5_buckets(relative_positions: Array, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Array:
    """T5MultiHeadAttention._relative_position_bucket."""
    return T5MultiHeadAttention._relative_position_bucket(relative_positions, bidirectional, num_buckets, max_distance)


def t5_bias(q_positions: Array, k_positions: Array, table: Array, /, *, bidirectional: bool, max_distance: int = 128) -> Array:
    """T5MultiHeadAttention.compute_bias of one query at a time, with its position as the start."""
    if (table.shape[0], max_distance) != (32, 128):
        lacks("32 buckets and the distance 128 are fixed")
    q, k = np.asarray(q_positions), np.asarray(k_positions)
    if q.ndim != 1 or k.ndim != 1 or not q.size or min(q.min(), k.min()) < 0:
        lacks("positions are counted from 0, the same for every sequence")
    heads = table.shape[1]
    layer = T5MultiHeadAttention(not bidirectional, heads, 1, heads, 0.0, use_relative_attention_bias=True)
    layer.build((None, None, heads))
    layer.relative_attention_bias.assign(table)
    rows = [layer.compute_bias(1, int(k.max()) + 1, int(i))[0, :, 0, :][:, k] for i in q]
    return jnp.stack(rows, axis=1).astype(table.dtype)


# Read and run in KerasHub 0.32.0 with Keras 3.15.1 and JAX 0.10.2 on a CPU.
NOTES = (
    'rope_type="dynamic" divides every frequency by s**(d/(d-2)) (layers/modeling/rotary_embedding.py:243), '
    "whatever the length.",
    "SinePositionEncoding forms frequencies and angles in the compute dtype "
    "(layers/modeling/sine_position_encoding.py:79): in bfloat16 the positions 256 and 257 have one encoding.",
    "AlibiBias is m (j - (K - 1)) for all queries (layers/modeling/alibi_bias.py:89): the bias of the last one, "
    "equal after a causal softmax.",
    "T5's layer fixes 32 buckets and the distance 128 (models/t5/t5_multi_head_attention.py:84).",
)

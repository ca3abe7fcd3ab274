"""Bad input is refused in one sentence: function, argument, requirement, value, reason. The whole sentence is tested."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import posref
import posref.backends
from posref.scaling import DynamicNTK, DynamicYaRN, Linear, Llama3, LongRoPE, NTKAlpha, NTKAware, NTKMixed, Proportional, YaRN

X = np.ones((2, 3, 5, 64))
T = np.arange(5)
TABLE = np.ones((8, 3))
GRID: dict[str, Any] = {"method": "linear", "align_corners": False, "antialias": False}
ROPE = {"layout": "half", "base": 10000.0}
SHAW = {"left": 1, "right": 1, "order": "key_minus_query"}
HALF = "must be integer or at least float32 (bfloat16 cannot tell 256 from 257, nor float16 2048 from 2049); got {dtype}."

TOO_NARROW = "must be at least float32 (in bfloat16, angles at position 1000 are off by up to 2); got {dtype}."


LONG = LongRoPE((1.0, 1.5, 2.0, 3.0), (2.0, 3.0, 4.0, 8.0), 32, max_length=64)
AXES = np.stack([T, T, T])
AXIAL = {"dims": (16, 24, 24), "allocation": "own", "arrangement": "chunked", "layout": "half", "base": 100.0}
MROPE = {"sections": (8, 12, 12), "arrangement": "chunked"} | ROPE


def frequencies(scaling: Any = None, dim: Any = 8, **options: Any) -> Callable[[], Any]:
    return lambda: posref.rope_frequencies(dim, **{"base": 10000.0, "scaling": scaling} | options)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "rope: odd rotary_dim": (
        lambda: posref.rope(X, T, rotary_dim=65, **ROPE),
        "rope: rotary_dim must be even and at most 64 (the last axis of x); got 65.",
    ),
    "rope: odd rotary_dim that fits": (
        lambda: posref.rope(X, T, rotary_dim=31, **ROPE),
        "rope: rotary_dim must be even and at most 64 (the last axis of x); got 31.",
    ),
    "rope: rotary_dim too large": (
        lambda: posref.rope(X, T, rotary_dim=66, **ROPE),
        "rope: rotary_dim must be even and at most 64 (the last axis of x); got 66.",
    ),
    "rope: rotary_dim 0": (
        lambda: posref.rope(X, T, rotary_dim=0, **ROPE),
        "rope: rotary_dim must be even and at most 64 (the last axis of x); got 0.",
    ),
    "rope: rotary_dim not an int": (
        lambda: posref.rope(X, T, rotary_dim=32.0, **ROPE),
        "rope: rotary_dim must be even and at most 64 (the last axis of x); got 32.0.",
    ),
    "rope: odd last axis": (
        lambda: posref.rope(X[..., :63], T, **ROPE),
        "rope: the last axis of x must be even and at least 2, or rotary_dim given; got 63.",
    ),
    "rope: layout": (
        lambda: posref.rope(X, T, layout="neox", base=10000.0),
        "rope: layout must be one of 'half', 'interleaved', 'interleaved_to_half'; got 'neox'. Did you mean 'half'?",
    ),
    "rope: lanes": (
        lambda: posref.rope(X, T, rotary_dim=32, lanes="last", **ROPE),
        "rope: lanes must be one of 'leading', 'trailing'; got 'last'.",
    ),
    "rope: positions do not broadcast": (
        lambda: posref.rope(X, np.arange(4), **ROPE),
        "rope: positions must broadcast to the leading axes of x, (2, 3, 5), without enlarging them; got (4,).",
    ),
    "rope: positions would enlarge an axis": (
        lambda: posref.rope(X[:, :, :1], T, **ROPE),
        "rope: positions must broadcast to the leading axes of x, (2, 3, 1), without enlarging them; got (5,).",
    ),
    "rope: positions would add an axis": (
        lambda: posref.rope(X, np.zeros((1, 1, 1, 5)), **ROPE),
        "rope: positions must broadcast to the leading axes of x, (2, 3, 5), without enlarging them; got (1, 1, 1, 5).",
    ),
    "rope: (B, T) against (B, H, T)": (
        lambda: posref.rope(X, np.zeros((2, 5)), **ROPE),
        "rope: positions with more than one axis must have all 3 of the leading axes of x, (2, 3, 5); got (2, 5). "
        "Insert axes of size 1, for instance reshape to (2, 1, 5).",
    ),
    "rope: (B, T) against (B, H, T) where B equals H": (
        lambda: posref.rope(np.ones((3, 3, 5, 4)), np.zeros((3, 5)), **ROPE),
        "rope: positions with more than one axis must have all 3 of the leading axes of x, (3, 3, 5); got (3, 5). "
        "Insert axes of size 1, for instance reshape to (3, 1, 5).",
    ),
    "rope: base": (
        lambda: posref.rope(X, T, layout="half", base=0.0),
        "rope: base must be a finite number above 0; got 0.0.",
    ),
    "rope: x of integers": (
        lambda: posref.rope(np.ones((5, 4), dtype=np.int64), T, **ROPE),
        "rope: x must be real floating; got int64. Pass it before positions, in a floating dtype.",
    ),
    **{
        f"rope: {p.dtype} positions": (
            lambda x=x, p=p: posref.rope(x, p, **ROPE),
            "rope: positions " + HALF.format(dtype=p.dtype),
        )
        for x, p in (
            (X, T.astype(np.float16)),
            (torch.ones(5, 4), torch.ones(5, dtype=torch.bfloat16)),
            (torch.ones(5, 4), torch.ones(5, dtype=torch.float16)),
            (jnp.ones((5, 4)), jnp.ones(5, dtype=jnp.bfloat16)),
            (torch.ones(5, 4), torch.ones(5, dtype=torch.bool)),
        )
    },
    "sinusoidal: bfloat16 positions": (
        lambda: posref.sinusoidal(torch.ones(5, dtype=torch.bfloat16), 4, layout="sin_cos"),
        "sinusoidal: positions " + HALF.format(dtype="torch.bfloat16"),
    ),
    "rope_table: bfloat16 positions": (
        lambda: posref.rope_table(jnp.ones(5, dtype=jnp.bfloat16), np.ones(2)),
        "rope_table: positions " + HALF.format(dtype="bfloat16"),
    ),
    "alibi: float16 queries": (
        lambda: posref.alibi(T.astype(np.float16), T, heads=2, form="distance"),
        "alibi: q_positions " + HALF.format(dtype="float16"),
    ),
    "alibi: float16 keys": (
        lambda: posref.alibi(T, T.astype(np.float16), heads=2, form="distance"),
        "alibi: k_positions " + HALF.format(dtype="float16"),
    ),
    "rotation_matrix: float16 position": (
        lambda: posref.rotation_matrix(np.float16([1]), 4, **ROPE),
        "rotation_matrix: position " + HALF.format(dtype="float16"),
    ),
    **{
        f"{name}: {f.dtype} frequencies": (lambda call=call, f=f: call(f), f"{name} {TOO_NARROW.format(dtype=f.dtype)}")
        for name, call, f in (
            ("rope_table: inv_freq", lambda f: posref.rope_table(torch.arange(3), f), torch.ones(2, dtype=torch.bfloat16)),
            ("rope_table: inv_freq", lambda f: posref.rope_table(jnp.arange(3), f), jnp.ones(2, dtype=jnp.bfloat16)),
            ("rope_table: inv_freq", lambda f: posref.rope_table(torch.arange(3), f), np.ones(2, dtype=np.float16)),
            (
                "axial_table: inv_freq",
                lambda f: posref.axial_table(AXES, f, sections=(1, 1, 1), arrangement="chunked"),
                np.ones(3, dtype=np.float16),
            ),
            ("mixed_table: frequencies", lambda f: posref.mixed_table(AXES, f), np.ones((3, 2), dtype=np.float16)),
            ("mixed_rope: frequencies", lambda f: posref.mixed_rope(X, AXES, f, layout="half"), np.ones((3, 2), np.float16)),
            (
                "cayley_string: frequencies",
                lambda f: posref.cayley_string(X, AXES, np.zeros((64, 64)), f, form="conjugate"),
                np.ones((3, 2), np.float16),
            ),
        )
    },
    **{
        f"rope: length {length!r}": (
            lambda length=length: posref.rope(X, T, **ROPE, scaling=DynamicNTK(4.0, 64), length=length),
            "rope_frequencies: length must be an int, or with DynamicNTK an array of integers without axes; "
            f"got {length.dtype} of shape {tuple(length.shape)}.",
        )
        for length in (torch.tensor([5]), np.asarray(5.0))
    },
    "rope: an array of length with another scaling": (
        lambda: posref.rope(X, T, **ROPE, scaling=DynamicYaRN(64), length=torch.tensor(5)),
        "rope: length must be an int of at least 0; got tensor(5). Pass a Python number: length.item().",
    ),
    "rotated_values: keys": (
        lambda: posref.rotated_values(X[..., :4], X, T, T, **ROPE),
        "rotated_values: weights and v must be (..., Q, K) and (..., K, D); got (2, 3, 5, 4) and (2, 3, 5, 64).",
    ),
    "rotated_values: heads": (
        lambda: posref.rotated_values(X[:, :, :, :5], X[:, :2], T, T, **ROPE),
        "rotated_values: the number of query heads must be a multiple of the number of key or value heads; got 3 and 2.",
    ),
    "rotated_values: (B, Q) against (B, H, Q)": (
        lambda: posref.rotated_values(X[..., :5], X, np.zeros((2, 5)), T, **ROPE),
        "rotated_values: q_positions with more than one axis must have all 3 of the leading axes of weights, (2, 3, 5); "
        "got (2, 5). Insert axes of size 1, for instance reshape to (2, 1, 5).",
    ),
    "rotated_values: float16 keys": (
        lambda: posref.rotated_values(X[..., :5], X, T, T.astype(np.float16), **ROPE),
        "rotated_values: k_positions " + HALF.format(dtype="float16"),
    ),
    "mla_logits: a key for every head": (
        lambda: posref.mla_logits(X, X, X, X, T, T, **ROPE),
        "mla_logits: q_nope, q_rope, k_nope and k_rope must be (*R, H, Q, N), (*R, H, Q, D), (*R, H, K, N) and (*R, K, D); "
        "got (2, 3, 5, 64), (2, 3, 5, 64), (2, 3, 5, 64), (2, 3, 5, 64).",
    ),
    "mla_logits: no heads": (
        lambda: posref.mla_logits(X[0, 0], X[0, 0], X[0, 0], X[0, 0], T, T, **ROPE),
        "mla_logits: q_nope, q_rope, k_nope and k_rope must be (*R, H, Q, N), (*R, H, Q, D), (*R, H, K, N) and (*R, K, D); "
        "got (5, 64), (5, 64), (5, 64), (5, 64).",
    ),
    "mla_logits: positions of heads": (
        lambda: posref.mla_logits(X, X, X, X[:, 0], np.zeros((2, 1, 5)), T, **ROPE),
        "mla_logits: q_positions must broadcast to the leading axes of q_rope without heads, (2, 5), without enlarging them; "
        "got (2, 1, 5).",
    ),
    "mla_logits: float16 queries": (
        lambda: posref.mla_logits(X, X, X, X[:, 0], T.astype(np.float16), T, **ROPE),
        "mla_logits: q_positions " + HALF.format(dtype="float16"),
    ),
    "rotary_linear_attention: values": (
        lambda: posref.rotary_linear_attention(X, X, X[:, :, :4], T, T, causal=True, **ROPE),
        "rotary_linear_attention: q, k and v must be (*R, Q, D), (*R, K, D) and (*R, K, E); "
        "got (2, 3, 5, 64), (2, 3, 5, 64) and (2, 3, 4, 64).",
    ),
    "rotary_linear_attention: layout": (
        lambda: posref.rotary_linear_attention(X, X, X, T, T, causal=True, layout="neox", base=10000.0),
        "rotary_linear_attention: layout must be one of 'half', 'interleaved', 'interleaved_to_half'; "
        "got 'neox'. Did you mean 'half'?",
    ),
    "rotary_linear_attention: float16 keys": (
        lambda: posref.rotary_linear_attention(X, X, X, T, T.astype(np.float16), causal=False, **ROPE),
        "rotary_linear_attention: k_positions " + HALF.format(dtype="float16"),
    ),
    "rotary_linear_attention: causal": (
        lambda: posref.rotary_linear_attention(X, X, X, T, T, causal=None, **ROPE),
        "rotary_linear_attention: causal must be True or False; got None.",
    ),
    "rotary_linear_attention: a position without an axis": (
        lambda: posref.rotary_linear_attention(X, X, X, np.asarray(3), T, causal=True, **ROPE),
        "rotary_linear_attention: q_positions must have an axis of tokens; got shape ().",
    ),
    "rotary_linear_attention: rows of two batches": (
        lambda: posref.rotary_linear_attention(X, X[:1, :2], X[:1, :2], T, T, causal=True, **ROPE),
        "rotary_linear_attention: leading axes of q and k must broadcast; got (2, 3) and (1, 2).",
    ),
    "rotary_linear_attention: keys of integers": (
        lambda: posref.rotary_linear_attention(X, X.astype(np.int64), X, T, T, causal=True, **ROPE),
        "rotary_linear_attention: k must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "mla_logits: queries of booleans": (
        lambda: posref.mla_logits(X > 0, X, X, X[:, 0], T, T, **ROPE),
        "mla_logits: q_nope must be real floating; got bool. Convert it to a floating dtype.",
    ),
    "rotated_values: weights of integers": (
        lambda: posref.rotated_values(X[..., :5].astype(np.int64), X, T, T, **ROPE),
        "rotated_values: weights must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "rotated_values: rows of two batches": (
        lambda: posref.rotated_values(X[..., :5], np.ones((4, 3, 5, 64)), T, T, **ROPE),
        "rotated_values: leading axes of weights and v must broadcast; got (2, 3) and (4, 3).",
    ),
    "pope: x of integers": (
        lambda: posref.pope(X.astype(np.int64), T, layout="cos_sin", base=10000.0),
        "pope: x must be real floating; got int64. Pass it before positions, in a floating dtype.",
    ),
    "fope: complex mixes": (
        lambda: posref.fope(X, T, np.ones((4, 4), dtype=complex), np.ones((4, 4)), base=10000.0),
        "fope: cos_mix must be real floating; got complex128. Give real and imaginary parts as two channels.",
    ),
    "xpos: no lanes": (
        lambda: posref.xpos(np.asarray(1.0), np.asarray(1), role="key", centre=0, **ROPE),
        "xpos: x must have an axis of channels; got shape ().",
    ),
    "mrope: no lanes": (
        lambda: posref.mrope(np.asarray(1.0), AXES[:, 0], **MROPE),
        "mrope: x must have an axis of channels; got shape ().",
    ),
    "mrope: one number for all sections": (
        lambda: posref.mrope(X, AXES, **MROPE | {"sections": 32}),
        "mrope: sections must be a list or tuple of ints; got 32.",
    ),
    "mrope: sections in words": (
        lambda: posref.mrope(X, AXES, **MROPE | {"sections": ("8", "12", "12")}),
        "mrope: sections must be an int of at least 0; got '8'.",
    ),
    "axial_rope: one number for all axes": (
        lambda: posref.axial_rope(X, AXES, **AXIAL | {"dims": 64}),
        "axial_rope: dims must be a list or tuple of ints; got 64.",
    ),
    "axial_rope: inverse": (
        lambda: posref.axial_rope(X, AXES, inverse="no", **AXIAL),
        "axial_rope: inverse must be True or False; got 'no'.",
    ),
    "axial_table: attention_factor": (
        lambda: posref.axial_table(AXES, np.ones(3), sections=(1, 1, 1), arrangement="chunked", attention_factor=None),
        "axial_table: attention_factor must be a finite number; got None.",
    ),
    **{
        f"dtype {dtype!r}": (
            lambda positions=positions, dtype=dtype: posref.logn_scale(
                positions, original_length=2, offset=1, at_least_one=True, dtype=dtype
            ),
            f"logn_scale: dtype must be a real floating data type of the arrays' library; got {dtype!r}.",
        )
        for positions, dtype in (
            (T, np.int32),
            (T, bool),
            (T, torch.float32),
            (torch.arange(5), torch.int64),
            (torch.arange(5), "float32"),
            (jnp.arange(5), jnp.complex64),
        )
    },
    "axial_frequencies: dtype": (
        lambda: posref.axial_frequencies((4, 4), base=100.0, allocation="own", dtype=np.int64),
        f"axial_frequencies: dtype must be a real floating data type of the arrays' library; got {np.int64!r}.",
    ),
    "frequencies: a base beyond all reals": (
        frequencies(base=10**400),
        f"rope_frequencies: base must be a finite number above 0; got {10**400}.",
    ),
    "apply_rope: table wider than x": (
        lambda: posref.apply_rope(X, np.ones((5, 33)), np.ones((5, 33)), layout="half"),
        "apply_rope: cos and sin must have the same shape, with at most 32 columns (half the last axis of x); "
        "got (5, 33) and (5, 33).",
    ),
    "apply_rope: lanes": (
        lambda: posref.apply_rope(X, np.ones((5, 8)), np.ones((5, 8)), layout="half", lanes=None),
        "apply_rope: lanes must be one of 'leading', 'trailing'; got None.",
    ),
    "apply_rope: tables of two shapes": (
        lambda: posref.apply_rope(X, np.ones((5, 32)), np.ones((4, 32)), layout="half"),
        "apply_rope: cos and sin must have the same shape, with at most 32 columns (half the last axis of x); "
        "got (5, 32) and (4, 32).",
    ),
    "apply_rope: table of other positions": (
        lambda: posref.apply_rope(X, np.ones((4, 32)), np.ones((4, 32)), layout="half"),
        "apply_rope: cos must broadcast to the leading axes of x, (2, 3, 5), without enlarging them; got (4,).",
    ),
    "rope_table: frequencies with two axes": (
        lambda: posref.rope_table(T, np.ones((1, 2))),
        "rope_table: inv_freq must have one axis, (d/2,); got shape (1, 2).",
    ),
    "xpos: odd rotary_dim": (
        lambda: posref.xpos(X, T, rotary_dim=31, role="key", centre=0, **ROPE),
        "xpos: rotary_dim must be even and at most 64 (the last axis of x); got 31.",
    ),
    "xpos: role": (
        lambda: posref.xpos(X, T, role="value", centre=0, **ROPE),
        "xpos: role must be one of 'query', 'key'; got 'value'.",
    ),
    "xpos: layout": (
        lambda: posref.xpos(X, T, role="key", centre=0, layout="neox", base=10000.0),
        "xpos: layout must be one of 'half', 'interleaved', 'interleaved_to_half'; got 'neox'. Did you mean 'half'?",
    ),
    "xpos: (B, T) against (B, H, T)": (
        lambda: posref.xpos(X, np.zeros((2, 5)), role="key", centre=0, **ROPE),
        "xpos: positions with more than one axis must have all 3 of the leading axes of x, (2, 3, 5); got (2, 5). "
        "Insert axes of size 1, for instance reshape to (2, 1, 5).",
    ),
    "xpos_scales: odd dim": (
        lambda: posref.xpos_scales(T, 7, role="key", centre=0),
        "xpos_scales: dim must be even (channels rotate in pairs); got 7.",
    ),
    "xpos_scales: centre": (
        lambda: posref.xpos_scales(T, 8, role="key", centre=-1),
        "xpos_scales: centre must be an int of at least 0; got -1.",
    ),
    "xpos_scales: scale_base": (
        lambda: posref.xpos_scales(T, 8, role="key", centre=0, scale_base=0.0),
        "xpos_scales: scale_base must be a finite number above 0; got 0.0.",
    ),
    "xpos_scales: gamma": (
        lambda: posref.xpos_scales(T, 8, role="key", centre=0, gamma=0),
        "xpos_scales: gamma must be a finite number above 0; got 0.",
    ),
    "xpos_scales: float16 positions": (
        lambda: posref.xpos_scales(T.astype(np.float16), 8, role="key", centre=0),
        "xpos_scales: positions " + HALF.format(dtype="float16"),
    ),
    "pope: layout": (
        lambda: posref.pope(X, T, layout="sin_cos", base=10000.0),
        "pope: layout must be one of 'cos_sin', 'interleaved'; got 'sin_cos'.",
    ),
    "pope: float16 positions": (
        lambda: posref.pope(X, T.astype(np.float16), layout="cos_sin", base=10000.0),
        "pope: positions " + HALF.format(dtype="float16"),
    ),
    "pope: positions do not broadcast": (
        lambda: posref.pope(X, np.arange(4), layout="cos_sin", base=10000.0),
        "pope: positions must broadcast to the leading axes of x, (2, 3, 5), without enlarging them; got (4,).",
    ),
    "pope: phases": (
        lambda: posref.pope(X, T, layout="cos_sin", base=10000.0, phases=np.ones((4, 1, 64))),
        "pope: phases must broadcast to the shape of x, (2, 3, 5, 64), with 64 in the last axis; got (4, 1, 64).",
    ),
    "pope: phases of another width": (
        lambda: posref.pope(X, T, layout="cos_sin", base=10000.0, phases=np.ones(1)),
        "pope: phases must broadcast to the shape of x, (2, 3, 5, 64), with 64 in the last axis; got (1,).",
    ),
    "fope: mixes of two shapes": (
        lambda: posref.fope(X, T, np.ones((3, 4, 4)), np.ones((3, 4, 5)), base=10000.0),
        "fope: cos_mix and sin_mix must have the same shape, (n, m), or (G, n, m) if x has an axis of heads, with n and m "
        "from 1 to half the last axis of x, which must be even; got (3, 4, 4), (3, 4, 5) and x of shape (2, 3, 5, 64).",
    ),
    "fope: heads": (
        lambda: posref.fope(X, T, np.ones((2, 4, 4)), np.ones((2, 4, 4)), base=10000.0),
        "fope: the number of heads of x must be a multiple of the number of mixes (the first axis of cos_mix); got 3 and 2.",
    ),
    "fope: float16 positions": (
        lambda: posref.fope(X, T.astype(np.float16), np.ones((4, 4)), np.ones((4, 4)), base=10000.0),
        "fope: positions " + HALF.format(dtype="float16"),
    ),
    "frequencies: odd dim": (
        frequencies(dim=7),
        "rope_frequencies: dim must be even (channels rotate in pairs); got 7.",
    ),
    "frequencies: dim 0": (frequencies(dim=0), "rope_frequencies: dim must be an int of at least 2; got 0."),
    "frequencies: dim True": (frequencies(dim=True), "rope_frequencies: dim must be an int of at least 2; got True."),
    "frequencies: base nan": (
        frequencies(base=float("nan")),
        "rope_frequencies: base must be a finite number above 0; got nan.",
    ),
    "frequencies: DynamicNTK without length": (
        frequencies(DynamicNTK(2.0, 100)),
        "rope_frequencies: length must be given with DynamicNTK (the number of tokens, cached ones included); got None.",
    ),
    "frequencies: DynamicNTK with a negative length": (
        frequencies(DynamicNTK(2.0, 100), length=-1),
        "rope_frequencies: length must be an int of at least 0; got -1.",
    ),
    "frequencies: DynamicNTK of length 0": (
        frequencies(DynamicNTK(2.0, 0), length=5),
        "rope_frequencies: DynamicNTK.original_length must be an int of at least 1; got 0.",
    ),
    "frequencies: NTK with one pair": (
        frequencies(NTKAware(2.0), dim=2),
        "rope_frequencies: dim must be at least 4 with NTK scaling (its exponent is dim/(dim-2)); got 2.",
    ),
    "frequencies: Linear 0": (
        frequencies(Linear(0.0)),
        "rope_frequencies: Linear.factor must be a finite number above 0; got 0.0.",
    ),
    "frequencies: Llama3 bounds": (
        frequencies(Llama3(8.0, 64, 4, 1)),
        "rope_frequencies: Llama3.high_freq_factor must be finite and at least low_freq_factor, 4.0; got 1.0.",
    ),
    "frequencies: YaRN betas": (
        frequencies(YaRN(4.0, 64, beta_fast=1, beta_slow=32)),
        "rope_frequencies: YaRN.beta_fast must be at least beta_slow (fast pairs rotate more often); got 1 and 32.",
    ),
    "frequencies: YaRN length": (
        frequencies(YaRN(4.0, 64.0)),
        "rope_frequencies: YaRN.original_length must be an int of at least 1; got 64.0.",
    ),
    "frequencies: YaRN base": (
        frequencies(YaRN(4.0, 64), base=1.0),
        "rope_frequencies: base must be above 1 with YaRN (its ramp divides by ln(base)); got 1.0.",
    ),
    "frequencies: NTKAlpha with one pair": (
        frequencies(NTKAlpha(4.0), dim=2),
        "rope_frequencies: dim must be at least 4 with NTK scaling (its exponent is dim/(dim-2)); got 2.",
    ),
    "frequencies: DynamicYaRN without length": (
        frequencies(DynamicYaRN(64)),
        "rope_frequencies: length must be given with DynamicYaRN (the number of tokens, cached ones included); got None.",
    ),
    "frequencies: LongRoPE without length": (
        frequencies(LONG),
        "rope_frequencies: length must be given with LongRoPE (the number of tokens, cached ones included); got None.",
    ),
    "frequencies: LongRoPE lists": (
        frequencies(LONG, dim=10, length=5),
        "rope_frequencies: LongRoPE.short_factor must have one entry for each of the 5 pairs; got 4.",
    ),
    "frequencies: LongRoPE factor": (
        frequencies(LongRoPE(LONG.short_factor, LONG.long_factor, 32), length=5),
        "rope_frequencies: LongRoPE must have factor, max_length, attention_factor or the mscale of the list in use "
        "(to scale cos and sin); got none.",
    ),
    "frequencies: Proportional share": (
        frequencies(Proportional(1.5)),
        "rope_frequencies: Proportional.rotated must be a share of the head, from 0 to 1; got 1.5.",
    ),
    "alibi: positions without an axis": (
        lambda: posref.alibi(np.arange(3), np.asarray(2), heads=2, form="distance"),
        "alibi: k_positions must have an axis of tokens; got shape ().",
    ),
    "t5_bias: positions without an axis": (
        lambda: posref.t5_bias(np.asarray(2), np.arange(3), np.ones((8, 2)), bidirectional=True),
        "t5_bias: q_positions must have an axis of tokens; got shape ().",
    ),
    "t5_bias: table of integers": (
        lambda: posref.t5_bias(np.arange(2), np.arange(3), np.ones((8, 2), int), bidirectional=True),
        "t5_bias: table must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "shaw_scores: queries": (
        lambda: posref.shaw_scores(
            np.ones((2, 4), complex),
            np.ones((3, 4)),
            np.ones((3, 4)),
            np.arange(2),
            np.arange(3),
            left=1,
            right=1,
            order="key_minus_query",
        ),
        "shaw_scores: q must be real floating; got complex128. Give real and imaginary parts as two channels.",
    ),
    "axial_frequencies: odd width": (
        lambda: posref.axial_frequencies((4, 5), base=100.0, allocation="own"),
        "axial_frequencies: dims must have at least one entry, all even (channels rotate in pairs); got (4, 5).",
    ),
    "axial_table: sections": (
        lambda: posref.axial_table(AXES, np.ones(4), sections=(1, 1, 1), arrangement="chunked"),
        "axial_table: sections must have one entry for each row of positions, and add up to 4 (the pairs of inv_freq); "
        "got (1, 1, 1) and positions of shape (3, 5).",
    ),
    "axial_table: tail": (
        lambda: posref.axial_table(AXES, np.ones(6), sections=(1, 1, 4), arrangement="interleaved"),
        "axial_table: sections must fit arrangement 'interleaved', which would give the axes (3, 1, 2) pairs; got (1, 1, 4).",
    ),
    "mrope: sections": (
        lambda: posref.mrope(X, AXES, **MROPE | {"sections": (16, 24, 24)}),
        "mrope: sections must add up to at least 1 and at most 32 (half the channels of x); got (16, 24, 24).",
    ),
    "mrope: positions": (
        lambda: posref.mrope(X, np.zeros((3, 2, 5)), **MROPE),
        "mrope: positions with more than one axis of tokens must have all 3 of the leading axes of x, (2, 3, 5); "
        "got (3, 2, 5). Insert axes of size 1, for instance reshape to (3, 2, 1, 5).",
    ),
    "mrope: coordinates last": (
        lambda: posref.mrope(X, AXES.T, **MROPE),
        "mrope: positions must have 3 coordinates along their first axis; got shape (5, 3). Move the last axis to the front.",
    ),
    "mrope: one axis": (
        lambda: posref.mrope(X, T, **MROPE),
        "mrope: positions must have 3 coordinates along their first axis; got shape (5,).",
    ),
    "mrope: tokens before heads": (
        lambda: posref.mrope(np.ones((2, 5, 3, 64)), AXES, **MROPE),
        "mrope: positions must broadcast to the leading axes of x, (2, 5, 3), without enlarging them; got (3, 5). "
        "If x is (B, T, H, D), reshape them to (3, 5, 1).",
    ),
    "axial_rope: lanes": (
        lambda: posref.axial_rope(X, AXES, **AXIAL | {"dims": (32, 32, 32)}),
        "axial_rope: dims must add up to at most 64 (the channels of x); got (32, 32, 32).",
    ),
    "axial_rope: by axis": (
        lambda: posref.axial_rope(X, AXES, **AXIAL | {"layout": "half_by_axis", "arrangement": "round_robin"}),
        "axial_rope: arrangement must be 'chunked' with layout 'half_by_axis' (pairs lie within axes); got 'round_robin'.",
    ),
    "axial_rope: layout": (
        lambda: posref.axial_rope(X, AXES, **AXIAL | {"layout": "interleaved_to_half"}),
        "axial_rope: layout must be one of 'half', 'interleaved', 'half_by_axis'; got 'interleaved_to_half'. "
        "Did you mean 'interleaved'?",
    ),
    "axial_rope: axes": (
        lambda: posref.axial_rope(X, AXES[:2], **AXIAL),
        "axial_rope: positions must have 3 coordinates along their first axis; got shape (2, 5).",
    ),
    "mixed_table: axes": (
        lambda: posref.mixed_table(AXES, np.ones((2, 4))),
        "mixed_table: frequencies must be (A, ..., d/2) for positions (A, ...), with A at least 1; got (2, 4) and (3, 5).",
    ),
    "mixed_table: rows": (
        lambda: posref.mixed_table(AXES, np.ones((3, 2, 4))),
        "mixed_table: the axes of frequencies between the first and the last must broadcast with the axes of positions after "
        "the first; got (3, 2, 4) and (3, 5).",
    ),
    "mixed_rope: an axis not said which": (
        lambda: posref.mixed_rope(X, AXES, np.ones((3, 5, 4)), layout="half"),
        "mixed_rope: frequencies must be (A, d/2), or (A, *F, d/2) with F of 3 axes that broadcast to (2, 3, 5) (the leading "
        "axes of x), and d at most 64; got (3, 5, 4).",
    ),
    "liere_rotations: axes": (
        lambda: posref.liere_rotations(AXES, np.ones((2, 1, 4, 4))),
        "liere_rotations: generators must be (A, ..., G, n, n) for positions (A, ...), with A at least 1; got (2, 1, 4, 4) "
        "and (3, 5).",
    ),
    "liere_rotations: rows": (
        lambda: posref.liere_rotations(AXES, np.ones((3, 2, 1, 4, 4))),
        "liere_rotations: axes of generators between the first and last three must broadcast with positions; got "
        "(3, 2, 1, 4, 4) and (3, 5).",
    ),
    "liere: lanes": (
        lambda: posref.liere(X, AXES, np.ones((3, 9, 8, 8))),
        "liere: generators must be (A, G, n, n), or (A, *F, G, n, n) with F of 3 axes that broadcast to (2, 3, 5) (the leading "
        "axes of x), and G n at most 64; got (3, 9, 8, 8).",
    ),
    "liere: float16 positions": (
        lambda: posref.liere(X, AXES.astype(np.float16), np.ones((3, 8, 8, 8))),
        "liere: positions " + HALF.format(dtype="float16"),
    ),
    "cayley: no square": (
        lambda: posref.cayley(np.ones((3, 4))),
        "cayley: skew must be square matrices, (..., n, n); got shape (3, 4).",
    ),
    "cayley_string: skew": (
        lambda: posref.cayley_string(X, AXES, np.ones((3, 64, 64)), np.ones((3, 32)), form="product"),
        "cayley_string: skew must be (64, 64), or (*F, 64, 64) with F of 3 axes that broadcast to (2, 3, 5) (the leading axes "
        "of x); got (3, 64, 64).",
    ),
    "cayley_string: frequencies": (
        lambda: posref.cayley_string(X, AXES, np.ones((64, 64)), np.ones((3, 33)), form="product"),
        "cayley_string: frequencies must be (A, d/2), or (A, *F, d/2) with F of 3 axes that broadcast to (2, 3, 5) (the "
        "leading axes of x), and d at most 64; got (3, 33).",
    ),
    "cayley_string: form": (
        lambda: posref.cayley_string(X, AXES, np.ones((64, 64)), np.ones((3, 32)), form="both"),
        "cayley_string: form must be one of 'conjugate', 'product'; got 'both'.",
    ),
    "circulant_string: pairs": (
        lambda: posref.circulant_string(X, AXES, np.ones((3, 32, 2))),
        "circulant_string: coefficients must be (A, G, n), or (A, *F, G, n) with F of 3 axes that broadcast to (2, 3, 5) (the "
        "leading axes of x), n at least 3 and G n at most 64; got (3, 32, 2).",
    ),
    "permute_qk_weights: heads": (
        lambda: posref.permute_qk_weights(np.ones((10, 3)), heads=4, source="half", target="interleaved"),
        "permute_qk_weights: the first axis of weight must be a multiple of heads, 4; got shape (10, 3).",
    ),
    "permute_qk_weights: rotary_dim": (
        lambda: posref.permute_qk_weights(np.ones((10, 3)), heads=1, rotary_dim=12, source="half", target="interleaved"),
        "permute_qk_weights: rotary_dim must be even and at most 10 (the channels of a head); got 12.",
    ),
    "rotation_matrix: odd dim": (
        lambda: posref.rotation_matrix(np.asarray(1), 3, **ROPE),
        "rotation_matrix: dim must be even (channels rotate in pairs); got 3.",
    ),
    "sinusoidal: odd dim": (
        lambda: posref.sinusoidal(T, 5, layout="sin_cos"),
        "sinusoidal: dim must be even unless odd says what its columns are (libraries disagree); got 5.",
    ),
    "sinusoidal: one pair with endpoint": (
        lambda: posref.sinusoidal(T, 2, layout="sin_cos", endpoint=True),
        "sinusoidal: dim must be an int of at least 4 with endpoint=True; got 2.",
    ),
    "sinusoidal: layout": (
        lambda: posref.sinusoidal(T, 4, layout="concat"),
        "sinusoidal: layout must be one of 'interleaved', 'sin_cos', 'cos_sin'; got 'concat'.",
    ),
    "sinusoidal: base": (
        lambda: posref.sinusoidal(T, 4, layout="sin_cos", base=-1.0),
        "sinusoidal: base must be a finite number above 0; got -1.0.",
    ),
    "fourier: bands of other coordinates": (
        lambda: posref.fourier(T[:, None], np.ones((2, 3)), unit="turns", arrangement="band wave coordinate", include="none"),
        f"fourier: x must be (..., c), and bands (K,) or (c, K); got shapes ({len(T)}, 1) and (2, 3).",
    ),
    "fourier: columns of a coordinate": (
        lambda: posref.fourier(
            T[:, None], np.ones(3), unit="radians", arrangement="wave band coordinate", include="by_coordinate"
        ),
        "fourier: include 'by_coordinate' needs an arrangement that begins with the coordinate; got 'wave band coordinate'.",
    ),
    "random_fourier: a transposed matrix": (
        lambda: posref.random_fourier(T[:, None], np.ones((2, 1)), layout="sin_cos"),
        f"random_fourier: x must be (..., c), and matrix (c, m); got shapes ({len(T)}, 1) and (2, 1).",
    ),
    "sine_2d: a mask of numbers": (
        lambda: posref.sine_2d(np.ones((2, 3)), 8, normalize=True, centered=False),
        "sine_2d: mask must be boolean with rows and columns, True where a cell is valid; got float64, (2, 3).",
    ),
    "sine_2d: a width that axes cannot share": (
        lambda: posref.sine_2d(np.ones((2, 3), dtype=bool), 6, normalize=True, centered=False),
        "sine_2d: dim must be a multiple of 4 (a sine and a cosine for each axis); got 6.",
    ),
    "sine_2d: half a cell of counts": (
        lambda: posref.sine_2d(np.ones((2, 3), dtype=bool), 8, normalize=False, centered=True),
        "sine_2d: centered must be False without normalize (counts are whole numbers); got True.",
    ),
    "sinusoidal_nd: another number of axes": (
        lambda: posref.sinusoidal_nd(T, dims=[4, 4], layout="sin_cos", arrangement="axis"),
        f"sinusoidal_nd: positions must have a first axis of 2, one coordinate for each width; got ({len(T)},).",
    ),
    "sinusoidal_nd: arrangement of an interleaved layout": (
        lambda: posref.sinusoidal_nd(np.ones((2, 3)), dims=[4, 4], layout="interleaved", arrangement="outer"),
        "sinusoidal_nd: arrangement 'outer' needs layout 'sin_cos' or 'cos_sin'; got 'interleaved'.",
    ),
    "sinusoidal_shift: odd dim": (
        lambda: posref.sinusoidal_shift(T, 5, layout="sin_cos"),
        "sinusoidal_shift: dim must be even (a sine needs its cosine); got 5.",
    ),
    "timestep: one pair with a shift": (
        lambda: posref.timestep(T, 3, flip=False, freq_shift=1, scale=1.0),
        "timestep: dim must be an int of at least 4 with freq_shift=1 (it divides by dim // 2 - 1); got 3.",
    ),
    "timestep: one column": (
        lambda: posref.timestep(T, 1, flip=False, freq_shift=0, scale=1.0),
        "timestep: dim must be an int of at least 2; got 1.",
    ),
    "timestep: shift": (
        lambda: posref.timestep(T, 8, flip=False, freq_shift=0.5, scale=1.0),
        "timestep: freq_shift must be 0 or 1; got 0.5.",
    ),
    "timestep: half precision": (
        lambda: posref.timestep(torch.ones(5, dtype=torch.float16), 8, flip=True, freq_shift=0, scale=1000.0),
        "timestep: timesteps " + HALF.format(dtype="torch.float16"),
    ),
    "learned: floating positions": (
        lambda: posref.learned(T * 1.0, TABLE),
        "learned: positions must be integers (each selects a row of the table); got float64.",
    ),
    "learned: table with one axis": (
        lambda: posref.learned(T, np.ones(8)),
        "learned: table must be 2-D, (rows, width); got shape (8,).",
    ),
    "learned: offset": (
        lambda: posref.learned(T, TABLE, offset=-1),
        "learned: offset must be an int of at least 0; got -1.",
    ),
    "learned: out of range": (
        lambda: posref.positions.require_in_range(np.asarray([1, 9, -1]), 8),
        "require_in_range: positions must be from 0 to 7 (the table has 8 rows); got 9.",
    ),
    "write_cache: slots out of range": (
        lambda: posref.positions.require_slots(np.asarray([1, -1, 8]), 8),
        "require_slots: slots must be from 0 to 7 (the cache has 8 slots), or -1; got 8.",
    ),
    "write_cache: a slot of two tokens": (
        lambda: posref.positions.require_slots(np.asarray([5, -1, 2, -1, 5]), 8),
        "require_slots: slots must differ, since tokens are written in no order; got 5 twice.",
    ),
    "write_cache: real slots": (
        lambda: posref.positions.require_slots(np.asarray([5.0]), 8),
        "require_slots: slots must be integers of shape (T,); got float64 (1,).",
    ),
    "resample: rows": (
        lambda: posref.resample(TABLE, (3, 3), old_size=(2, 4), prefix=1, **GRID),
        f"resample: table must be 2-D with 9 rows (prefix 1 plus the cells of old_size (2, 4)); got shape {TABLE.shape}.",
    ),
    "resample: sizes": (
        lambda: posref.resample(TABLE, (9,), old_size=(2, 4), prefix=0, **GRID),
        "resample: size must have an int for every axis of old_size, (2, 4); got (9,).",
    ),
    "resample: no cells": (
        lambda: posref.resample(TABLE, (0, 3), old_size=(2, 4), prefix=0, **GRID),
        "resample: size must be an int of at least 1; got 0.",
    ),
    "resample: offset": (
        lambda: posref.resample(TABLE, (3, 3), old_size=(2, 4), prefix=0, interpolate_offset=1.5, **GRID),
        "resample: interpolate_offset must be below 1 (with 1 or more, PyTorch would add cells); got 1.5.",
    ),
    "resample: offset and corners": (
        lambda: posref.resample(
            TABLE, (3, 3), old_size=(2, 4), prefix=0, interpolate_offset=0.1, **GRID | {"align_corners": True}
        ),
        "resample: interpolate_offset must be None with align_corners=True, where it has no effect; got 0.1.",
    ),
    "resample: zeros": (
        lambda: posref.resample(TABLE, (3, 3), old_size=(2, 4), prefix=0, boundary="zeros", **GRID | {"antialias": True}),
        "resample: boundary must be 'border' with antialias=True (it drops cells outside the grid); got 'zeros'.",
    ),
    "alibi: no heads": (
        lambda: posref.alibi(T, T, heads=0, form="distance"),
        "alibi: heads must be an int of at least 1; got 0.",
    ),
    "alibi: form": (
        lambda: posref.alibi(T, T, heads=2, form="abs"),
        "alibi: form must be one of 'distance', 'causal', 'key'; got 'abs'.",
    ),
    "alibi_slopes: max_bias": (
        lambda: posref.alibi_slopes(2, max_bias=0),
        "alibi_slopes: max_bias must be a finite number above 0; got 0.",
    ),
    "t5_buckets: floating": (
        lambda: posref.t5_buckets(T * 1.0, bidirectional=True),
        "t5_buckets: relative_positions must be signed integers; got float64.",
    ),
    "t5_buckets: unsigned": (
        lambda: posref.t5_buckets(T.astype(np.uint8), bidirectional=True),
        "t5_buckets: relative_positions must be signed integers; got uint8.",
    ),
    "t5_buckets: odd and bidirectional": (
        lambda: posref.t5_buckets(T, bidirectional=True, num_buckets=7),
        "t5_buckets: num_buckets must be even when bidirectional (half for each side); got 7.",
    ),
    "t5_buckets: too few": (
        lambda: posref.t5_buckets(T, bidirectional=True, num_buckets=2),
        "t5_buckets: num_buckets must be an int of at least 4; got 2.",
    ),
    "t5_buckets: max_distance": (
        lambda: posref.t5_buckets(T, bidirectional=False, max_distance=16),
        "t5_buckets: max_distance must be an int of at least 17 (above half the buckets of one side); got 16.",
    ),
    "t5_bias: table": (
        lambda: posref.t5_bias(T, T, np.ones(8), bidirectional=True),
        "t5_bias: table must be 2-D, (num_buckets, heads); got shape (8,).",
    ),
    "shaw: order": (
        lambda: posref.shaw_scores(X[0, 0], X[0, 0], np.ones((3, 64)), T, T, left=1, right=1, order="relative"),
        "shaw_scores: order must be one of 'key_minus_query', 'query_minus_key'; got 'relative'.",
    ),
    "shaw: rows of the table": (
        lambda: posref.shaw_scores(X[0, 0], X[0, 0], np.ones((2, 64)), T, T, **SHAW),
        "shaw_scores: the table must be 2-D with left + right + 1 = 3 rows; got shape (2, 64).",
    ),
    "shaw: left": (
        lambda: posref.shaw_values(np.ones((5, 5)), X[0, 0], np.ones((3, 64)), T, T, left=-1, right=3, order="key_minus_query"),
        "shaw_values: left must be an int of at least 0; got -1.",
    ),
    "shaw: floating positions": (
        lambda: posref.shaw_values(np.ones((5, 5)), X[0, 0], np.ones((3, 64)), T * 1.0, T, **SHAW),
        "shaw_values: positions must be integers; got float64 and int64.",
    ),
    "extension: window": (
        lambda: posref.rerope_distances(T, T, window=0),
        "rerope_distances: window must be an int of at least 1; got 0.",
    ),
    "extension: factor": (
        lambda: posref.leaky_rerope(X, X, T, T, window=3, factor=0, layout="half", base=10000.0),
        "leaky_rerope: factor must be an int of at least 1; got 0.",
    ),
    "extension: shift": (
        lambda: posref.self_extend_distances(T, T, group=2, window=3, rounding="round"),
        "self_extend_distances: rounding must be one of 'floor', 'exact'; got 'round'.",
    ),
    "extension: group": (
        lambda: posref.self_extend(X, X, T, T, group=1.5, window=3, rounding="floor", layout="half", base=10000.0),
        "self_extend: group must be an int of at least 1; got 1.5.",
    ),
    "extension: local size": (
        lambda: posref.dual_chunk_distances(T, T, chunk_size=4, window=4),
        "dual_chunk_distances: window must be below chunk_size, 4; got 4.",
    ),
    "extension: sinks": (
        lambda: posref.streaming_llm_distances(T, T, num_sinks=-1, window=3, counting="with_query"),
        "streaming_llm_distances: num_sinks must be an int of at least 0; got -1.",
    ),
    "extension: counting": (
        lambda: posref.streaming_llm(X, X, T, T, num_sinks=1, window=0, counting="with_query", layout="half", base=10000.0),
        "streaming_llm: window must be an int of at least 1 (it counts the query); got 0.",
    ),
    "extension: floating positions": (
        lambda: posref.dual_chunk(X, X, T, T * 1.0, chunk_size=4, window=1, layout="half", base=10000.0),
        "dual_chunk: positions must be signed integers; got int64 and float64.",
    ),
    "extension: a position without an axis": (
        lambda: posref.rerope_distances(np.asarray(3), T, window=4),
        "rerope_distances: q_positions must have an axis of tokens; got shape ().",
    ),
    "extension: a key's position without an axis": (
        lambda: posref.streaming_llm(X, X, T, np.asarray(3), num_sinks=1, window=4, counting="with_query", **ROPE),
        "streaming_llm: k_positions must have an axis of tokens; got shape ().",
    ),
    "extension: unsigned positions": (
        lambda: posref.self_extend_distances(T.astype(np.uint32), T, group=2, window=3, rounding="floor"),
        "self_extend_distances: positions must be signed integers; got uint32 and int64.",
    ),
    "extension: a window beyond all positions": (
        lambda: posref.rerope_distances(T, T, window=2**31),
        "rerope_distances: window must be an int of at most 2147483647 (positions may have 32 bits); got 2147483648.",
    ),
    "extension: a cache beyond all positions": (
        lambda: posref.streaming_llm_distances(T, T, num_sinks=1, window=2**31 - 1, counting="with_query"),
        "streaming_llm_distances: num_sinks + window must be an int of at most 2147483647 (positions may have 32 bits); "
        "got 2147483648.",
    ),
    "extension: places of queries beyond all positions": (
        lambda: posref.leaky_rerope_distances(T, T, window=2**16, factor=2**16),
        "leaky_rerope_distances: window * (factor - 1) must be an int of at most 2147483647 (positions may have 32 bits); "
        "got 4294901760.",
    ),
    "extension: steps beyond all positions": (
        lambda: posref.self_extend(X, X, T, T, group=2**16, window=2**15, rounding="exact", **ROPE),
        "self_extend: window * group must be an int of at most 2147483647 (positions may have 32 bits); got 2147483648.",
    ),
    "extension: NumPy's integers": (
        lambda: posref.dual_chunk_distances(T, T, chunk_size=np.int64(0), window=1),
        "dual_chunk_distances: chunk_size must be an int of at least 1; got 0.",
    ),
    "extension: queries of integers": (
        lambda: posref.rerope(X.astype(np.int64), X, T, T, window=3, **ROPE),
        "rerope: q must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "extension: complex keys": (
        lambda: posref.dual_chunk(X, X.astype(complex), T, T, chunk_size=4, window=1, **ROPE),
        "dual_chunk: k must be real floating; got complex128. Give real and imaginary parts as two channels.",
    ),
    "extension: rows of two batches": (
        lambda: posref.rerope(X, np.ones((4, 3, 5, 64)), T, T, window=3, **ROPE),
        "rerope: leading axes of q and k must broadcast; got (2, 3) and (4, 3).",
    ),
    "extension: rows": (
        lambda: posref.rerope(X, X, np.stack([T, T]), T, window=3, layout="half", base=10000.0),
        "rerope: q_positions with more than one axis must have all 3 of the leading axes of q, (2, 3, 5); got (2, 5). "
        "Insert axes of size 1, for instance reshape to (2, 1, 5).",
    ),
    "extension: rotary_dim": (
        lambda: posref.rerope(X, X, T, T, window=3, layout="half", base=10000.0, rotary_dim=66),
        "rerope: rotary_dim must be even and at most 64 (the last axis of q); got 66.",
    ),
    "extension: layout": (
        lambda: posref.rerope(X, X, T, T, window=3, layout="neox", base=10000.0),
        "rerope: layout must be one of 'half', 'interleaved', 'interleaved_to_half'; got 'neox'. Did you mean 'half'?",
    ),
    "extension: heads": (
        lambda: posref.leaky_rerope(X, X[:, :2], T, T, window=3, factor=2, layout="half", base=10000.0),
        "leaky_rerope: the number of query heads must be a multiple of the number of key or value heads; got 3 and 2.",
    ),
    "extension: widths": (
        lambda: posref.rerope(X, X[..., :8], T, T, window=3, layout="half", base=10000.0),
        "rerope: q and k must be (..., Q, D) and (..., K, D); got (2, 3, 5, 64) and (2, 3, 5, 8).",
    ),
    "attention: values of other keys": (
        lambda: posref.attention(X, X, X[:, :, :4]),
        "attention: v must be (..., K, E) for k, (2, 3, 5, 64); got (2, 3, 4, 64).",
    ),
    "attention: values of another batch": (
        lambda: posref.attention(X, X, np.ones((4, 3, 5, 64))),
        "attention: leading axes of logits and v must broadcast; got (2, 3) and (4, 3).",
    ),
    "attention: queries of integers": (
        lambda: posref.attention(X.astype(np.int64), X, X),
        "attention: q must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "attention: values of booleans": (
        lambda: posref.attention(X, X, X > 0),
        "attention: v must be real floating; got bool. Convert it to a floating dtype.",
    ),
    "attention: a bias of integers": (
        lambda: posref.attention_logits(X, X, bias=np.ones((5, 5), dtype=np.int64)),
        "attention_logits: bias must be real floating; got int64. Convert it to a floating dtype.",
    ),
    "attention: a bias of other keys": (
        lambda: posref.attention_logits(X, X, bias=np.ones((5, 4))),
        "attention_logits: logits and bias must broadcast; got (2, 3, 5, 5) and (5, 4).",
    ),
    "attention: a mask of other keys": (
        lambda: posref.attention(X, X, X, mask=np.ones((5, 4), dtype=bool)),
        "attention: logits and mask must broadcast; got (2, 3, 5, 5) and (5, 4).",
    ),
    "attention: a mask of integers where there is no key": (
        lambda: posref.attention(X, X[:, :, :0], X[:, :, :0], mask=np.ones((5, 0))),
        "attention: mask must be boolean, True where a query may attend; got float64. "
        "Pass numbers to add to the logits as bias.",
    ),
    "attention: scale": (
        lambda: posref.attention_logits(X, X, scale=float("inf")),
        "attention_logits: scale must be a finite number; got inf.",
    ),
    "attention: scale in words": (
        lambda: posref.attention(X, X, X, scale="0.5"),
        "attention: scale must be a finite number; got '0.5'.",
    ),
    "attention: no lanes": (
        lambda: posref.attention(X[..., :0], X[..., :0], X),
        "attention: scale must be given when q has no channels (1/sqrt(D) is infinite); got None.",
    ),
    "attention: complex sinks": (
        lambda: posref.attention(X, X, X, sinks=np.ones(3, dtype=complex)),
        "attention: sinks must be real floating; got complex128. Give real and imaginary parts as two channels.",
    ),
    "attention: heads": (
        lambda: posref.attention(X, X[:, :2], X[:, :2]),
        "attention: the number of query heads must be a multiple of the number of key or value heads; got 3 and 2.",
    ),
    "attention: widths": (
        lambda: posref.attention_logits(X, X[..., :8]),
        "attention_logits: q and k must be (..., Q, D) and (..., K, D); got (2, 3, 5, 64) and (2, 3, 5, 8).",
    ),
    "attention: sinks of key heads": (
        lambda: posref.attention(X, X[:, :1], X[:, :1], sinks=np.ones(1)),
        "attention: sinks must have one number for each query head, shape (3,); got shape (1,).",
    ),
    "attention: sinks without heads": (
        lambda: posref.attention(X[0, 0], X[0, 0], X[0, 0], sinks=np.ones(3)),
        "attention: sinks must have one number for each query head, shape (1,); got shape (3,).",
    ),
    "sliding_window: window with the query": (
        lambda: posref.sliding_window(T, T, window=0, counting="with_query", sides="causal"),
        "sliding_window: window must be an int of at least 1 (it counts the query); got 0.",
    ),
    "sliding_window: window": (
        lambda: posref.sliding_window(T, T, window=-1, counting="without_query", sides="both"),
        "sliding_window: window must be an int of at least 0; got -1.",
    ),
    "sliding_window: counting": (
        lambda: posref.sliding_window(T, T, window=2, counting="inclusive", sides="causal"),
        "sliding_window: counting must be one of 'with_query', 'without_query'; got 'inclusive'.",
    ),
    "sliding_window: a position without an axis": (
        lambda: posref.sliding_window(T, np.asarray(3), window=2, counting="with_query", sides="causal"),
        "sliding_window: k_positions must have an axis of tokens; got shape ().",
    ),
    "chunked_window: a chunk beyond all positions": (
        lambda: posref.chunked_window(T, T, chunk_size=2**31, sides="causal"),
        "chunked_window: chunk_size must be an int of at most 2147483647 (positions may have 32 bits); got 2147483648.",
    ),
    "lambda_window: a window that is no int": (
        lambda: posref.lambda_window(T, T, num_sinks=True, window=2, counting="with_query"),
        "lambda_window: num_sinks must be an int of at least 0; got True.",
    ),
    "lambda_window: no word": (
        lambda: posref.lambda_window(T, T, num_sinks=1, window=2, counting=np.asarray("with_query")),
        "lambda_window: counting must be one of 'with_query', 'without_query'; got array('with_query', dtype='<U10').",
    ),
    "logn_scale: at_least_one": (
        lambda: posref.logn_scale(T, original_length=2, offset=1, at_least_one="no"),
        "logn_scale: at_least_one must be True or False; got 'no'.",
    ),
    "sliding_window: sides": (
        lambda: posref.sliding_window(T, T, window=2, counting="with_query", sides="left"),
        "sliding_window: sides must be one of 'causal', 'both'; got 'left'.",
    ),
    "sliding_window: fractions": (
        lambda: posref.sliding_window(T, T / 2, window=2, counting="with_query", sides="causal"),
        "sliding_window: k_positions must be integers; got float64.",
    ),
    "chunked_window: chunk": (
        lambda: posref.chunked_window(T, T, chunk_size=0, sides="causal"),
        "chunked_window: chunk_size must be an int of at least 1; got 0.",
    ),
    "chunked_window: fractions": (
        lambda: posref.chunked_window(T * 1.0, T, chunk_size=2, sides="causal"),
        "chunked_window: q_positions must be integers; got float64.",
    ),
    "lambda_window: sinks": (
        lambda: posref.lambda_window(T, T, num_sinks=-1, window=2, counting="with_query"),
        "lambda_window: num_sinks must be an int of at least 0; got -1.",
    ),
    "logn_scale: length": (
        lambda: posref.logn_scale(T, original_length=1, offset=1, at_least_one=True),
        "logn_scale: original_length must be an int of at least 2 (the factor divides by its logarithm); got 1.",
    ),
    "logn_scale: offset": (
        lambda: posref.logn_scale(T, original_length=2, offset=-1, at_least_one=True),
        "logn_scale: offset must be an int of at least 0; got -1.",
    ),
    "logn_scale: fractions": (
        lambda: posref.logn_scale(T * 1.0, original_length=2, offset=1, at_least_one=True),
        "logn_scale: positions must be integers; got float64.",
    ),
    "attention_temperature: form": (
        lambda: posref.attention_temperature(T, form="floor", beta=0.1, original_length=8, offset=1),
        "attention_temperature: form must be one of 'steps', 'smooth'; got 'floor'.",
    ),
    "attention_temperature: beta": (
        lambda: posref.attention_temperature(T, form="steps", beta=0.0, original_length=8, offset=1),
        "attention_temperature: beta must be a finite number above 0; got 0.0.",
    ),
    "attention_temperature: length": (
        lambda: posref.attention_temperature(T, form="steps", beta=0.1, original_length=0, offset=1),
        "attention_temperature: original_length must be an int of at least 1; got 0.",
    ),
    "attention: mask of integers": (
        lambda: posref.attention(X, X, X, mask=np.ones((5, 5), dtype=np.int64)),
        "attention: mask must be boolean, True where a query may attend; got int64.",
    ),
    "backends: name": (
        lambda: posref.backends.load("tensorflow"),
        "backends.load: name must be one of numpy, torch, jax, cupy, mlx, dask, array_api_strict; got 'tensorflow'.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    call, message = CASES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert str(caught.value) == message


POSITIVE, WHOLE = "must be a finite number above 0; got 0.0.", "must be an int of at least 1; got 0."
FIELDS = {
    "Llama3.factor": (Llama3(0.0, 64), POSITIVE),
    "Llama3.original_length": (Llama3(8.0, 0), WHOLE),
    "Llama3.low_freq_factor": (Llama3(8.0, 64, 0.0), POSITIVE),
    "LongRoPE.short_factor": (replace(LONG, short_factor=(1.0, 0.0, 2.0, 3.0)), POSITIVE),
    "LongRoPE.factor": (replace(LONG, max_length=None, factor=0.0), POSITIVE),
    "LongRoPE.max_length": (replace(LONG, max_length=0), WHOLE),
    "NTKAware.factor": (NTKAware(0.0), POSITIVE),
    "NTKMixed.mix": (NTKMixed(4.0, 0.0), POSITIVE),
    "DynamicNTK.original_length": (DynamicNTK(2.0, 0), WHOLE),
    "YaRN.factor": (YaRN(0.0, 64), POSITIVE),
    "YaRN.original_length": (YaRN(4.0, 0), WHOLE),
    "DynamicYaRN.beta_slow": (DynamicYaRN(64, beta_slow=0.0), POSITIVE),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_a_scaling(name: str) -> None:
    scaling, requirement = FIELDS[name]
    with pytest.raises(ValueError, match=name) as caught:
        frequencies(scaling, length=5)()
    assert str(caught.value) == f"rope_frequencies: {name} {requirement}"


@pytest.mark.parametrize("xp", [np, torch, jnp], ids=["numpy", "torch", "jax"])
def test_shapes_read_alike_in_every_library(xp: Any) -> None:
    with pytest.raises(ValueError, match="positions") as caught:
        posref.rope(xp.ones((2, 3, 5, 4)), xp.ones((2, 5)), **ROPE)
    assert str(caught.value) == (
        "rope: positions with more than one axis must have all 3 of the leading axes of x, (2, 3, 5); got (2, 5). "
        "Insert axes of size 1, for instance reshape to (2, 1, 5)."
    )
    with pytest.raises(ValueError, match="cos"):
        posref.apply_rope(xp.ones((5, 4)), xp.ones((4, 2)), xp.ones((4, 2)), layout="half")


def test_arrays_of_two_libraries() -> None:
    with pytest.raises(TypeError) as caught:
        posref.rope(torch.ones(5, 4), T, **ROPE)
    assert str(caught.value) == (
        "rope: x and positions must be arrays of one library (convert numbers and lists with its asarray); "
        "got torch.Tensor, numpy.ndarray."
    )


def test_an_error_names_the_function_that_was_called() -> None:
    with pytest.raises(ValueError, match=r"^mla_logits: base must be a finite number above 0; got -1\."):
        posref.mla_logits(X, X, X, X[:, 0], T, T, layout="half", base=-1, scale=1.0)
    with pytest.raises(
        TypeError, match=r"^mrope: scaling must be a record .* Pass an instance, such as posref\.scaling\.YaRN\("
    ):
        posref.mrope(X, np.stack([T] * 3), sections=(8, 12, 12), arrangement="chunked", scaling="yarn", **ROPE)
    with pytest.raises(
        ValueError, match=r"^rope: LongRoPE\.short_factor must have one entry for each of the 32 pairs; got 4\."
    ):
        posref.rope(X, T, scaling=LONG, length=5, **ROPE)
    with pytest.raises(ValueError, match=r"^rope: YaRN\.factor must be"):
        posref.rope(X, T, scaling=YaRN(-1.0, 32), **ROPE)
    with pytest.raises(ValueError, match=r"^t5_bias: table must have at least 4 rows, .*; got shape \(3, 8\)\."):
        posref.t5_bias(T, T, np.ones((3, 8)), bidirectional=True)
    with pytest.raises(ValueError, match=r"^t5_bias: table must have at least 2 rows; got shape \(1, 8\)\."):
        posref.t5_bias(T, T, np.ones((1, 8)), bidirectional=False)


def test_a_table_from_position_0_on_is_told_how_to_be_read() -> None:
    cos, sin = posref.rope_table(np.arange(9), np.ones(32))
    with pytest.raises(ValueError, match=r" got \(9,\)\. Index a table that starts at position 0: cos\[positions\]\.$"):
        posref.apply_rope(X, cos, sin, layout="half")


def test_tables_of_twice_the_frequencies_are_told_how_to_be_cut() -> None:
    cos, sin = (np.concatenate([t, t], axis=-1) for t in posref.rope_table(T, np.ones(32)))
    with pytest.raises(ValueError, match=r" If the tables hold every frequency twice, .*, pass \[\.\.\., :32\]\.$"):
        posref.apply_rope(X, cos, sin, layout="half")


def test_a_table_of_integers_is_refused() -> None:
    table = np.ones((5, 32), dtype=np.int64)
    with pytest.raises(ValueError, match=r"^apply_rope: cos must be real floating; got int64\."):
        posref.apply_rope(X, table, table, layout="half")


def test_lists_are_not_arrays() -> None:
    with pytest.raises(TypeError) as caught:
        posref.sinusoidal([1, 2], 4, layout="sin_cos")
    assert str(caught.value) == (
        "sinusoidal: positions must be an array (convert numbers and lists with its asarray); got builtins.list."
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: posref.rerope(X.tolist(), X.tolist(), T, T, window=3, **ROPE),
        lambda: posref.attention(X, X, X, sinks=[1.0, 1.0, 1.0]),
        lambda: posref.attention_logits(X, X, bias=[1.0]),
        lambda: posref.axial_table(AXES, [1.0] * 3, sections=(1, 1, 1), arrangement="chunked"),
        lambda: posref.mixed_table(AXES, [[1.0]] * 3),
        lambda: posref.pope(X, T, layout="cos_sin", base=10000.0, phases=[1.0] * 64),
        lambda: posref.rotated_values(X[..., :5], X.tolist(), T, T, **ROPE),
    ],
)
def test_lists_in_the_second_place(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"^[a-z_]+: [a-z_, ]+ must be (an array|arrays of one library) \(convert numbers and"):
        call()


def test_a_scaling_that_is_no_record() -> None:
    with pytest.raises(TypeError) as caught:
        posref.rope_frequencies(8, base=10000.0, scaling={"factor": 2.0})
    assert str(caught.value) == (
        "rope_frequencies: scaling must be a record of posref.scaling or None; got {'factor': 2.0}. "
        "To read a configuration's dict, call posref.rope_from_config."
    )


def test_fields_of_a_scaling_are_numbers_of_python() -> None:
    scaling = YaRN(np.float32(4), np.int64(4096), truncate=np.bool_(False))
    assert scaling == YaRN(4.0, 4096, truncate=False)
    assert [type(value) for value in (scaling.factor, scaling.original_length, scaling.truncate)] == [float, int, bool]


@pytest.mark.parametrize("option", ["layout", "base"])
def test_options_on_which_libraries_disagree_have_no_default(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        posref.rope(X, T, **{name: value for name, value in ROPE.items() if name != option})


def test_tokens_before_heads_take_a_column_of_positions() -> None:
    """(B, T, H, D) takes (T, 1); with one head that could as well be one position for each row, and is refused."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 4))
    p = np.asarray([4, 7, 9])
    whole = posref.rope(x, np.broadcast_to(p[:, None], (2, 3, 1)), layout="half", base=100.0)
    assert np.array_equal(posref.rope(x, p[:, None], layout="half", base=100.0), whole)
    with pytest.raises(ValueError, match="Insert axes of size 1"):
        posref.rope(x[:, :, :1], p[:, None], layout="half", base=100.0)

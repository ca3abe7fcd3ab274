"""x-transformers: its positional modules, RotaryEmbedding with apply_rotary_pos_emb, its ALiBi, T5 and dynamic biases, CoPE,
and the data-dependent ALiBi."""

import math

import torch
from torch import Tensor
from torch.func import functional_call
from x_transformers.x_transformers import (
    AlibiPositionalBias,
    CoPE,
    DataDependentAlibi,
    DynamicPositionBias,
    PolarEmbedding,
    RelativePositionBias,
    RotaryEmbedding,
    ScaledSinusoidalEmbedding,
    apply_polar_pos_emb,
    apply_rotary_pos_emb,
)

from posref.scaling import Linear, NTKAware, Scaling

from ..errors import Unsupported
from ._shared import lacks

PACKAGE = "x-transformers"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 27  # elements of a bias whose entries are looked up
FARTHEST = 1000  # position of such a bias: it has a row for every query between

supports = {
    "t5_bias": {"position": {"max": FARTHEST}},
    "dynamic_position_bias": {"numbers": ["integers"], "position": {"max": FARTHEST}},
}


def rope_frequencies(dim: int, /, *, base: float, scaling: Scaling | None = None) -> tuple[Tensor, float]:
    """The buffer `inv_freq` of the module."""
    if isinstance(scaling, Linear):
        lacks("interpolation_factor divides angles, not frequencies")
    return _rotary(dim, base, scaling).inv_freq, 1.0


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Scaling | None = None
) -> Tensor:
    """RotaryEmbedding of these positions, then apply_rotary_pos_emb, all tokens as one sequence of one head."""
    if layout != "interleaved":
        lacks(f"no layout {layout!r}: pairs are neighbours, read and written")
    if not x.numel():
        lacks("RotaryEmbedding takes the maximum of the positions, of which there must be one")
    module = _rotary(x.shape[-1] if rotary_dim is None else rotary_dim, base, scaling)
    freqs, scale = module(torch.broadcast_to(positions, x.shape[:-1]).reshape(-1))
    return apply_rotary_pos_emb(x.reshape(1, 1, -1, x.shape[-1]), freqs, scale).reshape(x.shape)


def xpos_scales(
    positions: Tensor, dim: int, /, *, role: str, centre: int, scale_base: float = 512.0, gamma: float = 0.4
) -> Tensor:
    """The scale that RotaryEmbedding gives of these positions, moved so that the middle is at the centre."""
    _, scale = _centred(positions, dim, 1e4, centre, scale_base, gamma)
    scales = scale[0, 1:, ::2].reshape(*positions.shape, dim // 2)
    return scales if role == "query" else scales**-1.0


def xpos(
    x: Tensor, positions: Tensor, /, *, role: str, layout: str, base: float, centre: int, rotary_dim: int | None = None,
    scale_base: float = 512.0, gamma: float = 0.4,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding with use_xpos, then apply_rotary_pos_emb as its Attention calls it for queries or for keys."""
    if layout != "interleaved":
        lacks(f"no layout {layout!r}: pairs are neighbours, read and written")
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    places = torch.broadcast_to(positions, x.shape[:-1])
    freqs, scale = _centred(places, width, base, centre, scale_base, gamma)
    flat = x.reshape(1, 1, -1, x.shape[-1])  # the last of the frequencies are taken
    return apply_rotary_pos_emb(flat, freqs, scale if role == "query" else scale**-1.0).reshape(x.shape)


def _centred(positions: Tensor, dim: int, base: float, centre: int, scale_base: float, gamma: float) -> tuple[Tensor, Tensor]:
    """
    Return frequencies and scales of these positions, after one more position.

    The module's centre is the middle of its positions. For the scales, all are moved alike, and the first is twice the centre.
    """
    if gamma != 0.4:
        lacks("gamma is 0.4")
    flat = positions.reshape(-1)
    if not flat.numel():
        lacks("RotaryEmbedding takes the maximum of the positions, of which there must be one")
    ahead = max(0, math.ceil(flat.max()) - 2 * centre)
    last = torch.full((1,), 2 * (centre + ahead), dtype=flat.dtype, device=flat.device)
    module = _rotary(dim, base, None, use_xpos=True, scale_base=scale_base)
    freqs, _ = module(torch.cat((last, flat)))
    _, scale = module(torch.cat((last, flat + ahead)))
    return freqs, scale


def pope(x: Tensor, positions: Tensor, /, *, layout: str, base: float, phases: Tensor | None = None) -> Tensor:
    """PolarEmbedding with these phases as its learned bias, then apply_polar_pos_emb; tokens are one sequence of one head."""
    if layout != "cos_sin":
        lacks(f"no layout {layout!r}: cosines, then sines")
    if not x.numel():
        lacks("PolarEmbedding takes the maximum of the positions, of which there must be one")
    width = x.shape[-1]
    module = PolarEmbedding(width, 1, base=base)
    freqs, bias = module(torch.broadcast_to(positions, x.shape[:-1]).reshape(-1))
    if phases is not None:
        module.learned_bias = torch.nn.Parameter(torch.broadcast_to(phases, x.shape).reshape(1, -1, width).float())
        _, bias = module(positions.reshape(-1))
        freqs = freqs + bias
    return apply_polar_pos_emb(x.reshape(1, -1, width), freqs).reshape(*x.shape[:-1], 2 * width)


def sinusoidal(
    positions: Tensor, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, scale: float = 1.0
) -> Tensor:
    """ScaledSinusoidalEmbedding with its learned scale, which begins as dim**-0.5, at that of the call."""
    if layout != "sin_cos" or endpoint:
        lacks(f"no layout {layout!r} with endpoint={endpoint}; sines, then cosines, at the paper's frequencies")
    module = ScaledSinusoidalEmbedding(dim, theta=base)
    with torch.no_grad():
        module.scale.fill_(scale)
        flat = positions.reshape(-1)
        return module(flat[None, :, None], pos=flat).reshape(*positions.shape, dim)


def alibi_slopes(heads: int, /) -> Tensor:
    """The buffer `slopes` of AlibiPositionalBias."""
    return AlibiPositionalBias(heads).slopes[:, 0, 0]


def alibi(q_positions: Tensor, k_positions: Tensor, /, *, heads: int, form: str) -> Tensor:
    """AlibiPositionalBias.forward_custom_pos, which takes one leading axis at most: more are one."""
    if form != "distance":
        lacks(f"no form {form!r}: the bias is -m|i - j|")
    lead = torch.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
    if len(lead) > 1:
        q, k = (p.broadcast_to(*lead, p.shape[-1]).flatten(0, -2) for p in (q_positions, k_positions))
        return alibi(q, k, heads=heads, form=form).unflatten(0, lead)
    return AlibiPositionalBias(heads).forward_custom_pos(q_positions, k_positions)


def t5_buckets(relative_positions: Tensor, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """RelativePositionBias._relative_position_bucket."""
    return RelativePositionBias._relative_position_bucket(
        relative_positions, causal=not bidirectional, num_buckets=num_buckets, max_distance=max_distance
    )


def t5_bias(
    q_positions: Tensor, k_positions: Tensor, table: Tensor, /, *, bidirectional: bool, max_distance: int = 128
) -> Tensor:
    """RelativePositionBias of queries and keys that end at the same position, where each distance is looked up."""
    buckets, heads = table.shape
    module = RelativePositionBias(1, not bidirectional, buckets, max_distance, heads)
    relative = k_positions[..., None, :] - q_positions[..., :, None]
    if not relative.numel():
        return table.new_zeros((*relative.shape[:-2], heads, *relative.shape[-2:]))
    queries, length = _sizes(relative, heads)
    bias = functional_call(module, {"relative_attention_bias.weight": table}, (queries, length))
    return torch.movedim(_looked_up(bias, relative), 0, -3)


def dynamic_position_bias(
    q_positions: Tensor, k_positions: Tensor, w_in: Tensor, b_in: Tensor, w_hidden: Tensor, b_hidden: Tensor, w_out: Tensor,
    b_out: Tensor, /, *, distance: str,
) -> Tensor:  # fmt: skip
    """DynamicPositionBias of as many queries and keys as the largest distance needs, where each distance is looked up."""
    if q_positions.is_floating_point() or k_positions.is_floating_point():
        lacks("positions are counted, so that distances are whole")
    relative = k_positions[..., None, :] - q_positions[..., :, None]
    queries, length = _sizes(relative, len(w_out)) if relative.numel() else (1, 1)
    width, layers = len(w_in), len(w_hidden)
    module = DynamicPositionBias(width, heads=len(w_out), depth=layers + 1, log_distance=distance == "log")
    parameters = [w_in[:, None], b_in, *(x for layer in zip(w_hidden, b_hidden, strict=True) for x in layer), w_out, b_out]
    weights = {name: x.float() for (name, _), x in zip(module.named_parameters(), parameters, strict=True)}
    bias = functional_call(module, weights, (queries, length))
    return torch.movedim(_looked_up(bias, relative), 0, -3).to(w_out.dtype)


def _sizes(relative: Tensor, heads: int) -> tuple[int, int]:
    """Return how many queries and keys, the last of them at one position, have all these distances."""
    queries, length = max(int(relative.max()), 0) + 1, int(relative.abs().max()) + 1
    if queries * length * heads > LIMIT:
        lacks(f"a bias of {queries} queries and {length} keys is too large here")
    return queries, length


def _looked_up(bias: Tensor, relative: Tensor) -> Tensor:
    """Return the entries of a bias of queries and keys that end at the same position, at these distances."""
    queries, length = bias.shape[-2:]
    rows = queries - 1 - relative.clamp(min=0)
    return bias[:, rows, length - queries + rows + relative]


def cope(q: Tensor, logits: Tensor, table: Tensor, mask: Tensor, /) -> Tensor:
    """CoPE.forward with this table, of logits that are lowest where the mask hides a key."""
    shape = (*torch.broadcast_shapes(q.shape[:-1], logits.shape[:-1], mask.shape[:-1]), logits.shape[-1])
    hidden = torch.where(mask, logits, -torch.finfo(logits.dtype).max).broadcast_to(shape)
    queries = q.broadcast_to(*shape[:-1], q.shape[-1])
    module = CoPE(q.shape[-1], 1, table.shape[0])
    del module.pos_emb
    module.pos_emb = table  # not a Parameter, so that gradients reach the caller's table
    flat = queries.reshape(-1, 1, *queries.shape[-2:]), hidden.reshape(-1, 1, *shape[-2:])
    return module(*flat).reshape(shape)


def forgetting_bias(log_gates: Tensor, /, *, queries: int) -> Tensor:
    """DataDependentAlibi.forward of these gates, with only the last queries."""
    module = DataDependentAlibi(1, 1)
    module.to_forget_gates = torch.nn.Identity()
    heads, keys = log_gates.shape[-2:]
    bias = module(log_gates.reshape(-1, heads, keys))
    return bias[..., keys - queries :, :].reshape(*log_gates.shape[:-1], queries, keys)


def _rotary(dim: int, base: float, scaling: Scaling | None, **xpos: float) -> RotaryEmbedding:
    match scaling:
        case None:
            return RotaryEmbedding(dim, base=base, **xpos)
        case Linear(factor) if factor >= 1:
            return RotaryEmbedding(dim, base=base, interpolation_factor=factor)
        case NTKAware(factor):
            return RotaryEmbedding(dim, base=base, base_rescale_factor=factor)
        case _:
            raise Unsupported(repr(scaling))


# Read and run in x-transformers 2.31.10 with torch 2.13.0 on a CPU.
NOTES = (
    "RotaryEmbedding(2) raises a ZeroDivisionError (x_transformers.py:849).",
    "ScaledSinusoidalEmbedding multiplies by a learned scale that begins as dim**-0.5 (:448); here it is 1.",
    "xPos: the centre is half the largest position and one more (:886), so that it moves with every token; positions are "
    "moved for the scales, and one of twice the centre is put before them.",
    "RelativePositionBias multiplies by a scale (:517), in its Decoder the square root of the head size (:2922); here it is 1.",
)

"""Every operation in the dtype of the arrays, half precision included; only angles, slopes and distances in float32."""

import torch
import torch.nn.functional as F

backend = "torch"
dtypes = ("bfloat16", "float16", "float32")


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half = dim // 2
    angle = positions[..., None].float() / base ** (torch.arange(half).float() / (half - 1 if endpoint else half))
    sin, cos = angle.sin().to(dtype or torch.float32), angle.cos().to(dtype or torch.float32)
    if layout == "interleaved":
        return torch.stack((sin, cos), dim=-1).flatten(-2)
    return torch.cat((sin, cos) if layout == "sin_cos" else (cos, sin), dim=-1)


def learned(positions, table, /, *, offset=0):
    return F.embedding(positions + offset, table)


def rope_frequencies(dim, /, *, base):
    return base ** (torch.arange(0, dim, 2).float() / -dim), 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    angle = positions.float()[..., None] * inv_freq.float()
    dtype = dtype or torch.float32
    return angle.cos().to(dtype) * attention_factor, angle.sin().to(dtype) * attention_factor


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    cos, sin, dim = cos.to(x.dtype), sin.to(x.dtype), 2 * cos.shape[-1]
    read = write = "half" if layout == "half" else "interleaved"
    if layout == "interleaved_to_half":
        write = "half"
    if inverse:
        read, write, sin = write, read, -sin
    head = x[..., :dim]
    a, b = head.chunk(2, dim=-1) if read == "half" else (head[..., 0::2], head[..., 1::2])
    pair = (a * cos - b * sin, b * cos + a * sin)
    turned = torch.cat(pair, dim=-1) if write == "half" else torch.stack(pair, dim=-1).flatten(-2)
    return torch.cat((turned, x[..., dim:]), dim=-1)


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    inv_freq, _ = rope_frequencies(rotary_dim or x.shape[-1], base=base)
    return apply_rope(x, *rope_table(positions, inv_freq, dtype=x.dtype), layout=layout, inverse=inverse)


def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
    unit = torch.eye(dim, dtype=dtype or torch.float32)
    return rope(unit, torch.as_tensor(position), layout=layout, base=base).transpose(-1, -2)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 1 << (heads.bit_length() - 1)
    step = torch.cat((torch.arange(1, below + 1).float(), torch.arange(heads - below) + 0.5))
    return torch.exp2(step * (-max_bias / below))


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    dtype = dtype or torch.float32
    slopes, keys = alibi_slopes(heads)[:, None, None], k_positions[..., None, None, :]
    if form == "key":
        return (slopes.to(dtype) * keys.float()).to(dtype)
    relative = keys - q_positions[..., None, :, None]
    return (slopes.to(dtype) * (-relative.abs() if form == "distance" else relative).float()).to(dtype)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    count = num_buckets // 2 if bidirectional else num_buckets
    distance = relative_positions.abs() if bidirectional else (-relative_positions).clamp(min=0)
    exact = count // 2
    log = torch.log(distance.clamp(min=1).double() / exact) / torch.log(torch.tensor(max_distance / exact).double())
    far = (exact + (log * (count - exact) + 1e-9).floor().long()).clamp(max=count - 1)
    side = count * (relative_positions > 0).long() if bidirectional else 0
    return side + torch.where(distance < exact, distance, far)


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = k_positions[..., None, :] - q_positions[..., :, None]
    buckets = t5_buckets(relative, bidirectional=bidirectional, num_buckets=table.shape[0], max_distance=max_distance)
    return F.embedding(buckets, table).movedim(-1, -3)


def relative_rows(q_positions, k_positions, table, left, right, order):
    difference = k_positions[..., None, :] - q_positions[..., :, None]
    if order == "query_minus_key":
        difference = -difference
    return table[difference.clamp(-left, right) + left]


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    a = relative_rows(q_positions, k_positions, key_table, left, right, order)
    return q @ k.mT + (a @ q[..., None]).squeeze(-1)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    a = relative_rows(q_positions, k_positions, value_table, left, right, order)
    return weights @ v + (weights[..., None, :] @ a).squeeze(-2)


def repeat_kv(q, k):
    grouped = min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]
    return k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3) if grouped else k


def attention_logits(q, k, /, *, bias=None, scale=None):
    logits = (q @ repeat_kv(q, k).mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, bias=bias, scale=scale)
    if mask is not None:
        logits = logits.masked_fill(~mask, float("-inf"))
    weights = logits.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    return weights @ repeat_kv(q, v)

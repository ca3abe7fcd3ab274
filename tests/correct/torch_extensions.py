"""Length extensions as their authors' code has them: float32 tables of real positions, and a choice between score matrices."""

import torch

backend = "torch"
dtypes = ("float32",)


def turn(x, position, base, rotary_dim, layout):
    if layout == "interleaved_to_half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
    angle = position[..., None].float() * inv_freq
    cos, sin, (x, rest) = angle.cos(), angle.sin(), (x[..., :d], x[..., d:])
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2), rest), dim=-1)


def scores(q, k, q_position, k_position, *, layout, base, rotary_dim=None, scaling=None, length=None):
    if scaling is not None:
        raise NotImplementedError(scaling)
    q, k = turn(q, q_position, base, rotary_dim, layout), turn(k, k_position, base, rotary_dim, layout)
    if q.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    return q @ k.transpose(-1, -2)


def apart(m, n):
    return m[..., :, None] - n[..., None, :]


def rerope(q, k, m, n, /, *, window, **rotation):
    near, far = scores(q, k, m, n, **rotation), scores(q, k, m * 0 + window, n * 0, **rotation)
    return torch.where(apart(m, n).abs() < window, near, far)


def leaky_rerope_distances(m, n, /, *, window, factor, dtype):
    r = apart(m, n)
    return torch.where(r.abs() < window, r, window + (r - window) / factor).to(dtype)


def leaky_rerope(q, k, m, n, /, *, window, factor, **rotation):
    near = scores(q, k, m, n, **rotation)
    far = scores(q, k, (m + window * (factor - 1)) / factor, n / factor, **rotation)
    return torch.where(apart(m, n).abs() < window, near, far)


def neighbours(m, n, window):
    r = apart(m, n)
    return (r >= 0) & (r < window)


def self_extend(q, k, m, n, /, *, group, window, rounding, **rotation):
    taken = window / group if rounding == "exact" else window // group
    near, far = scores(q, k, m, n, **rotation), scores(q, k, m // group + window - taken, n // group, **rotation)
    return torch.where(neighbours(m, n, window), near, far)


def queries(m, chunk_size, local_size):
    c = chunk_size - local_size
    own = m % c
    return own, (own + c).clamp(max=chunk_size), torch.full_like(own, min(2 * c - 1, chunk_size))


def chosen(m, n, size, intra, successive, inter):
    behind = apart(m // size, n // size)
    return torch.where(behind < 1, intra, torch.where(behind == 1, successive, inter))


def dual_chunk(q, k, m, n, /, *, chunk_size, window, **rotation):
    c = chunk_size - window
    return chosen(m, n, c, *(scores(q, k, p, n % c, **rotation) for p in queries(m, chunk_size, window)))


def streaming_llm(q, k, m, n, /, *, num_sinks, window, counting, **rotation):
    cache = num_sinks + window - (counting == "with_query")
    first, others = scores(q, k, m.clamp(max=cache), n, **rotation), scores(q, k, m, n, **rotation)
    return torch.where(n[..., None, :] < num_sinks, first, others)

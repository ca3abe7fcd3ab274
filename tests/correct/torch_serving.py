"""Six operations as serving kernels compute them: half precision, float32 between, tables gathered, running maxima."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    """A table of the positions that occur, gathered; fused multiply-adds in either order; a result with strides."""
    if layout != "half":
        raise NotImplementedError(layout)
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    rows, at = torch.unique(positions, return_inverse=True)
    angles = rows.float()[:, None] * (1.0 / base ** (torch.arange(d // 2, dtype=torch.float32) * 2 / d))
    cos, sin = torch.cat([angles.cos(), angles.sin()], -1)[at].tensor_split(2, -1)
    sin = -sin if inverse else sin
    x1, x2 = x[..., : d // 2].float(), x[..., d // 2 : d].float()
    turned = torch.cat([torch.addcmul(-(x2 * sin), x1, cos), torch.addcmul(x1 * sin, x2, cos)], -1)
    out = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)[..., ::2]
    out[..., :d], out[..., d:] = turned.to(x.dtype), x[..., d:]
    return out


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    """The weight before the inverse root, and the mean as a product."""
    if precedence != "norm_first" or layout not in ("half", "interleaved"):
        raise NotImplementedError(precedence)
    d, y = 2 * cos.shape[-1], x.float()
    y = (y * (weight.float() + weight_offset)) * torch.rsqrt((y * y).sum(-1, keepdim=True) * (1 / y.shape[-1]) + eps)
    a, b = (y[..., : d // 2], y[..., d // 2 : d]) if layout == "half" else (y[..., 0:d:2], y[..., 1:d:2])
    p, q = a * cos.float() - b * sin.float(), b * cos.float() + a * sin.float()
    turned = torch.cat([p, q], -1) if layout == "half" else torch.stack([p, q], -1).flatten(-2)
    return torch.cat([turned, y[..., d:]], -1).to(x.dtype)


def attention(q, k, v, /, *, mask=None, scale=None):
    """Blocks of five keys, with a running maximum and powers of two."""
    if q.ndim > 2:
        k, v = (t.repeat_interleave(q.shape[-3] // max(k.shape[-3], 1), -3) for t in (k, v))
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    factor = (q.shape[-1] ** -0.5 if scale is None else scale) * 1.4426950408889634
    most, total = torch.full(q.shape[:-1], -torch.inf), torch.zeros(q.shape[:-1])
    out = torch.zeros(*q.shape[:-1], v.shape[-1])
    for first in range(0, k.shape[-2], 5):
        block = (q.float() @ k[..., first : first + 5, :].float().mT) * factor
        block = block if mask is None else block.masked_fill(~mask[..., first : first + 5], -torch.inf)
        new = torch.maximum(most, block.amax(-1))
        safe = torch.where(new == -torch.inf, 0.0, new)
        weights, rest = torch.exp2(block - safe[..., None]), torch.exp2(most - safe)
        total = total * rest + weights.sum(-1)
        out = out * rest[..., None] + weights @ v[..., first : first + 5, :].float()
        most = new
    return torch.where(total[..., None] > 0, out / total[..., None], 0.0).to(q.dtype)


def deberta_scores(q, k, q_positions, k_positions, /, *, num_buckets, max_distance, p2c, rel_k=None, rel_q=None):
    """One-hot rows in place of a gather; no buckets."""
    if p2c != "code" or num_buckets is not None:
        raise NotImplementedError(p2c)
    offsets = q_positions[..., :, None] - k_positions[..., None, :]
    rows = torch.nn.functional.one_hot(offsets.clamp(-max_distance, max_distance - 1) + max_distance, 2 * max_distance).float()
    scores = torch.einsum("...qd,...kd->...qk", q.float(), k.float())
    if rel_k is not None:
        scores = scores + torch.einsum("...qr,...qkr->...qk", q.float() @ rel_k.float().mT, rows)
    if rel_q is not None:
        scores = scores + torch.einsum("...kr,...qkr->...qk", k.float() @ rel_q.float().mT, rows)
    return scores.to(q.dtype)


def forgetting_bias(log_gates, /, *, queries):
    """Running sums by a product with a triangle."""
    tokens = log_gates.shape[-1]
    sums = log_gates.double() @ torch.ones(tokens, tokens, dtype=torch.float64).triu()
    return (sums[..., tokens - queries :, None] - sums[..., None, :]).to(log_gates.dtype)


def camera_transform(x, matrices, inverses, /, *, role, blocks):
    """All blocks as rows of one product."""
    matrix = {"query": matrices.mT, "key_value": inverses, "output": matrices}[role].float()
    width = blocks * matrix.shape[-1]
    rows = x[..., :width].float().unflatten(-1, (blocks, matrix.shape[-1])) @ matrix.mT
    return torch.cat([rows.flatten(-2), x[..., width:].float()], -1).to(x.dtype)

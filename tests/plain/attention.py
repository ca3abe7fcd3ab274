"""As x-transformers (commit 9252ed7) computes it: x_transformers/attend.py, lines 530-553, 564-608 and 624-647. Where key heads
are fewer it tiles them, line 515, which is another thing; so heads must be equal here. It caps logits after the
bias; the softcap is as in transformers 5.23.0: models/gemma2/modeling_gemma2.py, lines 194-197."""

import torch

backend = "torch"


def attention(q, k, v, /, *, bias=None, mask=None, scale=None, softcap=None, sinks=None):
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        raise NotImplementedError(k.shape)
    sim = torch.einsum("...id,...jd->...ij", q, k)
    sim = sim * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        sim = torch.tanh(sim / softcap) * softcap
    if bias is not None:
        sim = sim + bias
    if mask is not None:
        sim = sim.masked_fill(~mask, -torch.finfo(sim.dtype).max)
    if sinks is not None:
        sink = sinks.reshape(-1, 1, 1) if q.ndim > 2 else sinks.reshape(1, 1)
        sim = torch.cat((sink.expand(*sim.shape[:-1], 1), sim), dim=-1)
    attn = torch.softmax(sim, dim=-1, dtype=torch.float32)
    if sinks is not None:
        attn = attn[..., 1:]
    out = torch.einsum("...ij,...jd->...id", attn, v)
    if mask is not None:
        out = out.masked_fill(~mask.any(dim=-1)[..., None], 0.0)
    return out

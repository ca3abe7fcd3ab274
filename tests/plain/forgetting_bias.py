"""As flash-linear-attention 0.6.0 computes it: fla/ops/forgetting_attn/naive.py, lines 45-51, with heads before tokens, and
the last of the tokens as queries."""

backend = "torch"


def forgetting_bias(log_gates, /, *, queries):
    gc = log_gates.float().cumsum(-1)
    return (gc[..., gc.shape[-1] - queries :, None] - gc[..., None, :]).to(log_gates.dtype)

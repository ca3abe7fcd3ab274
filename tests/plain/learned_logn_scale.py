"""As transformers 5.23.0 computes it in float32: models/mistral_large4/modeling_mistral_large4.py, lines 134-141."""

backend = "torch"


def learned_logn_scale(positions, scale, bias, /):
    log_pos = (positions.clip(0) + 1).float().log().to(scale.dtype)
    return scale[:, None] * log_pos[..., None, :] + bias[:, None]

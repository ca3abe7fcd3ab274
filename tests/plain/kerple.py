"""As KERPLE computes it (chijames/KERPLE, commit 25be3d7): megatron/mpu/layers.py, lines 249-262 and 393-421. It has
distance 0 for keys after the query. Here the caller gives positions, and these keys have their distance too."""

import torch

backend = "torch"


def kerple(q_positions, k_positions, r1, r2, /, *, form):
    diff = (q_positions[..., :, None] - k_positions[..., None, :]).abs()
    diff = diff.to(torch.float32)[..., None, :, :]
    p, a = r1.float()[:, None, None], r2.float()[:, None, None]
    if form == "log":
        out = -p * torch.log(1 + a * diff)
    elif form == "power":
        out = -diff.pow(a) * p
    else:
        out = (-diff.pow(a) * p).exp()
    return out.to(r1.dtype)

"""The sine has the other sign (lalamo #268's planted one), and YaRN's factor is dropped (exllamav3 #259)."""

import math

import torch

backend = "torch"
DEFECT = "sign flipped, and the attention factor dropped"
NAMES = (
    ("sign-flipped", "yarn-factor-missing"), ("sign-flipped", "factor-dropped"),
    ("positions-negated", "yarn-factor-missing"), ("positions-negated", "factor-dropped"),
)  # fmt: skip


def yarn(dim, base, s):
    freqs = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    low, high = (
        dim * math.log(s.original_length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (s.beta_fast, s.beta_slow)
    )
    if s.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
    return (1 / (s.factor * freqs) * ramp + (1 - ramp) / freqs).float()


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    dim = rotary_dim or x.shape[-1]
    if scaling is None:
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    elif type(scaling).__name__ == "YaRN":
        inv_freq = yarn(dim, base, scaling)
    else:
        raise NotImplementedError(scaling)
    angle = positions.unsqueeze(-1).float() * inv_freq
    turn = torch.polar(torch.ones_like(angle), -angle)
    turned = torch.view_as_real(torch.view_as_complex(x[..., :dim].unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)
    return torch.cat((turned, x[..., dim:]), dim=-1)

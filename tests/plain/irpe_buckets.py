"""As Image RPE's authors compute it (microsoft/Cream, commit 4a13c40): iRPE/DeiT-with-iRPE/irpe.py, lines 16-51, 126-254 and
335-353, for positions that are given."""

import math

import torch

backend = "torch"


def piecewise(relative, alpha, beta, gamma):
    size = relative.abs()
    far = size > alpha
    log = torch.log(size[far] / alpha) / math.log(gamma / alpha)
    outside = (torch.sign(relative[far]) * (alpha + log * (beta - alpha)).round().clip(max=beta)).to(torch.long)
    index = relative.round().to(torch.long) if relative.is_floating_point() else relative.clone()
    index[far] = outside
    return index


def irpe_buckets(q_positions, k_positions, /, *, method, alpha, beta, gamma, cells=None):
    difference = q_positions[..., :, None] - k_positions[..., None, :]
    coefficients = (alpha, beta, gamma)
    half = int(beta)
    count = 2 * half + 1
    if method == "euclidean":
        ids = piecewise(difference.square().sum(0).float().sqrt().round(), *coefficients) + half
    elif method == "quant":
        ids = piecewise(difference.square().sum(0), *coefficients) + half
    elif method == "product":
        r, c = (piecewise(d, *coefficients) + half for d in difference)
        ids = r * count + c
        count = count**2
    else:
        ids = piecewise(difference[0 if method == "cross_rows" else 1], *coefficients) + half
    return ids if cells is None else torch.where(cells, ids, count * torch.ones_like(ids))

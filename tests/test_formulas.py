"""Correct code by other formulas stays inside: powers of two, FFT, complex numbers, tables, einsum, states, online softmax."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sampling import few

from posref.conformance import check

LN2 = math.log(2)


def by_exp2(xp: Any) -> dict[str, Any]:
    """Return constants and factors by powers and logarithms of 2, as kernels have them."""

    def rope_frequencies(dim: int, /, *, base: float) -> Any:
        steps = xp.arange(0, dim, 2, dtype=xp.float32) / dim
        return xp.exp2(steps * float(-math.log2(base))), 1.0

    def alibi_slopes(heads: int, /, *, max_bias: float = 8) -> Any:
        below = 1 << (heads.bit_length() - 1)
        steps = [*range(1, below + 1), *(i + 0.5 for i in range(heads - below))]
        return xp.exp2(xp.asarray(steps, dtype=xp.float32) * float(-max_bias / below))

    def xpos_scales(
        positions: Any, dim: int, /, *, role: str, centre: Any, scale_base: float = 512.0, gamma: float = 0.4, dtype: Any = None
    ) -> Any:
        zeta = (xp.arange(0, dim, 2, dtype=xp.float32) / dim + gamma) / (1 + gamma)
        power = (xp.asarray(positions, dtype=xp.float32)[..., None] - centre) / scale_base
        found = xp.exp2(power * xp.log2(zeta) * (1 if role == "query" else -1))
        return found if dtype is None else xp.asarray(found, dtype=dtype)

    def attention_temperature(
        positions: Any, /, *, form: str, beta: float, original_length: int, offset: int, dtype: Any = None
    ) -> Any:
        places = xp.clip(positions + offset, 0, None)
        grown = places // original_length + 1.0
        if form != "steps":
            grown = xp.clip(xp.asarray(places, dtype=xp.float64) / original_length, 1.0, None)
        found = 1 + beta * (LN2 * xp.log2(xp.asarray(grown, dtype=xp.float32)))
        return xp.asarray(found, dtype=dtype)

    return {f.__name__: f for f in (rope_frequencies, alibi_slopes, xpos_scales, attention_temperature)}


def online_attention(block: int) -> Any:
    """Return attention as flash kernels do it: blocks of keys, powers of 2, the scale folded into the queries."""

    def attention(q: Any, k: Any, v: Any, /, *, bias: Any = None, mask: Any = None, scale: float | None = None) -> Any:
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
        folded = q.float() * ((q.shape[-1] ** -0.5 if scale is None else scale) / LN2)
        lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        total, largest = torch.zeros(*lead, q.shape[-2], 1), torch.full((*lead, q.shape[-2], 1), -1e30)
        out = torch.zeros(*lead, q.shape[-2], v.shape[-1])
        full = (*lead, q.shape[-2], k.shape[-2])
        for start in range(0, k.shape[-2], block):
            part = slice(start, start + block)
            logits = torch.einsum("...qd,...kd->...qk", folded, k[..., part, :].float())
            logits = logits if bias is None else logits + bias.float().expand(full)[..., part] / LN2
            logits = logits if mask is None else logits.masked_fill(~mask.expand(full)[..., part], -torch.inf)
            after = torch.maximum(largest, logits.amax(-1, keepdim=True))
            weights, kept = torch.exp2(logits - after), torch.exp2(largest - after)
            total, largest = total * kept + weights.sum(-1, keepdim=True), after
            out = out * kept + torch.einsum("...qk,...kd->...qd", weights.to(v.dtype).float(), v[..., part, :].float())
        return (out / total.clamp(min=1e-37)).to(q.dtype)

    return attention


def mixed_by_complex(x: Any, positions: Any, frequencies: Any, /, *, layout: str) -> Any:
    """Return the rotation by complex numbers, with the angle in float32."""
    if layout == "interleaved_to_half" or frequencies.ndim > 2 or positions.ndim != 2:
        raise NotImplementedError
    angles = np.einsum("at,af->tf", positions.astype(np.float32), frequencies)
    pairs, axis = angles.shape[-1], -2 if layout == "half" else -1
    head = x[..., : 2 * pairs].reshape(*x.shape[:-1], *((2, pairs) if layout == "half" else (pairs, 2)))
    z = (np.take(head, 0, axis) + 1j * np.take(head, 1, axis)) * np.exp(1j * angles)
    return np.concatenate([np.stack([z.real, z.imag], axis).reshape(*x.shape[:-1], 2 * pairs), x[..., 2 * pairs :]], -1)


def learned_by_one_hot(xp: Any) -> Any:
    """Return the rows of a table by a product with ones and zeros."""

    def learned(positions: Any, rows: Any, /, *, offset: int = 0) -> Any:
        ones = xp.asarray((positions + offset)[..., None] == xp.arange(rows.shape[0]), dtype=rows.dtype)
        return ones @ rows

    return learned


def rope_by_table(x: torch.Tensor, positions: torch.Tensor, /, *, layout: str, base: float) -> Any:
    """Return the rotation by cosines and sines that are looked up by position."""
    if layout != "half" or positions.dtype.is_floating_point or bool(((positions < 0) | (positions > 5000)).any()):
        raise NotImplementedError
    inv_freq = 1.0 / base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    angles = torch.outer(torch.arange(5001).float(), inv_freq)
    cos, sin = torch.cat([angles.cos(), angles.sin()], -1)[positions].chunk(2, -1)
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def circulant_by_fft(x: Any, positions: Any, coefficients: Any, /, *, inverse: bool = False) -> Any:
    """Return the rotation by the exponential of a circulant matrix, whose eigenvalues are a Fourier transform."""
    if coefficients.ndim > 3 or positions.ndim != 2:
        raise NotImplementedError
    blocks, n = coefficients.shape[-2:]
    column = np.einsum("at,agn->tgn", positions.astype(coefficients.dtype), coefficients)
    values = np.fft.fft(column - np.roll(column[..., ::-1], 1, axis=-1), axis=-1)
    head = np.fft.fft(x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n), axis=-1)
    turned = np.fft.ifft(head * np.exp(np.conj(values) if inverse else values), axis=-1).real
    return np.concatenate([turned.reshape(*x.shape[:-1], blocks * n), x[..., blocks * n :]], -1).astype(x.dtype)


def liere_by_eigenvectors(positions: Any, generators: Any, /, *, dtype: Any = None) -> Any:
    """Return exponentials by the eigenvectors of a Hermitian matrix."""
    if positions.ndim != 2 or generators.ndim != 4:
        raise NotImplementedError
    upper = np.triu(generators, 1)
    a = np.einsum("at,agij->tgij", positions.astype(generators.dtype), upper - np.swapaxes(upper, -1, -2))
    values, vectors = np.linalg.eigh(1j * a)
    turned = vectors * np.exp(-1j * values)[..., None, :] @ np.conj(np.swapaxes(vectors, -1, -2))
    return turned.real.astype(generators.dtype if dtype is None else dtype)


def linear_by_state(
    q: Any, k: Any, v: Any, q_positions: Any, k_positions: Any, /, *, layout: str, base: float, causal: bool
) -> Any:
    """Return linear attention by a matrix of keys and values, formed before the queries are asked."""
    if causal or layout != "half" or q_positions.ndim != 1 or k_positions.ndim != 1 or not k.shape[-2]:
        raise NotImplementedError

    def rotated(x: Any, positions: Any) -> Any:
        exponents = -np.arange(0, x.shape[-1], 2, np.float32) / x.shape[-1]
        angles = positions[:, None].astype(np.float32) * np.float32(base) ** exponents
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)

    queries, keys = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    state = np.einsum("...kd,...ke->...de", rotated(keys, k_positions), v)
    below = np.einsum("...qd,...d->...q", queries, keys.sum(-2))
    return (np.einsum("...qd,...de->...qe", rotated(queries, q_positions), state) / below[..., None]).astype(q.dtype)


def t5_by_one_hot(xp: Any) -> Any:
    """Return T5's bias by a product with ones and zeros."""
    import posref

    def t5_bias(q_positions: Any, k_positions: Any, table: Any, /, *, bidirectional: bool, max_distance: int = 128) -> Any:
        options = {"bidirectional": bidirectional, "num_buckets": table.shape[0], "max_distance": max_distance}
        buckets = posref.t5_buckets(k_positions[..., None, :] - q_positions[..., :, None], **options)
        ones = xp.asarray(buckets[..., None] == xp.arange(table.shape[0]), dtype=table.dtype)
        return xp.einsum("...qkb,bh->...hqk", ones, table)

    return t5_bias


HALF = ("float32", "bfloat16", "float16")
WAYS: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "exp2 numpy": (by_exp2(np), "numpy", ("float32",)),
    "exp2 torch": (by_exp2(torch), "torch", ("float32",)),
    "online softmax, 4 keys": ({"attention": online_attention(4)}, "torch", HALF),
    "online softmax, 1 key": ({"attention": online_attention(1)}, "torch", HALF),
    "complex numpy": ({"mixed_rope": mixed_by_complex}, "numpy", ("float32",)),
    "tables torch": ({"learned": learned_by_one_hot(torch), "rope": rope_by_table}, "torch", HALF),
    "tables numpy": ({"learned": learned_by_one_hot(np)}, "numpy", ("float32", "float64")),
    "FFT": ({"circulant_string": circulant_by_fft}, "numpy", ("float32", "float64")),
    "eigenvectors": ({"liere_rotations": liere_by_eigenvectors}, "numpy", ("float32", "float64")),
    "state": ({"rotary_linear_attention": linear_by_state}, "numpy", ("float32",)),
    "one hot numpy": ({"t5_bias": t5_by_one_hot(np)}, "numpy", ("float32", "float64")),
    "one hot torch": ({"t5_bias": t5_by_one_hot(torch)}, "torch", HALF),
}


SOON = ("exp2 torch", "complex numpy", "FFT")


@few(2, "way", [pytest.param(w, marks=[] if w in SOON else [pytest.mark.thorough]) for w in WAYS], dear=True)
def test_another_formula_is_inside(way: str) -> None:
    functions, backend, dtypes = WAYS[way]
    report = check(SimpleNamespace(**functions, backend=backend, dtypes=dtypes, __name__=way), experiments=0)
    wrong = [(c.id, c.dtype, c.verdict, c.message) for c in report.failures if c.verdict != "selective"]
    assert not wrong, wrong[:4]
    for operation in report.operations:
        assert operation.counts["pass"] >= 2, operation.op

"""Sinusoidal tables, implemented with defects reported after the registry was written."""

import math

import jax.numpy as jnp
import numpy as np
import torch
from planting import planted


@planted("layout fixed at interleaved", names=("sinusoid-interleaved",), backend="jax")
def sinusoidal_always_interleaved():
    """Sines and cosines alternate whatever is asked for; multidim-positional-encoding #20."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        half = dim // 2
        inv_freq = base ** (-jnp.arange(half, dtype=jnp.float32) / (half - 1 if endpoint else half))
        angle = positions[..., None].astype(jnp.float32) * inv_freq
        emb = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)
        return emb.reshape(*angle.shape[:-1], dim).astype(dtype or jnp.float32)

    return sinusoidal


@planted("base 1000", names=())
def sinusoidal_base_1000():
    """A constant of another model."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        angle = positions[..., None] * 1000.0 ** (-np.arange(0, dim, 2) / dim)
        parts = np.sin(angle), np.cos(angle)
        if layout == "interleaved":
            return np.stack(parts, axis=-1).reshape(*angle.shape[:-1], dim).astype(dtype)
        return np.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1).astype(dtype)

    return sinusoidal


@planted("endpoint=True and base=10000 hard-coded", names=(("endpoint-always", "sinusoid-base-10000"),), backend="jax")
def sinusoidal_endpoint_and_base():
    """The diffusion form with its constants inside: exponent i/(d/2 - 1) and base 10000, whatever is asked for."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        half = dim // 2
        freqs = jnp.exp(-np.log(10000.0) * jnp.arange(half, dtype=jnp.float32) / max(half - 1, 1))
        args = positions.astype(jnp.float32)[..., None] * freqs
        parts = [jnp.sin(args), jnp.cos(args)]
        if layout == "interleaved":
            return jnp.stack(parts, axis=-1).reshape(*args.shape[:-1], dim)
        return jnp.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1)

    return sinusoidal


@planted("halves exchanged", names=("sinusoid-halves-exchanged",))
def sinusoidal_halves_exchanged():
    """Sines and cosines are exchanged where they are halves (flashinfer #3819)."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
        angle = positions[..., None] * float(base) ** (-np.arange(0, dim, 2) / dim)
        parts = np.cos(angle), np.sin(angle)
        if layout == "interleaved":
            return np.stack(parts[::-1], axis=-1).reshape(*angle.shape[:-1], dim).astype(dtype)
        return np.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1).astype(dtype)

    return sinusoidal


@planted("positions held in bfloat16", names=("positions-bfloat16",), backend="torch")
def sinusoidal_positions_half():
    """Positions take the compute dtype of a bfloat16 model before they meet the frequencies; InternLM #237's class."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        half = dim // 2
        scale = torch.exp(
            torch.arange(half, dtype=torch.float64) * -(math.log(base) / (half - 1 if endpoint else half))
        ).float()
        angle = positions.to(torch.bfloat16).float().unsqueeze(-1) * scale
        sin, cos = angle.sin(), angle.cos()
        if layout == "interleaved":
            return torch.stack((sin, cos), -1).flatten(-2)
        return torch.cat((sin, cos) if layout == "sin_cos" else (cos, sin), -1)

    return sinusoidal


@planted("positions scaled by 1000", names=())
def sinusoidal_timestep_scaled():
    """Positions are multiplied by 1000 first, as latent-diffusion code does for times between 0 and 1."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        if endpoint:
            raise NotImplementedError(endpoint)
        n = dim // 2
        angle = 1000 * positions.astype(np.float64)[..., None] * float(base) ** (-np.arange(n) / n)
        sin, cos = np.sin(angle), np.cos(angle)
        if layout == "interleaved":
            out = np.stack([sin, cos], axis=-1).reshape(*angle.shape[:-1], dim)
        else:
            out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
        return out.astype(np.float32)

    return sinusoidal


@planted("pi is 3.1416", names=())
def fourier_pi_3_1416():
    """
    Pi is written as 3.1416. A constant typed by hand, seen as 6.2832 for two pi.

    Should be said: a number (angles 1.0000023 times as large), never that sines are inaccurate.
    """

    def fourier(x, bands, /, *, unit, arrangement, include):
        if arrangement != "coordinate band wave" or include == "by_coordinate":
            raise NotImplementedError(arrangement)
        turn = {"radians": 1.0, "half_turns": 3.1416, "turns": 2 * 3.1416}[unit]
        bands = np.asarray(bands, dtype=np.float64)
        angle = turn * (x.astype(np.float64)[..., None] * bands)
        waves = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*x.shape[:-1], -1)
        return np.concatenate([x, waves] if include == "first" else [waves], axis=-1).astype(np.float32)

    return fourier


@planted("coordinates clamped to [-1, 1]", names=())
def fourier_points_clamped():
    """
    Coordinates are clamped to the box from -1 to 1 first, as scene bounds are. Imagined, after NeRF's normalised scenes.

    Should be said: unexplained; coordinates beyond 1 are wrong, the others right.
    """

    def random_fourier(x, matrix, /, *, layout):
        turns = np.clip(x.astype(np.float64), -1, 1) @ np.asarray(matrix, dtype=np.float64)
        sin, cos = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
        if layout == "interleaved":
            out = np.stack([sin, cos], axis=-1).reshape(*turns.shape[:-1], -1)
        else:
            out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
        return out.astype(np.float32)

    return random_fourier


@planted("ln 10000 is 9.21", names=())
def timestep_ln_9_21():
    """
    The logarithm of the longest period is typed as 9.21, so that the period is 9996.6. Constants of this kind are common.

    Should be said: a number: the longest period is about 9996.6, or the base is.
    """

    def timestep(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0):
        if base != 10000.0:
            raise NotImplementedError(base)
        half = dim // 2
        angle = scale * timesteps.astype(np.float64)[..., None] * np.exp(-9.21 * np.arange(half) / (half - freq_shift))
        waves = [np.cos(angle), np.sin(angle)] if flip else [np.sin(angle), np.cos(angle)]
        return np.concatenate([*waves, np.zeros((*angle.shape[:-1], dim % 2))], axis=-1).astype(np.float32)

    return timestep

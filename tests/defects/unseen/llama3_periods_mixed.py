"""Wavelengths are mixed rather than frequencies. A transcription that keeps the paper's lambda to the end."""

import jax.numpy as jnp
import numpy as np

backend = "jax"
DEFECT = "the ramp mixes wavelengths"
NAMES = ("llama3-periods",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    wavelength = 2 * np.pi * float(base) ** (np.arange(0, dim, 2) / dim)
    if scaling is None:
        return jnp.asarray(2 * np.pi / wavelength, dtype=jnp.float32), 1.0
    if type(scaling).__name__ != "Llama3" or scaling.low_freq_factor == scaling.high_freq_factor:
        raise NotImplementedError(scaling)
    smooth = (scaling.original_length / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    smooth = np.clip(smooth, 0, 1)
    wavelength = (1 - smooth) * scaling.factor * wavelength + smooth * wavelength
    return jnp.asarray(2 * np.pi / wavelength, dtype=jnp.float32), 1.0

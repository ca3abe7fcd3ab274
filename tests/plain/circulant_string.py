"""As the paper has it, arXiv:2502.02562, equation (11) and theorem 3.5, in NumPy: two fast Fourier transforms, between which
every frequency is multiplied by the exponential of its eigenvalue."""

import numpy as np


def circulant_string(x, positions, coefficients, /, *, inverse=False):
    spectrum = np.fft.fft(coefficients, axis=-1)
    eigenvalues = spectrum - np.conj(spectrum)
    exponent = sum(t.astype(np.float32)[..., None, None] * e for t, e in zip(positions, eigenvalues, strict=True))
    rotation = np.exp(-exponent if inverse else exponent)
    blocks, n = coefficients.shape[-2:]
    rotating = x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n)
    rotated = np.fft.ifft(np.fft.fft(rotating, axis=-1) * rotation, axis=-1).real.astype(x.dtype)
    return np.concatenate([rotated.reshape(*x.shape[:-1], blocks * n), x[..., blocks * n :]], axis=-1)

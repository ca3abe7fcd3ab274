"""Timestep embeddings of diffusion models. Source: Ho et al., DDPM, arXiv:2006.11239, appendix B, and the authors' code."""

from posref.absolute.sines import arranged, followed_by_zeros, ladder
from posref.core.angles import cos_sin
from posref.core.arrays import DType, cast, library, result_dtype
from posref.core.checks import check_flag, check_integer, check_positions, check_positive, quoted
from posref.spec import Axes, Flag, Integer, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Diffusion timestep embedding",
    idea=(
        "A diffusion model must know how noisy its input is. The number of the step, say 500 of 1000, becomes a vector of "
        "sines and cosines at many frequencies, as a position does in the Transformer."
    ),
    family="absolute",
    source="arXiv:2006.11239, appendix B",
    models=("DDPM", "Stable Diffusion", "DiT", "SD3", "Flux", "Qwen-Image"),
    domains={
        "dim": Integer(2, usual=64),
        "flip": Flag(),
        "freq_shift": Integer(0, 1),
        "scale": Real(0, usual=(0.25, 1000)),
        "base": Real(0, usual=(2, 1e6)),
    },
    arrays={"timesteps": Axes("*P", "position")},
    result="*P dim",
    rows="*P",
    requires=("dim >= 4 or freq_shift == 0",),
    rounded=("timesteps", "result"),
    read={
        "diffusers": (
            "diffusers 0.42.1, diffusers/models/embeddings.py:27-78; diffusers/models/transformers/transformer_flux.py:725"
        ),
        "guided-diffusion": "openai/guided-diffusion@22e0df8, guided_diffusion/nn.py:113-121",
        "DDPM": "hojonathanho/diffusion@1e0dceb, diffusion_tf/nn.py:90-108",
        "Stable Diffusion": "diffusers 0.42.1, diffusers/models/unets/unet_2d_condition.py:184-185, 566-570",
        "DiT": "facebookresearch/DiT@ed81ce2, models.py:41-59",
        "SD3": (
            "diffusers 0.42.1, diffusers/models/embeddings.py:1350-1356; diffusers/models/transformers/transformer_sd3.py:150"
        ),
        "Qwen-Image": "diffusers 0.42.1, diffusers/models/transformers/transformer_qwenimage.py:178",
    },
)
def timestep(
    timesteps: ArrayOf[T],
    dim: int,
    /,
    *,
    flip: bool,
    freq_shift: int,
    scale: float,
    base: float = 10000.0,
    dtype: DType | None = None,
) -> T:
    r"""
    Return sines and cosines of diffusion timesteps at geometrically spaced frequencies.

    .. math:: [\sin(s t \omega_0) \dots \sin(s t \omega_{h-1}), \; \cos(s t \omega_0) \dots \cos(s t \omega_{h-1})],
        \qquad \omega_i = P^{-i/(h - \delta)}, \quad i = 0 \dots h - 1, \quad h = \lfloor d/2 \rfloor

    where t is the timestep, d the width, P `base`, delta the shift and s the scale. With `flip` the cosines come first.
    If d is odd, the last column is zeros, also with `flip`.

    Parameters
    ----------
    timesteps : array, integer or at least float32, shape ``(*P,)``
        t, which may be fractional. It is not the noise level. For models that embed a noise level times 1000, see `scale`.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, at least 2 (at least 4 with `freq_shift` 1).
    flip : bool
        False: sines first (DDPM, ERNIE-Image). True: cosines first (guided-diffusion, DiT, Flux, most of diffusers, where it
        is ``flip_sin_to_cos``).
    freq_shift : int
        delta, 0 or 1 (diffusers' ``downscale_freq_shift``). 1 makes the last frequency exactly 1/P, as in DDPM and by default
        in diffusers. Nearly all later models have 0.
    scale : float
        s, above 0: 1, or 1000 for models whose timesteps lie between 0 and 1 (Flux, Qwen-Image, AuraFlow).
    base : float
        P, above 0; 10000 in nearly all models.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating timesteps, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, d)``
        Between -1 and 1.

    Raises
    ------
    ValueError
        If `dim` is too small, an option is out of range, or timesteps are half precision.

    Notes
    -----
    With `freq_shift` 1 and a width of 2 or 3, h - delta is 0 and diffusers returns NaN. A width of 1 would be all zeros.
    diffusers' Flux multiplies t by 1000 itself, in the model's dtype, and then uses scale 1. Do not scale twice. In bfloat16
    the product is off by up to 2.
    `sinusoidal` returns the same for even widths and scale 1: "cos_sin" is `flip`, ``endpoint=True`` is ``freq_shift=1``.

    Examples
    --------
    >>> import numpy as np
    >>> timestep(np.asarray([999.5]), 7, flip=False, freq_shift=1, scale=1.0)[0].round(4).tolist()
    [0.456, -0.5398, 0.0998, 0.89, -0.8418, 0.995, 0.0]
    """
    name = "timestep"
    check_positions(name, "timesteps", timesteps)
    flip = check_flag(name, "flip", flip)
    if isinstance(freq_shift, bool) or freq_shift not in (0, 1):
        msg = f"{name}: freq_shift must be 0 or 1; got {quoted(freq_shift)}."
        raise ValueError(msg)
    dim = check_integer(
        name, "dim", dim, 4 if freq_shift else 2, " with freq_shift=1 (it divides by dim // 2 - 1)" if freq_shift else ""
    )
    scale = check_positive(name, "scale", scale)
    base = check_positive(name, "base", base)
    half = dim // 2
    frequencies = ladder(library(name, timesteps=timesteps), half, half - freq_shift, base) * float(scale)
    dtype = result_dtype(name, timesteps, dtype)
    cos, sin = cos_sin(timesteps, frequencies, dtype=dtype)
    return cast(followed_by_zeros(arranged(sin, cos, "cos_sin" if flip else "sin_cos"), dim), dtype)

"""Deviations of encodings made of sines, besides sinusoidal."""

from typing import Any

import numpy as np

from .compose import Function, Real, after, always, argument, before, deviations_of, narrowed, option


def _zeros_first(function: Function) -> Function:
    """The column of zeros is there before the halves are exchanged, so that it ends up between them."""

    def deviating(t: Any, dim: int, /, *, flip: bool, **options: Any) -> Real:
        if not (flip and dim % 2):
            return function(t, dim, flip=flip, **options)
        out = function(t, dim, flip=False, **options)
        return np.concatenate([out[..., dim // 2 :], out[..., : dim // 2]], axis=-1)

    return deviating


def _zero_ahead(out: Real, t: Any, dim: int, /, **options: Any) -> Real:
    return np.roll(out, 1, axis=-1) if dim % 2 else out


def _repeated(out: Real, t: Any, dim: int, /, **options: Any) -> Real:
    return np.concatenate([out[..., :-1], out[..., :1]], axis=-1) if dim % 2 else out


def _shifted(shift: int) -> Function:
    """Return a change of the shift, where the width allows it."""
    return lambda t, dim, /, **options: ((t, dim), {**options, "shift": shift if dim > 3 else options["shift"]})


_timestep = deviations_of("timestep")
TIMESTEP = (
    _timestep("timestep-flipped", "cosines always come first", option(flip=always(True)),
              "flip_sin_to_cos is False by default in diffusers, and True in most of its models.", "diffusers#1369"),
    _timestep("timestep-not-flipped", "sines always come first", option(flip=always(False))),
    _timestep("timestep-shift-1", "the exponent is always divided by h - 1", before(_shifted(1)),
              "downscale_freq_shift is 1 by default in diffusers, and 0 in most of its models."),
    _timestep("timestep-shift-0", "the exponent is always divided by h", before(_shifted(0)), "",
              "hojonathanho/diffusion#15"),
    _timestep("timestep-unscaled", "timesteps are not multiplied by the scale", option(scale=always(1.0))),
    _timestep("timestep-scale-1000", "timesteps are always multiplied by 1000", option(scale=always(1000.0))),
    _timestep("timestep-scaled-twice", "timesteps are multiplied by the scale twice", option(scale=lambda s: s * s)),
    _timestep("timestep-zeros-before-flip", "the column of zeros is added before the halves are exchanged", _zeros_first),
    _timestep("timestep-zeros-ahead", "the column of zeros is the first", after(_zero_ahead)),
    _timestep("timestep-repeated-column", "the last column of an odd width repeats the first", after(_repeated)),
    _timestep("timestep-whole-width", "the exponent of an odd width is divided by d/2 rather than h", lambda f: lambda t, dim, /, **o: f(
        t, dim, **(o | {"max_period": o.get("max_period", 1e4) ** ((dim // 2 - o["shift"]) / (dim / 2 - o["shift"]))})),
        hint="h is d // 2: look for d / 2."),
    _timestep("timestep-period-10000", "the longest period is always 10000", option(max_period=always(10000.0))),
    _timestep("timestep-truncated", "timesteps are truncated to integers", argument(0, np.trunc)),
    _timestep("timestep-float16", "timesteps are held in float16", argument(0, lambda t: narrowed("float16")(np.clip(t, -6e4, 6e4)))),
    _timestep("timestep-bfloat16", "timesteps are multiplied by the scale in bfloat16", lambda f: lambda t, dim, /, **o: f(
        narrowed("bfloat16")(t * o["scale"]), dim, **(o | {"scale": 1.0})),
                 "Multiply timestep and scale in float32.", "diffusers' Flux, in a model in bfloat16"),
    _timestep("timestep-first-row", "the first timestep is used for the whole batch", argument(
        0, lambda t: np.broadcast_to(np.reshape(t, -1)[:1], np.shape(t)) if np.size(t) else t)),
)  # fmt: skip


def _in_phases(out: Real, positions: Any, /, *, widths: Any, phases: str, layout: str, **options: Any) -> Real:
    """Return columns with the sines of all axes first where they belong block by block."""
    if phases == "outer" or layout == "interleaved":
        return out
    ends = np.cumsum(widths)
    starts = ends - np.asarray(widths)
    halves = [(np.arange(a, (a + b) // 2), np.arange((a + b) // 2, b)) for a, b in zip(starts, ends, strict=True)]
    order = [column for number in (0, 1) for pair in halves for column in pair[number]]
    return out[..., order]


def _whole_width(function: Function) -> Function:
    """The exponent is divided by the width of all blocks."""

    def deviating(positions: Any, /, *, widths: Any, base: float = 10000.0, **options: Any) -> Real:
        if options["phases"] == "outer" or options.get("endpoint"):
            return function(positions, widths=widths, base=base, **options)
        blocks = [
            function(positions[a : a + 1], widths=[width], base=float(base) ** (width / sum(widths)), **options)
            for a, width in enumerate(widths)
        ]
        return np.concatenate(blocks, axis=-1)

    return deviating


_nd = deviations_of("sinusoidal_nd")
ND = (
    _nd("sinusoidal-nd-exchanged", "the coordinates of the last two axes are exchanged", argument(
        0, lambda p: p[[*range(len(p) - 2), -1, -2]] if len(p) > 1 else p), "x first in MAE, DiT and diffusers; y first in timm.",
        "transformers#41380, torchtitan#4244"),
    _nd("sinusoidal-nd-reversed", "the coordinates of all axes are in the reverse order", argument(0, lambda p: p[::-1])),
    _nd("sinusoidal-nd-phases-outer", "the sines of all axes come before all cosines", after(_in_phases)),
    _nd("sinusoidal-nd-phases-axis", "axes are always in blocks, one after another", option(phases=always("axis"))),
    _nd("sinusoidal-nd-whole-width", "the exponent is divided by the width of all blocks", _whole_width,
        hint="The exponent is divided by the width of the axis's own block."),
    _nd("sinusoidal-nd-first-axis", "every block encodes the first axis", argument(
        0, lambda p: np.broadcast_to(p[:1], np.shape(p)))),
    _nd("sinusoidal-nd-one-based", "cells are counted from one", argument(0, lambda p: p + 1)),
    _nd("sinusoidal-nd-truncated", "coordinates are truncated to integers", argument(0, np.trunc)),
)  # fmt: skip

_shift = deviations_of("sinusoidal_shift")
SHIFT = (
    _shift("sinusoidal-shift-back", "the matrix is transposed: it shifts by -k", after(
        lambda out, *args, **options: np.swapaxes(out, -1, -2)), "With sin_cos the sine stands to the right of the cosine."),
    _shift("sinusoidal-shift-sin-cos", "sines always come first, then cosines", option(layout=always("sin_cos"))),
    _shift("sinusoidal-shift-interleaved", "columns are always interleaved", option(layout=always("interleaved"))),
    _shift("sinusoidal-shift-base-10000", "the base is always 10000", option(base=always(10000.0))),
    _shift("sinusoidal-shift-endpoint-never", "the exponent is always 2i/d", option(endpoint=always(False))),
    _shift("sinusoidal-shift-truncated", "offsets are truncated to integers", argument(0, np.trunc)),
    _shift("sinusoidal-shift-distance", "negative offsets lose their sign", argument(0, np.abs),
           hint="Offsets may be negative: look for an abs()."),
    _shift("sinusoidal-shift-bfloat16", "offsets are held in bfloat16", argument(0, narrowed("bfloat16"))),
    _shift("sinusoidal-shift-identity", "offsets are zero", argument(0, lambda k: 0 * k),
           hint="The offset does not reach the angles."),
)  # fmt: skip

_sine_2d, _normalized, _counts = deviations_of("sine_2d"), deviations_of("normalized_counts"), deviations_of("valid_counts")


def _by_size(function: Function) -> Function:
    """Counts are divided by the number of cells, valid or not."""

    def deviating(places: Any, axis: int, /, *, offset: float, scale: float, eps: float) -> Real:
        return (places - offset) / (places.shape[axis] + eps) * scale

    return deviating


def _swapped(out: Real, mask: Any, dim: int, /, **options: Any) -> Real:
    return np.concatenate([out[..., dim // 2 :], out[..., : dim // 2]], axis=-1)


IMAGE = (
    _sine_2d("sine-2d-padding", "padding cells are counted", argument(0, np.logical_not),
             "DETR's mask is True for padding. The mask in transformers is True for pixels."),
    _sine_2d("sine-2d-columns-first", "columns come before rows", after(_swapped)),
    _sine_2d("sine-2d-first-image", "the first image's mask is used for the whole batch", argument(
        0, lambda m: np.broadcast_to(m[:1], m.shape) if m.ndim > 2 else m)),
    _sine_2d("sine-2d-all-valid", "the mask is ignored: rows and columns are numbered from 1", argument(0, np.ones_like)),
    _sine_2d("sine-2d-base-10000", "the base is always 10000", option(base=always(10000.0))),
    _sine_2d("sine-2d-not-normalized", "counts are not divided", before(
        lambda mask, dim, /, **o: ((mask, dim), {**o, "normalize": False, "centered": False}))),
    _counts("sine-2d-other-axis", "cells are counted along the other axis", before(lambda m, axis: ((m, -3 - axis), {}))),
    _counts("sine-2d-from-0", "counts begin at 0", after(lambda out, m, axis: out - np.asarray(m, dtype=np.int64)),
            hint="Counts of valid cells begin at 1: a cumsum of the mask."),
    _counts("sine-2d-counts-bfloat16", "counts are held in bfloat16", after(lambda out, m, axis: narrowed("bfloat16")(out)),
            "A mask in bfloat16 counts only up to 256."),
    _normalized("sine-2d-offset-0", "no half cell is subtracted", option(offset=always(0.0)),
                "Deformable DETR subtracts half a cell, DETR does not."),
    _normalized("sine-2d-offset-half", "half a cell is always subtracted", option(offset=always(0.5))),
    _normalized("sine-2d-by-size", "counts are divided by the size of the image", _by_size,
                hint="Divide by the last count of valid cells, not by the size with padding."),
    _normalized("sine-2d-no-scale", "counts are not multiplied by the scale", option(scale=always(1.0))),
    _normalized("sine-2d-eps", "epsilon is always 1e-6", option(eps=always(1e-6))),
)  # fmt: skip

DEVIATIONS = (*TIMESTEP, *ND, *SHIFT, *IMAGE)

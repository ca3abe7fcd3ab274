"""Deviations of FoPE."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, always, argument, narrowed, option


def _formed(
    bands: Callable[[int, int], Real] = lambda n, pairs: np.arange(n), dropped: tuple[float, float] = (1.0, 1.0),
    tiled: bool = False, sign: float = 1.0, layout: str = "half",
) -> dict[str, Wrap]:  # fmt: skip
    """Return a wrap that turns x anew: by other bands, other values for dropped pairs, mixes in turn, or another way."""

    def deviating(x: Real, p: Any, cos_mix: Real, sin_mix: Real, /, *, base: float) -> Real:
        d, n = x.shape[-1], cos_mix.shape[-2]
        angle = np.asarray(p, dtype=np.float64)[..., None] * float(base) ** (-2 * bands(n, d // 2) / d)
        tables = []
        for wave, given, rest in zip((np.cos(angle), np.sin(angle)), (cos_mix, sin_mix), dropped, strict=True):
            mix = given
            if given.ndim == 3:
                times = x.shape[-3] // len(given)
                mix = np.tile(given, (times, 1, 1)) if tiled else np.repeat(given, times, axis=0)
            table = wave @ mix
            tables.append(np.concatenate([table, np.full((*table.shape[:-1], d // 2 - mix.shape[-1]), rest)], axis=-1))
        half = layout == "half"
        a, b = (x[..., : d // 2], x[..., d // 2 :]) if half else (x[..., ::2], x[..., 1::2])
        cos, sin = tables[0], sign * tables[1]
        parts = [a * cos - b * sin, b * cos + a * sin]
        return np.concatenate(parts, axis=-1) if half else np.stack(parts, axis=-1).reshape(x.shape)

    return {"fope": lambda function: deviating}


def _mixes(change: Callable[[Real, Real], tuple[Real, Real]]) -> dict[str, Wrap]:
    def wrap(function: Function) -> Function:
        return lambda x, p, a, b, /, **options: function(x, p, *change(a, b), **options)

    return {"fope": wrap}


def _turned(mix: Real) -> Real:
    return np.swapaxes(mix, -1, -2) if mix.shape[-1] == mix.shape[-2] else mix


def _first(mix: Real) -> Real:
    return np.broadcast_to(mix[:1], mix.shape) if mix.ndim == 3 else mix


def _plain(mix: Real) -> Real:
    return np.broadcast_to(np.eye(*mix.shape[-2:]), mix.shape)


DEVIATIONS = (
    Deviation("fope-dropped-kept", "pairs of dropped bands are left as they are: cosine 1, sine 0", _formed(dropped=(1.0, 0.0)),
              "The authors' code pads cosines and sines with 1.", "a frequency of 0"),
    Deviation("fope-dropped-zero", "pairs of dropped bands are zero", _formed(dropped=(0.0, 0.0)),
              hint="Pairs past the bands have cosine and sine 1 in the authors' code."),
    Deviation("fope-slow-bands", "the slowest bands are mixed rather than the fastest",
              _formed(bands=lambda n, pairs: np.arange(pairs - n, pairs)),
              hint="The first, fastest bands are mixed: compare the slice."),
    Deviation("fope-heads-tiled", "shared mixes go to heads round-robin rather than in blocks", _formed(tiled=True)),
    Deviation("fope-sign-flipped", "FoPE's sines have the wrong sign, also those of dropped pairs", _formed(sign=-1.0),
              hint="Compare the sign of the sine with y_u = x_u C - x_v S."),
    Deviation("fope-interleaved", "FoPE's pairs are channels 2i and 2i + 1", _formed(layout="interleaved"),
              hint="Pairs are channels j and j + D/2."),
    Deviation("fope-mixes-exchanged", "the mixes of cosines and of sines are exchanged", _mixes(lambda a, b: (b, a))),
    Deviation("fope-cos-mix-alone", "the mix of cosines is used for sines too", _mixes(lambda a, b: (a, a)),
              "Sines have a mix of their own.", "fourier_separate_basis: false"),
    Deviation("fope-mixes-transposed", "square mixes are transposed", _mixes(lambda a, b: (_turned(a), _turned(b))),
              hint="Bands are rows of the mix, pairs are columns."),
    Deviation("fope-first-head", "the first head's mixes are used for every head", _mixes(lambda a, b: (_first(a), _first(b))), "",
              "fourier_separate_head: false"),
    Deviation("fope-unmixed", "bands are not mixed: the rotation of RoPE", _mixes(lambda a, b: (_plain(a), _plain(b))),
              hint="Multiply cosines and sines by the mixes."),
    Deviation("fope-mixes-bfloat16", "mixes are held in bfloat16",
              _mixes(lambda a, b: (narrowed("bfloat16")(a), narrowed("bfloat16")(b)))),
    Deviation("fope-positions-plus-1", "FoPE's positions are one too large", {"fope": argument(1, lambda p: p + 1)}),
    Deviation("fope-positions-bfloat16", "FoPE's positions are held in bfloat16", {"fope": argument(1, narrowed("bfloat16"))}),
    Deviation("fope-first-row", "row 0's positions are used for all of FoPE's rows",
              {"fope": argument(1, lambda p: np.broadcast_to(p[:1], p.shape) if np.ndim(p) > 1 else p)}),
    Deviation("fope-base-10000", "FoPE's base is always 10000", {"fope": option(base=always(10000.0))}),
)  # fmt: skip

"""Fourier position embedding (FoPE): cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .shared.rotary import FAR, OFFSETS, UNSORTED
from .tools import NONE, Case, Make, floats, form_case, gradient, reals, seed_of
from .tools.deviation import Deviation, Function, Real, Wrap, always, argument, deviations_of, held, narrowed, option
from .tools.hints import DEFAULT, EACH_HEAD, EACH_ROW, FROM_ZERO, HEAD_BLOCKS, INTEGERS, KEEP_FLOAT32, ORDER

USUAL: dict[str, Any] = {"base": 500.0}
WAY = 2
KERNEL: tuple[dict[str, Any], ...] = ({"base": 10000.0},)

BASE = 10000.0


def mixes(name: str, *shape: int, bits: int = 8) -> dict[str, npt.NDArray[np.float64]]:
    """Return two mixes around the identity."""
    eye, bits_of_mix = np.eye(shape[-2], shape[-1]), 4 if bits == 8 else bits - 2  # so that sums are representable too
    return {mix: eye + floats(*shape, seed=seed_of(name + mix), bits=bits_of_mix) / 4 for mix in ("cos_mix", "sin_mix")}


def _case(
    name: str, shape: tuple[int, ...], positions: Any, mix: tuple[int, ...], comment: str = "", *,
    bits: int = 8, kind: str = "value", tier: str = "core", base: float = BASE,
) -> Case:  # fmt: skip
    inputs = {
        "x": floats(*shape, seed=seed_of("fope" + name), bits=bits),
        "positions": positions,
        **mixes(name, *mix, bits=bits),
    }
    return Case(f"fope/{name}", {"base": base}, inputs, comment, kind, tier)


def _fope_forms() -> tuple[Case, ...]:
    """Return the forms of input."""

    def case(name: str, x: tuple[int, ...], positions: Any, mix: tuple[int, ...], form: str = "") -> Case:
        arrays = {n: reals("fope" + name + n, *shape) / 4 for n, shape in (("cos_mix", mix), ("sin_mix", mix))}
        return form_case(
            "fope", name, {"x": reals("fope" + name, *x), "positions": positions, **arrays}, {"base": 500.0}, form=form
        )

    return (case("length-one", (1, 3, 1, 8), (300,), (3, 4, 2)), case("length-zero", (3, 2, 0, 6), NONE, (2, 3, 1)))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("heads/small", (2, 3, 10), (0, 1, 5), (2, 4, 3), tier="smoke"),
        _case("heads/square-rows", (3, 2, 5, 6), np.asarray(OFFSETS)[:, None].tolist(), (2, 2, 2)),
        _case("heads/shared", (2, 6, 3, 8), (300, 1, 4), (2, 3, 2), "each mix serves three neighbouring heads", base=5e5),
        _case("heads/far", (1, 19, 6), FAR, (1, 3, 2)),
        _case("heads/unsorted", (2, 3, 5, 6), UNSORTED, (3, 2, 2), base=1e6),
        _case("heads/no-token", (2, 0, 8), np.zeros(0, dtype=np.int64), (2, 3, 4)),
        _case("one/24-bits", (3, 12), (9, 1, 63), (6, 5), bits=24),
        _case("models/olmo-60m", (1, 2, 64), (7, 511), (1, 16, 16), "512 tokens keep 16 of 32 bands"),
        _case("refused/shapes", (2, 3, 10), (0, 1, 5), (2, 6, 3), "six bands of five pairs", kind="reject"),
        _case("refused/heads", (3, 3, 10), (0, 1, 5), (2, 4, 3), "two mixes for three heads", kind="reject"),
        _case("refused/odd", (2, 3, 9), (0, 1, 5), (2, 4, 3), kind="reject"),
        *_fope_forms(),
        *(gradient("fope", name,
          {"x": reals("fope" + name, *shape), "positions": positions,
          **{n: reals(name + n, *mix) / 4 for n in ("cos_mix", "sin_mix")}}, {"out": shape}, base=500.0)
          for name, shape, positions, mix in (("heads", (2, 2, 6), (1, 40), (2, 2, 2)),
          ("shared", (2, 2, 4), (3, 9), (1, 2, 1)),
          ("one", (2, 3, 4), (5, 0, 2), (2, 2)),)),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield second calls with positions of every row, and with mixes that are views."""
    yield make.one("rows", rows=True, R=(2,))
    yield make.one("expanded-mixes", alike=True, R=(2,), G=2, g=1, form="broadcast-view")


def _formed(
    bands: Callable[[int, int], Real] = lambda n, pairs: np.arange(n), dropped: tuple[float, float] = (1.0, 1.0),
    tiled: bool = False, sign: float = 1.0, layout: str = "half",
) -> dict[str, Wrap]:  # fmt: skip
    """Return a wrap that turns x anew: by other bands, other values for dropped pairs, mixes in turn, or another way."""

    def deviating(x: Real, p: Any, cos_mix: Real, sin_mix: Real, /, *, base: float) -> Real:
        d, n = x.shape[-1], cos_mix.shape[-2]
        angle = np.asarray(p, dtype=np.float64)[..., None] * float(base) ** (-2 * bands(n, d // 2) / d)
        tables = []
        for wave, weights, rest in zip((np.cos(angle), np.sin(angle)), (cos_mix, sin_mix), dropped, strict=True):
            mix = weights
            if weights.ndim == 3:
                times = x.shape[-3] // len(weights)
                mix = np.tile(weights, (times, 1, 1)) if tiled else np.repeat(weights, times, axis=0)
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


_deviation = deviations_of("fope")

DEVIATIONS = (
    Deviation("fope-dropped-kept", "pairs of dropped bands are left as they are: cosine 1, sine 0",
              _formed(dropped=(1.0, 0.0)), hint="The authors' code pads cosines and sines with 1.", seen_in="a frequency of 0"),
    Deviation("fope-dropped-zero", "pairs of dropped bands are zero", _formed(dropped=(0.0, 0.0)),
              hint="Pairs past the bands have cosine and sine 1 in the authors' code."),
    Deviation("fope-slow-bands", "the slowest bands are mixed rather than the fastest",
              _formed(bands=lambda n, pairs: np.arange(pairs - n, pairs)),
              hint="The first, fastest bands are mixed: compare the slice."),
    Deviation("fope-heads-tiled", "shared mixes go to heads round-robin rather than in blocks", _formed(tiled=True),
              hint=HEAD_BLOCKS),
    Deviation("fope-sign-flipped", "FoPE's sines have the wrong sign, also those of dropped pairs", _formed(sign=-1.0),
              hint="Compare the sign of the sine with y_u = x_u C - x_v S."),
    Deviation("fope-interleaved", "FoPE's pairs are channels 2i and 2i + 1", _formed(layout="interleaved"),
              hint="Pairs are channels j and j + D/2."),
    Deviation("fope-mixes-exchanged", "the mixes of cosines and of sines are exchanged", _mixes(lambda a, b: (b, a)),
              hint=ORDER),
    Deviation("fope-cos-mix-alone", "the mix of cosines is used for sines too", _mixes(lambda a, b: (a, a)),
              hint="Sines have a mix of their own.", seen_in="fourier_separate_basis: false"),
    Deviation("fope-mixes-transposed", "square mixes are transposed", _mixes(lambda a, b: (_turned(a), _turned(b))),
              hint="Bands are rows of the mix, pairs are columns."),
    Deviation("fope-first-head", "the first head's mixes are used for every head", _mixes(lambda a, b: (_first(a), _first(b))),
              hint=EACH_HEAD, seen_in="fourier_separate_head: false"),
    Deviation("fope-unmixed", "bands are not mixed: the rotation of RoPE", _mixes(lambda a, b: (_plain(a), _plain(b))),
              hint="Multiply cosines and sines by the mixes."),
    Deviation("fope-mixes-bfloat16", "mixes are held in bfloat16",
              _mixes(lambda a, b: (narrowed("bfloat16")(a), narrowed("bfloat16")(b))), hint=KEEP_FLOAT32),
    _deviation("fope-positions-plus-1", "FoPE's positions are one too large", argument(1, lambda p: p + 1), hint=FROM_ZERO),
    _deviation("fope-positions-bfloat16", "FoPE's positions are held in bfloat16", held("bfloat16", 1), hint=INTEGERS),
    _deviation("fope-first-row", "row 0's positions are used for all of FoPE's rows",
               argument(1, lambda p: np.broadcast_to(p[:1], p.shape) if np.ndim(p) > 1 else p), hint=EACH_ROW),
    _deviation("fope-base-10000", "FoPE's base is always 10000", option(base=always(10000.0)), hint=DEFAULT),
)  # fmt: skip

"""Charts of rotary frequencies: wavelengths, context extensions, decay, its bound, and the error of angles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from posref import analysis
from posref.rotary.axial_frequencies import axial_frequencies
from posref.rotary.axial_table import axes_of_pairs
from posref.rotary.rope_frequencies import rope_frequencies
from posref.scaling import Linear, Llama3, NTKAware, YaRN

from .calls import CHANNELS, Asked
from .charts import Lines, Numbers

BASES = (10.0, 100.0, 1000.0, 10000.0)  # compared by default
FACTOR, ORIGINAL = 8.0, 4096  # of the extensions compared by default
FARTHEST = 2**20  # tokens
BITS = {"float32": 24, "float16": 11, "bfloat16": 8}
PER_OCTAVE = 4


def _dim(asked: Asked) -> int:
    """Return how many channels rotate."""
    width = asked.options.get("rotary_dim") or asked.options.get("dim")
    return int(width or 2 * sum(asked.options.get("sections", ())) or 2 * CHANNELS)


def _base(asked: Asked) -> float:
    return float(asked.options.get("base", 10000.0))


def _frequencies(asked: Asked, base: float, scaling: Any = None) -> Numbers:
    if asked.options.get("endpoint"):
        pairs = _dim(asked) // 2
        return np.asarray(base ** -(np.arange(pairs) / (pairs - 1)))
    length = asked.options.get("length") or (FARTHEST if scaling is not None and "length" in _needs(scaling) else None)
    frequencies, _ = rope_frequencies(_dim(asked), base=base, scaling=scaling, length=length)
    return np.asarray(frequencies)


def _needs(scaling: Any) -> str:
    return " ".join(getattr(scaling, "requires", ())) + (" length" if hasattr(scaling, "long_factor") else "")


def _of_bases(asked: Asked) -> dict[str, Numbers]:
    """Return the frequencies to compare: with and without the given scaling, else of the given base, else of four bases."""
    scaling = asked.options.get("scaling")
    if scaling is not None:
        base = _base(asked)
        return {"plain": _frequencies(asked, base), type(scaling).__name__: _frequencies(asked, base, scaling)}
    bases = (_base(asked),) if "base" in asked.options else BASES
    return {f"base {base:g}": _frequencies(asked, base) for base in bases}


def wavelengths(asked: Asked) -> Lines:
    """Return the number of tokens that each channel pair needs for a full rotation, by base."""
    lengths = {name: analysis.wavelengths(f) for name, f in _of_bases(asked).items()}
    series = {name: (np.arange(len(w), dtype=np.float64), w) for name, w in lengths.items()}
    seen = "Later pairs rotate more slowly. A larger base slows them further."
    return Lines(asked.title, "channel pair", "wavelength (tokens)", seen, series, log_y=True)


def scaling(asked: Asked) -> Lines:
    """Return how context extensions change each frequency."""
    base, plain = _base(asked), _frequencies(asked, _base(asked))
    chosen = asked.options.get("scaling")
    compared = (chosen,) if chosen is not None else (
        Linear(FACTOR), NTKAware(FACTOR), YaRN(FACTOR, ORIGINAL), Llama3(FACTOR, ORIGINAL)
    )  # fmt: skip
    waves = analysis.wavelengths(plain)
    series = {
        type(record).__name__: (waves, analysis.frequency_ratio(_frequencies(asked, base, record), plain))
        for record in compared
    }
    original = getattr(chosen, "original_length", ORIGINAL) if chosen is not None else ORIGINAL
    marks = {f"{original} tokens": float(original)}
    seen = (
        f"A frequency at 1 is unchanged; one at {1 / FACTOR:g} is divided by {FACTOR:g}."
        if chosen is None
        else "A frequency at 1 is unchanged."
    )
    return Lines(
        asked.title, "wavelength before (tokens)", "frequency after / before", seen, series, marks=marks, log_x=True, log_y=True
    )


def decay(asked: Asked) -> Lines:
    """Return the inner product by distance: its mean and range in bins that grow with the distance."""
    ends = sorted({round(2 ** (k / PER_OCTAVE)) for k in range(16 * PER_OCTAVE + 1)})
    edges = list(pairwise(ends))  # bins from 1 to 2**16, four per octave where there are enough integers
    series, ranges = {}, {}
    for name, frequencies in _of_bases(asked).items():
        values = [analysis.decay(frequencies, np.arange(a, b, dtype=np.float64)) for a, b in edges]
        middles = np.asarray([np.sqrt(a * (b - 1.0)) for a, b in edges])
        series[name] = (middles, np.asarray([v.mean() for v in values]))
        if len(_of_bases(asked)) < 3:
            ranges[name] = (np.asarray([v.min() for v in values]), np.asarray([v.max() for v in values]))
    seen = "Queries and keys are all ones: 1 at distance 0. Curves are means over bins of distances, bands the range in a bin."
    return Lines(asked.title, "distance (tokens)", "inner product / that at distance 0", seen, series, ranges, log_x=True)


def bound(asked: Asked) -> Lines:
    """Return RoFormer's bound up to distance 250, as in its figure 2."""
    places = np.arange(251, dtype=np.float64)
    series = {name: (places, analysis.decay_bound(f, places)) for name, f in _of_bases(asked).items()}
    return Lines(asked.title, "distance (tokens)", "bound", "The bound falls with the distance, but not steadily.", series)


def error(asked: Asked) -> Lines:
    """Return the largest error of sine and cosine over all pairs, by position and precision of the angle."""
    places = np.asarray(sorted({int(2 ** (k / 8)) + n for k in range(161) for n in (0, 1)}), dtype=np.float64)
    frequencies = _frequencies(asked, _base(asked), asked.options.get("scaling"))
    series = {}
    for name, bits in BITS.items():
        errors = analysis.angle_error(frequencies, places, bits=bits)
        series[name] = (places, np.maximum.accumulate(errors))
    seen = "The largest error at any position up to this one. 2 is the largest possible error."
    return Lines(asked.title, "position (tokens)", "error of (cos, sin)", seen, series, log_x=True, log_y=True)


def axes(asked: Asked) -> Lines:
    """Return the wavelength of every channel pair, by the position axis that rotates it."""
    settings = asked.settings
    if "sections" in settings:
        sections = tuple(settings["sections"])
        frequencies, _ = rope_frequencies(2 * sum(sections), base=float(settings.get("base", 10000.0)))
        frequencies = np.asarray(frequencies)
    else:
        sections = tuple(dim // 2 for dim in settings["dims"])
        plain = axial_frequencies(settings["dims"], **{n: settings[n] for n in ("base", "allocation", "unit")})
        frequencies = np.asarray(plain)
    of_pairs = np.asarray(axes_of_pairs(asked.op, sections, settings["arrangement"]))
    if "dims" in settings:
        frequencies = _arranged(frequencies, sections, of_pairs)
    waves, pairs = analysis.wavelengths(frequencies), np.arange(len(of_pairs), dtype=np.float64)
    names = ("time", "height", "width") if len(sections) == 3 else tuple(f"axis {n}" for n in range(len(sections)))
    series = {name: (pairs[of_pairs == n], waves[of_pairs == n]) for n, name in enumerate(names)}
    title = f"{asked.title}, {settings['arrangement']} {sections}"
    seen = "Each dot is a channel pair: which axis rotates it, and how fast."
    return Lines(title, "channel pair", "wavelength (units of its axis)", seen, series, log_y=True, points=True)


def _arranged(frequencies: Numbers, sections: tuple[int, ...], of_pairs: np.ndarray) -> Numbers:
    """Return frequencies, given axis by axis, in the order of the pairs."""
    starts = np.cumsum([0, *sections[:-1]])
    taken = [0] * len(sections)
    arranged = []
    for axis in of_pairs:
        arranged.append(frequencies[starts[axis] + taken[axis]])
        taken[axis] += 1
    return np.asarray(arranged)

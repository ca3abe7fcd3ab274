"""Correct code of a NumPy user."""

import numpy as np
import numpy.typing as npt

import posref
from posref.scaling import Linear, Scaling, YaRN

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def rotated(x: Floats, positions: Integers) -> Floats:
    return posref.rope(x, positions, layout="half", base=10_000.0)


def by_shape(x: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> npt.NDArray[np.float32]:
    return posref.rope(x, np.arange(2), layout="interleaved", base=1e6, scaling=YaRN(4.0, 32768), lanes="trailing")


def by_config(x: Floats, positions: Integers, config: dict[str, object]) -> Floats:
    return posref.rope(x, positions, **posref.rope_from_config(config))


def by_axes(x: Floats, positions: Integers, config: dict[str, object]) -> Floats:
    return posref.mrope(x, positions, **posref.mrope_from_config(config, layout="half"))


def by_file(x: Floats, positions: Integers, metadata: dict[str, object]) -> Floats:
    return posref.rope(x, positions, **posref.rope_from_gguf(metadata))


def by_preset(x: Floats, positions: Integers) -> Floats:
    preset = posref.presets["llama-3-8b"]
    assert preset.rope is not None
    return posref.rope(x, positions, **preset.rope)


def scale(config: dict[str, object]) -> float:
    return posref.configs.factors(config)["softmax"]


def frequencies(scaling: Scaling | None) -> tuple[Floats, float]:
    return posref.rope_frequencies(64, base=10_000.0, scaling=scaling)


def stages(x: Floats, positions: Integers) -> Floats:
    inv_freq, factor = frequencies(Linear(2.0))
    cos, sin = posref.rope_table(positions, inv_freq, attention_factor=factor, dtype=np.float64)
    return posref.apply_rope(x, cos, sin, layout="half")


def attended(q: Floats, k: Floats, v: Floats, positions: Integers) -> Floats:
    bias = posref.alibi(positions, positions, heads=8, form="distance")
    mask = posref.sliding_window(positions, positions, window=4, counting="with_query", sides="causal")
    return posref.attention(q, k, v, bias=bias, mask=mask & (posref.t5_buckets(positions, bidirectional=False) > 0))


def slopes() -> Floats:
    return posref.alibi_slopes(8, xp=np)


def cells() -> Integers:
    return posref.positions.with_origin(posref.positions.grid(4, 4), tokens_before=1)


def looked_up(table: Floats, positions: Integers) -> Floats:
    return posref.learned(posref.positions.require_in_range(positions, 512), table)

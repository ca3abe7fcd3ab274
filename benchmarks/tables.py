"""Tables of cosines and sines, and their cost for each position."""

import numpy as np
import torch

from posref import rope_frequencies, rope_table, sinusoidal

from . import peers
from .lines import Line, Work

NAIVE = "naive float32"
FREQUENCIES = rope_frequencies(128, base=10_000.0)[0]
EVERY = torch.arange(131_072)
DRAWN = torch.randint(131_072, (131_072,), generator=torch.Generator().manual_seed(0))


def by_numpy(small: bool) -> Work:
    """Make a table of NumPy."""
    positions = np.arange(64 if small else 131_072)
    return Work(lambda: rope_table(positions, FREQUENCIES, dtype=np.float32), lambda: peers.naive_table_numpy(positions, 128))


def by_torch(small: bool, positions: torch.Tensor) -> Work:
    """Make a table of PyTorch, in float32."""
    places = positions[:64] if small else positions
    return Work(lambda: rope_table(places, FREQUENCIES, dtype=torch.float32), lambda: peers.naive_table(places, 128))


def growth(small: bool, tokens: int) -> Work:
    """Make a table of many positions in one call. The peer is posref too, in calls of 1024 positions."""
    every = torch.arange(64 if small else tokens)
    parts = torch.split(every, 16 if small else 1024)

    def theirs() -> None:
        for part in parts:
            rope_table(part, FREQUENCIES)

    return Work(lambda: rope_table(every, FREQUENCIES), theirs)


def sines(small: bool, tokens: int) -> Work:
    """Make a table of sinusoids."""
    positions = torch.arange(16 if small else tokens)
    return Work(lambda: sinusoidal(positions, 512, layout="interleaved"), lambda: peers.naive_sinusoidal(positions, 512))


def held(small: bool) -> Work:
    """Make a table, for its memory."""
    positions = torch.arange(64 if small else 524_288)
    return Work(lambda: rope_table(positions, FREQUENCIES))


KEPT = (
    "Cosines and sines of all multiples of 128 below 131,072, kept for each base and width: 1 MB. They are computed in "
    "float64, for those multiples that occur."
)
LINES = (
    Line("rope_table 131072 x 64, NumPy", NAIVE, 1.0, by_numpy),
    Line("rope_table 131072 x 64, torch", NAIVE, 0.6, lambda s: by_torch(s, EVERY)),
    Line("rope_table 1024 x 64, torch", NAIVE, 1.0, lambda s: by_torch(s, EVERY[:1024])),
    Line("rope_table 131072 x 64, torch, positions of float32", NAIVE, 1.2, lambda s: by_torch(s, EVERY + 0.5), memory=1.2),
    Line("rope_table 131072 x 64, torch, random positions", NAIVE, 1.0, lambda s: by_torch(s, DRAWN), cost=KEPT),
    Line("rope_table 1024 x 64, torch, random positions", NAIVE, None, lambda s: by_torch(s, DRAWN[:1024])),
    Line("rope_table, 8k positions", "8 calls of 1k", 1.2, lambda s: growth(s, 8192)),
    Line("rope_table, 64k positions", "64 calls of 1k", 1.2, lambda s: growth(s, 65_536)),
    Line("rope_table, 512k positions", "512 calls of 1k", 1.2, lambda s: growth(s, 524_288)),
    Line("rope_table, 512k positions, memory", "its result's bytes", None, held, memory=1.5, of_result=True),
    Line("sinusoidal 512 x 512", NAIVE, 0.9, lambda s: sines(s, 512)),
    Line("sinusoidal 8192 x 512", NAIVE, 0.8, lambda s: sines(s, 8192)),
)

"""Tables of cosines and sines, and their cost for each position."""

import numpy as np
import torch

from posref import rope_frequencies, rope_table, sinusoidal

from . import peers
from .lines import Line, Work

NAIVE = "naive float32"
FREQUENCIES = rope_frequencies(128, base=10_000.0)[0]


def by_numpy(small: bool) -> Work:
    """Make a table of NumPy."""
    positions = np.arange(64 if small else 131_072)
    return Work(lambda: rope_table(positions, FREQUENCIES, dtype=np.float32), lambda: peers.naive_table_numpy(positions, 128))


def by_torch(small: bool) -> Work:
    """Make a table of PyTorch."""
    positions = torch.arange(64 if small else 131_072)
    return Work(lambda: rope_table(positions, FREQUENCIES), lambda: peers.naive_table(positions, 128))


def growth(small: bool, tokens: int) -> Work:
    """Make a table of many positions in one call. The peer is posref too, in calls of 1024 positions."""
    every = torch.arange(64 if small else tokens)
    parts = torch.split(every, 16 if small else 1024)

    def theirs() -> None:
        for part in parts:
            rope_table(part, FREQUENCIES)

    return Work(lambda: rope_table(every, FREQUENCIES), theirs)


def sines(small: bool) -> Work:
    """Make a table of sinusoids."""
    positions = torch.arange(16 if small else 8192)
    return Work(lambda: sinusoidal(positions, 512, layout="interleaved"), lambda: peers.naive_sinusoidal(positions, 512))


def held(small: bool) -> Work:
    """Make a table, for its memory."""
    positions = torch.arange(64 if small else 524_288)
    return Work(lambda: rope_table(positions, FREQUENCIES))


LINES = (
    Line("rope_table 131072 x 64, NumPy", NAIVE, 1.0, by_numpy),
    Line("rope_table 131072 x 64, torch", NAIVE, 0.6, by_torch),
    Line("rope_table, 8k positions", "8 calls of 1k", 1.2, lambda s: growth(s, 8192)),
    Line("rope_table, 64k positions", "64 calls of 1k", 1.2, lambda s: growth(s, 65_536)),
    Line("rope_table, 512k positions", "512 calls of 1k", 1.2, lambda s: growth(s, 524_288)),
    Line("rope_table, 512k positions, memory", "its result's bytes", None, held, memory=1.5, of_result=True),
    Line("sinusoidal 8192 x 512", NAIVE, 0.8, sines),
)

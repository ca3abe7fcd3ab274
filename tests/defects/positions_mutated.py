"""The offset is added to the caller's position ids in place; mlx-lm #1699 (offset mutated across update_and_fetch)."""

DEFECT = "positions mutated in place"
NAMES = ()


def learned(positions, table, /, *, offset=0):
    positions += offset
    return table[positions]

"""The input comes back unrotated; tt-metal #34742 (a golden function that falls back to its input)."""

DEFECT = "input unchanged"
NAMES = ("not-rotated",)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    return x.copy()


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None, inverse=False):
    return x.copy()

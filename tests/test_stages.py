"""Frequencies that are wrong beside a known mistake of the rotation or of positions are read together."""

import numpy as np
import pytest

from posref.conformance import Unsupported, check_call


def _rope(own=None, shift=0, frequency=lambda i, d: 2 * i / d, turn=lambda a, b, c, s: (a * c - b * s, b * c + a * s)):
    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise Unsupported(layout)
        d = x.shape[-1]
        angles = (np.asarray(positions, np.float64)[..., None] + shift) * (own or base) ** -frequency(np.arange(d // 2), d)
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate(turn(a, b, np.cos(angles), np.sin(angles)), -1).astype(x.dtype)

    return rope


def _in_place(a, b, c, s):
    first = a * c - b * s
    return first, b * c + first * s


PAIRS = {
    "another base": (_rope(5e5, turn=_in_place), "frequency i is 500000^(-2i/d)", "in-place-update"),
    "denominator": (
        _rope(frequency=lambda i, d: 2 * i / (d - 1), turn=lambda a, b, c, s: (a * c + b * s, b * c + a * s)),
        "frequency i is base^(-2i/(d - 1))",
        "both-sums",
    ),
    "positions": (_rope(frequency=lambda i, d: 2 * i / (d + 2), shift=1), "(d + 2)", "positions-plus-1"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_frequencies_and_a_known_mistake_are_named_together(name):
    function, formula, mistake = PAIRS[name]
    found = check_call(function, op="rope", dtype="float32", experiments=0).operations[0].diagnosis
    text = str((found or {})["text"])
    assert formula in text
    assert mistake in text

"""
The first picture of the README and the site: where an implementation departs from the reference, and why.

    python docs/site/first.py

writes docs/pictures/check-light.svg and check-dark.svg. The numbers are those of examples/broken_rope.py.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

import posref
from posref import plots
from posref.conformance.model import Call
from posref.conformance.proof.evaluation import half_widths

ROOT = Path(__file__).resolve().parents[2]
DIM, LAST, STEPS = 128, 32768, 90


def chart() -> plots.Lines:
    """Return the largest errors of sines by position: the allowed error, that of correct code, and that of the example."""
    positions = np.arange(1, LAST + 1)
    inv_freq, _ = posref.rope_frequencies(DIM, base=10000.0, xp=np)
    expected = posref.rope_table(positions, inv_freq, dtype=np.float64)
    call = Call({}, {"positions": positions, "inv_freq": inv_freq}, dict(zip(("cos", "sin"), expected, strict=True)))
    right = np.sin(positions.astype(np.float32)[:, None] * inv_freq.astype(np.float32))
    wrong = example().rope_table(positions, inv_freq)[1]
    errors = {
        "allowed": half_widths(posref.rope_table.__name__, call, "angle32")["sin"],
        "right code": np.abs(right - expected[1]),
        "the example": np.abs(wrong - expected[1]),
    }
    edges = np.unique(
        np.geomspace(1, LAST, STEPS).astype(np.int64)
    )  # each point is the largest error from one edge to the next
    series = {
        name: (edges[:-1].astype(float), np.maximum.reduceat(error.max(-1), edges[:-1] - 1)) for name, error in errors.items()
    }
    return plots.Lines(
        title="posref check examples/broken_rope.py",
        x_label="position (tokens)",
        y_label="largest error of a sine",
        seen="Correct code stays below the allowed error. The example exceeds it at position 2049.",
        series=series,
        marks={"": 2049.0},
        log_x=True,
        log_y=True,
    )


def example() -> ModuleType:
    """Return the broken example as a module."""
    spec = importlib.util.spec_from_file_location("broken_rope", ROOT / "examples" / "broken_rope.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    for theme in ("light", "dark"):
        plots.save([chart()], ROOT / "docs" / "pictures" / f"check-{theme}.svg", dark=theme == "dark")

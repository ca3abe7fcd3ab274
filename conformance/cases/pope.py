"""Cases of PoPE."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, FAR, NEAR, OFFSETS, UNSORTED, seed_of, sequence

FLAGS = {
    "pope-magnitude": Flag("another magnitude than softplus: the channel itself, or its positive part"),
    "pope-small": Flag(
        "magnitudes of far negative channels rounded to coarse steps: ln(1 + exp(x)) in half precision", "PoPE-pytorch"
    ),
    "pope-large": Flag("magnitudes of large channels that overflow"),
    "pope-frequencies": Flag("RoPE's d/2 frequencies, or every second one, where there are d"),
    "pope-phase": Flag("the keys' phases dropped, subtracted, or of another head"),
    "pope-clamp": Flag("phases outside of -2 pi to 0 left as they are"),
    "pope-layout": Flag("cosines and sines arranged in the other layout", "PoPE-pytorch against x-transformers"),
}


def _pope(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, layout: str, comment: str = "", *,
    phases: tuple[int, ...] | None = None, spread: float = 1.0, bits: int = 8, kind: str = "value", tier: str = "core",
    **params: Any,
) -> Case:  # fmt: skip
    """Return a case with x between -4 and 4, times `spread`, and phases of this shape."""
    inputs = {"x": spread * floats(*shape, seed=seed_of("pope" + name), bits=bits), "positions": positions}
    if phases is not None:
        inputs["phases"] = phases_of(name, *phases)
    return Case(f"pope/{name}", {"base": BASE, "layout": layout, **params}, inputs, tuple(flags.split()), comment, kind, tier)


def phases_of(name: str, *shape: int) -> npt.NDArray[np.float64]:
    """Return phases of which most are allowed, some below -2 pi and some above 0."""
    return floats(*shape, seed=seed_of("phases" + name)) - 3.125 + (floats(*shape, seed=seed_of(name), bits=2) > 3) * 4


def _layout(layout: str) -> Iterator[Case]:
    """Yield what both layouts are asked."""
    group = layout.replace("_", "-")
    yield _pope(
        f"{group}/small",
        "pope-layout pope-magnitude pope-frequencies",
        (3, 6),
        (0, 1, 5),
        layout,
        tier="smoke" if layout == "cos_sin" else "core",
    )
    yield _pope(f"{group}/far", "far-position table-end pope-frequencies", (19, 3), FAR, layout)
    yield _pope(f"{group}/unsorted", "position-ids token-axis base", (2, 3, 5, 6), UNSORTED, layout, base=5e5)
    yield _pope(
        f"{group}/rows",
        "row-offsets every-head pope-phase",
        (3, 2, 5, 3),
        np.asarray(OFFSETS)[:, None].tolist(),
        layout,
        phases=(2, 1, 3),
    )
    yield _pope(f"{group}/24-bits", "downcast half-precision", (3, 10), (1, 3, 13), layout, bits=24)
    yield _pope(f"{group}/keys", "pope-phase pope-clamp", (5, 7), NEAR, layout, phases=(7,), base=500.0)
    yield _pope(
        f"{group}/key-heads",
        "pope-phase pope-clamp",
        (2, 3, 2, 5),
        (4, 300),
        layout,
        "other phases in every head",
        phases=(3, 1, 5),
    )
    yield _pope(f"{group}/wide", "pope-small pope-large", (5, 6), NEAR, layout, "x from -32 to 32", spread=8.0)
    yield _pope(
        f"{group}/very-wide", "pope-small pope-large", (2, 5), (2, 9), layout, "x from -256 to 256: exp overflows", spread=64.0
    )


CASES = (
    *_layout("cos_sin"),
    *_layout("interleaved"),
    _pope("positions/negative", "negative", (4, 5), (-1, -63, 0, -257), "cos_sin", phases=(5,)),
    _pope("positions/fractional", "fractional", (3, 4), (0.5, 7.375, 63.25), "interleaved"),
    _pope("positions/vector", "rank decode", (6,), 258, "cos_sin", "one axis, and a position without axes"),
    _pope("positions/one-lane", "odd-size", (3, 1), (1, 2, 9), "interleaved", "d = 1: one frequency, which is 1", phases=(1,)),
    _pope("positions/no-token", "empty", (2, 0, 6), np.zeros(0, dtype=np.int64), "cos_sin"),
    _pope("models/124m", "true-size", (2, 64), (7, 1023), "cos_sin", "heads of 64 lanes", phases=(64,)),
    _pope("refused/layout", "refuse-option", (3, 4), (0, 1, 2), "sin_cos", kind="reject"),
    _pope("refused/phases", "refuse-width", (3, 4), (0, 1, 2), "cos_sin", "phases of two lanes for four", kind="reject",
          phases=(2,)),
    _pope("refused/positions", "refuse-positions", (2, 3, 4, 6), ((0, 1, 2, 3), (4, 5, 6, 7)), "cos_sin",
          "(B, T) for (B, H, T, d)", kind="reject"),
    sequence("pope/sequence/decode", "decode cache-key", "a prompt, a token after it, and the next prompt", tuple(
        Step({"base": BASE, "layout": "cos_sin"},
             {"x": floats(len(p), 5, seed=i), "positions": p, "phases": phases_of("decode", 5)})
        for i, p in enumerate(((0, 1, 2, 3), (4,), (100, 101, 102, 103)))
    )),
)  # fmt: skip

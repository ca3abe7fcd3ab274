"""Cases of FoPE."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import FAR, NEAR, OFFSETS, UNSORTED, seed_of, sequence

FLAGS = {
    "fope-dropped": Flag("pairs of dropped bands not given cosine and sine 1: left as they are, or zero"),
    "fope-mix": Flag("mixes exchanged, transposed, or one in place of both"),
    "fope-heads": Flag("another head's mix: the first one's, or shared ones round-robin rather than in blocks"),
    "fope-bands": Flag("other bands mixed than the fastest"),
}
BASE = 10000.0


def mixes(name: str, *shape: int, bits: int = 8) -> dict[str, npt.NDArray[np.float64]]:
    """Return two mixes around the identity."""
    eye, own = np.eye(shape[-2], shape[-1]), 4 if bits == 8 else bits - 2  # so that sums are representable too
    return {mix: eye + floats(*shape, seed=seed_of(name + mix), bits=own) / 4 for mix in ("cos_mix", "sin_mix")}


def _fope(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, mix: tuple[int, ...], comment: str = "", *,
    bits: int = 8, kind: str = "value", tier: str = "core", base: float = BASE,
) -> Case:  # fmt: skip
    inputs = {
        "x": floats(*shape, seed=seed_of("fope" + name), bits=bits),
        "positions": positions,
        **mixes(name, *mix, bits=bits),
    }
    return Case(f"fope/{name}", {"base": base}, inputs, tuple(flags.split()), comment, kind, tier)


CASES = (
    _fope("heads/small", "fope-mix fope-dropped", (2, 3, 10), (0, 1, 5), (2, 4, 3), tier="smoke"),
    _fope("heads/square", "fope-mix fope-dropped", (3, 2, 12), (2, 7), (3, 4, 4), base=500.0),
    _fope("heads/square-rows", "fope-mix row-offsets", (3, 2, 5, 6), np.asarray(OFFSETS)[:, None].tolist(), (2, 2, 2)),
    _fope("heads/shared", "fope-heads", (2, 6, 3, 8), (300, 1, 4), (2, 3, 2), "each mix serves three neighbouring heads",
          base=5e5),
    _fope("heads/shared-rows", "fope-heads row-offsets", (2, 4, 5, 6), np.asarray(OFFSETS)[:2, None].tolist(), (2, 2, 3)),
    _fope("heads/24-bits", "downcast fope-bands", (2, 5, 14), NEAR, (2, 5, 3), bits=24),
    _fope("heads/far", "far-position fope-bands", (1, 19, 6), FAR, (1, 3, 2)),
    _fope("heads/unsorted", "position-ids token-axis", (2, 3, 5, 6), UNSORTED, (3, 2, 2), base=1e6),
    _fope("heads/all", "fope-mix fope-bands", (2, 3, 8), (3, 40, 9), (2, 3, 4), "no pair is dropped"),
    _fope("heads/no-token", "empty", (2, 0, 8), np.zeros(0, dtype=np.int64), (2, 3, 4)),
    _fope("one/all-heads", "fope-mix fope-dropped", (2, 3, 5, 8), NEAR, (3, 2), "one mix for all heads", base=500.0),
    _fope("one/24-bits", "downcast fope-bands", (3, 12), (9, 1, 63), (6, 5), bits=24),
    _fope("one/negative", "negative fope-bands", (4, 10), (-1, -63, 0, -257), (4, 4)),
    _fope("one/fractional", "fractional", (3, 6), (0.5, 7.375, 63.25), (2, 3)),
    _fope("models/olmo-60m", "true-size fope-dropped", (1, 2, 64), (7, 511), (1, 16, 16),
          "512 tokens keep 16 of 32 bands"),
    _fope("refused/shapes", "refuse-width", (2, 3, 10), (0, 1, 5), (2, 6, 3), "six bands of five pairs", kind="reject"),
    _fope("refused/heads", "refuse-width", (3, 3, 10), (0, 1, 5), (2, 4, 3), "two mixes for three heads", kind="reject"),
    _fope("refused/odd", "refuse-width", (2, 3, 9), (0, 1, 5), (2, 4, 3), kind="reject"),
    sequence("fope/sequence/decode", "decode cache-key", "a prompt, a token after it, and the next prompt", tuple(
        Step({"base": BASE}, {"x": floats(2, len(p), 8, seed=i), "positions": p, **mixes("decode", 2, 3, 3)})
        for i, p in enumerate(((0, 1, 2, 3), (4,), (100, 101, 102, 103)))
    )),
)  # fmt: skip

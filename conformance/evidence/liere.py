"""Lie rotational encoding (LieRE): cases and known mistakes."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES
from .shared.lie import IMAGES, learned, lie_case, matrix_forms
from .shared.rotary import TRIPLES
from .tools import Case, Step, floats, gradient, reals, seed_of, sequence

SIZES: dict[str, Any] = {"E": 1, "n": 2}
AXES = (1, 1, 3)
KERNEL: tuple[dict[str, Any], ...] = ({},)


def begun(name: str, *shape: int) -> npt.NDArray[np.float64]:
    """Return numbers from 0 to about 2 pi, with which LieRE's generators begin."""
    return np.asarray((floats(*shape, seed=seed_of(name), bits=20) + 4) * (25735 / 2**15))


_case = partial(lie_case, "liere", "generators")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (5, 6), PATCHES, (2, 2, 3, 3), tier="smoke"),
        _case("plain/partial", (3, 9), FRAMES, (3, 2, 3, 3), bits=24),
        _case("plain/inverse", (3, 4), BETWEEN, (2, 1, 4, 4), inverse=True),
        _case("plain/inverse-partial", (3, 7), FRAMES[:2], (2, 3, 2, 2), bits=24, inverse=True),
        _case("plain/far", (4, 5), FAR, (2, 1, 3, 3), over=1024),
        _case("heads/last", (3, 2, 3), np.asarray(BETWEEN)[:, :, None], (2, 1, 2, 1, 3, 3), "tokens before heads"),
        Case("liere/models/head-64", {},
             {"x": floats(3, 64, seed=seed_of("liere-64")), "positions": ((0.0, 0.5, 1.0), (0.0, 1.0, 0.25)),
             "generators": begun("liere-64", 2, 8, 8, 8),},
             "a class token and two patches; eight blocks of eight lanes"),
        _case("shapes/vector", (4,), (4, 9), (2, 2, 2, 2)),
        _case("refused/lanes", (5, 8), PATCHES, (2, 3, 3, 3), "nine lanes of eight", kind="reject"),
        _case("refused/heads", (3, 5, 8), PATCHES, (2, 5, 2, 3, 3), "an axis for heads or for tokens", kind="reject"),
        sequence("liere/sequence/sizes", IMAGES,
                 tuple(Step({}, {"x": x, "positions": p, "generators": learned("sizes", 2, 2, 3, 3)})
                 for x in (floats(4, 6, seed=3),)
                 for x, p in ((x, ((0, 0, 7, 7), (0, 3, 0, 3))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (3,)))))),
        *matrix_forms("liere", "generators", (1, 3, 3)),
        gradient("liere", "shared",
                 {"x": reals("liere-x", 3, 4), "positions": TRIPLES[:2], "generators": reals("liere-s", 2, 2, 2, 2) / 8},
                 {"out": (3, 4)}),
        gradient("liere", "inverse",
                 {"x": reals("liere-i", 3, 4), "positions": TRIPLES[:2], "generators": reals("liere-h", 2, 1, 3, 3) / 16},
                 {"out": (3, 4)}, inverse=True),
    )  # fmt: skip

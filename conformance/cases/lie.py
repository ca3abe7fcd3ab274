"""Cases of rotations of many lanes at once, by learned matrices: LieRE and STRING."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag, Step
from .mixed import BETWEEN, FAR, FRAMES, PATCHES
from .numbers import floats
from .rope import seed_of, sequence

FLAGS = {
    "lie-transposed": Flag("rows of channels multiplied where columns are, or a triangle with the other sign"),
    "lie-triangle": Flag("entries on or below the diagonal read, where the strict upper triangle is the parameter"),
    "lie-sum": Flag(
        "rotations of one axis after the other, where the exponential of the sum is meant", "LieRE's reading as RoPE"
    ),
    "lie-order": Flag("coordinates of one axis multiplied by the matrices of another"),
    "lie-exponential": Flag("an exponential of low order in place of the exponential: right for small matrices alone"),
    "lie-blocks": Flag("blocks of channels taken with a stride, or the first one's matrix used for all"),
    "lie-heads": Flag("the first head's matrices used for every head"),
    "lie-bits": Flag("learned matrices narrowed to half precision"),
    "string-basis": Flag("the learned basis transposed, or left out, or its parameter halved"),
    "string-form": Flag("the basis changed once where it is changed twice, or the reverse"),
    "circulant-direction": Flag("coefficients read as the first row where they are the first column"),
}

SIZES = "an image, a small one, one token of the first"


def learned(name: str, *shape: int, bits: int = 8, over: float = 8) -> npt.NDArray[np.float64]:
    """Return parameters of either sign."""
    return np.asarray(floats(*shape, seed=seed_of(name + "learned"), bits=bits) / over)


def begun(name: str, *shape: int) -> npt.NDArray[np.float64]:
    """Return numbers from 0 to about 2 pi, with which LieRE's generators begin."""
    return np.asarray((floats(*shape, seed=seed_of(name), bits=20) + 4) * (25735 / 2**15))


def in_rows(frames: Any) -> npt.NDArray[Any]:
    """Return positions of two rows, (axes, 2, 1, tokens), from those of one."""
    p = np.asarray(frames)
    return np.stack([p[:2], p[1:]], axis=1)[:, :, None]


def _rotations(
    name: str, flags: str, positions: Any, shape: tuple[int, ...], comment: str = "", *, bits: int = 8, over: float = 8,
    kind: str = "value", tier: str = "core",
) -> Case:  # fmt: skip
    inputs = {"positions": positions, "generators": learned(name, *shape, bits=bits, over=over)}
    return Case(f"liere_rotations/{name}", {}, inputs, tuple(flags.split()), comment, kind, tier)


def _of_x(
    op: str, parameter: str, name: str, flags: str, x: tuple[int, ...], positions: Any, shape: tuple[int, ...],
    comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of liere or circulant_string."""
    inputs = {"x": floats(*x, seed=seed_of(op + name), bits=bits), "positions": positions}
    inputs[parameter] = learned(op + name, *shape, bits=bits, over=over)
    return Case(f"{op}/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _liere(*args: Any, **options: Any) -> Case:
    return _of_x("liere", "generators", *args, **options)


def _circulant(*args: Any, **options: Any) -> Case:
    return _of_x("circulant_string", "coefficients", *args, **options)


def _cayley(
    name: str, flags: str, shape: tuple[int, ...], comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value",
    tier: str = "core",
) -> Case:  # fmt: skip
    given = {"skew": learned("cayley" + name, *shape, bits=bits, over=over)}
    return Case(f"cayley/{name}", {}, given, tuple(flags.split()), comment, kind, tier)


def _string(
    name: str, flags: str, x: tuple[int, ...], positions: Any, skew: tuple[int, ...], frequencies: tuple[int, ...],
    comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {
        "x": floats(*x, seed=seed_of("string" + name), bits=bits), "positions": positions,
        "skew": learned("skew" + name, *skew, bits=bits, over=over),
        "frequencies": learned("theta" + name, *frequencies, bits=bits, over=4),
    }  # fmt: skip
    return Case(f"cayley_string/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


ROTATIONS = (
    _rotations("plain/small", "lie-transposed lie-triangle lie-order", PATCHES, (2, 1, 3, 3), tier="smoke"),
    _rotations("plain/pairs", "lie-transposed lie-blocks lie-bits", FRAMES[:2], (2, 3, 2, 2), "as mixed_rope", bits=24),
    _rotations("plain/between", "lie-sum fractional lie-blocks", BETWEEN, (2, 2, 3, 3)),
    _rotations("plain/three", "lie-sum lie-order lie-exponential", FRAMES, (3, 1, 4, 4), "time, height and width", over=16),
    _rotations("plain/small-angles", "lie-exponential lie-triangle", BETWEEN, (2, 1, 5, 5), over=64),
    _rotations("plain/far", "far-position lie-sum", FAR, (2, 1, 3, 3), over=1024),
    _rotations("plain/24-bits", "lie-bits far-position", FAR, (2, 1, 3, 3), bits=24, over=1024),
    _rotations("plain/24-bits-five", "lie-bits lie-triangle fractional", BETWEEN, (2, 1, 5, 5), bits=24),
    _rotations("plain/one-axis", "rank", ((0, 3, 9, 300),), (1, 1, 3, 3), "rotations of one token after the other", over=64),
    _rotations("heads/first", "lie-heads lie-order", PATCHES[:2], (2, 3, 1, 1, 2, 2), "heads before tokens"),
    _rotations("heads/last", "lie-heads rank", tuple(np.asarray(BETWEEN)[..., None]), (2, 2, 1, 3, 3), "tokens before heads"),
    _rotations("heads/rows", "axis-rows lie-heads", in_rows(FRAMES), (2, 1, 2, 1, 1, 3, 3), "two images, two heads"),
    _rotations("heads/rows-between", "axis-rows fractional", in_rows((*BETWEEN, BETWEEN[0])), (2, 1, 3, 3), over=4),
    _rotations("heads/no-tokens", "empty", np.zeros((2, 0), dtype=np.int64), (2, 2, 1, 1, 3, 3)),
    _rotations("refused/axes", "refuse-positions", PATCHES, (3, 1, 2, 2), "generators of three axes for two", kind="reject"),
    _rotations("refused/rows", "refuse-positions", PATCHES, (2, 3, 1, 2, 2), "three heads against five tokens", kind="reject"),
    _rotations("refused/square", "refuse-positions", PATCHES, (2, 1, 2, 3), "no square matrices", kind="reject"),
)  # fmt: skip
LIERE = (
    _liere("plain/small", "lie-transposed lie-triangle lie-order", (5, 6), PATCHES, (2, 2, 3, 3), tier="smoke"),
    _liere("plain/blocks", "lie-blocks lie-sum", (3, 6), BETWEEN, (2, 3, 2, 2), inverse=False),
    _liere("plain/partial", "partial-tail lie-bits downcast", (3, 9), FRAMES, (3, 2, 3, 3), bits=24),
    _liere("plain/inverse", "inverse lie-transposed", (3, 4), BETWEEN, (2, 1, 4, 4), inverse=True),
    _liere("plain/inverse-partial", "inverse partial-tail lie-blocks", (3, 7), FRAMES[:2], (2, 3, 2, 2), bits=24, inverse=True),
    _liere("plain/far", "far-position lie-sum", (4, 5), FAR, (2, 1, 3, 3), over=1024),
    _liere("plain/far-pairs", "far-position lie-bits", (4, 4), FAR, (2, 2, 2, 2), bits=24, over=1024),
    _liere("heads/first", "lie-heads every-head", (3, 5, 4), PATCHES, (2, 3, 1, 2, 2, 2)),
    _liere("heads/last", "lie-heads token-axis", (3, 2, 3), np.asarray(BETWEEN)[:, :, None], (2, 1, 2, 1, 3, 3),
           "tokens before heads"),
    _liere("heads/rows", "axis-rows lie-heads", (2, 2, 3, 4), in_rows(FRAMES), (2, 1, 2, 1, 1, 4, 4), over=16),
    Case("liere/models/head-64", {}, {
        "x": floats(3, 64, seed=seed_of("liere-64")), "positions": ((0.0, 0.5, 1.0), (0.0, 1.0, 0.25)),
        "generators": begun("liere-64", 2, 8, 8, 8),
    }, ("true-size", "axial-origin", "lie-sum", "lie-blocks"), "a class token and two patches; eight blocks of eight lanes"),
    _liere("shapes/vector", "rank decode", (4,), (4, 9), (2, 2, 2, 2)),
    _liere("shapes/no-tokens", "empty", (0, 6), np.zeros((2, 0), dtype=np.int64), (2, 2, 3, 3)),
    _liere("refused/lanes", "refuse-sections", (5, 8), PATCHES, (2, 3, 3, 3), "nine lanes of eight", kind="reject"),
    _liere("refused/heads", "refuse-positions", (3, 5, 8), PATCHES, (2, 5, 2, 3, 3), "an axis for heads or for tokens",
           kind="reject"),
    sequence("liere/sequence/sizes", "axis-rows cache-key decode", SIZES, tuple(
        Step({}, {"x": x, "positions": p, "generators": learned("sizes", 2, 2, 3, 3)})
        for x in (floats(4, 6, seed=3),)
        for x, p in ((x, ((0, 0, 7, 7), (0, 3, 0, 3))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (3,))))
    )),
)  # fmt: skip
CAYLEY = (
    _cayley("plain/small", "string-basis lie-triangle", (3, 3), tier="smoke"),
    _cayley("plain/pair", "string-basis", (2, 2), "a tangent of half the angle", over=2),
    _cayley("plain/large", "string-basis lie-triangle", (4, 4), "entries near 1", over=3),
    _cayley("plain/24-bits", "lie-bits lie-triangle", (5, 5), bits=24),
    _cayley("plain/small-entries", "string-basis lie-bits", (6, 6), bits=24, over=64),
    _cayley("heads/three", "lie-heads rank", (3, 1, 3, 3)),
    _cayley("heads/two", "lie-heads string-basis", (2, 4, 4), bits=24),
    _cayley("heads/none", "empty", (0, 3, 3)),
    _cayley("refused/square", "refuse-sections", (3, 4), "no square matrix", kind="reject"),
)
STRING = (
    *(
        case
        for form in ("conjugate", "product")
        for case in (
            _string(f"{form}/small", "string-form string-basis mixed-sum", (5, 4), PATCHES, (4, 4), (2, 2), form=form,
                    tier="smoke" if form == "conjugate" else "core"),
            _string(f"{form}/partial", "partial-tail lie-bits downcast", (3, 7), FRAMES, (7, 7), (3, 2), bits=24, form=form),
            _string(f"{form}/far", "far-position mixed-order", (4, 4), FAR, (4, 4), (2, 2), bits=24, form=form),
            _string(f"{form}/heads", "lie-heads mixed-heads every-head", (3, 5, 4), PATCHES, (3, 1, 4, 4), (2, 3, 1, 2),
                    form=form),
            _string(f"{form}/rows", "axis-rows string-basis layout", (2, 2, 3, 6), in_rows(FRAMES), (6, 6), (2, 2), form=form),
            _string(f"{form}/between", "fractional string-form", (3, 6), BETWEEN, (6, 6), (2, 3), over=3, form=form),
        )
    ),
    _string("models/head-64", "true-size axial-origin string-basis", (2, 64), ((0, 5), (0, 11)), (64, 64), (2, 32),
            "a class token and a patch", bits=20, over=64, form="product"),
    _string("shapes/vector", "rank decode", (4,), (4, 9), (4, 4), (2, 1), form="conjugate"),
    _string("shapes/one-head", "single-head fractional", (2, 1, 3, 4), BETWEEN, (4, 4), (2, 2), form="product"),
    _string("shapes/one-head-conjugate", "single-head lie-heads", (3, 1, 2, 4), ((1, 7), (4, 2)), (3, 1, 1, 4, 4), (2, 2),
            form="conjugate"),
    _string("shapes/no-tokens", "empty", (0, 4), np.zeros((2, 0), dtype=np.int64), (4, 4), (2, 2), form="product"),
    _string("refused/skew", "refuse-sections", (5, 6), PATCHES, (4, 4), (2, 2), "a basis of four lanes for six", kind="reject",
            form="product"),
    _string("refused/lanes", "refuse-sections", (5, 6), PATCHES, (6, 6), (2, 4), "eight lanes of six", kind="reject",
            form="conjugate"),
    _string("refused/form", "refuse-option", (5, 6), PATCHES, (6, 6), (2, 2), kind="reject", form="transpose"),
    sequence("cayley_string/sequence/sizes", "axis-rows cache-key decode", SIZES, tuple(
        Step({"form": "product"},
             {"x": x, "positions": p, "skew": learned("sizes-s", 5, 5), "frequencies": learned("sizes-f", 2, 2)})
        for x in (floats(4, 5, seed=4),)
        for x, p in ((x, ((0, 0, 7, 7), (0, 30, 0, 30))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (30,))))
    )),
)  # fmt: skip
CIRCULANT = (
    _circulant("plain/small", "circulant-direction lie-order", (5, 5), PATCHES, (2, 1, 5), tier="smoke"),
    _circulant("plain/even", "circulant-direction lie-blocks", (3, 8), BETWEEN, (2, 2, 4), inverse=False),
    _circulant("plain/three", "lie-order lie-exponential lie-blocks", (3, 6), FRAMES, (3, 2, 3)),
    _circulant("plain/partial", "partial-tail lie-bits downcast", (3, 10), FRAMES, (3, 1, 7), bits=24),
    _circulant("plain/inverse", "inverse circulant-direction", (3, 6), BETWEEN, (2, 1, 6), inverse=True),
    _circulant("plain/inverse-partial", "inverse partial-tail lie-blocks", (3, 7), FRAMES[:2], (2, 2, 3), bits=24,
               inverse=True),
    _circulant("plain/far", "far-position lie-bits", (4, 5), FAR, (2, 1, 5), bits=24, over=64),
    _circulant("plain/far-blocks", "far-position lie-blocks", (4, 6), FAR, (2, 2, 3), over=64),
    _circulant("plain/small-angles", "lie-exponential fractional", (3, 5), BETWEEN, (2, 1, 5), over=64),
    _circulant("heads/first", "lie-heads every-head", (3, 5, 6), PATCHES, (2, 3, 1, 2, 3)),
    _circulant("heads/last", "lie-heads token-axis", (3, 2, 4), np.asarray(BETWEEN)[:, :, None], (2, 1, 2, 1, 4),
               "tokens before heads"),
    _circulant("heads/rows", "axis-rows lie-heads", (2, 2, 3, 5), in_rows(FRAMES), (2, 1, 2, 1, 1, 5)),
    _circulant("models/head-64", "true-size axial-origin lie-blocks", (2, 64), ((0, 5), (0, 11)), (2, 4, 16),
               "a class token and a patch; four blocks", bits=20),
    _circulant("shapes/vector", "rank decode", (6,), (4, 9), (2, 2, 3)),
    _circulant("shapes/no-tokens", "empty", (0, 6), np.zeros((2, 0), dtype=np.int64), (2, 1, 6)),
    _circulant("refused/lanes", "refuse-sections", (5, 8), PATCHES, (2, 3, 3), "nine lanes of eight", kind="reject"),
    _circulant("refused/pairs", "refuse-sections", (5, 8), PATCHES, (2, 2, 2), "two lanes, which never turn", kind="reject"),
    _circulant("refused/heads", "refuse-positions", (3, 5, 8), PATCHES, (2, 5, 2, 3), "an axis for heads or for tokens",
               kind="reject"),
    sequence("circulant_string/sequence/sizes", "axis-rows cache-key decode", SIZES, tuple(
        Step({}, {"x": x, "positions": p, "coefficients": learned("sizes-c", 2, 2, 3)})
        for x in (floats(4, 6, seed=5),)
        for x, p in ((x, ((0, 0, 7, 7), (0, 30, 0, 30))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (30,))))
    )),
)  # fmt: skip

CASES = (*ROTATIONS, *LIERE, *CAYLEY, *STRING, *CIRCULANT)

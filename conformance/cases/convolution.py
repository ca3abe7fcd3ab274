"""Cases of positions that a convolution finds: over frames, and over the patches of an image."""

from typing import Any

from ..model import Case, Flag
from .forms import reals
from .making import cases_of

FLAGS = {
    "conv-centre": Flag("the window of an even number of taps one frame off, or the first frame dropped for the last"),
    "conv-taps": Flag("taps in reverse order: a convolution where libraries correlate"),
    "conv-groups": Flag("channels of other groups taken in, or channels given to groups round-robin"),
    "conv-edge": Flag("frames beyond the ends repeated, reflected or wrapped, not 0"),
    "conv-bias": Flag("the bias left out, or a frame's bias only where all taps lie inside"),
    "conv-downcast": Flag("frames or weights of 24-bit numbers narrowed on the way"),
    "conv-true-size": Flag("a model's number of taps not reproduced"),
    "conv-rows": Flag("frames of one row taken into another row's window"),
    "conv-empty": Flag("no frames, or fewer than taps: a crash or a wrong shape"),
    "conv-refuse": Flag("groups, weights or frames that do not fit accepted"),
    "conv-gradient": Flag("a gradient with the taps in the order of the forward pass, or across the ends"),
    "peg-taps": Flag("the kernel flipped, or its rows and columns exchanged"),
    "peg-axes": Flag("rows and columns of patches exchanged, which square images hide"),
    "peg-edge": Flag("patches beyond an edge repeated, reflected or wrapped, not 0: then no patch can tell where it is"),
    "peg-residual": Flag("x added where it is not, twice, or not at all"),
    "peg-bias": Flag("the bias left out"),
    "peg-downcast": Flag("patches or weights of 24-bit numbers narrowed on the way"),
    "peg-true-size": Flag("a model's grid of patches not reproduced"),
    "peg-empty": Flag("no patches, or one row of them: a crash or a wrong shape"),
    "peg-refuse": Flag("kernels of even size, or weights and patches that do not fit, accepted"),
    "peg-gradient": Flag("a gradient with the kernel as in the forward pass, or without x itself"),
    "weight-norm-axis": Flag("the norm along the first axis, PyTorch's default, or over all entries", "transformers #11617"),
    "weight-norm-length": Flag("lengths left out, or not divided by those of the directions"),
    "weight-norm-downcast": Flag("24-bit numbers narrowed on the way, or a norm rounded to half precision"),
    "weight-norm-true-size": Flag("a model's number of taps not reproduced"),
    "weight-norm-zero": Flag("NaN where a direction is 0"),
    "weight-norm-empty": Flag("no weights: a crash or a wrong shape"),
    "weight-norm-refuse": Flag("lengths that do not fit accepted, or broadcast"),
    "weight-norm-gradient": Flag("a gradient without the part through the norm"),
}

_conv = cases_of("conv_positions", "conv-")
_conv_form = cases_of("conv_positions")


def _conv_of(
    name: str, flags: str, x: tuple[int, ...], taps: int, groups: int, comment: str = "", *, bits: int = 8, **rest: Any
) -> Case:
    """Return a case of frames of a shape; weights become smaller as there are more of them."""
    width = abs(x[-1])
    inputs = {
        "x": reals(f"conv {name} x", *x, bits=bits),
        "weight": reals(f"conv {name} weight", width, width // groups, taps, bits=bits) / (4 if taps < 9 else 16),
        "bias": reals(f"conv {name} bias", width, bits=bits) / 2,
    }
    make = _conv_form if name.startswith("forms/") else _conv
    return make(name, flags, {"groups": groups}, inputs, comment, **rest)


CONV = (
    _conv_of("even/small", "centre taps groups edge", (5, 6), 4, 2, tier="smoke"),
    _conv_of("even/two-taps", "centre taps", (7, 3), 2, 1, "this frame and the one before"),
    _conv_of("even/rows", "rows edge centre", (2, 3, 4), 6, 2, "(B, T, d), shorter than the window"),
    _conv_of("even/24-bits", "downcast bias groups", (5, 6), 4, 3, bits=24),
    _conv_of("even/depthwise", "groups taps bias", (6, 5), 4, 5, "a group for every channel"),
    _conv_of("even/wav2vec2", "true-size centre groups", (19, 6), 128, 2, "128 taps, so 64 frames back; fewer channels"),
    _conv_of("even/wav2vec2-long", "true-size taps edge", (131, 2), 128, 1, "longer than the window"),
    _conv_of("odd/small", "centre taps groups edge", (5, 6), 3, 2),
    _conv_of("odd/one-tap", "bias groups", (4, 6), 1, 2, "every frame by itself"),
    _conv_of("odd/rows", "rows bias", (3, 4, 6), 5, 3, "(B, T, d)"),
    _conv_of("odd/24-bits", "downcast edge taps", (6, 4), 5, 1, bits=24),
    _conv_of("odd/data2vec", "true-size groups centre", (23, 6), 19, 3, "19 taps; fewer channels"),
    _conv_of("odd/one-channel", "edge taps", (8, 1), 3, 1),
    _conv_of("empty/no-frames", "empty", (0, 6), 4, 2),
    _conv_of("empty/no-rows", "empty", (0, 3, 4), 3, 2),
    _conv_of("forms/strided", "non-contiguous", (3, 4, 6), 3, 2),
    _conv_of("forms/strided-even", "non-contiguous", (2, 5, 4), 4, 1),
    _conv_of("forms/expanded", "broadcast-view", (-3, 4, 6), 4, 2),
    _conv_of("forms/expanded-odd", "broadcast-view", (-2, 5, 2), 3, 1),
    _conv_of("forms/batch-one", "batch-one", (1, 5, 4), 4, 2),
    _conv_of("forms/length-one", "length-one batch-one", (1, 1, 6), 4, 3),
    _conv_of("forms/length-one-odd", "length-one", (1, 4), 5, 2, "one frame: the tap in the middle and the bias"),
    _conv("refused/groups", "refuse groups", {"groups": 4}, {"x": reals("conv groups", 5, 6),
          "weight": reals("conv w", 6, 1, 3), "bias": reals("conv b", 6)}, "4 groups do not divide 6 channels", kind="reject"),
    _conv("refused/weight", "refuse", {"groups": 2}, {"x": reals("conv weight", 5, 6), "weight": reals("conv w2", 6, 6, 3),
          "bias": reals("conv b2", 6)}, "a group has 3 channels", kind="reject"),
    _conv("refused/bias", "refuse bias", {"groups": 2}, {"x": reals("conv bias", 5, 6), "weight": reals("conv w3", 6, 3, 3),
          "bias": reals("conv b3", 3)}, "a bias for every channel", kind="reject"),
    _conv("refused/vector", "refuse", {"groups": 1}, {"x": reals("conv vector", 6), "weight": reals("conv w4", 6, 6, 3),
          "bias": reals("conv b4", 6)}, "frames and channels are two axes", kind="reject"),
    _conv_of("gradient/even", "gradient centre", (3, 2), 4, 1, kind="vjp", cotangents={"out": reals("conv even", 3, 2) / 2}),
    _conv_of("gradient/odd", "gradient groups downcast", (2, 2, 2), 3, 2, bits=24, kind="vjp",
             cotangents={"out": reals("conv odd", 2, 2, 2, bits=24) / 2}),
)  # fmt: skip

_peg = cases_of("peg", "peg-")
_peg_form = cases_of("peg")


def _peg_of(
    name: str, flags: str, x: tuple[int, ...], size: int = 3, comment: str = "", *, residual: bool, bits: int = 8, **rest: Any
) -> Case:
    """Return a case of patches of a shape."""
    width = abs(x[-1])
    inputs = {
        "x": reals(f"peg {name} x", *x, bits=bits),
        "weight": reals(f"peg {name} weight", width, 1, size, size, bits=bits) / 4,
        "bias": reals(f"peg {name} bias", width, bits=bits) / 2,
    }
    make = _peg_form if name.startswith("forms/") else _peg
    return make(name, flags, {"residual": residual}, inputs, comment, **rest)


def _peg_refused(name: str, weight: tuple[int, ...], bias: int, comment: str, x: tuple[int, ...] = (3, 4, 6)) -> Case:
    shapes = {"x": x, "weight": weight, "bias": (bias,)}
    inputs = {argument: reals(f"peg {name} {argument}", *shape) for argument, shape in shapes.items()}
    return _peg(f"refused/{name}", "refuse", {"residual": True}, inputs, comment, kind="reject")


PEG = (
    _peg_of("residual/small", "taps axes edge residual", (3, 4, 2), residual=True, tier="smoke"),
    _peg_of("residual/batch", "axes residual bias", (2, 2, 5, 3), comment="(B, I, J, d)", residual=True),
    _peg_of("residual/24-bits", "downcast bias", (4, 3, 5), residual=True, bits=24),
    _peg_of("residual/five-taps", "taps edge", (4, 7, 2), 5, residual=True),
    _peg_of("residual/one-tap", "residual bias", (3, 4, 6), 1, "every patch by itself", residual=True),
    _peg_of("residual/one-row", "axes empty edge", (1, 6, 4), residual=True),
    _peg_of("residual/one-column", "axes edge empty", (5, 1, 3), residual=True),
    _peg_of("residual/cpvt", "true-size taps residual", (14, 14, 3), comment="14 by 14 patches; fewer channels", residual=True),
    _peg_of("alone/small", "taps axes edge residual", (3, 4, 2), residual=False),
    _peg_of("alone/batch", "axes bias", (2, 3, 2, 4), residual=False),
    _peg_of("alone/24-bits", "downcast taps", (3, 4, 5), residual=False, bits=24),
    _peg_of("alone/five-taps", "taps edge", (3, 4, 6), 5, "a kernel larger than the image", residual=False),
    _peg_of("alone/segformer", "true-size taps axes", (16, 12, 2), comment="16 by 12 patches; fewer channels", residual=False),
    _peg_of("empty/no-rows", "empty", (0, 4, 3), residual=True),
    _peg_of("empty/no-columns", "empty", (3, 0, 5), residual=False),
    _peg_of("empty/no-images", "empty", (0, 2, 3, 4), residual=False),
    _peg_of("forms/strided", "non-contiguous", (2, 3, 4, 6), residual=True),
    _peg_of("forms/strided-alone", "non-contiguous", (4, 3, 2), residual=False),
    _peg_of("forms/expanded", "broadcast-view", (-3, 2, 4, 3), residual=True),
    _peg_of("forms/expanded-alone", "broadcast-view", (-2, 4, 2, 5), residual=False),
    _peg_of("forms/batch-one", "batch-one", (1, 3, 5, 2), residual=True),
    _peg_of("forms/length-one", "length-one batch-one", (1, 1, 1, 6), residual=True, comment="one patch"),
    _peg_of("forms/length-one-alone", "length-one", (1, 1, 4), residual=False),
    _peg_refused("even", (6, 1, 4, 4), 6, "an even kernel has no middle"),
    _peg_refused("channels", (6, 6, 3, 3), 6, "channels do not mix"),
    _peg_refused("bias", (6, 1, 3, 3), 1, "a bias for every channel"),
    _peg_refused("tokens", (6, 1, 3, 3), 6, "a row of patches does not say its image's width", (12, 6)),
    _peg_of("gradient/residual", "gradient axes", (2, 3, 1), residual=True, kind="vjp",
            cotangents={"out": reals("peg residual", 2, 3, 1) / 2}),
    _peg_of("gradient/alone", "gradient downcast", (2, 2, 2), residual=False, bits=24, kind="vjp",
            cotangents={"out": reals("peg alone", 2, 2, 2, bits=24) / 2}),
)  # fmt: skip

_norm = cases_of("weight_norm", "weight-norm-")
_norm_form = cases_of("weight_norm")


def _norm_of(
    name: str, flags: str, v: tuple[int, int, int], axis: int, comment: str = "", *, bits: int = 8, zero: int | None = None,
    **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of directions of a shape, those of index `zero` along the axis being 0."""
    lengths = tuple(n if k == axis else 1 for k, n in enumerate(v))
    directions = reals(f"norm {name} v", *v, bits=bits)
    if zero is not None:
        directions.swapaxes(0, axis)[zero] = 0.0
    make = _norm_form if name.startswith("forms/") else _norm
    return make(
        name, flags, {"axis": axis}, {"v": directions, "g": reals(f"norm {name} g", *lengths, bits=bits)}, comment, **rest
    )


def _norm_refused(name: str, v: tuple[int, ...], g: tuple[int, ...], axis: int, comment: str) -> Case:
    inputs = {"v": reals(f"norm {name} v", *v), "g": reals(f"norm {name} g", *g)}
    return _norm(f"refused/{name}", "refuse", {"axis": axis}, inputs, comment, kind="reject")


NORM = (
    _norm_of("taps/small", "axis length", (4, 2, 3), 2, tier="smoke"),
    _norm_of("taps/24-bits", "downcast length", (6, 3, 5), 2, bits=24),
    _norm_of("taps/one", "length axis", (4, 3, 1), 2, "one tap"),
    _norm_of("taps/wav2vec2", "true-size axis", (6, 3, 128), 2, "128 taps; fewer channels"),
    _norm_of("taps/data2vec", "true-size length", (4, 5, 19), 2, "19 taps"),
    _norm_of("taps/zero", "zero", (4, 2, 3), 2, "all weights of one tap", zero=1),
    _norm_of("outputs/small", "axis length", (4, 2, 3), 0, "PyTorch's default"),
    _norm_of("outputs/24-bits", "downcast axis", (5, 2, 4), 0, bits=24),
    _norm_of("outputs/zero", "zero axis", (3, 2, 5), 0, "all weights of one channel", zero=2),
    _norm_of("inputs/small", "axis length", (4, 5, 3), 1),
    _norm_of("inputs/24-bits", "downcast axis", (2, 6, 3), 1, bits=24),
    _norm_of("empty/taps", "empty", (4, 2, 0), 2),
    _norm_of("empty/outputs", "empty", (0, 2, 3), 2),
    _norm_of("forms/strided", "non-contiguous", (4, 3, 5), 2),
    _norm_of("forms/strided-outputs", "non-contiguous", (5, 2, 6), 0),
    _norm_of("forms/length-one", "length-one", (1, 1, 1), 2, "one weight: its sign and the length"),
    _norm_of("forms/length-one-outputs", "length-one", (1, 1, 4), 0),
    _norm_refused("lengths", (4, 2, 3), (4, 1, 1), 2, "a length for each channel, where each tap has one"),
    _norm_refused("vector", (4, 2, 3), (3,), 2, "a length has all three axes"),
    _norm_refused("axis", (4, 2, 3), (4, 2, 3), 3, "there are three axes"),
    _norm_refused("four-axes", (4, 1, 3, 3), (1, 1, 1, 3), 2, "weights of a convolution over frames have three axes"),
    _norm_of("gradient/taps", "gradient", (2, 1, 3), 2, kind="vjp", cotangents={"out": reals("norm taps", 2, 1, 3) / 2}),
    _norm_of("gradient/outputs", "gradient downcast", (2, 2, 2), 0, bits=24, kind="vjp",
             cotangents={"out": reals("norm outputs", 2, 2, 2, bits=24) / 2}),
)  # fmt: skip

CASES: tuple[Case, ...] = (*CONV, *PEG, *NORM)

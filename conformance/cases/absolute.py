"""Cases of absolute positions: sinusoidal and learned."""

from typing import Any
from zlib import crc32

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats

FLAGS = {
    "sinusoidal-layout": Flag("sines and cosines in another order", "multidim-positional-encoding #20, flashinfer #3819"),
    "sinusoidal-endpoint": Flag("the exponent divided by d/2 - 1 for d/2, or the reverse", "hojonathanho/diffusion #15"),
    "sinusoidal-exponent": Flag(
        "other exponents than 2i/d, or different ones for sine and cosine", "PyTorch tutorials' copies"
    ),
    "sinusoidal-base": Flag("the base always 10000", "croco #44"),
    "sinusoidal-far": Flag("positions in half precision, or past the end of a table", "transformers #29285, lightseq #144"),
    "sinusoidal-ids": Flag("a count from 0 in place of the caller's positions", "lightseq #144, keras-hub #1544"),
    "sinusoidal-fraction": Flag("fractional positions truncated (diffusion timesteps)", "flashinfer #3819"),
    "sinusoidal-negative": Flag("negative positions without their sign"),
    "sinusoidal-true-size": Flag("a model's own width and form not reproduced", "tensor2tensor #1423"),
    "sinusoidal-state": Flag("a table kept from a longer, shorter or other call", "transformers #28837"),
    "sinusoidal-empty": Flag("no positions: a crash or a wrong shape"),
    "sinusoidal-odd": Flag(
        "an odd width by another rule: zeros, a cosine cut off, or a sine more", "tensor2tensor pads, Pegasus adds a sine"
    ),
    "sinusoidal-scale": Flag("a scale of the result left out, or applied to the angle", "MLX's is sqrt(2/d) unless told"),
    "sinusoidal-refuse": Flag("a width or word that libraries read differently accepted", "fairseq pads, Pegasus adds a sine"),
    "learned-offset": Flag("rows before position 0 not skipped, or skipped twice", "transformers #19265, #36537"),
    "learned-ids": Flag("a count from 0 in place of the caller's positions", "sentence-transformers #3879"),
    "learned-rows": Flag("row 0's positions used for every row of the batch", "PaddleNLP #6495"),
    "learned-downcast": Flag("a table of 24-bit numbers narrowed on the way", "timm #2794"),
    "learned-true-size": Flag("the first or last row of a model's table out of reach", "transformers #1761"),
    "learned-aliasing": Flag("the offset added to the caller's position ids in place", "mlx-lm #1699"),
    "learned-clip": Flag(
        "positions outside the table wrapped, filled with zeros, or read past its end", "tinygrad #5873, tt-mlir #9211"
    ),
    "learned-empty": Flag("no positions: a crash or a wrong shape"),
    "learned-refuse": Flag("positions or a table of the wrong kind accepted"),
}

NEAR = (0, 1, 2, 7, 63)
FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 1048575)
UNSORTED = (5, 0, 0, 9, 2)
OFFSETS = ((3, 4, 5, 6, 7), (257, 258, 259, 260, 261), (0, 1, 2, 3, 4))  # a row each


def _sinusoidal(
    name: str,
    flags: str,
    positions: Any,
    dim: int,
    comment: str = "",
    *,
    kind: str = "value",
    tier: str = "core",
    **params: Any,
) -> Case:
    """Return a case of sinusoidal."""
    flagged = tuple(f"sinusoidal-{flag}" for flag in flags.split())
    return Case(f"sinusoidal/{name}", {"dim": dim, **params}, {"positions": positions}, flagged, comment, kind, tier)


def _sequence(name: str, comment: str, *calls: tuple[dict[str, Any], Any]) -> Case:
    """Return a case of several calls of sinusoidal."""
    steps = tuple(Step(params, {"positions": positions}) for params, positions in calls)
    return Case(f"sinusoidal/sequence/{name}", flags=("sinusoidal-state",), comment=comment, kind="sequence", steps=steps)


SINUSOIDAL = (
    _sinusoidal("interleaved/small", "layout exponent", (0, 1, 5), 8, tier="smoke", layout="interleaved"),
    _sinusoidal("interleaved/far", "far", FAR, 10, layout="interleaved"),
    _sinusoidal("interleaved/rows", "ids base", OFFSETS, 6, "(B, T)", layout="interleaved", base=500.0),
    _sinusoidal("interleaved/transformer", "true-size exponent", (0, 1, 7, 63, 511), 512, "the paper's base model",
                layout="interleaved"),
    _sinusoidal("interleaved/endpoint", "endpoint", NEAR, 20, layout="interleaved", endpoint=True),
    _sinusoidal("interleaved/scalar", "ids", 77, 14, "a position without axes", layout="interleaved"),
    _sinusoidal("sin-cos/small", "layout exponent", UNSORTED, 6, layout="sin_cos"),
    _sinusoidal("sin-cos/far", "far base", FAR, 12, layout="sin_cos", base=1e6),
    _sinusoidal("sin-cos/tensor2tensor", "true-size endpoint", (0, 1, 7, 63, 255), 512, layout="sin_cos",
                endpoint=True),
    _sinusoidal("sin-cos/whisper", "true-size endpoint", (0, 1, 2, 7, 1499), 384, "Whisper tiny: 1500 rows",
                layout="sin_cos", endpoint=True),
    _sinusoidal("sin-cos/endpoint-base", "endpoint base", NEAR, 48, layout="sin_cos", endpoint=True, base=500.0),
    _sinusoidal("sin-cos/rows", "ids", ((9, 8, 7, 300), (1, 1, 2, 0)), 20, layout="sin_cos", base=2e4),
    _sinusoidal("cos-sin/small", "layout exponent", (0, 1, 5, 2), 6, layout="cos_sin"),
    _sinusoidal("cos-sin/timesteps", "fraction layout", (0.5, 1.25, 999.5, 20.0, 7.75), 20, "diffusion timesteps",
                layout="cos_sin"),
    _sinusoidal("cos-sin/timesteps-endpoint", "fraction endpoint", (999.5, 0.125, 3.0), 48, layout="cos_sin",
                endpoint=True),
    _sinusoidal("cos-sin/base", "base exponent", NEAR, 14, layout="cos_sin", base=1e6),
    _sinusoidal("positions/negative", "negative", (-1, -7, 3, -300), 10, layout="interleaved"),
    _sinusoidal("positions/negative-halves", "negative", (-2, 0, -63, -4096, 1), 12, layout="sin_cos"),
    _sinusoidal("positions/fraction", "fraction", (0.5, 2.75, 63.25), 10, layout="interleaved"),
    _sinusoidal("positions/one", "ids", (2049,), 6, layout="interleaved"),
    _sinusoidal("positions/empty", "empty", np.zeros(0, dtype=np.int64), 6, layout="sin_cos"),
    _sinusoidal("positions/one-pair", "exponent", (0, 1, 40), 2, "the one frequency is 1", layout="cos_sin"),
    _sequence("short-after-long", "a long call, a short one, a long one",
              *(({"dim": 10, "layout": "interleaved"}, tuple(range(n))) for n in (21, 3, 21))),
    _sequence("offset", "the same number of positions, elsewhere; then another width",
              ({"dim": 6, "layout": "sin_cos"}, NEAR), ({"dim": 6, "layout": "sin_cos"}, (7, 8, 9, 10, 11)),
              ({"dim": 8, "layout": "sin_cos"}, NEAR)),
    _sinusoidal("odd/m2m", "odd endpoint", NEAR, 7, layout="sin_cos", endpoint=True, odd="zeros"),
    _sinusoidal("odd/diffusers", "odd fraction", (999.5, 20.25, 3.0), 11, layout="cos_sin", odd="zeros", base=500.0),
    _sinusoidal("odd/zeros-interleaved", "odd", UNSORTED, 5, layout="interleaved", odd="zeros"),
    _sinusoidal("odd/zeros-three", "odd", (0, 1, 40), 3, "one pair and a column of zeros", layout="sin_cos", odd="zeros"),
    _sinusoidal("odd/positional-encodings", "odd exponent", NEAR, 9, layout="interleaved", odd="truncated"),
    _sinusoidal("odd/truncated-far", "odd far", FAR, 5, layout="interleaved", odd="truncated", base=1e6),
    _sinusoidal("odd/truncated-halves", "odd layout", OFFSETS, 7, layout="sin_cos", odd="truncated"),
    _sinusoidal("odd/truncated-cos-sin", "odd layout", (0, 2, 9), 5, "the last sine is cut", layout="cos_sin", odd="truncated"),
    _sinusoidal("odd/truncated-endpoint", "odd endpoint", NEAR, 13, layout="interleaved", endpoint=True, odd="truncated"),
    _sinusoidal("odd/roformer", "odd exponent", NEAR, 5, layout="sin_cos", odd="extra_sine"),
    _sinusoidal("odd/roformer-far", "odd far", FAR, 15, layout="sin_cos", odd="extra_sine", base=2e4),
    _sinusoidal("odd/keras-hub", "odd exponent", (0, 1, 7, 63, 511), 33, layout="interleaved", odd="extra_sine"),
    _sinusoidal("odd/extra-sine-cos-sin", "odd layout", UNSORTED, 7, "cosines, then one more sine", layout="cos_sin",
                odd="extra_sine"),
    _sinusoidal("odd/extra-sine-endpoint", "odd endpoint", (0, 1, 500), 9, layout="sin_cos", endpoint=True, odd="extra_sine"),
    _sinusoidal("odd/even", "odd", (0, 3, 70), 10, "without effect", layout="sin_cos", odd="extra_sine"),
    _sinusoidal("odd/empty", "odd empty", np.zeros((2, 0), dtype=np.int64), 5, layout="sin_cos", odd="zeros"),
    _sinusoidal("scale/mlx", "scale endpoint", NEAR, 18, "sqrt(2/18)", layout="sin_cos", endpoint=True,
                scale=0.3333333333333333),
    _sinusoidal("scale/x-transformers", "scale", (0, 1, 511, 2049), 20, layout="sin_cos", scale=20**-0.5),
    _sinusoidal("scale/interleaved", "scale fraction", (0.5, 2.75, 63.25), 12, layout="interleaved", scale=2.5),
    _sinusoidal("scale/odd", "scale odd", OFFSETS, 9, layout="cos_sin", odd="zeros", scale=8.0),
    _sinusoidal("refused/odd-word", "refuse odd", (0, 1, 5), 7, "no such rule", kind="reject", layout="sin_cos", odd="pad"),
    _sinusoidal("refused/scale", "refuse scale", (0, 1, 5), 6, "zero would erase", kind="reject", layout="sin_cos", scale=0.0),
    _sinusoidal("refused/odd-endpoint-three", "refuse odd", (0, 1, 5), 3, "d/2 - 1 divides by zero", kind="reject",
                layout="sin_cos", endpoint=True, odd="zeros"),
    _sinusoidal("refused/odd", "refuse", (0, 1, 5), 7, "libraries pad, slice or add a sine", kind="reject",
                layout="sin_cos"),
    _sinusoidal("refused/layout", "refuse", (0, 1, 5), 6, "no such layout", kind="reject", layout="concat"),
    _sinusoidal("refused/endpoint-pair", "refuse", (0, 1, 5), 2, "d/2 - 1 divides by zero", kind="reject",
                layout="sin_cos", endpoint=True),
)  # fmt: skip


def _learned(
    name: str, flags: str, positions: Any, table: tuple[int, ...], comment: str = "", *, bits: int = 8,
    kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of learned with a table of this shape."""
    inputs = {"positions": positions, "table": floats(*table, seed=crc32(name.encode()), bits=bits)}
    return Case(f"learned/{name}", params, inputs, tuple(f"learned-{flag}" for flag in flags.split()), comment, kind, tier)


LEARNED = (
    _learned("plain/small", "ids", (2, 0, 4), (5, 6), tier="smoke"),
    _learned("plain/24-bits", "downcast ids", (0, 6, 6, 1), (7, 10), bits=24),
    _learned("plain/rows", "rows ids", ((3, 4, 5, 6), (0, 1, 2, 2), (9, 8, 7, 0)), (11, 6), "(B, T)"),
    _learned("plain/scalar", "ids", 3, (5, 12), "a position without axes"),
    _learned("plain/empty", "empty", np.zeros(0, dtype=np.int64), (5, 6)),
    _learned("plain/gpt-2", "true-size", (0, 1, 255, 256, 257, 1023), (1024, 18), "GPT-2's number of rows; narrower"),
    _learned("offset/2", "offset ids aliasing", (0, 1, 4), (7, 6), "OPT and BART", offset=2),
    _learned("offset/5", "offset aliasing downcast", (0, 3, 1, 1), (9, 10), bits=24, offset=5),
    _learned("offset/rows", "offset rows", ((0, 1, 2), (4, 5, 7)), (10, 4), offset=2),
    _learned("offset/opt", "true-size offset", (0, 1, 257, 2047), (2050, 6), "2048 positions behind 2 rows", offset=2),
    _learned("offset/roberta", "true-size offset", (0, 1, 7, 255, 511), (514, 20), "padding_idx + 1", offset=2),
    _learned("clip/small", "clip ids", (-1, 0, 4, 5, 300, 2), (5, 6), "before the first row, after the last", clip=True),
    _learned("clip/offset", "clip offset", (-3, -2, 4, 0, 7, 2**20), (7, 10), "the offset comes first: -2 is row 0",
             offset=2, clip=True),
    _learned("clip/rows", "clip rows downcast", ((3, 9, -5, 6), (0, -1, 2, 2), (9, 8, -70, 4099)), (7, 4), bits=24, offset=1,
             clip=True),
    _learned("clip/inside", "clip ids aliasing", (3, 0, 4, 1), (6, 3), offset=1, clip=True),
    _learned("clip/prophetnet", "clip true-size", (0, 1, 257, 511, 512, 700), (512, 6), "ProphetNet's number of rows; narrower",
             clip=True),
    _learned("clip/one-row", "clip", (0, 3, -3), (1, 7), "a table of one row", clip=True),
    _learned("refused/clip-nothing", "refuse clip", (0, 1), (0, 6), "there is no row to clip to", kind="reject", clip=True),
    _learned("refused/offset", "refuse", (0, 1), (5, 6), "an offset counts rows", kind="reject", offset=-1),
    _learned("refused/fraction", "refuse", (0.5, 1.0), (5, 6), "positions are rows of the table", kind="reject"),
    _learned("refused/three-axes", "refuse", (0, 1), (5, 2, 3), "a table has two axes", kind="reject"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*SINUSOIDAL, *LEARNED)

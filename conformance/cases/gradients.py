"""
Cases of kind vjp: gradients of every operation that takes arrays of reals.

They are small, since the second witness calls the operation twice for every number in which it differentiates.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.scaling import YaRN

from ..model import Case, Flag
from .forms import reals
from .forms import FLAGS as FORMS

FLAGS = {
    "vjp-sign": Flag("the cotangent rotated forwards, or by another pair's sine", "PaddlePaddle #74716"),
    "vjp-layout": Flag("the cotangent read or written in another layout than the forward's", "PaddlePaddle #74716"),
    "vjp-tail": Flag("a gradient of the channels that do not rotate that is not their cotangent", "apex #1750"),
    "vjp-lanes": Flag("the cotangent of the first channels rotated where the last ones rotate"),
    "vjp-gain": Flag("a factor dropped, or applied twice, on the way back"),
    "vjp-inverse": Flag("the gradient of the inverse rotated like that of the forward"),
    "vjp-offsets": Flag("row 0's positions used for every row on the way back", "Liger-Kernel #477"),
    "vjp-broadcast": Flag("a gradient not summed over the axes along which its input repeats", "flash-sparse-attention #194"),
    "vjp-repeat": Flag("a row that is read several times keeps its last cotangent, not their sum", "tt-metal #6232"),
    "vjp-unused": Flag("a gradient other than 0 where an input has no influence"),
    "vjp-angle": Flag("the derivative of an angle without its position, or with cosine and sine exchanged"),
    "vjp-clip": Flag("the gradient of clipped distances lost, or in another row"),
    "vjp-term": Flag("one of two terms left out on the way back"),
    "vjp-scale": Flag("the logits' scale dropped, or applied twice, on the way back"),
    "vjp-heads": Flag("gradients of shared key heads not summed over their block", "levanter #449"),
    "vjp-softmax": Flag("the softmax's own term left out: P dP for P (dP - sum P dP)", "AiDotNet.Tensors #49"),
    "vjp-mask": Flag("gradients through keys that may not be attended to"),
    "vjp-sinks": Flag(
        "no gradient of the sinks, or one that takes no part in the softmax's own term", "TransformerEngine #2541"
    ),
    "vjp-mask-row": Flag("NaN in the gradients of all where one row may attend to nothing", "PyTorch #41508"),
    "vjp-bits": Flag("24-bit inputs or cotangents narrowed on the way back"),
}


def gradient(
    op: str, name: str, flags: str, inputs: dict[str, Any], cotangents: dict[str, tuple[int, ...]], comment: str = "", *,
    wrt: str = "", bits: int = 8, **params: Any,
) -> Case:  # fmt: skip
    """Return a case with cotangents of these shapes (negative sizes repeat one row); flags are this module's, or of forms."""
    flagged = tuple(flag if flag in FORMS else f"vjp-{flag}" for flag in flags.split())
    given = {out: reals(f"{op}{name}ct{out}", *shape, bits=bits) / 2 for out, shape in cotangents.items()}
    return Case(
        f"{op}/gradient/{name}", params, inputs, flagged, comment, "vjp", cotangents=given, wrt=tuple(wrt.split())
    )  # fmt: skip


def _apply(
    name: str, flags: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *, pairs: int | None = None,
    wrt: str = "x", out: tuple[int, ...] = (), bits: int = 8, **params: Any,
) -> Case:  # fmt: skip
    """Return a case of apply_rope, with tables of `rows` that are no unit circle; of x alone unless said otherwise."""
    pairs = shape[-1] // 2 if pairs is None else pairs
    tables = {n: reals(name + n, *rows, pairs, bits=bits) / 4 for n in ("cos", "sin")}
    inputs = {"x": reals(name, *shape, bits=bits), **tables}
    return gradient("apply_rope", name, flags, inputs, {"out": out or shape}, comment, wrt=wrt, bits=bits, **params)


def _rope(name: str, flags: str, shape: tuple[int, ...], positions: Any, comment: str = "", **params: Any) -> Case:
    """Return a case of rope."""
    inputs = {"x": reals(name, *shape), "positions": positions}
    return gradient("rope", name, flags, inputs, {"out": shape}, comment, **{"base": 10000.0, **params})


ROTATIONS = (
    _apply("half", "sign layout gain", (2, 3, 8), (3,), layout="half"),
    _apply("interleaved", "sign layout gain", (2, 3, 6), (3,), layout="interleaved"),
    _apply("mixed", "layout sign gain", (3, 2, 10), (2,), "written where it was not read", layout="interleaved_to_half"),
    _apply("24-bits", "bits sign", (2, 3, 6), (3,), bits=24, layout="half"),
    _apply("partial", "tail", (2, 3, 11), (3,), pairs=3, layout="half"),
    _apply("partial-interleaved", "tail layout", (3, 2, 9), (2,), pairs=2, layout="interleaved"),
    _apply("trailing", "tail lanes", (3, 2, 9), (2,), pairs=2, layout="interleaved", lanes="trailing"),
    _apply("trailing-tables", "tail lanes broadcast", (2, 3, 7), (3,), pairs=2, wrt="x cos sin", layout="half",
           lanes="trailing"),
    _apply("inverse", "inverse sign", (2, 3, 8), (3,), layout="half", inverse=True),
    _apply("inverse-mixed", "inverse layout tail", (3, 2, 7), (2,), pairs=3, layout="interleaved_to_half", inverse=True),
    _apply("rows", "offsets", (3, 2, 2, 6), (3, 1, 2), layout="interleaved"),
    _apply("tables", "broadcast", (2, 3, 8), (3,), wrt="x cos sin", layout="half"),
    _apply("tables-rows", "broadcast offsets tail", (2, 3, 2, 7), (2, 1, 2), pairs=3, wrt="cos sin", layout="interleaved"),
    _apply("tables-inverse", "inverse broadcast", (3, 2, 4), (2,), "the sine's gradient has the other sign", wrt="cos sin",
           layout="interleaved_to_half", inverse=True),
    _apply("strided", "non-contiguous sign", (2, 3, 2, 6), (2, 1, 2), layout="half"),
    _apply("strided-interleaved", "non-contiguous tail", (3, 2, 7), (3, 2), pairs=2, wrt="x cos sin", layout="interleaved"),
    _apply("expanded", "broadcast-view broadcast", (2, 3, 6), (3,), "cotangents as a sum over the batch has them",
           wrt="x cos sin", out=(-2, 3, 6), layout="half"),
    _rope("strided", "non-contiguous sign", (2, 2, 3, 4), (7, 0, 2), layout="interleaved"),
    _rope("half", "sign layout", (2, 3, 8), (0, 1, 5), layout="half"),
    _rope("interleaved", "sign layout", (2, 3, 6), (2, 7, 300), layout="interleaved", base=500000.0),
    _rope("mixed", "layout gain", (3, 6), (1, 0, 4097), layout="interleaved_to_half", scaling=YaRN(40, 4096)),
    _rope("gain", "gain tail", (2, 3, 9), (0, 3, 11), layout="half", rotary_dim=6, scaling=YaRN(4, 512, attention_factor=1.25)),
    _rope("partial", "tail", (3, 2, 9), (257, 4), layout="interleaved", rotary_dim=4),
    _rope("trailing", "tail lanes", (3, 2, 9), (257, 4), layout="half", rotary_dim=4, lanes="trailing"),
    _rope("trailing-inverse", "tail lanes inverse", (2, 3, 7), (5, 1, 40), layout="interleaved", rotary_dim=4, inverse=True,
          lanes="trailing"),
    _rope("rows", "offsets", (3, 2, 2, 4), (((3, 4),), ((257, 258),), ((0, 1),)), layout="half"),
    _rope("inverse", "inverse sign gain", (2, 3, 6), (5, 1, 40), layout="half", inverse=True, scaling=YaRN(8, 2048)),
)  # fmt: skip

PAIRS = (1.0, 0.1171875, 0.013671875)
SLOW = (0.00390625, 0.001953125 * 0.625, 0.000244140625)  # so that far positions are few radians away


def _table(name: str, flags: str, positions: Any, inv_freq: Any, comment: str = "", **params: Any) -> Case:
    """Return a case of rope_table, for learned frequencies."""
    shape = (*np.shape(positions), len(inv_freq))
    inputs = {"positions": positions, "inv_freq": inv_freq}
    return gradient("rope_table", name, flags, inputs, {"cos": shape, "sin": shape}, comment, **params)


TABLES = (
    _table("small", "angle broadcast", (0, 1, 5, 2), PAIRS, "learned frequencies"),
    _table("factor", "angle gain", ((1, 4, 6), (2, 0, 3)), PAIRS[:2], attention_factor=1.25),
    _table("far", "angle", (257, 7, 2049, 300), SLOW),
    gradient("learned", "repeated", "repeat unused", {"positions": (5, 0, 5, 2, 5), "table": reals("learned", 7, 3)}, {"out": (5, 3)}),
    gradient("learned", "rows", "repeat unused offsets bits", {"positions": ((0, 3, 1), (3, 3, 4)),
          "table": reals("learned rows", 8, 2, bits=24)}, {"out": (2, 3, 2)}, offset=2, bits=24),
    gradient("learned_logn_scale", "heads", "gain broadcast", {"positions": (0, 4, 90), "scale": reals("learned logn", 2),
          "bias": reals("learned logn bias", 2)}, {"out": (2, 3)}),
    gradient("learned_logn_scale", "rows", "gain offsets", {"positions": ((1, 4, 0, 7), (300, 2, 5, 9)), "scale":
          reals("logn rows", 3), "bias": reals("logn rows bias", 3)}, {"out": (2, 3, 4)}),
    gradient("learned", "clip", "repeat unused", {"positions": (-1, 4, 0, 9, 300), "table": reals("learned clip", 5, 3)}, {"out": (5, 3)},
          offset=1, clip=True),
    gradient("t5_bias", "bidirectional", "repeat unused", {"q_positions": (0, 2, 9), "k_positions": (0, 1, 2, 7),
          "table": reals("t5", 16, 2)}, {"out": (2, 3, 4)}, bidirectional=True, max_distance=20),
    gradient("t5_bias", "causal", "repeat unused", {"q_positions": (40, 300), "k_positions": (0, 1, 30, 39, 41),
          "table": reals("t5 causal", 12, 3)}, {"out": (3, 2, 5)}, bidirectional=False, max_distance=50),
    gradient("t5_bias", "rows", "repeat offsets", {"q_positions": ((4, 6), (260, 261)), "k_positions":
          ((0, 2, 5), (262, 260, 250)), "table": reals("t5 rows", 8, 2)}, {"out": (2, 2, 2, 3)}, bidirectional=True, max_distance=12),
)  # fmt: skip


def shaw_gradients(op: str, axes: dict[str, str], out: str) -> Iterator[Case]:
    """Yield gradients of arrays that have these axes after the leading ones: queries, keys, rows of the table, lanes."""

    def case(
        name: str, flags: str, lead: tuple[int, ...], width: int, places: tuple[Any, Any], left: int, right: int, order: str
    ) -> Case:
        queries, keys = (np.shape(p)[-1] for p in places)
        sizes = {"q": queries, "k": keys, "n": left + right + 1, "d": width}
        shapes = {n: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for n, letters in axes.items()}
        inputs = {n: reals(op + name + n, *shape) / 4 for n, shape in shapes.items()}
        inputs |= {"q_positions": places[0], "k_positions": places[1]}
        cotangents = {"out": (*lead, *(sizes[a] for a in out))}
        return gradient(op, name, flags, inputs, cotangents, left=left, right=right, order=order)

    yield case("strided", "non-contiguous term", (2,), 3, ((3, 1), (0, 2, 9)), 1, 2, "query_minus_key")
    yield case("forward", "term repeat clip", (2,), 3, ((3, 1), (0, 2, 9)), 2, 1, "key_minus_query")
    yield case("backward", "term repeat clip unused", (), 4, ((7, 0, 2), (1, 2, 8, 5)), 3, 4, "query_minus_key")
    yield case(
        "rows", "offsets broadcast", (2,), 3, (((4, 5), (260, 262)), ((0, 5, 6), (262, 256, 261))), 1, 3, "key_minus_query"
    )


CAUSAL = np.tri(3, 4, 1, dtype=bool)
NOTHING = np.asarray([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]) > 0  # row 1 may attend to nothing
ONE = np.asarray([[0, 1, 0], [1, 0, 0]]) > 0


def attention_gradient(
    op: str, name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0,
    bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None, wrt: str = "", bits: int = 8,
    **params: Any,
) -> Case:  # fmt: skip
    """Return a gradient of logits that stay within a few units, or of values of some `width` besides; of `wrt`, or of all three."""
    shapes = {"q": q, "k": k} | ({"v": (*k[:-1], width)} if width else {})
    inputs: dict[str, Any] = {n: reals(op + name + n, *shape, bits=bits) for n, shape in shapes.items()}
    inputs["q"] = inputs["q"] / 8
    if bias:
        inputs["bias"] = reals(op + name + "bias", *bias, bits=bits) / 4
    if mask is not None:
        inputs["mask"] = mask
    if sinks is not None:
        inputs["sinks"] = reals(op + name + "sinks", sinks, bits=bits) / 2
    out = (*q[:-1], width or k[-2])
    wrt = wrt or " ".join(shapes)
    return gradient(op, name, flags, inputs, {"out": out}, comment, wrt=wrt, bits=bits, **params)


ATTENTION = (
    attention_gradient("attention_logits", "plain", "scale", (2, 2, 5), (2, 3, 5)),
    attention_gradient("attention_logits", "scale", "scale bits", (2, 6), (3, 6), bits=24, scale=0.3125),
    attention_gradient("attention_logits", "heads", "heads", (4, 2, 3), (2, 3, 3)),
    attention_gradient("attention_logits", "bias", "broadcast scale", (2, 3, 3), (2, 2, 3), "a bias that all queries share",
               bias=(2, 1, 2), wrt="q k bias", scale=0.25),
    attention_gradient("attention", "plain", "softmax scale", (2, 2, 4), (2, 3, 4), width=3),
    attention_gradient("attention", "24-bits", "softmax bits", (2, 5), (4, 5), bits=24, width=3),
    attention_gradient("attention", "scale", "scale softmax", (3, 4), (2, 4), scale=0.75, width=3),
    attention_gradient("attention", "causal", "mask softmax", (3, 3), (4, 3), mask=CAUSAL, width=3),
    attention_gradient("attention", "heads", "heads softmax", (4, 2, 2), (2, 3, 2), width=3),
    attention_gradient("attention", "bias", "broadcast softmax", (2, 3, 3), (2, 2, 3), bias=(3, 2), wrt="q k v bias", width=3),
    attention_gradient("attention", "empty-row", "mask-row mask", (3, 5), (4, 5), mask=NOTHING, bias=(3, 4), wrt="q k v bias", width=3),
    attention_gradient("attention", "sinks", "sinks softmax", (2, 3, 4), (2, 4, 4), sinks=2, wrt="q k v sinks", bits=24, width=3),
    attention_gradient("attention", "sinks-grouped", "sinks broadcast heads", (4, 2, 2), (2, 3, 2), sinks=4, wrt="q k v sinks",
               scale=0.5, width=3),
    attention_gradient("attention", "sinks-empty-row", "sinks mask-row mask", (3, 5), (4, 5), mask=NOTHING, sinks=1, wrt="q k v sinks", width=3),
    attention_gradient("attention", "strided", "non-contiguous softmax", (2, 2, 4), (2, 3, 4), scale=0.5, width=3),
    attention_gradient("attention", "one-key", "mask unused", (2, 2), (3, 2), "one key each: no gradient of queries, keys and bias",
               mask=ONE, bias=(2, 3), wrt="q k v bias", width=3),
)  # fmt: skip

PROMPT = ((0, 3, 9), (1, 257, 2), (4, 0, 7))
IMAGE: dict[str, Any] = {"dims": [2, 4, 2], "base": 100.0, "allocation": "own"}
AXES = (
    gradient("mrope", "half", "sign layout", {"x": reals("mrope-half", 3, 10), "positions": PROMPT}, {"out": (3, 10)},
          sections=[1, 2, 2], arrangement="chunked", layout="half", base=10000.0),
    gradient("mrope", "interleaved", "sign layout tail gain", {"x": reals("mrope-interleaved", 2, 3, 9), "positions": PROMPT},
          {"out": (2, 3, 9)}, sections=[2, 1, 1], arrangement="interleaved", layout="interleaved", base=500.0,
          scaling=YaRN(4, 64)),
    gradient("axial_rope", "by-axis", "sign layout tail", {"x": reals("axial-by-axis", 3, 9), "positions": PROMPT},
          {"out": (3, 9)}, layout="half_by_axis", arrangement="chunked", **IMAGE),
    gradient("axial_rope", "inverse", "inverse layout tail", {"x": reals("axial-inverse", 3, 9), "positions": PROMPT},
          {"out": (3, 9)}, layout="interleaved", arrangement="round_robin", inverse=True, **IMAGE),
    gradient("axial_table", "chunked", "angle", {"positions": PROMPT, "inv_freq": np.asarray((1.0, 0.5, 0.125, 0.25))},
          {"cos": (3, 4), "sin": (3, 4)}, sections=[1, 2, 1], arrangement="chunked"),
    gradient("axial_table", "ernie", "angle gain", {"positions": PROMPT, "inv_freq": np.asarray((0.75, 0.375, 0.25, 0.0625, 1.5))},
          {"cos": (3, 5), "sin": (3, 5)}, sections=[1, 2, 2], arrangement="ernie", attention_factor=1.25),
    gradient("mixed_table", "shared", "angle", {"positions": PROMPT[:2], "frequencies": reals("mixed-shared", 2, 4) / 4},
          {"cos": (3, 4), "sin": (3, 4)}),
    gradient("mixed_table", "heads", "angle broadcast", {"positions": PROMPT, "frequencies": reals("mixed-heads", 3, 2, 1, 2) / 4},
          {"cos": (2, 3, 2), "sin": (2, 3, 2)}),
    gradient("mixed_rope", "shared", "sign layout angle broadcast", {"x": reals("mixed-x", 2, 3, 6), "positions": PROMPT[:2],
          "frequencies": reals("mixed-s", 2, 3) / 4}, {"out": (2, 3, 6)}, layout="interleaved"),
    gradient("mixed_rope", "inverse", "inverse tail angle", {"x": reals("mixed-i", 2, 3, 5), "positions": PROMPT,
          "frequencies": reals("mixed-h", 3, 2, 1, 2) / 4}, {"out": (2, 3, 5)}, layout="half", inverse=True),
    gradient("liere_rotations", "shared", "angle", {"positions": PROMPT[:2], "generators": reals("liere-shared", 2, 1, 3, 3) / 8},
          {"out": (3, 1, 3, 3)}),
    gradient("liere_rotations", "heads", "angle broadcast", {"positions": PROMPT[:2],
          "generators": reals("liere-heads", 2, 2, 1, 1, 2, 2) / 8}, {"out": (2, 3, 1, 2, 2)}),
    gradient("liere", "shared", "sign angle broadcast", {"x": reals("liere-x", 3, 4), "positions": PROMPT[:2],
          "generators": reals("liere-s", 2, 2, 2, 2) / 8}, {"out": (3, 4)}),
    gradient("liere", "inverse", "inverse tail angle", {"x": reals("liere-i", 3, 4), "positions": PROMPT[:2],
          "generators": reals("liere-h", 2, 1, 3, 3) / 16}, {"out": (3, 4)}, inverse=True),
    gradient("cayley", "plain", "term", {"skew": reals("cayley-plain", 3, 3) / 8}, {"out": (3, 3)}),
    gradient("cayley", "heads", "term bits", {"skew": reals("cayley-heads", 2, 2, 2, bits=24) / 8}, {"out": (2, 2, 2)}, bits=24),
    gradient("cayley_string", "product", "sign angle term", {"x": reals("string-x", 3, 3), "positions": PROMPT[:2],
          "skew": reals("string-s", 3, 3) / 8, "frequencies": reals("string-f", 2, 1) / 4}, {"out": (3, 3)}, form="product"),
    gradient("cayley_string", "conjugate", "sign layout term broadcast", {"x": reals("string-y", 2, 2, 2),
          "positions": ((0, 3), (1, 257)), "skew": reals("string-t", 2, 1, 2, 2) / 8,
          "frequencies": reals("string-g", 2, 1) / 4}, {"out": (2, 2, 2)}, form="conjugate"),
    gradient("circulant_string", "shared", "sign angle broadcast", {"x": reals("circulant-x", 3, 3), "positions": PROMPT[:2],
          "coefficients": reals("circulant-s", 2, 1, 3) / 8}, {"out": (3, 3)}),
    gradient("circulant_string", "inverse", "inverse tail angle", {"x": reals("circulant-i", 3, 5), "positions": PROMPT[:2],
          "coefficients": reals("circulant-h", 2, 1, 4) / 8}, {"out": (3, 5)}, inverse=True),
    gradient("permute_qk_weights", "half", "layout", {"weight": reals("permute-half", 12, 3)}, {"out": (12, 3)}, heads=2,
          source="interleaved", target="half"),
    gradient("permute_qk_weights", "partial", "layout tail", {"weight": reals("permute-partial", 22)}, {"out": (22,)}, heads=2,
          rotary_dim=8, source="half", target="interleaved"),
)  # fmt: skip

XPOS = tuple(
    gradient("xpos", name, flags, {"x": reals("xpos" + name, *shape), "positions": positions}, {"out": shape}, role=role,
          layout=layout, base=10000.0, **params)
    for name, flags, shape, positions, role, layout, params in (
        ("query", "sign layout gain", (2, 3, 8), (0, 4, 9), "query", "half", {"centre": 4, "scale_base": 16.0}),
        ("key", "sign layout gain", (3, 6), (100, 260, 7), "key", "interleaved", {"centre": 130}),
        ("partial", "tail gain", (2, 7), (3, 11), "key", "interleaved_to_half", {"centre": 1, "rotary_dim": 4, "gamma": 1.5}),
    )
)  # fmt: skip

POPE = (
    gradient("pope", "query", "angle term", {"x": reals("pope-query", 2, 3, 3), "positions": (0, 4, 9)}, {"out": (2, 3, 6)},
          layout="cos_sin", base=10000.0),
    gradient("pope", "key", "broadcast angle clip", {"x": 4 * reals("pope-key", 3, 4), "positions": (100, 260, 7),
          "phases": np.asarray((-1.25, -7.0, 0.5, -5.0))}, {"out": (3, 8)}, "phases of two lanes are clamped: no gradient",
          layout="interleaved", base=500.0),
    gradient("pope", "heads", "broadcast heads", {"x": reals("pope-heads", 2, 2, 2, 3), "positions": (3, 8),
          "phases": np.asarray((((-1.5, -2.0, -0.25),), ((-3.0, -0.75, -6.0),)))}, {"out": (2, 2, 2, 6)},
          layout="cos_sin", base=100.0),
)  # fmt: skip

FOPE = tuple(
    gradient("fope", name, flags, {"x": reals("fope" + name, *shape), "positions": positions,
          **{n: reals(name + n, *mix) / 4 for n in ("cos_mix", "sin_mix")}}, {"out": shape}, base=500.0)
    for name, flags, shape, positions, mix in (
        ("heads", "sign layout angle", (2, 2, 6), (1, 40), (2, 2, 2)),
        ("shared", "heads broadcast", (2, 2, 4), (3, 9), (1, 2, 1)),
        ("one", "broadcast angle", (2, 3, 4), (5, 0, 2), (2, 2)),
    )
)  # fmt: skip


def score_gradients(op: str, options: dict[str, Any]) -> Iterator[Case]:
    """Yield gradients of the scores of a length extension."""

    def case(name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], places: tuple[Any, Any], **params: Any) -> Case:
        inputs: dict[str, Any] = {n: reals(op + name + n, *shape) / 4 for n, shape in (("q", q), ("k", k))}
        inputs |= dict(zip(("q_positions", "k_positions"), places, strict=True))
        return gradient(op, name, flags, inputs, {"out": (*q[:-1], k[-2])}, **options, **params)

    yield case("half", "sign heads", (2, 3, 4), (1, 4, 4), ((10, 23, 14), (0, 6, 9, 10)), layout="half", base=10000.0)
    yield case(
        "interleaved",
        "layout tail gain",
        (2, 2, 7),
        (2, 3, 7),
        ((30, 13), (12, 0, 7)),
        layout="interleaved",
        base=500.0,
        rotary_dim=6,
        scaling=YaRN(4, 16),
    )


def inside_gradient(op: str, name: str, flags: str, shapes: str, places: tuple[Any, Any], out: tuple[int, ...], **params: Any) -> Case:
    """Return a case of RoPE inside another form of attention; `shapes` are of its arrays, as in "q 2,6"."""
    inputs: dict[str, Any] = {
        n: reals(op + name + n, *map(int, sizes.split(","))) / 4 for n, sizes in (part.split() for part in shapes.split(";"))
    }
    inputs |= {"q_positions": places[0], "k_positions": places[1]}
    return gradient(op, name, flags, inputs, {"out": out}, **{"base": 10000.0, **params})


ROTATED = (
    inside_gradient("rotated_values", "half", "sign layout", "weights 2,3;v 3,4", ((7, 1), (0, 2, 300)), (2, 4), layout="half"),
    inside_gradient("rotated_values", "trailing", "tail lanes heads gain", "weights 2,2,3;v 1,3,5", ((7, 1), (0, 2, 9)), (2, 2, 5),
             layout="interleaved", rotary_dim=2, lanes="trailing", scaling=YaRN(4, 64)),
    inside_gradient("rotated_values", "strided", "non-contiguous sign", "weights 2,2,3;v 2,3,4", ((7, 1), (0, 2, 9)), (2, 2, 4),
             layout="interleaved_to_half"),
    inside_gradient("mla_logits", "half", "sign scale broadcast", "q_nope 2,2,3;q_rope 2,2,4;k_nope 2,3,3;k_rope 3,4",
             ((7, 1), (0, 2, 300)), (2, 2, 3), layout="half"),
    inside_gradient("mla_logits", "yarn", "layout gain scale", "q_nope 2,2,1;q_rope 2,2,4;k_nope 2,2,1;k_rope 2,4", ((7, 1), (0, 2)),
             (2, 2, 2), layout="interleaved", scaling=YaRN(4, 64), scale=0.375),
    inside_gradient("rotary_linear_attention", "all", "sign term", "q 2,4;k 3,4;v 3,2", ((7, 1), (0, 2, 9)), (2, 2), layout="half",
             causal=False),
    inside_gradient("rotary_linear_attention", "causal", "layout term mask unused", "q 3,2;k 3,2;v 3,3", ((2, 0, 1), (0, 1, 5)),
             (3, 3), layout="interleaved", causal=True),
    inside_gradient("rotary_linear_attention", "unseen", "mask mask-row", "q 2,4;k 3,4;v 3,2", ((7, 0), (1, 2, 9)), (2, 2),
             layout="half", causal=True),
)  # fmt: skip


CASES: tuple[Case, ...] = (
    *ROTATED,
    *XPOS,
    *POPE,
    *FOPE,
    *AXES,
    *ROTATIONS,
    *TABLES,
    *shaw_gradients("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}, "qk"),
    *shaw_gradients("shaw_values", {"weights": "qk", "v": "kd", "value_table": "nd"}, "qd"),
    *ATTENTION,
    *score_gradients("rerope", {"window": 4}),
    *score_gradients("leaky_rerope", {"window": 4, "factor": 3}),
    *score_gradients("self_extend", {"group": 3, "window": 4, "shift": "floor"}),
    *score_gradients("dual_chunk", {"chunk_size": 9, "local_size": 3}),
    *score_gradients("streaming_llm", {"sinks": 2, "window": 4, "counting": "with_query"}),
)

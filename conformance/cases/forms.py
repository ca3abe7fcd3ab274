"""
Cases of forms of input: arrays that are views, and sizes 1 and 0 on every axis where they make sense.

The flags non-contiguous and broadcast-view say how the checker makes the arrays, in libraries whose arrays have strides: the
first as parts of wider rows whose leading axes are stored last first (as queries and keys are that come out of one product),
the second with a stride of 0 on axes, except the last, along which the values do not change.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag
from .making import cases_of
from .numbers import floats

FLAGS = {
    "non-contiguous": Flag("a view read as if its values lay one after another", "TileOPs #492, flash-attention #355"),
    "broadcast-view": Flag("a view with a stride of 0 read past its one row", "TransformerEngine (ROCm) #623"),
    "batch-one": Flag("a batch of one squeezed away, or stretched along another axis", "DeepSpeed #2782"),
    "length-one": Flag("one position, query or key handled as none, or as a square", "MLX #1340, x-transformers 74f241d"),
    "length-zero": Flag("no values: a crash or a wrong shape"),
}

NONE = np.zeros(0, dtype=np.int64)
ROTARY: dict[str, Any] = {"layout": "half", "base": 10000.0}
MIXED: dict[str, Any] = {"layout": "interleaved", "base": 500000.0}
ROLE: dict[str, Any] = {"role": "key", "centre": 7, "scale_base": 40.0}
SINES: dict[str, Any] = {"dim": 6, "layout": "interleaved"}
LINEAR: dict[str, Any] = {"heads": 6, "form": "distance"}
BUCKETS: dict[str, Any] = {"bidirectional": True, "max_distance": 20}
WINDOW: dict[str, Any] = {"left": 2, "right": 1, "order": "key_minus_query"}
FREQUENCIES = (1.0, 0.1171875, 0.013671875, 0.00390625)
SCORES, VALUES = ("q", "k", "key_table"), ("weights", "v", "value_table")


def form(op: str, name: str, flags: str, inputs: dict[str, Any], params: dict[str, Any], comment: str = "") -> Case:
    """Return a case of one form of input."""
    return cases_of(op)(f"forms/{name}", flags, params, inputs, comment)


def reals(name: str, *shape: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """Return numbers of the case's own; an axis given as a negative size repeats one row as often."""
    rows = floats(*(1 if n < 0 else n for n in shape), seed=crc32(name.encode()), bits=bits)
    return np.broadcast_to(rows, tuple(abs(n) for n in shape)).copy()


def places(op: str, argument: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return what an operation of one array of positions is asked, besides which it may have a table."""

    def case(name: str, flags: str, positions: Any) -> Case:
        return form(op, name, flags, {argument: positions, **table}, params)

    return (
        case("strided", "non-contiguous", ((3, 8, 1, 7), (0, 5, 2, 6), (4, 8, 0, 2))),
        case("strided-vector", "non-contiguous", (0, 5, 2, 8, 7)),
        case("expanded", "broadcast-view", ((3, 8, 1, 7, 0),) * 2),
        case("batch-one", "batch-one", ((4, 0, 8, 7, 2),)),
        case("length-one", "length-one batch-one", ((8,),)),
        case("length-zero", "length-zero", np.zeros((2, 0), dtype=np.int64)),
    )


def pairs(op: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return what a bias of query and key positions is asked."""

    def of(q: Any, k: Any) -> dict[str, Any]:
        return {"q_positions": q, "k_positions": k, **table}

    rows = ((4, 5, 300), (26, 31, 2)), ((0, 2, 3, 9, 40), (25, 30, 28, 3, 1))
    return (
        form(op, "strided", "non-contiguous", of(*rows), params),
        form(op, "strided-vector", "non-contiguous", of((7, 2, 40), (0, 3, 1, 9, 20)), params),
        form(op, "expanded", "broadcast-view", of(((3, 8),) * 2, ((0, 9, 1, 5),) * 2), params),
        form(op, "batch-one", "batch-one", of(((6, 2, 11),), ((0, 4, 7, 30),)), params),
        form(op, "length-one", "length-one", of((7,), (3,)), params, "one query and one key"),
        form(op, "one-key", "length-one", of((2, 12, 5), (4,)), params),
        form(op, "no-key", "length-zero", of((3, 4), NONE), params),
    )


class Rotated(NamedTuple):
    """A form of input of a rotation: the shape of x, positions, layout and base."""

    name: str
    flags: str
    x: tuple[int, ...]
    positions: Any
    options: dict[str, Any]
    comment: str = ""


ROTATED_ROWS = (((0, 3, 9, 4),), ((257, 258, 259, 260),))
ROTATED_FORMS = (
    Rotated("strided", "non-contiguous", (2, 3, 4, 10), ROTATED_ROWS, ROTARY, "queries of a fused product, heads before tokens"),
    Rotated("strided-interleaved", "non-contiguous", (2, 3, 4, 6), ROTATED_ROWS, MIXED),
    Rotated("strided-rows", "non-contiguous", (5, 14), (0, 7, 2, 3, 1), {**ROTARY, "layout": "interleaved_to_half"}),
    Rotated("expanded", "broadcast-view", (2, -3, 4, 10), (((0, 3, 9, 4),),) * 2, ROTARY, "one head stands for three"),
    Rotated("expanded-interleaved", "broadcast-view", (-3, 2, 5, 6), (((1, 4, 300, 0, 2),),) * 3, MIXED),
    Rotated("batch-one", "batch-one", (1, 3, 5, 6), (((0, 7, 2, 3, 1),),), ROTARY),
    Rotated("batch-one-interleaved", "batch-one", (1, 2, 3, 10), (((5, 6, 7),),), MIXED),
    Rotated("length-one", "length-one batch-one", (1, 3, 1, 12), (((300,),),), ROTARY),
    Rotated("length-zero", "length-zero", (3, 2, 0, 6), NONE, MIXED),
    Rotated("no-head", "length-zero", (2, 0, 3, 6), (0, 1, 2), ROTARY),
)


def rotations(op: str, **options: Any) -> Iterator[Case]:
    """Yield the forms of x for a rotation by positions, with further options."""
    for rotated in ROTATED_FORMS:
        inputs = {"x": reals(op + rotated.name, *rotated.x), "positions": rotated.positions}
        yield form(op, rotated.name, rotated.flags, inputs, rotated.options | options, rotated.comment)


def _apply_forms() -> Iterator[Case]:
    """Yield the forms of x for a rotation by a table."""
    for rotated in ROTATED_FORMS:
        name = "apply_rope" + rotated.name
        x, rows = reals(name, *rotated.x), np.shape(rotated.positions)
        signs = tuple(-n if "expanded" in rotated.name and axis == 0 else n for axis, n in enumerate(rows))
        tables = {n: reals(name + n, *signs, x.shape[-1] // 2) / 4 for n in ("cos", "sin")}
        options = {"layout": rotated.options["layout"]}
        yield form("apply_rope", rotated.name, rotated.flags, {"x": x, **tables}, options, rotated.comment)


def _pope_forms() -> Iterator[Case]:
    """Yield the forms of x."""
    for rotated in ROTATED_FORMS:
        layout = "cos_sin" if rotated.options["layout"] == "half" else "interleaved"
        inputs = {"x": reals("pope" + rotated.name, *rotated.x), "positions": rotated.positions}
        options = rotated.options | {"layout": layout}
        yield form("pope", rotated.name, rotated.flags, inputs, options, rotated.comment)


def shaw_forms(op: str, axes: dict[str, str]) -> tuple[Case, ...]:
    """Return the forms of arrays that have these axes after the leading ones: queries, keys, rows of the table, lanes."""

    def case(name: str, flags: str, lead: tuple[int, ...], q: Any, k: Any, comment: str = "") -> Case:
        sizes = {"q": np.shape(q)[-1], "k": np.shape(k)[-1], "n": 4, "d": 6}
        shapes = {n: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for n, letters in axes.items()}
        arrays = {n: reals(op + name + n, *shape) / 8 for n, shape in shapes.items()}
        return form(op, name, flags, {**arrays, "q_positions": q, "k_positions": k}, WINDOW, comment)

    return (
        case("strided", "non-contiguous", (2, 3), (4, 1, 7), (0, 3, 5, 2, 9)),
        case("strided-rows", "non-contiguous", (2,), ((4, 5, 6), (60, 61, 62)), ((0, 5, 6, 3), (62, 56, 61, 60))),
        case("expanded", "broadcast-view", (-3, 2), (4, 1, 7), (0, 3, 5, 2), "one row stands for a batch of three"),
        case("batch-one", "batch-one", (1, 2), (3, 6, 0), (1, 2, 5, 9)),
        case("length-one", "length-one", (2,), (5,), (4,), "one query and one key"),
        case("one-key", "length-one", (3,), (1, 6, 4, 0), (5,)),
    )


def attention_forms(op: str, *, values: bool) -> tuple[Case, ...]:
    """Return the forms of queries and keys; with `values` also of values, masks and sinks."""

    def case(
        name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *,
        bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None,
    ) -> Case:  # fmt: skip
        shapes = {"q": q, "k": k} | ({"v": (*k[:-1], 5)} if values else {})
        inputs: dict[str, Any] = {n: reals(op + name + n, *shape) for n, shape in shapes.items()}
        inputs["q"] = inputs["q"] / 4
        if bias:
            inputs["bias"] = reals(op + name + "bias", *bias) / 4
        if mask is not None and values:
            inputs["mask"] = mask
        if sinks and values:
            inputs["sinks"] = reals(op + name + "sinks", sinks)
        return form(op, name, flags, inputs, {}, comment)

    holes = np.asarray([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]) > 0
    return (
        case("strided", "non-contiguous", (2, 3, 4, 10), (2, 3, 5, 10), "of a fused product, heads before tokens"),
        case("strided-biased", "non-contiguous", (2, 3, 6), (2, 4, 6), bias=(2, 3, 4), mask=holes, sinks=2),
        case("expanded", "broadcast-view", (2, 3, 4, 6), (2, -3, 5, 6), "one key head stands for three"),
        case("expanded-biased", "broadcast-view", (2, 3, 6), (2, 4, 6), bias=(-2, 3, 4), mask=np.stack([holes] * 2)),
        case("batch-one", "batch-one", (1, 2, 3, 6), (1, 2, 4, 6), bias=(1, 2, 3, 4), mask=holes),
        case("length-one", "length-one batch-one", (1, 3, 1, 6), (1, 3, 1, 6), "one query and one key", sinks=3),
        case("no-head", "length-zero", (2, 0, 3, 6), (2, 0, 4, 6)),
    )


def _fope_forms() -> tuple[Case, ...]:
    """Return the forms of input."""

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, mix: tuple[int, ...]) -> Case:
        arrays = {n: reals("fope" + name + n, *shape) / 4 for n, shape in (("cos_mix", mix), ("sin_mix", mix))}
        return form("fope", name, flags, {"x": reals("fope" + name, *x), "positions": positions, **arrays}, {"base": 500.0})

    return (
        case("strided", "non-contiguous", (2, 3, 4, 6), (((0, 3, 9, 4),), ((257, 258, 259, 260),)), (3, 3, 2)),
        case("expanded", "broadcast-view", (2, -3, 4, 6), (((0, 3, 9, 4),),) * 2, (-3, 2, 3)),
        case("batch-one", "batch-one", (1, 3, 5, 6), (0, 7, 2, 3, 1), (1, 2, 2)),
        case("length-one", "length-one batch-one", (1, 3, 1, 8), (300,), (3, 4, 2)),
        case("length-zero", "length-zero", (3, 2, 0, 6), NONE, (2, 3, 1)),
    )


def score_forms(op: str, params: dict[str, Any]) -> tuple[Case, ...]:
    """Return the forms of queries and keys for the scores of a length extension."""

    def case(name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], places: tuple[Any, Any], comment: str = "") -> Case:
        arrays = {n: reals(op + name + n, *shape) / 2 for n, shape in (("q", q), ("k", k))}
        positions = dict(zip(("q_positions", "k_positions"), places, strict=True))
        return form(op, name, flags, arrays | positions, params | ROTARY, comment)

    rows: tuple[Any, Any] = (((14, 15, 16),), ((60, 61, 62),)), (((0, 5, 9, 12),), ((59, 51, 56, 40),))
    return (
        case("strided", "non-contiguous", (2, 2, 3, 6), (2, 1, 4, 6), rows, "heads before tokens"),
        case("expanded", "broadcast-view", (2, 3, 4), (-2, 4, 4), ((30, 12, 19), (12, 0, 7, 3)), "one key head stands for two"),
        case("batch-one", "batch-one", (1, 2, 3, 6), (1, 2, 4, 6), (rows[0][:1], rows[1][:1])),
        case("length-one", "length-one batch-one", (1, 2, 1, 6), (1, 2, 1, 6), ((25,), (3,)), "one query and one key"),
        case("length-zero", "length-zero", (2, 0, 6), (2, 4, 6), (NONE, (0, 1, 2, 3)), "no query"),
    )


EXTENSIONS: dict[str, dict[str, Any]] = {
    "rerope": {"window": 4},
    "leaky_rerope": {"window": 4, "factor": 3},
    "self_extend": {"group": 3, "window": 4, "shift": "floor"},
    "dual_chunk": {"chunk_size": 9, "local_size": 3},
    "streaming_llm": {"sinks": 2, "window": 4, "counting": "with_query"},
}
SECTIONS: dict[str, Any] = {"sections": [1, 2, 2], "arrangement": "chunked"}
TURNING: dict[str, Any] = {**SECTIONS, "layout": "half", "base": 10000.0}
PLACES = ((3, 8, 1, 7), (0, 5, 2, 6), (4, 9, 0, 2))


AXIAL: dict[str, Any] = {
    "dims": [2, 4, 4],
    "arrangement": "chunked",
    "layout": "half_by_axis",
    "allocation": "own",
    "base": 100.0,
}


class Placed(NamedTuple):
    """A form of positions of several axes, and the shape of x."""

    name: str
    flags: str
    x: tuple[int, ...]
    positions: Any
    comment: str = ""


def placed_forms() -> tuple[Placed, ...]:
    """Return the forms of positions of three axes."""
    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        Placed("strided", "non-contiguous", (2, 3, 4, 10), rows, "heads before tokens"),
        Placed("strided-rows", "non-contiguous", (4, 12), np.asarray(PLACES)),
        Placed("expanded", "broadcast-view", (-2, 4, 10), np.asarray([[row, row] for row in PLACES]), "one row stands for two"),
        Placed("batch-one", "batch-one", (1, 3, 4, 10), rows[:, :1]),
        Placed("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2]),
        Placed("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0), dtype=np.int64)),
    )


def placed_rotations(op: str, options: dict[str, Any]) -> Iterator[Case]:
    """Yield the forms of x and positions for a rotation over several axes."""
    for placed in placed_forms():
        inputs = {"x": reals(op + placed.name, *placed.x), "positions": placed.positions}
        yield form(op, placed.name, placed.flags, inputs, options, placed.comment)


def _table_forms() -> Iterator[Case]:
    """Yield the forms of positions."""
    for placed in placed_forms():
        inputs = {"positions": placed.positions, "inv_freq": np.asarray((*FREQUENCIES, 0.5))}
        yield form("axial_table", placed.name, placed.flags, inputs, SECTIONS, placed.comment)


ROWS = ((4, 1, 7), (260, 257, 258)), ((0, 3, 5, 2), (256, 260, 255, 257))


def inside_forms(op: str, axes: dict[str, str], options: dict[str, Any], *, by_head: bool = True) -> tuple[Case, ...]:
    """Return the forms of arrays that have these axes: heads, queries, keys, widths; positions have one for heads, or not."""

    def case(
        name: str, flags: str, lead: tuple[int, ...], places: tuple[Any, Any], comment: str = "", *, heads: int = 2
    ) -> Case:
        sizes = {"h": heads, "q": np.shape(places[0])[-1], "k": np.shape(places[1])[-1], "d": 6, "e": 5}
        arrays = {n: reals(op + name + n, *lead, *(sizes[a] for a in letters)) / 8 for n, letters in axes.items()}
        if "weights" in arrays:
            arrays["weights"] = np.abs(arrays["weights"])
        q, k = (np.asarray(p)[:, None] if np.ndim(p) > 1 and by_head else np.asarray(p) for p in places)
        return form(op, name, flags, {**arrays, "q_positions": q, "k_positions": k}, options, comment)

    return (
        case("strided", "non-contiguous", (2,), ((4, 1, 7), (0, 3, 5, 2))),
        case("strided-rows", "non-contiguous", (2,), ROWS),
        case("expanded", "broadcast-view", (-3,), ((4, 1, 7), (0, 3, 5, 2)), "one row stands for a batch of three"),
        case("batch-one", "batch-one", (1,), ((4, 1, 7), (0, 3, 5, 2))),
        case("length-one", "length-one", (2,), ((5,), (4,)), "one query and one key", heads=3),
        case("one-key", "length-one", (3,), ((1, 6, 4), (5,))),
        case("no-head", "length-zero", (2,), ((3, 4), (0, 1, 2)), heads=0),
    )


def mixed_forms(op: str, *, x: bool = True, **options: Any) -> tuple[Case, ...]:
    """Return the forms of x, if there is one, of positions and of frequencies on all axes."""

    def case(
        name: str, flags: str, shape: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = ""
    ) -> Case:
        arrays: dict[str, Any] = {"x": reals(op + name, *shape)} if x else {}
        arrays["positions"] = np.asarray(positions, dtype=np.int64)
        arrays["frequencies"] = reals(op + name + "frequencies", 3, *heads, shape[-1] // 2) / 4
        return form(op, name, flags, arrays, options, comment)

    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        case("strided", "non-contiguous", (2, 3, 4, 6), rows, (1, 3, 1), "heads before tokens"),
        case("expanded", "broadcast-view", (-2, 4, 10), [[row, row] for row in PLACES], (), "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 6), rows[:, :1], (1, 3, 1)),
        case("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0)), (2, 1)),
    )


def matrix_forms(
    op: str, parameter: str, last: tuple[int, ...], *, x: bool = True, skew: bool = False, **options: Any
) -> tuple[Case, ...]:
    """Return the forms of x, if there is one, and of a learned parameter whose last axes are of one block of all lanes."""

    def case(
        name: str, flags: str, shape: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = ""
    ) -> Case:
        arrays: dict[str, Any] = {"x": reals(op + name, *shape)} if x else {}
        arrays["positions"] = np.asarray(positions, dtype=np.int64)
        if skew:
            arrays["skew"] = reals(op + name + "skew", *((*shape[:-2], 1) if heads else ()), shape[-1], shape[-1]) / 8
        arrays[parameter] = reals(op + name + parameter, 2, *heads, *last) / 8
        return form(op, name, flags, arrays, options, comment)

    rows = np.asarray([[row[:2]] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)  # axes, images, 1, tokens
    return (
        case("strided", "non-contiguous", (2, 3, 4, 3), rows, (1, 3, 1), "heads before tokens"),
        case("expanded", "broadcast-view", (-2, 4, 3), [[row, row] for row in PLACES[:2]], (),
             "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 3), rows[:, :1], (1, 3, 1)),
        case("length-one", "length-one batch-one", (1, 3, 1, 3), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", "length-zero", (2, 0, 3), np.zeros((2, 0)), (2, 1)),
    )  # fmt: skip


def _cayley_forms() -> tuple[Case, ...]:
    """Return the forms of its parameter."""

    def case(name: str, flags: str, *shape: int) -> Case:
        return form("cayley", name, flags, {"skew": reals("cayley" + name, *shape) / 8}, {})

    return (
        case("strided", "non-contiguous", 2, 3, 3),
        case("expanded", "broadcast-view", -2, 4, 4),
        case("batch-one", "batch-one", 1, 3, 3),
        case("length-zero", "length-zero", 2, 0, 3, 3),
    )


def _weight_forms() -> tuple[Case, ...]:
    """Return the forms of weights."""

    def case(name: str, flags: str, weight: tuple[int, ...], heads: int, **params: Any) -> Case:
        options = {"heads": heads, "source": "interleaved", "target": "half", **params}
        return form("permute_qk_weights", name, flags, {"weight": reals("weights" + name, *weight)}, options)

    return (
        case("strided", "non-contiguous", (24, 5), 3),
        case("strided-back", "non-contiguous", (20, 3), 2, source="half", target="interleaved"),
        case("expanded", "broadcast-view", (24, -3, 2), 2),
        case("batch-one", "batch-one", (12, 1), 1),
        case("length-one", "length-one", (16, 1), 2),
        case("length-zero", "length-zero", (16, 0), 2, rotary_dim=6),
    )


CASES: tuple[Case, ...] = (
    *places("sinusoidal", "positions", SINES),
    *places("learned", "positions", {"offset": 2}, table=reals("learned", 11, 6)),
    *places("rope_table", "positions", {"attention_factor": 1.25}, inv_freq=np.asarray(FREQUENCIES)),
    *_apply_forms(),
    *rotations("rope"),
    *rotations("xpos", **ROLE),
    *_pope_forms(),
    *_fope_forms(),
    *places("xpos_scales", "positions", {"dim": 6, **ROLE}),
    *pairs("alibi", LINEAR),
    *places("t5_buckets", "relative_positions", BUCKETS),
    *pairs("t5_bias", BUCKETS, table=reals("t5_bias", 16, 3)),
    *shaw_forms("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}),
    *shaw_forms("shaw_values", {"weights": "qk", "v": "kd", "value_table": "nd"}),
    *attention_forms("attention_logits", values=False),
    *attention_forms("attention", values=True),
    *_table_forms(),
    *placed_rotations("mrope", TURNING),
    *placed_rotations("axial_rope", AXIAL),
    *inside_forms("rotated_values", {"weights": "hqk", "v": "hkd"}, ROTARY),
    *inside_forms("mla_logits", {"q_nope": "hqe", "q_rope": "hqd", "k_nope": "hke", "k_rope": "kd"}, ROTARY, by_head=False),
    *inside_forms("rotary_linear_attention", {"q": "hqd", "k": "hkd", "v": "hke"}, {**ROTARY, "causal": False}),
    *mixed_forms("mixed_table", x=False),
    *mixed_forms("mixed_rope", layout="interleaved"),
    *matrix_forms("liere_rotations", "generators", (1, 2, 2), x=False),
    *matrix_forms("liere", "generators", (1, 3, 3)),
    *matrix_forms("cayley_string", "frequencies", (1,), skew=True, form="product"),
    *matrix_forms("circulant_string", "coefficients", (1, 3)),
    *_cayley_forms(),
    *_weight_forms(),
    *pairs("rerope_distances", {"window": 4}),
    *score_forms("rerope", {"window": 4}),
    *pairs("leaky_rerope_distances", {"window": 4, "factor": 3}),
    *score_forms("leaky_rerope", {"window": 4, "factor": 3}),
    *pairs("self_extend_distances", {"group": 3, "window": 4, "shift": "floor"}),
    *score_forms("self_extend", {"group": 3, "window": 4, "shift": "floor"}),
    *pairs("dual_chunk_distances", {"chunk_size": 9, "local_size": 3}),
    *score_forms("dual_chunk", {"chunk_size": 9, "local_size": 3}),
    *pairs("streaming_llm_distances", {"sinks": 2, "window": 4, "counting": "with_query"}),
    *score_forms("streaming_llm", {"sinks": 2, "window": 4, "counting": "with_query"}),
)

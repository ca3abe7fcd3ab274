"""
Cases of forms of input: arrays that are views, and sizes 1 and 0 on every axis where they make sense.

The flags non-contiguous and broadcast-view say how the checker makes the arrays, in libraries whose arrays have strides: the
first as parts of wider rows whose leading axes are stored last first (as queries and keys are that come out of one product),
the second with a stride of 0 on axes, except the last, along which the values do not change.
"""

from typing import Any
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


def _case(op: str, name: str, flags: str, inputs: dict[str, Any], params: dict[str, Any], comment: str = "") -> Case:
    """Return a case of one call."""
    return cases_of(op)(f"forms/{name}", flags, params, inputs, comment)


def reals(name: str, *shape: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """Return numbers of the case's own; an axis given as a negative size repeats one row as often."""
    rows = floats(*(1 if n < 0 else n for n in shape), seed=crc32(name.encode()), bits=bits)
    return np.broadcast_to(rows, tuple(abs(n) for n in shape)).copy()


def places(op: str, argument: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return what an operation of one array of positions is asked, besides which it may have a table."""

    def case(name: str, flags: str, positions: Any) -> Case:
        return _case(op, name, flags, {argument: positions, **table}, params)

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
        _case(op, "strided", "non-contiguous", of(*rows), params),
        _case(op, "strided-vector", "non-contiguous", of((7, 2, 40), (0, 3, 1, 9, 20)), params),
        _case(op, "expanded", "broadcast-view", of(((3, 8),) * 2, ((0, 9, 1, 5),) * 2), params),
        _case(op, "batch-one", "batch-one", of(((6, 2, 11),), ((0, 4, 7, 30),)), params),
        _case(op, "length-one", "length-one", of((7,), (3,)), params, "one query and one key"),
        _case(op, "one-key", "length-one", of((2, 12, 5), (4,)), params),
        _case(op, "no-key", "length-zero", of((3, 4), NONE), params),
    )


def _rotate(op: str) -> tuple[Case, ...]:
    """Return what a rotation of x is asked: by tables, or by positions."""

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, params: dict[str, Any], comment: str = "") -> Case:
        array = reals(op + name, *x)
        if op == "pope":
            params = params | {"layout": "cos_sin" if params["layout"] == "half" else "interleaved"}
        if op in ("rope", "xpos", "pope"):
            return _case(
                op, name, flags, {"x": array, "positions": positions}, params | ROLE if op == "xpos" else params, comment
            )
        places = np.asarray(positions)
        signs = tuple(-n if "expanded" in name and axis == 0 else n for axis, n in enumerate(places.shape))
        tables = {n: reals(op + name + n, *signs, array.shape[-1] // 2) / 4 for n in ("cos", "sin")}
        return _case(op, name, flags, {"x": array, **tables}, {"layout": params["layout"]}, comment)

    rows = (((0, 3, 9, 4),), ((257, 258, 259, 260),))
    return (
        case("strided", "non-contiguous", (2, 3, 4, 10), rows, ROTARY, "queries of a fused product, heads before tokens"),
        case("strided-interleaved", "non-contiguous", (2, 3, 4, 6), rows, MIXED),
        case("strided-rows", "non-contiguous", (5, 14), (0, 7, 2, 3, 1), {**ROTARY, "layout": "interleaved_to_half"}),
        case("expanded", "broadcast-view", (2, -3, 4, 10), (((0, 3, 9, 4),),) * 2, ROTARY, "one head stands for three"),
        case("expanded-interleaved", "broadcast-view", (-3, 2, 5, 6), (((1, 4, 300, 0, 2),),) * 3, MIXED),
        case("batch-one", "batch-one", (1, 3, 5, 6), (((0, 7, 2, 3, 1),),), ROTARY),
        case("batch-one-interleaved", "batch-one", (1, 2, 3, 10), (((5, 6, 7),),), MIXED),
        case("length-one", "length-one batch-one", (1, 3, 1, 12), (((300,),),), ROTARY),
        case("length-zero", "length-zero", (3, 2, 0, 6), NONE, MIXED),
        case("no-head", "length-zero", (2, 0, 3, 6), (0, 1, 2), ROTARY),
    )


def _shaw(op: str, names: tuple[str, str, str]) -> tuple[Case, ...]:
    """Return what both operations of Shaw et al. are asked."""

    def case(name: str, flags: str, lead: tuple[int, ...], q: Any, k: Any, comment: str = "") -> Case:
        queries, keys, width = np.shape(q)[-1], np.shape(k)[-1], 6
        one = width if op == "shaw_scores" else keys
        shapes = ((*lead, queries, one), (*lead, keys, width), (4, width))
        arrays = {n: reals(op + name + n, *shape) / 8 for n, shape in zip(names, shapes, strict=True)}
        return _case(op, name, flags, {**arrays, "q_positions": q, "k_positions": k}, WINDOW, comment)

    return (
        case("strided", "non-contiguous", (2, 3), (4, 1, 7), (0, 3, 5, 2, 9)),
        case("strided-rows", "non-contiguous", (2,), ((4, 5, 6), (60, 61, 62)), ((0, 5, 6, 3), (62, 56, 61, 60))),
        case("expanded", "broadcast-view", (-3, 2), (4, 1, 7), (0, 3, 5, 2), "one row stands for a batch of three"),
        case("batch-one", "batch-one", (1, 2), (3, 6, 0), (1, 2, 5, 9)),
        case("length-one", "length-one", (2,), (5,), (4,), "one query and one key"),
        case("one-key", "length-one", (3,), (1, 6, 4, 0), (5,)),
    )


def _attention(op: str) -> tuple[Case, ...]:
    """Return what attention and its logits are asked."""

    def case(
        name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *,
        bias: tuple[int, ...] | None = None, mask: Any = None, sinks: int | None = None,
    ) -> Case:  # fmt: skip
        shapes = {"q": q, "k": k} | ({"v": (*k[:-1], 5)} if op == "attention" else {})
        inputs: dict[str, Any] = {n: reals(op + name + n, *shape) for n, shape in shapes.items()}
        inputs["q"] = inputs["q"] / 4
        if bias:
            inputs["bias"] = reals(op + name + "bias", *bias) / 4
        if mask is not None and op == "attention":
            inputs["mask"] = mask
        if sinks and op == "attention":
            inputs["sinks"] = reals(op + name + "sinks", sinks)
        return _case(op, name, flags, inputs, {}, comment)

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


def _fope() -> tuple[Case, ...]:
    """Return what FoPE is asked."""

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, mix: tuple[int, ...]) -> Case:
        arrays = {n: reals("fope" + name + n, *shape) / 4 for n, shape in (("cos_mix", mix), ("sin_mix", mix))}
        return _case("fope", name, flags, {"x": reals("fope" + name, *x), "positions": positions, **arrays}, {"base": 500.0})

    return (
        case("strided", "non-contiguous", (2, 3, 4, 6), (((0, 3, 9, 4),), ((257, 258, 259, 260),)), (3, 3, 2)),
        case("expanded", "broadcast-view", (2, -3, 4, 6), (((0, 3, 9, 4),),) * 2, (-3, 2, 3)),
        case("batch-one", "batch-one", (1, 3, 5, 6), (0, 7, 2, 3, 1), (1, 2, 2)),
        case("length-one", "length-one batch-one", (1, 3, 1, 8), (300,), (3, 4, 2)),
        case("length-zero", "length-zero", (3, 2, 0, 6), NONE, (2, 3, 1)),
    )


def _passes(op: str, params: dict[str, Any]) -> tuple[Case, ...]:
    """Return what the scores of a length extension are asked."""

    def case(name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], places: tuple[Any, Any], comment: str = "") -> Case:
        arrays = {n: reals(op + name + n, *shape) / 2 for n, shape in (("q", q), ("k", k))}
        positions = dict(zip(("q_positions", "k_positions"), places, strict=True))
        return _case(op, name, flags, arrays | positions, params | ROTARY, comment)

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


def _axes(op: str) -> tuple[Case, ...]:
    """Return what a rotation over several axes, or its table, is asked."""

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, comment: str = "") -> Case:
        places = np.asarray(positions, dtype=np.int64)
        if op == "axial_table":
            inv_freq = np.asarray((*FREQUENCIES, 0.5))
            return _case(op, name, flags, {"positions": places, "inv_freq": inv_freq}, SECTIONS, comment)
        params = AXIAL if op == "axial_rope" else TURNING
        return _case(op, name, flags, {"x": reals(op + name, *x), "positions": places}, params, comment)

    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        case("strided", "non-contiguous", (2, 3, 4, 10), rows, "heads before tokens"),
        case("strided-rows", "non-contiguous", (4, 12), PLACES),
        case("expanded", "broadcast-view", (-2, 4, 10), [[row, row] for row in PLACES], "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 10), rows[:, :1]),
        case("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2]),
        case("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0))),
    )


ROTATED = {  # the axes of every array but positions, after the leading ones: heads, queries, keys, widths
    "rotated_values": {"weights": "hqk", "v": "hkd"},
    "mla_logits": {"q_nope": "hqe", "q_rope": "hqd", "k_nope": "hke", "k_rope": "kd"},
    "rotary_linear_attention": {"q": "hqd", "k": "hkd", "v": "hke"},
}
ROWS = ((4, 1, 7), (260, 257, 258)), ((0, 3, 5, 2), (256, 260, 255, 257))


def _rotated(op: str) -> tuple[Case, ...]:
    """Return what RoPE inside other forms of attention is asked."""
    options = {**ROTARY, "causal": False} if op == "rotary_linear_attention" else ROTARY

    def case(
        name: str, flags: str, lead: tuple[int, ...], places: tuple[Any, Any], comment: str = "", *, heads: int = 2
    ) -> Case:
        sizes = {"h": heads, "q": np.shape(places[0])[-1], "k": np.shape(places[1])[-1], "d": 6, "e": 5}
        arrays = {n: reals(op + name + n, *lead, *(sizes[a] for a in axes)) / 8 for n, axes in ROTATED[op].items()}
        if "weights" in arrays:
            arrays["weights"] = np.abs(arrays["weights"])
        q, k = (np.asarray(p)[:, None] if np.ndim(p) > 1 and op != "mla_logits" else np.asarray(p) for p in places)
        return _case(op, name, flags, {**arrays, "q_positions": q, "k_positions": k}, options, comment)

    return (
        case("strided", "non-contiguous", (2,), ((4, 1, 7), (0, 3, 5, 2))),
        case("strided-rows", "non-contiguous", (2,), ROWS),
        case("expanded", "broadcast-view", (-3,), ((4, 1, 7), (0, 3, 5, 2)), "one row stands for a batch of three"),
        case("batch-one", "batch-one", (1,), ((4, 1, 7), (0, 3, 5, 2))),
        case("length-one", "length-one", (2,), ((5,), (4,)), "one query and one key", heads=3),
        case("one-key", "length-one", (3,), ((1, 6, 4), (5,))),
        case("no-head", "length-zero", (2,), ((3, 4), (0, 1, 2)), heads=0),
    )


def _mixed(op: str) -> tuple[Case, ...]:
    """Return what a rotation by given frequencies on all axes, or its table, is asked."""

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = "") -> Case:
        arrays: dict[str, Any] = {"positions": np.asarray(positions, dtype=np.int64)}
        arrays["frequencies"] = reals(op + name + "frequencies", 3, *heads, x[-1] // 2) / 4
        if op == "mixed_table":
            return _case(op, name, flags, arrays, {}, comment)
        return _case(op, name, flags, {"x": reals(op + name, *x), **arrays}, {"layout": "interleaved"}, comment)

    rows = np.asarray([[row] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)
    return (
        case("strided", "non-contiguous", (2, 3, 4, 6), rows, (1, 3, 1), "heads before tokens"),
        case("expanded", "broadcast-view", (-2, 4, 10), [[row, row] for row in PLACES], (), "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 6), rows[:, :1], (1, 3, 1)),
        case("length-one", "length-one batch-one", (1, 3, 1, 10), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", "length-zero", (2, 0, 10), np.zeros((3, 0)), (2, 1)),
    )


LEARNED: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {  # parameter and its last axes for one block of all lanes
    "liere_rotations": ("generators", (1, 2, 2), {}),
    "liere": ("generators", (1, 3, 3), {}),
    "cayley_string": ("frequencies", (1,), {"form": "product"}),
    "circulant_string": ("coefficients", (1, 3), {}),
}


def _matrices(op: str) -> tuple[Case, ...]:
    """Return what a rotation of many lanes by a learned matrix, or the matrix itself, is asked."""
    parameter, last, params = LEARNED[op]

    def case(name: str, flags: str, x: tuple[int, ...], positions: Any, heads: tuple[int, ...] = (), comment: str = "") -> Case:
        arrays: dict[str, Any] = {"positions": np.asarray(positions, dtype=np.int64)}
        if op != "liere_rotations":
            arrays = {"x": reals(op + name, *x), **arrays}
        if op == "cayley_string":
            arrays["skew"] = reals(op + name + "skew", *((*x[:-2], 1) if heads else ()), x[-1], x[-1]) / 8
        return _case(
            op, name, flags, {**arrays, parameter: reals(op + name + parameter, 2, *heads, *last) / 8}, params, comment
        )

    rows = np.asarray([[row[:2]] for row in (PLACES, PLACES[::-1])]).transpose(2, 0, 1, 3)  # axes, images, 1, tokens
    return (
        case("strided", "non-contiguous", (2, 3, 4, 3), rows, (1, 3, 1), "heads before tokens"),
        case("expanded", "broadcast-view", (-2, 4, 3), [[row, row] for row in PLACES[:2]], (),
             "one row stands for two"),
        case("batch-one", "batch-one", (1, 3, 4, 3), rows[:, :1], (1, 3, 1)),
        case("length-one", "length-one batch-one", (1, 3, 1, 3), rows[:, :1, :, 1:2], (1, 3, 1)),
        case("length-zero", "length-zero", (2, 0, 3), np.zeros((2, 0)), (2, 1)),
    )  # fmt: skip


def _cayley() -> tuple[Case, ...]:
    """Return what cayley is asked."""

    def case(name: str, flags: str, *shape: int) -> Case:
        return _case("cayley", name, flags, {"skew": reals("cayley" + name, *shape) / 8}, {})

    return (
        case("strided", "non-contiguous", 2, 3, 3),
        case("expanded", "broadcast-view", -2, 4, 4),
        case("batch-one", "batch-one", 1, 3, 3),
        case("length-zero", "length-zero", 2, 0, 3, 3),
    )


def _weights() -> tuple[Case, ...]:
    """Return what permute_qk_weights is asked."""

    def case(name: str, flags: str, weight: tuple[int, ...], heads: int, **params: Any) -> Case:
        options = {"heads": heads, "source": "interleaved", "target": "half", **params}
        return _case("permute_qk_weights", name, flags, {"weight": reals("weights" + name, *weight)}, options)

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
    *_rotate("apply_rope"),
    *_rotate("rope"),
    *_rotate("xpos"),
    *_rotate("pope"),
    *_fope(),
    *places("xpos_scales", "positions", {"dim": 6, **ROLE}),
    *pairs("alibi", LINEAR),
    *places("t5_buckets", "relative_positions", BUCKETS),
    *pairs("t5_bias", BUCKETS, table=reals("t5_bias", 16, 3)),
    *_shaw("shaw_scores", SCORES),
    *_shaw("shaw_values", VALUES),
    *_attention("attention_logits"),
    *_attention("attention"),
    *_axes("axial_table"),
    *_axes("mrope"),
    *_axes("axial_rope"),
    *(case for op in ROTATED for case in _rotated(op)),
    *_mixed("mixed_table"),
    *_mixed("mixed_rope"),
    *(case for op in LEARNED for case in _matrices(op)),
    *_cayley(),
    *_weights(),
    *(case for op, params in EXTENSIONS.items() for case in (*pairs(f"{op}_distances", params), *_passes(op, params))),
)

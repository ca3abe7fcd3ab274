"""Cases and mistakes that biases and representations of relative positions share."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np

from ..tools import Case, Deviation, Real, Step, Wrap, before, floats, form_case, gradient, narrowed, reals
from ..tools.hints import BRANCH, FROM_ZERO, KEEP_FLOAT32, ROUND_ONCE, SIGN

Q_OFFSETS = ((4, 5, 6), (260, 261, 262))  # another offset in every row
K_OFFSETS = ((0, 2, 3, 4, 5, 6, 8), (250, 256, 257, 259, 260, 261, 262))
FORWARD, BACKWARD = "key_minus_query", "query_minus_key"
Q_ROWS = ((4, 5, 6), (260, 261, 262))  # another offset in every row
K_ROWS = ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
UNSORTED = (5, 0, 0, 9, 2)
FAR = (0, 7, 257, 2049, 65537, 131071, 1048575)  # all clipped but a few


def shaw_step(
    axes: Mapping[str, str], seed: str, lead: tuple[int, ...], width: int, positions: tuple[Any, Any], sides: tuple[int, int],
    order: str, bits: int = 8, rows: int | None = None, **options: str,
) -> Step:  # fmt: skip
    """Return a call: axes by array, leading axes, the head size, positions of queries and of keys, left and right, options."""
    queries, keys = (np.asarray(p).shape[-1] for p in positions)
    sizes = {"q": queries, "k": keys, "d": width, "n": sum(sides) + 1 if rows is None else rows}
    shapes = {name: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for name, letters in axes.items()}
    arrays = {name: floats(*shape, seed=crc32((seed + name).encode()), bits=bits) for name, shape in shapes.items()}
    if "weights" in arrays:
        arrays["weights"] = np.abs(arrays["weights"]) / 16  # positive and small
    inputs = {**arrays, "q_positions": positions[0], "k_positions": positions[1]}
    return Step({"left": sides[0], "right": sides[1], "order": order, **options}, inputs)


def shaw_case(op: str, axes: Mapping[str, str]) -> Callable[..., Case]:
    """Return what makes cases of one of both operations."""

    def case(name: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
        step = shaw_step(axes, name, *call, **more)
        return Case(f"{op}/{name}", step.params, step.inputs, comment, kind, tier)

    return case


def shaw_cases(op: str, axes: Mapping[str, str]) -> tuple[Case, ...]:
    """Return the cases of both operations."""
    case = shaw_case(op, axes)
    return (
        case("forward/24-bits", (2, 3), 10, ((0, 4, 7, 2), UNSORTED), (3, 7), FORWARD, bits=24),
        case("forward/53-bits", (2,), 5, ((1, 4, 2), (0, 3, 1, 6)), (2, 3), FORWARD, bits=53),
        case("forward/rows-and-heads", (2, 4), 6,
              (np.asarray(Q_ROWS)[:, None].tolist(), np.asarray(K_ROWS)[:, None].tolist()), (3, 5), FORWARD,
              comment="positions (B, 1, Q) for (B, H, Q, D)"),
        case("forward/wav2vec2-bert", (), 24, ((70, 0, 100), (0, 5, 7, 64, 77, 99, 109)), (64, 8), FORWARD),
        case("forward/no-query", (3,), 4, (np.zeros(0, dtype=np.int64), (0, 1)), (2, 1), FORWARD),
        case("backward/small", (2,), 4, ((1, 2, 5), (0, 1, 2, 4, 9)), (3, 2), BACKWARD),
        case("backward/speecht5", (), 24, ((0, 90, 30), (0, 5, 29, 64, 88)), (80, 80), BACKWARD,
              comment="half of SpeechT5's 160; narrower"),
        case("refused/order", (), 4, ((1, 2), (0, 1, 2)), (2, 1), "signed", comment="no such order", kind="reject"),
        case("refused/rows", (), 4, ((1, 2), (0, 1, 2)), (2, 1), FORWARD,
              comment="left + right + 1 rows: 4, not 3", kind="reject", rows=3),
        case("zero/backward", (2,), 6, ((3, 8, 1), UNSORTED), (1, 4), BACKWARD, outside="zero"),
        case("zero/vits", (), 96, ((0, 5, 11), (0, 1, 3, 4, 5, 6, 9, 10, 11)), (4, 4), FORWARD, outside="zero"),
        case("zero/far", (2,), 4, ((2050, 3, 65538), FAR), (5, 3), FORWARD, outside="zero"),
        case("zero/one-row", (2,), 4, ((1, 5, 2), (0, 1, 2, 7)), (0, 0), BACKWARD, outside="zero",
              comment="a vector for the token itself alone"),
        case("refused/outside", (), 4, ((1, 2), (0, 1, 2)), (2, 1), FORWARD, comment="no such rule",
              kind="reject", outside="wrap"),
    )  # fmt: skip


BUCKETS: dict[str, Any] = {"bidirectional": True, "max_distance": 20}
BOTH_DIRECTIONS = tuple({"bidirectional": both, "max_distance": 128} for both in (False, True))  # in the kernel tier
WINDOW: dict[str, Any] = {"left": 2, "right": 1, "order": "key_minus_query"}


def shaw_forms(op: str, axes: dict[str, str]) -> tuple[Case, ...]:
    """Return the forms of arrays that have these axes after the leading ones: queries, keys, rows of the table, lanes."""

    def case(name: str, lead: tuple[int, ...], q: Any, k: Any, comment: str = "", form: str = "") -> Case:
        sizes = {"q": np.shape(q)[-1], "k": np.shape(k)[-1], "n": 4, "d": 6}
        shapes = {n: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for n, letters in axes.items()}
        arrays = {n: reals(op + name + n, *shape) / 8 for n, shape in shapes.items()}
        return form_case(op, name, {**arrays, "q_positions": q, "k_positions": k}, WINDOW, comment, form=form)

    return (case("batch-one", (1, 2), (3, 6, 0), (1, 2, 5, 9)), case("length-one", (2,), (5,), (4,), "one query and one key"))


def shaw_gradients(op: str, axes: dict[str, str], out: str) -> Iterator[Case]:
    """Yield gradients of arrays that have these axes after the leading ones: queries, keys, rows of the table, lanes."""

    def case(
        name: str, lead: tuple[int, ...], width: int, places: tuple[Any, Any], left: int, right: int, order: str, **options: Any
    ) -> Case:
        queries, keys = (np.shape(p)[-1] for p in places)
        sizes = {"q": queries, "k": keys, "n": left + right + 1, "d": width}
        shapes = {n: (*(() if "n" in letters else lead), *(sizes[a] for a in letters)) for n, letters in axes.items()}
        inputs = {n: reals(op + name + n, *shape) / 4 for n, shape in shapes.items()}
        inputs |= {"q_positions": places[0], "k_positions": places[1]}
        cotangents = {"out": (*lead, *(sizes[a] for a in out))}
        return gradient(op, name, inputs, cotangents, left=left, right=right, order=order, **options)

    yield case("strided", (2,), 3, ((3, 1), (0, 2, 9)), 1, 2, "query_minus_key", view="non-contiguous")
    yield case("forward", (2,), 3, ((3, 1), (0, 2, 9)), 2, 1, "key_minus_query")
    yield case("backward", (), 4, ((7, 0, 2), (1, 2, 8, 5)), 3, 4, "query_minus_key")
    yield case("rows", (2,), 3, (((4, 5), (260, 262)), ((0, 5, 6), (262, 256, 261))), 1, 3, "key_minus_query")
    yield case("zero", (), 3, ((3, 1), (0, 2, 9)), 1, 2, "key_minus_query", outside="zero")
    if op == "shaw_scores":
        yield case("both", (2,), 3, ((3, 1), (0, 2, 9)), 2, 1, "query_minus_key", terms="query_and_key")


OUTSIDE = "Outside the window: the last row of that side, or nothing, as the option says."
CLIP_FIRST = "Clip to -left and right, then add left."


def last_of_keys(q: Any, k: Any, /, **options: Any) -> Any:
    """Return positions of queries that are the last of the keys, and keys counted from 0."""
    keys = np.broadcast_to(np.arange(k.shape[-1]), k.shape)
    return (np.broadcast_to(np.arange(k.shape[-1] - q.shape[-1], k.shape[-1]), q.shape), keys), options


def _shaw(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, Wrap]:
    return {"shaw_scores": before(change), "shaw_values": before(change)}


def _other_order(*args: Any, **options: Any) -> Any:
    other = {"key_minus_query": "query_minus_key", "query_minus_key": "key_minus_query"}
    return args, options | {"order": other[options["order"]]}


def _order(order: str) -> Callable[..., Any]:
    return lambda *args, **options: (args, options | {"order": order})


def _clip_exchanged(apart: Any, left: int, right: int) -> Any:
    """Clip to (-right, left), adding right."""
    return np.clip(apart, -right, left) + right, (-right <= apart) & (apart <= left)


def _modulo(apart: Any, left: int, right: int) -> Any:
    """Let differences beyond the window wrap around."""
    return (apart + left) % (left + right + 1), (-left <= apart) & (apart <= right)


def _right_rows(apart: Any, left: int, right: int) -> Any:
    return np.clip(apart, -left, right) + left, (-left <= apart) & (apart <= right)


def _vectors(
    table: Real, q: Any, k: Any, rows: Callable[..., Any], *, left: int, right: int, order: str, outside: str = "clip",
    terms: str = "query",
) -> Real:  # fmt: skip
    """Return the vector of every query and key, by these rows and this window."""
    apart = k[..., None, :] - q[..., :, None] if order == "key_minus_query" else q[..., :, None] - k[..., None, :]
    index, inside = rows(apart, left, right)
    return table[index] * (inside | (outside == "clip"))[..., None]


def squares(table: Real, q: Any, k: Any, **options: Any) -> Real:
    """Return the square of every vector."""
    return np.sum(_vectors(table, q, k, _right_rows, **options) ** 2, axis=-1)


def shaw_rows(rows: Callable[..., Any]) -> dict[str, Wrap]:
    """Return wraps that look up other rows of the table."""

    def scores(q: Real, k: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        vectors = _vectors(table, qp, kp, rows, **options)
        of_key = options.get("terms") == "query_and_key"
        relative = np.sum((q[..., :, None, :] + of_key * k[..., None, :, :]) * vectors, axis=-1)
        return q @ np.swapaxes(k, -1, -2) + relative

    def values(w: Real, v: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        return w @ v + np.sum(w[..., :, :, None] * _vectors(table, qp, kp, rows, **options), axis=-2)

    return {"shaw_scores": lambda _: scores, "shaw_values": lambda _: values}


def _ends_zero(a: Any, b: Any, table: Any, *rest: Any, **options: Any) -> Any:
    """Return a table whose outer rows are zero, if all outside is."""
    inner = np.minimum(np.arange(len(table)), np.arange(len(table))[::-1]) > 0
    return (a, b, table * inner[:, None] if options.get("outside") == "zero" else table, *rest), options


DEVIATIONS = (
    Deviation("shaw-other-order", "the difference of positions has the wrong sign", _shaw(_other_order), hint=SIGN,
              seen_in="SpeechT5's convention", one_of="difference"),
    Deviation("shaw-key-minus-query", "the difference is always key minus query", _shaw(_order("key_minus_query")),
              hint=BRANCH, one_of="difference"),
    Deviation("shaw-query-minus-key", "the difference is always query minus key", _shaw(_order("query_minus_key")),
              hint=BRANCH, one_of="difference"),
    Deviation("shaw-clip-exchanged", "left and right are exchanged: rows are clip(difference, -right, left) + right",
              shaw_rows(_clip_exchanged), hint=CLIP_FIRST, seen_in="wav2vec2-BERT's 64 and 8"),
    Deviation("shaw-rows-modulo", "rows wrap around the table rather than being clipped", shaw_rows(_modulo), hint=CLIP_FIRST),
    Deviation("shaw-outside-clip", "outside the window the last row is added where nothing should be",
              _shaw(lambda *a, **o: (a, o | {"outside": "clip"})), hint=OUTSIDE, seen_in="ports of VITS"),
    Deviation("shaw-outside-zero", "outside the window nothing is added where the last row should be",
              _shaw(lambda *a, **o: (a, o | {"outside": "zero"})), hint=OUTSIDE),
    Deviation("shaw-ends-zero", "the window with zeros outside is one row too small on each side", _shaw(_ends_zero),
              hint="The first and the last row of the table are inside."),
    Deviation("shaw-row-plus-1", "each row is the one after the right one",
              _shaw(lambda a, b, table, *rest, **options: ((a, b, np.concatenate([table[1:], table[-1:]]), *rest), options)),
              hint=FROM_ZERO, one_of="row shift"),
    Deviation("shaw-row-minus-1", "each row is the one before the right one",
              _shaw(lambda a, b, t, *r, **o: ((a, b, np.concatenate([t[:1], t[:-1]]), *r), o)), hint=CLIP_FIRST,
              one_of="row shift"),
    Deviation("shaw-row-0-as-1", "row 0 of the table is never read: row 1 is read in its place",
              _shaw(lambda a, b, t, *r, **o: ((a, b, np.concatenate([t[1:2], t[1:]]) if len(t) > 1 else t, *r), o)),
              hint="Row 0 is a row like any other: it is for the farthest keys."),
    Deviation("shaw-row-0-zero", "row 0 of the table is zero",
              _shaw(lambda a, b, t, *r, **o: ((a, b, np.concatenate([0 * t[:1], t[1:]]), *r), o)), hint="padding_idx is 0."),
    Deviation("shaw-term-dropped", "the relative term is missing", _shaw(lambda a, b, t, *r, **o: ((a, b, 0 * t, *r), o)),
              hint="Add the product of the query with the relative vector, or the weighted relative vectors.",
              seen_in="like transformers#11725"),
    Deviation("shaw-table-bfloat16", "the table is held in bfloat16",
              _shaw(lambda a, b, t, *r, **o: ((a, b, narrowed("bfloat16")(t), *r), o)), hint=KEEP_FLOAT32),
    Deviation("shaw-input-bfloat16", "the input is held in bfloat16",
              _shaw(lambda a, b, *r, **o: ((narrowed("bfloat16")(a), b, *r), o)), hint=ROUND_ONCE),
)  # fmt: skip

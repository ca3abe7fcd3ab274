"""Cases of their maps and scores, and mistakes that length extensions by relative positions share."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

import posref
from posref.scaling import YaRN
from posref.spec import REGISTRY

from ..tools import Case, floats, form_case, gradient, reals
from ..tools.deviation import Deviation, Function, Real, Wrap, after, argument, around, before, held, narrowed, option
from ..tools.hints import (
    ARANGE,
    BRANCH,
    DEFAULT,
    EACH_ROW,
    FROM_ZERO,
    HEAD_BLOCKS,
    IGNORED,
    INTEGERS,
    ROUND_ONCE,
    SIGN,
    SLICE,
    UNSCALED,
    WINDOW_COUNT,
)
from .rotary import MIXED, ROTARY

Places = tuple[Any, Any]  # positions of queries and of keys


class Score(NamedTuple):
    """One call of a map and of its scores: positions, options, heads of queries and of keys, head size, rotation."""

    name: str
    places: Places
    options: dict[str, Any]
    heads: tuple[int, ...]
    width: int
    rotation: dict[str, Any]
    comment: str = ""
    bits: int = 8
    tier: str = "core"


SMALL = (10, 23, 14), (0, 4, 6, 7, 9, 10, 2)
ROWS = ((14, 15, 16), (260, 261, 262)), ((0, 5, 9, 12, 14), (259, 251, 256, 260, 40))
NEGATIVE = (-2, 9, 5), (-11, -7, -4, -3, -5)
FAR = (131073, 1048575), (0, 7, 257, 65537, 131055, 131071)
TURNED = (40, 26), (0, 9, 25, 19, 23, 14)  # for what the rotation alone gets wrong
TRUE = (4095, 32767), (511, 3583, 3584, 4095)
GROUPED = (4095, 15799), (7, 3071, 3072, 4095)
STREAMED = (2003, 2004, 131071), (0, 3, 4, 2003, 129070, 129071)
CHUNKED = (253960, 262952, 507905, 1009999), (100, 245760, 253951)


class Method(NamedTuple):
    """
    Options of a method: small options, others, large ones, the authors' or a model's own, and wrong ones.

    At the true size keys and queries are at `true`, with a base.
    """

    small: dict[str, Any]
    other: dict[str, Any]
    large: dict[str, Any]
    own: dict[str, Any]
    refused: tuple[dict[str, Any], ...]
    true: Places = TRUE
    base: float = 10000.0
    more: tuple[Score, ...] = ()
    large_scores: bool = False  # whether scores too are asked at large sizes


def _scores(method: Method) -> Iterator[Score]:
    """Yield the cases that a map and its scores share."""
    small, other, large = method.small, method.other, method.large
    llama = {**ROTARY, "base": 500000.0}
    yield Score("small", SMALL, small, (2, 2), 6, ROTARY, tier="smoke")
    yield Score("rows", ROWS, small, (2, 1), 6, llama, bits=24)
    yield Score("negative", NEGATIVE, other, (2, 1), 8, {**MIXED, "layout": "interleaved_to_half"})
    yield Score("far", FAR, small, (), 10, llama, bits=24)
    yield Score("far-unlike", FAR, large, (), 6, MIXED)
    yield Score("one-query", ((21,), SMALL[1]), other, (3, 1), 4, ROTARY)
    yield Score("true-size", method.true, method.own, (), 128, {**ROTARY, "base": method.base})
    yield from method.more


def _rotations(method: Method) -> Iterator[Score]:
    """Yield the cases of the scores alone: the rotation's options."""
    small, other = method.small, method.other
    options = {**MIXED, "rotary_dim": 6, "scaling": YaRN(8, 32, attention_factor=1.25)}
    yield Score("heads-6-and-3", TURNED, small, (6, 3), 4, ROTARY, bits=24)
    yield Score("yarn-partial", SMALL, other, (2, 1), 9, options)


POSITIONS = ("q_positions", "k_positions")


def _inputs(score: Score) -> dict[str, Any]:
    """Return queries and keys, and positions of every row of a batch besides the heads."""
    *lead, q_heads, k_heads = score.heads or (0, 0)
    rows = score.name == "rows"
    lead = [len(score.places[0]), *lead] if rows else lead
    queries, keys = (len(p[0] if rows else p) for p in score.places)
    shapes = {"q": [*lead, q_heads, queries, score.width], "k": [*lead, k_heads, keys, score.width]}
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        sizes = shape if score.heads else [n for n in shape if n]
        arrays[name] = floats(*sizes, seed=crc32((score.name + name).encode()), bits=score.bits)
    places = ([[row] for row in p] for p in score.places) if rows else score.places
    return arrays | dict(zip(POSITIONS, places, strict=True))


def _label(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def maps_of(op: str, method: Method) -> Iterator[Case]:
    """Yield the cases of a method's map of distances."""
    for score in _scores(method):
        positions = dict(zip(POSITIONS, score.places, strict=True))
        yield Case(f"{op}/map/{score.name}", score.options, positions, score.comment, tier=score.tier)
    for n, wrong in enumerate(method.refused):
        positions = dict(zip(POSITIONS, SMALL, strict=True))
        yield Case(f"{op}/refused/{n}", wrong, positions, _label(wrong), "reject")


def scores_of(op: str, method: Method, *more: Score) -> Iterator[Case]:
    """Yield the cases of a method's scores, and `more`."""
    alike = [score for score in _scores(method) if score.name not in ("large", "far-unlike") or method.large_scores]
    for score in (*alike, *_rotations(method), *more):
        options = score.options | score.rotation
        yield Case(f"{op}/passes/{score.name}", options, _inputs(score), score.comment, tier=score.tier)
    for n, wrong in enumerate(method.refused):
        arrays = _inputs(Score("refused", SMALL, wrong, (2, 2), 6, ROTARY))
        yield Case(f"{op}/refused/{n}", wrong | ROTARY, arrays, _label(wrong), "reject")


def score_forms(op: str, params: dict[str, Any]) -> tuple[Case, ...]:
    """Return the forms of queries and keys for the scores of a length extension."""

    def case(
        name: str, q: tuple[int, ...], k: tuple[int, ...], places: tuple[Any, Any], comment: str = "", form: str = ""
    ) -> Case:
        arrays = {n: reals(op + name + n, *shape) / 2 for n, shape in (("q", q), ("k", k))}
        positions = dict(zip(("q_positions", "k_positions"), places, strict=True))
        return form_case(op, name, arrays | positions, params | ROTARY, comment, form=form)

    rows: tuple[Any, Any] = (((14, 15, 16),), ((60, 61, 62),)), (((0, 5, 9, 12),), ((59, 51, 56, 40),))
    return (
        case("strided", (2, 2, 3, 6), (2, 1, 4, 6), rows, "heads before tokens", form="non-contiguous"),
        case("batch-one", (1, 2, 3, 6), (1, 2, 4, 6), (rows[0][:1], rows[1][:1])),
        case("length-one", (1, 2, 1, 6), (1, 2, 1, 6), ((25,), (3,)), "one query and one key"),
    )


def score_gradients(op: str, options: dict[str, Any]) -> Iterator[Case]:
    """Yield gradients of the scores of a length extension."""

    def case(name: str, q: tuple[int, ...], k: tuple[int, ...], places: tuple[Any, Any], **params: Any) -> Case:
        inputs: dict[str, Any] = {n: reals(op + name + n, *shape) / 4 for n, shape in (("q", q), ("k", k))}
        inputs |= dict(zip(("q_positions", "k_positions"), places, strict=True))
        return gradient(op, name, inputs, {"out": (*q[:-1], k[-2])}, **options, **params)

    yield case("half", (2, 3, 4), (1, 4, 4), ((10, 23, 14), (0, 6, 9, 10)), layout="half", base=10000.0)
    yield case("interleaved", (2, 2, 7), (2, 3, 7), ((30, 13), (12, 0, 7)), layout="interleaved",
               base=500.0, rotary_dim=6, scaling=YaRN(4, 16))  # fmt: skip


def wrapped_maps(wrap: Wrap, *ops: str) -> dict[str, Wrap]:
    """Return a wrap for the maps of some methods, or of all."""
    return dict.fromkeys(ops or _maps_with(), wrap)


def _maps_with(*options: str) -> list[str]:
    """Return the maps that have these options, the plainest first."""
    maps = [name for name, record in REGISTRY.items() if record.noun == "relative" and record.domains.keys() >= {*options}]
    return sorted(maps, key=lambda name: len(REGISTRY[name].domains))


def changed_map(op: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a map with another formula: of positions of queries and of keys, and options."""

    def deviating(function: Function, q: Any, k: Any, /, *, dtype: Any = None, **options: Any) -> Any:
        return change(q[..., :, None], k[..., None, :], **options)

    return wrapped_maps(around(deviating), op)


def far_distances(op: str, change: Callable[..., Any], *, both_sides: bool = True) -> dict[str, Wrap]:
    """Return a map with another formula for what is beyond the window alone, which is on both sides of a query or before it."""

    def formula(m: Any, n: Any, *, window: int, **options: Any) -> Any:
        near = (m - n < window) & ((m - n >= 0) | (m - n > -window) & both_sides)
        return np.where(near, m - n, change(m, n, window, **options))

    return changed_map(op, formula)


def after_query(op: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a map with other distances of keys after the query."""

    def deviating(function: Function, q: Any, k: Any, /, **options: Any) -> Any:
        apart = q[..., :, None] - k[..., None, :]
        return np.where(apart < 0, change(apart, **options), function(q, k, **options))

    return wrapped_maps(around(deviating), op)


def _counted(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape)


def _both(change: Callable[[Any], Any]) -> Wrap:
    return before(lambda q, k, *args, **options: ((change(q), change(k), *args), options))


def _turned(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap of the products: `change` takes the function, its arrays and its options."""
    return {"rotated_products": lambda function: lambda q, k, apart, /, **options: change(function, q, k, apart, options)}


def _rotating_all(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    width = q.shape[-1] - q.shape[-1] % 2
    return function(q, k, apart, **(options | {"rotary_dim": width}))


def _factor_once(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    width = options.get("rotary_dim") or q.shape[-1]
    asked = {name: options[name] for name in ("base", "scaling", "length") if name in options}
    _, factor = posref.rope_frequencies(width, **asked)
    return function(q * np.where(np.arange(q.shape[-1]) < width, 1 / factor, 1.0), k, apart, **options)


def _tiled(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    if q.ndim > 2 and 0 < k.shape[-3] < q.shape[-3]:
        k = np.concatenate([k] * (q.shape[-3] // k.shape[-3]), axis=-3)
    return function(q, k, apart, **options)


def _given(**options: Any) -> dict[str, Wrap]:
    return _turned(lambda function, q, k, apart, given: function(q, k, apart, **(given | options)))


DEVIATIONS = (
    Deviation("extension-plain", "distances are RoPE's: nothing is extended",
              wrapped_maps(lambda f: lambda q, k, /, **o: q[..., :, None] - k[..., None, :]),
              hint="Far keys need the second pass: look for the condition that chooses it."),
    Deviation("extension-sign", "distances have the wrong sign", wrapped_maps(after(lambda out, *a, **o: -out)), hint=SIGN),
    Deviation("extension-query-plus-1", "queries are one token too late", wrapped_maps(argument(0, lambda q: q + 1)),
              hint=FROM_ZERO),
    Deviation("extension-from-1", "positions are counted from 1",
              wrapped_maps(_both(lambda p: p + 1), "self_extend_distances", "dual_chunk_distances", "streaming_llm_distances"),
              hint="Groups and chunks then end one token early, and there is one sink fewer."),
    Deviation("extension-query-arange", "queries are at 0, 1, 2, ..., not at their positions",
              wrapped_maps(argument(0, _counted)), hint=ARANGE),
    Deviation("extension-key-arange", "keys are at 0, 1, 2, ..., not at their positions", wrapped_maps(argument(1, _counted)),
              hint=ARANGE),
    Deviation("extension-first-row", "row 0's positions are used for every row",
              wrapped_maps(_both(lambda p: np.broadcast_to(p[:1], p.shape) if p.ndim > 1 else p)), hint=EACH_ROW),
    Deviation("extension-positions-bfloat16", "positions are held in bfloat16",
              wrapped_maps(_both(lambda p: narrowed("bfloat16")(p).astype(np.int64))), hint=INTEGERS),
    Deviation("extension-window-plus-1", "the window is one token longer",
              wrapped_maps(option(window=lambda w: w + 1), *_maps_with("window")), hint=WINDOW_COUNT),
    Deviation("extension-window-minus-1", "the window is one token shorter",
              wrapped_maps(option(window=lambda w: max(w - 1, 1)), *_maps_with("window")), hint=WINDOW_COUNT),
    Deviation("extension-half", "layout is always 'half'", _given(layout="half"), hint=BRANCH),
    Deviation("extension-interleaved", "layout is always 'interleaved'", _given(layout="interleaved"), hint=BRANCH),
    Deviation("extension-base-10000", "the base is always 10000", _given(base=10000.0), hint=DEFAULT),
    Deviation("extension-scaling-dropped", "the context extension is ignored", _given(scaling=None), hint=IGNORED),
    Deviation("extension-factor-once", "the context extension's factor is on keys alone", _turned(_factor_once),
              hint="It multiplies queries and keys, also those that are not rotated."),
    Deviation("extension-all-lanes", "all channels are rotated", _turned(_rotating_all), hint=SLICE),
    Deviation("extension-scaled", "scores are divided by sqrt(D)",
              {"rotated_products": after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5)}, hint=UNSCALED),
    Deviation("extension-heads-tiled", "key heads are tiled rather than repeated in blocks", _turned(_tiled), hint=HEAD_BLOCKS),
    Deviation("extension-query-bfloat16", "queries are held in bfloat16", {"rotated_products": held("bfloat16", 0)},
              hint=ROUND_ONCE),
    Deviation("extension-key-bfloat16", "keys are held in bfloat16", {"rotated_products": held("bfloat16", 1)},
              hint=ROUND_ONCE),
)  # fmt: skip

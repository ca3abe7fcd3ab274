"""Cases of length extension by relative positions of its own: ReRoPE, Leaky ReRoPE, Self-Extend, dual chunks, StreamingLLM."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

from posref.scaling import DynamicNTK, Linear, YaRN

from ..model import Case, Flag, Step
from .numbers import floats

FLAGS = {
    "distances-plain": Flag("RoPE's own distances: no extension at all"),
    "distances-window": Flag("a window of one token more or less"),
    "distances-leak": Flag("distances beyond the window that stop, or do not go on where the window ends"),
    "distances-groups": Flag("the difference grouped rather than both positions, or one of them alone"),
    "distances-shift": Flag("W / G for W // G, or the reverse", "LongLM 715c1e3"),
    "distances-chunks": Flag("chunks of another length, or counted from another token"),
    "distances-limit": Flag("queries of another chunk placed too far, or too near", "arXiv:2402.17463 against its code"),
    "distances-sinks": Flag("the first keys placed as others are, or one too many of them"),
    "distances-counting": Flag("a query that counts among the window's keys, or does not, where it is asked otherwise"),
    "distances-after-query": Flag("keys after the query placed otherwise; a causal mask hides them", "rerope's decode path"),
    "distances-ids": Flag("counts from 0 in place of the caller's positions"),
    "distances-rows": Flag("row 0's positions used for every row of the batch"),
    "distances-far": Flag("far positions held in a narrow dtype"),
    "distances-decode": Flag("a decoded query that has not the scores of the prefill"),
    "distances-true-size": Flag("a model's own sizes not reproduced", "Qwen2.5-1M, Llama 2, phi-2"),
    "distances-refuse": Flag("a window, group or chunk without tokens, or an unknown word, accepted"),
    "passes-base": Flag("a base left at 10000"),
    "passes-scaling": Flag("a context extension dropped, or its factor on one of query and key alone"),
    "passes-partial": Flag("channels rotated that should pass"),
    "passes-heads": Flag("key heads tiled where they repeat in blocks"),
    "passes-scale": Flag("scores divided by sqrt(D), which is left to the caller"),
    "passes-downcast": Flag("24-bit queries or keys narrowed on the way"),
}

HALF: dict[str, Any] = {"layout": "half", "base": 10000.0}
MIXED: dict[str, Any] = {"layout": "interleaved", "base": 500000.0}
Places = tuple[Any, Any]  # positions of queries and of keys


class Score(NamedTuple):
    """One call of a map and of its scores: positions, options, heads of queries and of keys, head size, rotation."""

    name: str
    flags: str
    places: Places
    options: dict[str, Any]
    heads: tuple[int, ...]
    width: int
    rotation: dict[str, Any]
    comment: str = ""
    bits: int = 8
    tier: str = "core"


SMALL = (10, 23, 14), (0, 4, 6, 7, 9, 10, 2)
UNSORTED = (30, 13, 19, 12), (12, 0, 7, 3, 11, 10)
ROWS = ((14, 15, 16), (260, 261, 262)), ((0, 5, 9, 12, 14), (259, 251, 256, 260, 40))
NEGATIVE = (-2, 9, 5), (-11, -7, -4, -3, -5)
FAR = (131073, 1048575), (0, 7, 257, 65537, 131055, 131071)
TURNED = (40, 26), (0, 9, 25, 19, 23, 14)  # for what the rotation alone gets wrong
AFTER = (3, 11, 0), (1, 4, 9, 30, 12)
TRUE = (4095, 32767), (511, 3583, 3584, 4095)
GROUPED = (4095, 15799), (7, 3071, 3072, 4095)
STREAMED = (2003, 2004, 131071), (0, 3, 4, 2003, 129070, 129071)
CHUNKED = (253960, 262952, 507905, 1009999), (100, 245760, 253951)
STEPS = ((8, 9), tuple(range(9))), ((10,), tuple(range(11))), ((9, 300), (3, 8, 2))

class Method(NamedTuple):
    """
    Options and flags of a method: small options, others, large ones, the authors' or a model's own, and wrong ones.

    `flags` are its own, `window` those of the window's size. At the true size keys and queries are at `true`, with a base.
    """

    small: dict[str, Any]
    other: dict[str, Any]
    large: dict[str, Any]
    own: dict[str, Any]
    refused: tuple[dict[str, Any], ...]
    flags: str = ""
    window: str = " window"
    true: Places = TRUE
    base: float = 10000.0
    more: tuple[Score, ...] = ()
    large_scores: bool = False  # whether scores too are asked at large sizes


RERO = Method(
    {"window": 4}, {"window": 7}, {"window": 1}, {"window": 512}, ({"window": 0}, {"window": -4}),
)  # fmt: skip
LEAKY = Method(
    {"window": 4, "factor": 3}, {"window": 7, "factor": 2}, {"window": 1, "factor": 5}, {"window": 512, "factor": 16},
    ({"window": 0, "factor": 3}, {"window": 4, "factor": 0}), " leak", " window leak",
)  # fmt: skip
SELF = Method(
    {"group": 3, "window": 4, "shift": "floor"}, {"group": 2, "window": 7, "shift": "exact"},
    {"group": 5, "window": 3, "shift": "exact"}, {"group": 8, "window": 1024, "shift": "exact"},
    ({"group": 3, "window": 4, "shift": "round"}, {"group": 0, "window": 4, "shift": "floor"}),
    " groups shift", " window groups shift", GROUPED, more=(
        Score("phi-2", "true-size shift", GROUPED, {"group": 5, "window": 1024, "shift": "floor"}, (), 80,
              {**HALF, "rotary_dim": 32}, "G does not divide W"),
        Score("shift-exact", "shift groups", SMALL, {"group": 3, "window": 4, "shift": "exact"}, (2, 2), 6, HALF),
        Score("shift-floor", "shift groups", UNSORTED, {"group": 2, "window": 7, "shift": "floor"}, (2, 1), 6, MIXED),
    ),
)  # fmt: skip
DUAL_OWN = {"chunk_size": 262144, "local_size": 8192}
DUAL = Method(
    {"chunk_size": 9, "local_size": 3}, {"chunk_size": 7, "local_size": 0}, {"chunk_size": 12, "local_size": 8}, DUAL_OWN,
    ({"chunk_size": 6, "local_size": 6}, {"chunk_size": 6, "local_size": -1}), " chunks limit", " chunks limit", CHUNKED, 1e7,
    more=(
        Score("true-borders", "true-size chunks after-query", ((253953, 761856), (507902, 507903, 253952, 7)), DUAL_OWN, (),
              16, {**HALF, "base": 1e7}),
    ),
    large_scores=True,
)  # fmt: skip
FULL = (7, 8, 9, 10, 11), (1, 2, 3, 0)
STREAMING = Method(
    {"sinks": 2, "window": 4, "counting": "with_query"}, {"sinks": 3, "window": 7, "counting": "without_query"},
    {"sinks": 1, "window": 1, "counting": "with_query"}, {"sinks": 4, "window": 2000, "counting": "without_query"},
    ({"sinks": -1, "window": 4, "counting": "with_query"}, {"sinks": 2, "window": 0, "counting": "with_query"}),
    " sinks counting", " window sinks counting", STREAMED, more=(
        Score("full-with-query", "counting sinks", FULL, {"sinks": 3, "window": 6, "counting": "with_query"}, (2, 1), 4, HALF,
              "a cache fills"),
        Score("full-without-query", "counting sinks", FULL, {"sinks": 3, "window": 6, "counting": "without_query"}, (2, 1), 4,
              HALF, "a cache fills"),
        Score("no-sinks", "sinks plain", SMALL, {"sinks": 0, "window": 3, "counting": "without_query"}, (), 6, MIXED,
              "nothing is placed otherwise"),
    ),
)  # fmt: skip


def _scores(method: Method) -> Iterator[Score]:
    """Yield what a map and its scores are asked alike."""
    small, other, large, window = method.small, method.other, method.large, method.window
    llama = {**HALF, "base": 500000.0}
    yield Score("small", "plain" + window, SMALL, small, (2, 2), 6, HALF, tier="smoke")
    yield Score("unsorted", "ids" + window, UNSORTED, other, (3, 1), 4, MIXED)
    yield Score("rows", "rows ids", ROWS, small, (2, 1), 6, llama, bits=24)
    yield Score("negative", "ids" + method.flags, NEGATIVE, other, (2, 1), 8, {**MIXED, "layout": "interleaved_to_half"})
    yield Score("far", "far plain", FAR, small, (), 10, llama, bits=24)
    yield Score("far-unlike", "far" + window, FAR, large, (), 6, MIXED)
    yield Score("large", "plain" + window, SMALL, large, (2, 2), 4, MIXED)
    yield Score("one-query", "decode ids", ((21,), SMALL[1]), other, (3, 1), 4, HALF)
    yield Score("after-query", "after-query", AFTER, small, (2, 1), 4, HALF)
    yield Score("after-query-unlike", "after-query", AFTER, other, (), 8, MIXED)
    yield Score("true-size", "true-size" + window, method.true, method.own, (), 128, {**HALF, "base": method.base})
    yield from method.more


def _rotations(method: Method) -> Iterator[Score]:
    """Yield what the scores alone are asked: the rotation's options."""
    small, other = method.small, method.other
    partial = {**HALF, "rotary_dim": 4}
    given = {**MIXED, "rotary_dim": 6, "scaling": YaRN(8, 32, attention_factor=1.25)}
    yield Score("heads-6-and-3", "passes-heads passes-downcast", TURNED, small, (6, 3), 4, HALF, bits=24)
    yield Score("heads-4-and-2", "passes-heads passes-scale", TURNED, other, (2, 4, 2), 6, MIXED, "and a batch of two")
    yield Score("partial", "passes-partial", TURNED, other, (2, 2), 7, partial)
    yield Score("yarn", "passes-scaling", TURNED, small, (2, 1), 6, {**HALF, "scaling": YaRN(4, 64)})
    yield Score("yarn-partial", "passes-scaling passes-partial", SMALL, other, (2, 1), 9, given)


RERO_ROTATIONS = (  # what the rotation is given is the same for all methods: one is asked for all of it
    Score("linear", "passes-scaling", TURNED, RERO.other, (), 6, {**MIXED, "scaling": Linear(2.0)}),
    Score("dynamic", "passes-scaling passes-base", SMALL, RERO.small, (2, 2), 6,
          {**HALF, "base": 100.0, "scaling": DynamicNTK(2.0, 16), "length": 41}),
    Score("53-bits", "passes-downcast passes-scale", TURNED, RERO.small, (), 6, MIXED, bits=53),
)  # fmt: skip


def _inputs(score: Score) -> dict[str, Any]:
    """Return queries and keys, and positions of every row of a batch besides the heads."""
    *lead, q_heads, k_heads = score.heads or (0, 0)
    rows = score.name == "rows"
    lead = [len(score.places[0]), *lead] if rows else lead
    queries, keys = (len(p[0] if rows else p) for p in score.places)
    shapes = {"q": [*lead, q_heads, queries, score.width], "k": [*lead, k_heads, keys, score.width]}
    found: dict[str, Any] = {}
    for name, shape in shapes.items():
        sizes = shape if score.heads else [n for n in shape if n]
        found[name] = floats(*sizes, seed=crc32((score.name + name).encode()), bits=score.bits)
    places = ([[row] for row in p] for p in score.places) if rows else score.places
    return found | dict(zip(POSITIONS, places, strict=True))


POSITIONS = ("q_positions", "k_positions")


def _flags(flags: str) -> tuple[str, ...]:
    return tuple(flag if flag.startswith("passes-") else f"distances-{flag}" for flag in flags.split())


def _sequence(op: str, steps: Iterable[Step]) -> Case:
    """Return calls of a chunk, of one more token, and elsewhere."""
    comment = "a chunk, one more token, and elsewhere"
    return Case(f"{op}/sequence/decode", flags=_flags("decode ids"), comment=comment, kind="sequence", steps=tuple(steps))


def _told(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def maps_of(op: str, method: Method) -> Iterator[Case]:
    """Yield the cases of a method's map of distances."""
    for score in _scores(method):
        given = dict(zip(POSITIONS, score.places, strict=True))
        yield Case(f"{op}/map/{score.name}", score.options, given, _flags(score.flags), score.comment, tier=score.tier)
    yield _sequence(op, (Step(method.small, dict(zip(POSITIONS, places, strict=True))) for places in STEPS))
    for n, wrong in enumerate(method.refused):
        given = dict(zip(POSITIONS, SMALL, strict=True))
        yield Case(f"{op}/refused/{n}", wrong, given, _flags("refuse"), _told(wrong), "reject")


def scores_of(op: str, method: Method, *more: Score) -> Iterator[Case]:
    """Yield the cases of a method's scores, and `more`."""
    alike = [score for score in _scores(method) if score.name not in ("large", "far-unlike") or method.large_scores]
    for score in (*alike, *_rotations(method), *more):
        options = score.options | score.rotation
        yield Case(f"{op}/passes/{score.name}", options, _inputs(score), _flags(score.flags), score.comment, tier=score.tier)
    steps = [Score(f"step-{n}", "", places, method.small, (2, 1), 4, HALF) for n, places in enumerate(STEPS)]
    yield _sequence(op, (Step(step.options | step.rotation, _inputs(step)) for step in steps))
    for n, wrong in enumerate(method.refused):
        arrays = _inputs(Score("refused", "", SMALL, wrong, (2, 2), 6, HALF))
        yield Case(f"{op}/refused/{n}", wrong | HALF, arrays, _flags("refuse"), _told(wrong), "reject")


CASES: tuple[Case, ...] = (
    *maps_of("rerope_distances", RERO),
    *scores_of("rerope", RERO, *RERO_ROTATIONS),
    *maps_of("leaky_rerope_distances", LEAKY),
    *scores_of("leaky_rerope", LEAKY),
    *maps_of("self_extend_distances", SELF),
    *scores_of("self_extend", SELF),
    *maps_of("dual_chunk_distances", DUAL),
    *scores_of("dual_chunk", DUAL),
    *maps_of("streaming_llm_distances", STREAMING),
    *scores_of("streaming_llm", STREAMING),
)

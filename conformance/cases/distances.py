"""Cases of length extension by relative positions of its own: ReRoPE, Leaky ReRoPE, Self-Extend, dual chunks, StreamingLLM."""

from collections.abc import Iterator
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

SIZES: dict[str, tuple[dict[str, Any], ...]] = {  # small, another, large, the authors' or a model's own
    "rerope": ({"window": 4}, {"window": 7}, {"window": 1}, {"window": 512}),
    "leaky_rerope": (
        {"window": 4, "factor": 3}, {"window": 7, "factor": 2}, {"window": 1, "factor": 5}, {"window": 512, "factor": 16},
    ),
    "self_extend": (
        {"group": 3, "window": 4, "shift": "floor"}, {"group": 2, "window": 7, "shift": "exact"},
        {"group": 5, "window": 3, "shift": "exact"}, {"group": 8, "window": 1024, "shift": "exact"},
    ),
    "dual_chunk": (
        {"chunk_size": 9, "local_size": 3}, {"chunk_size": 7, "local_size": 0}, {"chunk_size": 12, "local_size": 8},
        {"chunk_size": 262144, "local_size": 8192},
    ),
    "streaming_llm": (
        {"sinks": 2, "window": 4, "counting": "with_query"}, {"sinks": 3, "window": 7, "counting": "without_query"},
        {"sinks": 1, "window": 1, "counting": "with_query"}, {"sinks": 4, "window": 2000, "counting": "without_query"},
    ),
}  # fmt: skip
OWN = {
    "rerope": "",
    "leaky_rerope": " leak",
    "self_extend": " groups shift",
    "dual_chunk": " chunks limit",
    "streaming_llm": " sinks counting",
}
REFUSED: dict[str, tuple[dict[str, Any], ...]] = {
    "rerope": ({"window": 0}, {"window": -4}),
    "leaky_rerope": ({"window": 0, "factor": 3}, {"window": 4, "factor": 0}),
    "self_extend": ({"group": 3, "window": 4, "shift": "round"}, {"group": 0, "window": 4, "shift": "floor"}),
    "dual_chunk": ({"chunk_size": 6, "local_size": 6}, {"chunk_size": 6, "local_size": -1}),
    "streaming_llm": (
        {"sinks": -1, "window": 4, "counting": "with_query"},
        {"sinks": 2, "window": 0, "counting": "with_query"},
    ),
}


def _scores(op: str) -> Iterator[Score]:
    """Yield what a map and its scores are asked alike."""
    small, other, large, own = SIZES[op]
    window = OWN[op] if op == "dual_chunk" else " window" + OWN[op]
    llama = {**HALF, "base": 500000.0}
    yield Score("small", "plain" + window, SMALL, small, (2, 2), 6, HALF, tier="smoke")
    yield Score("unsorted", "ids" + window, UNSORTED, other, (3, 1), 4, MIXED)
    yield Score("rows", "rows ids", ROWS, small, (2, 1), 6, llama, bits=24)
    yield Score("negative", "ids" + OWN[op], NEGATIVE, other, (2, 1), 8, {**MIXED, "layout": "interleaved_to_half"})
    yield Score("far", "far plain", FAR, small, (), 10, llama, bits=24)
    yield Score("far-unlike", "far" + window, FAR, large, (), 6, MIXED)
    yield Score("large", "plain" + window, SMALL, large, (2, 2), 4, MIXED)
    yield Score("one-query", "decode ids", ((21,), SMALL[1]), other, (3, 1), 4, HALF)
    yield Score("after-query", "after-query", AFTER, small, (2, 1), 4, HALF)
    yield Score("after-query-unlike", "after-query", AFTER, other, (), 8, MIXED)
    true = {"dual_chunk": CHUNKED, "self_extend": GROUPED, "streaming_llm": STREAMED}.get(op, TRUE)
    base = 1e7 if op == "dual_chunk" else 10000.0
    yield Score("true-size", "true-size" + window, true, own, (), 128, {**HALF, "base": base})
    if op == "self_extend":
        phi = {"group": 5, "window": 1024, "shift": "floor"}
        yield Score("phi-2", "true-size shift", GROUPED, phi, (), 80, {**HALF, "rotary_dim": 32}, "G does not divide W")
        yield Score("shift-exact", "shift groups", SMALL, {**small, "shift": "exact"}, (2, 2), 6, HALF)
        yield Score("shift-floor", "shift groups", UNSORTED, {**other, "shift": "floor"}, (2, 1), 6, MIXED)
    if op == "streaming_llm":
        full = (7, 8, 9, 10, 11), (1, 2, 3, 0)
        for counting in ("with_query", "without_query"):
            options = {"sinks": 3, "window": 6, "counting": counting}
            yield Score("full-" + counting.replace("_", "-"), "counting sinks", full, options, (2, 1), 4, HALF, "a cache fills")
        none = {"sinks": 0, "window": 3, "counting": "without_query"}
        yield Score("no-sinks", "sinks plain", SMALL, none, (), 6, MIXED, "nothing is placed otherwise")
    if op == "dual_chunk":
        beyond = (253953, 761856), (507902, 507903, 253952, 7)
        yield Score("true-borders", "true-size chunks after-query", beyond, own, (), 16, {**HALF, "base": 1e7})


def _turned(op: str) -> Iterator[Score]:
    """Yield what the scores alone are asked: the rotation's options."""
    small, other, *_ = SIZES[op]
    partial = {**HALF, "rotary_dim": 4}
    yield Score("heads-6-and-3", "passes-heads passes-downcast", TURNED, small, (6, 3), 4, HALF, bits=24)
    yield Score("heads-4-and-2", "passes-heads passes-scale", TURNED, other, (2, 4, 2), 6, MIXED, "and a batch of two")
    yield Score("partial", "passes-partial", TURNED, other, (2, 2), 7, partial)
    yield Score("yarn", "passes-scaling", TURNED, small, (2, 1), 6, {**HALF, "scaling": YaRN(4, 64)})
    yield Score(
        "yarn-partial",
        "passes-scaling passes-partial",
        SMALL,
        other,
        (2, 1),
        9,
        {**MIXED, "rotary_dim": 6, "scaling": YaRN(8, 32, attention_factor=1.25)},
    )
    if op != "rerope":  # the others of these ask for what the rotation is given, which is the same for all
        return
    yield Score("linear", "passes-scaling", TURNED, other, (), 6, {**MIXED, "scaling": Linear(2.0)})
    yield Score(
        "dynamic",
        "passes-scaling passes-base",
        SMALL,
        small,
        (2, 2),
        6,
        {**HALF, "base": 100.0, "scaling": DynamicNTK(2.0, 16), "length": 41},
    )
    yield Score("53-bits", "passes-downcast passes-scale", TURNED, small, (), 6, MIXED, bits=53)


def _inputs(case: Score) -> dict[str, Any]:
    """Return queries and keys, and positions of every row of a batch besides the heads."""
    *lead, q_heads, k_heads = case.heads or (0, 0)
    rows = case.name == "rows"
    lead = [len(case.places[0]), *lead] if rows else lead
    queries, keys = (len(p[0] if rows else p) for p in case.places)
    shapes = {"q": [*lead, q_heads, queries, case.width], "k": [*lead, k_heads, keys, case.width]}
    found: dict[str, Any] = {}
    for name, shape in shapes.items():
        sizes = shape if case.heads else [n for n in shape if n]
        found[name] = floats(*sizes, seed=crc32((case.name + name).encode()), bits=case.bits)
    places = ([[row] for row in p] for p in case.places) if rows else case.places
    return found | dict(zip(("q_positions", "k_positions"), places, strict=True))


def _flags(flags: str) -> tuple[str, ...]:
    return tuple(flag if flag.startswith("passes-") else f"distances-{flag}" for flag in flags.split())


def _cases(op: str) -> Iterator[Case]:
    """Yield the cases of a map and of its scores."""
    names = ("q_positions", "k_positions")
    for case in _scores(op):
        given = dict(zip(names, case.places, strict=True))
        yield Case(f"{op}_distances/map/{case.name}", case.options, given, _flags(case.flags), case.comment, tier=case.tier)
    asked = [case for case in _scores(op) if case.name not in ("large", "far-unlike") or op == "dual_chunk"]
    for case in (*asked, *_turned(op)):
        params = case.options | case.rotation
        yield Case(f"{op}/passes/{case.name}", params, _inputs(case), _flags(case.flags), case.comment, tier=case.tier)
    sequence = [Score(f"step-{n}", "", places, SIZES[op][0], (2, 1), 4, HALF) for n, places in enumerate(STEPS)]
    maps, scores = (
        [Step(c.options, dict(zip(names, c.places, strict=True))) for c in sequence],
        [Step(c.options | c.rotation, _inputs(c)) for c in sequence],
    )
    for name, steps in ((f"{op}_distances", maps), (op, scores)):
        yield Case(
            f"{name}/sequence/decode",
            flags=_flags("decode ids"),
            comment="a chunk, one more token, and elsewhere",
            kind="sequence",
            steps=tuple(steps),
        )
    for n, wrong in enumerate(REFUSED[op]):
        comment = ", ".join(f"{name}={value!r}" for name, value in wrong.items())
        given = dict(zip(names, SMALL, strict=True))
        yield Case(f"{op}_distances/refused/{n}", wrong, given, _flags("refuse"), comment, "reject")
        arrays = _inputs(Score("refused", "", SMALL, wrong, (2, 2), 6, HALF))
        yield Case(f"{op}/refused/{n}", wrong | HALF, arrays, _flags("refuse"), comment, "reject")


CASES: tuple[Case, ...] = tuple(case for op in SIZES for case in _cases(op))

"""
The kernel tier: calls at the sizes where kernels break, made from a seed and judged live. Nothing of them is stored.

Tiles have 16 to 128 tokens and grids 65535 blocks; a head may have 256 lanes, and groups of query heads need not be powers of
two. So there are 1, 31, 33, 63, 64, 65, 127, 129, 257 and 4097 tokens or keys, head sizes from 64 to 256, 65537 rows and 33
heads, and no axis stands for another. Reals are of few bits, so that every dtype holds them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag

GROUP = "kernel"
FLAGS = {
    "tile": Flag("a tail of tokens, keys or channels past the last whole tile that is not computed", "flashinfer #2470"),
    "grid": Flag("rows beyond the 65535 blocks of a grid, or heads beyond a power of two, that are not computed"),
    "non-contiguous": Flag("strides ignored, or the memory between rows overwritten"),
    "long": Flag("a table, a buffer or a sum that is too short for thousands of tokens"),
    "one-token": Flag("one token at an offset handled as if it were the first", "MLX d40e76809, flashinfer #847"),
    "shuffled": Flag("positions taken for a range where they are not"),
    "rows": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "rising": Flag("an online softmax whose running maximum misses the largest logits of later tiles: it overflows"),
    "wide-head": Flag("head sizes above 128 that a kernel computes in part"),
}
Arrays = dict[str, npt.NDArray[Any]]
Options = dict[str, Any]
Asked = tuple[Options, Arrays]
Row = tuple[str, str, Callable[[np.random.Generator], Asked]]  # a name, flags, and what makes options and arrays
Sized = tuple[str, str, tuple[int, ...], str]  # a name, flags, the shape of x, and the form of its positions


def reals(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float64]:
    """Return reals of eight bits from -2 to 2."""
    return rng.integers(-64, 65, shape) / 32


ROTARY: tuple[Sized, ...] = (
    ("tokens-257", "tile non-contiguous", (2, 3, 257, 128), "from 0"),
    ("rows-65537", "grid", (65537, 1, 64), "rows"),
    ("tokens-4097", "long", (1, 1, 4097, 64), "from 0"),
    ("one-token", "one-token", (5, 3, 1, 64), "later"),
    ("tokens-65", "tile shuffled", (2, 2, 65, 96), "shuffled"),
    ("lanes-256", "tile wide-head", (1, 2, 33, 256), "later"),
    ("heads-33", "grid rows", (2, 33, 65, 64), "rows"),
    ("tokens-31", "tile", (7, 31, 80), "later"),
    ("tokens-63", "tile", (3, 1, 63, 192), "from 0"),
    ("tokens-64", "tile", (2, 5, 64, 64), "later"),
    ("tokens-127", "tile", (127, 112), "from 0"),
    ("tokens-129", "tile", (5, 129, 160), "later"),
)
FEW = ("tokens-257", "one-token", "heads-33", "tokens-4097")  # of operations that fewer kernels compute
HEADS: tuple[tuple[str, str, tuple[int, int, int, int, int]], ...] = (  # query heads, key heads, queries, keys, lanes
    ("keys-129", "tile", (6, 2, 129, 129, 80)),
    ("keys-257", "tile non-contiguous", (2, 2, 257, 257, 64)),
    ("keys-127", "tile wide-head", (2, 2, 63, 127, 256)),
    ("heads-33", "grid", (33, 33, 16, 257, 64)),
    ("keys-4097", "long", (1, 1, 8, 4097, 64)),
    ("one-query", "one-token", (8, 2, 1, 65, 128)),
    ("keys-31", "tile", (4, 2, 33, 31, 96)),
    ("keys-64", "tile", (3, 1, 64, 64, 64)),
    ("keys-193", "tile rising", (2, 1, 65, 193, 64)),
)
FEW_HEADS = ("keys-129", "keys-257", "one-query")
GRIDS = (  # heads, queries, keys
    ("keys-4097", "long", (12, 65, 4097)),
    ("keys-129", "tile", (8, 129, 129)),
    ("one-query", "one-token grid", (33, 1, 257)),
    ("keys-257", "tile", (2, 257, 257)),
    ("keys-769", "long", (8, 65, 769)),
    ("keys-63", "tile", (5, 33, 63)),
)
COLUMNS = (  # positions alone
    ("tokens-257", "tile", (257,)),
    ("rows-65537", "grid", (65537,)),
    ("tokens-129", "tile rows", (3, 129)),
    ("one-token", "one-token", (1,)),
    ("tokens-63", "tile", (7, 63)),
)


def positions(rng: np.random.Generator, shape: tuple[int, ...], form: str) -> npt.NDArray[np.int64]:
    """Return positions for x of a shape: one for every token, or with "rows" for every token of every row."""
    tokens = shape[-2]
    if form == "rows":
        first = rng.integers(0, 3000, (shape[0], *(1 for _ in shape[1:-1])))
        return np.asarray(first + np.arange(tokens), dtype=np.int64)
    if form == "shuffled":
        return np.asarray(rng.permutation(tokens) * 3 + 1, dtype=np.int64)
    return np.asarray(np.arange(tokens) + (0 if form == "from 0" else 37), dtype=np.int64)


# ---- operations that rotate x ----------------------------------------------------------------------------------------------
def _axes(rng: np.random.Generator, p: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return several coordinates for every token."""
    return np.stack([p, *(rng.integers(0, 64, p.shape) for _ in range(count - 1))])


def _beside_x(op: str, rng: np.random.Generator, x: tuple[int, ...], p: npt.NDArray[np.int64]) -> Asked:
    """Return the options that follow from the shape of x, and the arrays beside it."""
    lanes = x[-1]
    match op:
        case "apply_rope":
            return {}, {name: reals(rng, *p.shape, lanes // 2) / 2 for name in ("cos", "sin")}
        case "mrope":
            return {"sections": (lanes // 4, lanes // 8, lanes // 8)}, {"positions": _axes(rng, p, 3)}
        case "axial_rope":
            return {"dims": (lanes // 2, lanes // 2)}, {"positions": _axes(rng, p, 2)}
        case "mixed_rope":
            return {}, {"positions": _axes(rng, p, 2), "frequencies": rng.integers(1, 256, (2, lanes // 2)) / 1024}
        case "liere" | "circulant_string":
            size = (2, lanes // 8, 4, 4) if op == "liere" else (2, lanes // 8, 4)
            name = "generators" if op == "liere" else "coefficients"
            return {}, {"positions": _axes(rng, p, 2) % 64, name: rng.integers(-64, 64, size) / 1024}
        case "cayley_string":
            spectrum = rng.integers(1, 256, (2, lanes // 2)) / 1024
            return {}, {
                "positions": _axes(rng, p, 2),
                "skew": rng.integers(-64, 64, (lanes, lanes)) / 1024,
                "frequencies": spectrum,
            }
        case "fope":
            return {}, {"positions": p, **{n: reals(rng, lanes // 2, lanes // 4) / 16 for n in ("cos_mix", "sin_mix")}}
        case "xpos":
            return {"centre": 2048, "scale_base": 512.0}, {"positions": p % 4097}
    return {}, {"positions": p}


LAYOUTS = ("half", "interleaved")
ROPE = tuple({"layout": layout, "base": 10_000.0} for layout in LAYOUTS)
PLAIN = tuple({"layout": layout} for layout in LAYOUTS)
ROTATING: Mapping[str, tuple[Options, ...]] = {
    "apply_rope": PLAIN,
    "rope": ROPE,
    "mrope": tuple({**p, "arrangement": "chunked"} for p in ROPE),
    "axial_rope": tuple({**p, "allocation": "own", "arrangement": "chunked", "unit": "radians"} for p in ROPE),
    "mixed_rope": PLAIN,
    "xpos": tuple({**p, "role": role} for p, role in zip(ROPE, ("query", "key"), strict=True)),
    "pope": ({"layout": "cos_sin", "base": 10_000.0},),
    "fope": ({"base": 10_000.0},),
    "liere": ({},),
    "circulant_string": ({},),
    "cayley_string": ({"form": "conjugate"},),
}
MANY = ("apply_rope", "rope")  # what many kernels compute is asked at all sizes


def _rotating(op: str) -> Iterator[Row]:
    for params in ROTATING[op]:
        for name, flags, shape, form in ROTARY:
            if op in MANY or name in FEW:
                wide = (*shape[:-1], 16) if op == "cayley_string" else shape  # each of its lanes is a sum over all of them
                yield f"{params.get('layout', '')}-{name}".strip("-"), flags, _rotated(op, params, wide, form)


def _rotated(op: str, params: Options, shape: tuple[int, ...], form: str) -> Callable[[np.random.Generator], Asked]:
    def make(rng: np.random.Generator) -> Asked:
        more, arrays = _beside_x(op, rng, shape, positions(rng, shape, form))
        return {**params, **more}, {"x": reals(rng, *shape), **arrays}

    return make


# ---- operations of queries and keys ----------------------------------------------------------------------------------------
WINDOWS = {"sinks": 4, "window": 48, "counting": "with_query"}
ATTENDING: Mapping[str, tuple[tuple[Options, ...], str]] = {  # options, and arrays beside positions
    "attention_logits": (({},), "q k"),
    "attention": (({},), "q k v"),
    "dual_chunk": (tuple({**p, "chunk_size": 96, "local_size": 32} for p in ROPE), "q k"),
    "leaky_rerope": (tuple({**p, "window": 32, "factor": 4} for p in ROPE), "q k"),
    "rerope": (tuple({**p, "window": 32} for p in ROPE), "q k"),
    "self_extend": (tuple({**p, "group": 4, "window": 32, "shift": "floor"} for p in ROPE), "q k"),
    "streaming_llm": (tuple({**p, **WINDOWS} for p in ROPE), "q k"),
    "rotated_values": (ROPE, "weights v"),
    "mla_logits": (ROPE, "q_nope q_rope k_nope k_rope"),
    "rotary_linear_attention": (tuple({**p, "causal": True} for p in ROPE), "q k v"),
    "shaw_scores": (({"left": 16, "right": 16, "order": "key_minus_query"},), "q k key_table"),
    "shaw_values": (({"left": 16, "right": 16, "order": "key_minus_query"},), "weights v value_table"),
}
OWN_HEADS = ("rotary_linear_attention", "shaw_scores", "shaw_values", "mla_logits")  # keys have as many heads as queries


def _attending(op: str) -> Iterator[Row]:
    options, names = ATTENDING[op]
    for params in options:
        for name, flags, sizes in HEADS:
            if op.startswith("attention") or name in FEW_HEADS:
                yield f"{params.get('layout', '')}-{name}".strip("-"), flags, _attended(op, names, params, sizes)


def _attended(op: str, names: str, params: Options, sizes: tuple[int, ...]) -> Callable[[np.random.Generator], Asked]:
    heads, groups, queries, keys, lanes = sizes
    groups = heads if op in OWN_HEADS else groups
    shapes = {
        "q": (1, heads, queries, lanes), "k": (1, groups, keys, lanes), "v": (1, groups, keys, lanes),
        "weights": (1, heads, queries, keys), "key_table": (33, lanes), "value_table": (33, lanes),
        "q_nope": (1, heads, queries, lanes), "q_rope": (1, heads, queries, 32), "k_nope": (1, heads, keys, lanes),
        "k_rope": (1, keys, 32),
    }  # fmt: skip
    small = {"q": 0.5, "k": 0.5, "weights": 1 / 16}

    def make(rng: np.random.Generator) -> Asked:
        arrays: Arrays = {name: reals(rng, *shapes[name]) * small.get(name, 1.0) for name in names.split()}
        if not op.startswith("attention"):
            arrays |= {"q_positions": np.arange(queries) + max(keys - queries, 0), "k_positions": np.arange(keys)}
        elif op == "attention" and queries > 1 and keys in (127, 257):
            arrays["mask"] = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        elif keys == 193:  # 32 more every 16 keys: within a tile of 64 more than exp holds in float32
            arrays["bias"] = np.broadcast_to(32.0 * (np.arange(keys) // 16), (heads, queries, keys)).copy()
        return params, arrays

    return make


GRID: Mapping[str, tuple[Options, ...]] = {
    "alibi": tuple({"form": form} for form in ("distance", "causal", "key")),
    "t5_bias": tuple({"bidirectional": both, "max_distance": 128} for both in (False, True)),
    "sliding_window": tuple({"window": 48, "counting": "with_query", "sides": sides} for sides in ("causal", "both")),
    "chunked_window": ({"chunk": 48, "sides": "causal"},),
    "lambda_window": (WINDOWS,),
    "dual_chunk_distances": ({"chunk_size": 96, "local_size": 32},),
    "leaky_rerope_distances": ({"window": 32, "factor": 4},),
    "rerope_distances": ({"window": 32},),
    "self_extend_distances": ({"group": 4, "window": 32, "shift": "floor"},),
    "streaming_llm_distances": (WINDOWS,),
}


def _grid(op: str) -> Iterator[Row]:
    for params in GRID[op]:
        word = next((str(v) for k, v in params.items() if k in ("form", "sides")), "")
        word = ("both" if params["bidirectional"] else "before") if "bidirectional" in params else word
        for name, flags, sizes in GRIDS:
            if op in ("alibi", "t5_bias") or name != "keys-63":
                yield f"{word}-{name}".strip("-"), flags, _biased(op, params, sizes)


def _biased(op: str, params: Options, sizes: tuple[int, int, int]) -> Callable[[np.random.Generator], Asked]:
    heads, queries, keys = sizes

    def make(rng: np.random.Generator) -> Asked:
        arrays: Arrays = {"q_positions": np.arange(queries) + max(keys - queries, 0), "k_positions": np.arange(keys)}
        if op == "t5_bias":
            arrays["table"] = reals(rng, 32, heads)
        return {**params, **({"heads": heads} if op == "alibi" else {})}, arrays

    return make


# ---- operations of positions alone -----------------------------------------------------------------------------------------
COLUMN: Mapping[str, tuple[Options, ...]] = {
    "sinusoidal": tuple({"dim": 96, "layout": layout} for layout in ("interleaved", "sin_cos", "cos_sin")),
    "learned": ({"offset": 2},),
    "rope_table": ({},),
    "rope_cos_sin": ({"dim": 64, "base": 10_000.0},),
    "t5_buckets": tuple({"bidirectional": both, "max_distance": 128} for both in (False, True)),
    "logn_scale": ({"length": 512, "offset": 0, "at_least_one": True},),
    "attention_temperature": ({"form": "steps", "beta": 0.1, "length": 64, "offset": 0},),
    "axial_table": ({"sections": (8, 4, 4), "arrangement": "chunked"},),
    "mixed_table": ({},),
    "liere_rotations": ({},),
    "xpos_scales": ({"dim": 64, "role": "query", "centre": 2048, "scale_base": 512.0},),
}


def _column(op: str) -> Iterator[Row]:
    for params in COLUMN[op]:
        word = params.get("layout", "")
        word = ("both" if params["bidirectional"] else "before") if "bidirectional" in params else word
        for name, flags, shape in COLUMNS:
            yield f"{word}-{name}".strip("-"), flags, _placed(op, params, shape)


def _placed(op: str, params: Options, shape: tuple[int, ...]) -> Callable[[np.random.Generator], Asked]:
    def make(rng: np.random.Generator) -> Asked:
        p = rng.permutation(np.prod(shape)).reshape(shape) % 4096
        if op == "t5_buckets":
            return params, {"relative_positions": p - 2048}
        arrays: Arrays = {"positions": p}
        if op == "learned":
            arrays["table"] = reals(rng, 4098, 48)
        if op in ("axial_table", "mixed_table", "liere_rotations"):
            arrays["positions"] = _axes(rng, p % 64, 3)
        if op == "axial_table":
            arrays["inv_freq"] = rng.integers(1, 256, 16) / 1024
        if op == "mixed_table":
            arrays["frequencies"] = rng.integers(1, 256, (3, 16)) / 1024
        if op == "liere_rotations":
            arrays["generators"] = rng.integers(-64, 64, (3, 2, 4, 4)) / 1024
        if op == "rope_table":
            arrays["inv_freq"] = (10_000.0 ** -(np.arange(32) / 32)).astype(np.float32).astype(np.float64)
        return params, arrays

    return make


MAKERS: tuple[tuple[Mapping[str, Any], Callable[[str], Iterator[Row]]], ...] = (
    (ROTATING, _rotating), (ATTENDING, _attending), (GRID, _grid), (COLUMN, _column),
)  # fmt: skip


def names(op: str) -> list[str]:
    """Return the ids of an operation's cases."""
    return [f"{op}/{GROUP}/{name}" for name, _, _ in _rows(op)]


def cases(op: str, only: str | None = None) -> Iterator[Case]:
    """Yield the cases of an operation, or `only` the one of that id. Their arrays are a function of the id."""
    for name, flags, make in _rows(op):
        known = f"{op}/{GROUP}/{name}"
        if only in (None, known):
            params, inputs = make(np.random.default_rng(crc32(known.encode())))
            yield Case(known, params, inputs, tuple(flags.split()), tier=GROUP)


def _rows(op: str) -> Iterator[Row]:
    for known, maker in MAKERS:
        if op in known:
            yield from maker(op)

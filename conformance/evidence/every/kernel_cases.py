"""
The kernel tier: calls at the sizes where kernels break, made from a seed and judged live. Nothing of them is stored.

Tiles have 16 to 128 tokens and grids 65535 blocks; a head may have 256 lanes, and groups of query heads need not be powers of
two. So there are 1, 31, 33, 63, 64, 65, 127, 129, 257 and 4097 tokens or keys, head sizes from 64 to 256, 33 heads, and more
than 65536 rows in a batch, in tokens, and through heads and tokens; no axis stands for another. Common head sizes are rotated
in part too. Reals are of few bits, so that every dtype holds them. Operations of another kind are asked 257 rows, a batch of
1030 and their models' widths.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ...calls import positions_of
from ...model import Case
from ...vocabulary.axes import alternatives, arranged, limits, within
from .facts import facts_of
from .made_calls import SIZES, has_coordinates, letters, shape_of, usual_way

GROUP = "kernel"
MOST = 1000  # positions and words that have no largest one end below it
Arrays = dict[str, npt.NDArray[Any]]
Options = Mapping[str, Any]
Asked = tuple[Options, Arrays]
Row = tuple[str, str, Callable[[np.random.Generator], Asked]]  # a name, the form, and what makes options and arrays
Sized = tuple[str, tuple[int, ...], str]  # a name, the shape of x, and the form of its positions


def reals(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float64]:
    """Return reals of eight bits from -2 to 2."""
    return rng.integers(-64, 65, shape) / 32


ALL_ROWS = (33, 2049, 64)  # more rows through all axes than a grid has blocks
ROTARY: tuple[Sized, ...] = (
    ("tokens-257", (2, 3, 257, 128), "from 0"),
    ("rows-65537", (65537, 1, 64), "rows"),
    ("tokens-4097", (1, 1, 4097, 64), "from 0"),
    ("one-token", (5, 3, 1, 64), "later"),
    ("tokens-65", (2, 2, 65, 96), "shuffled"),
    ("lanes-256", (1, 2, 33, 256), "later"),
    ("heads-33", (2, 33, 65, 64), "rows"),
    ("tokens-31", (7, 31, 80), "later"),
    ("tokens-63", (3, 1, 63, 192), "from 0"),
    ("tokens-64", (2, 5, 64, 64), "later"),
    ("tokens-127", (127, 112), "from 0"),
    ("tokens-129", (5, 129, 160), "later"),
    ("heads-and-tokens", ALL_ROWS, "later"),
    ("tokens-65537", (65537, 64), "from 0"),
)
PARTS = tuple((part * head // 8, head) for head in (64, 128, 256) for part in (2, 3, 4, 6))  # rotated channels, and all
FEW_PARTS = ((48, 128), (96, 128))
FEW = ("tokens-257", "one-token", "heads-33", "tokens-4097", "heads-and-tokens")  # of operations that do not ask for every size
HEADS: tuple[tuple[str, tuple[int, int, int, int, int]], ...] = (  # query heads, key heads, queries, keys, lanes
    ("keys-129", (6, 2, 129, 129, 80)),
    ("keys-257", (2, 2, 257, 257, 64)),
    ("keys-127", (2, 2, 63, 127, 256)),
    ("heads-33", (33, 33, 16, 257, 64)),
    ("keys-4097", (1, 1, 8, 4097, 64)),
    ("one-query", (8, 2, 1, 65, 128)),
    ("keys-31", (4, 2, 33, 31, 96)),
    ("keys-64", (3, 1, 64, 64, 64)),
    ("keys-193", (2, 1, 65, 193, 64)),
    ("queries-2049", (33, 33, 2049, 8, 64)),
    ("keys-2049", (33, 33, 8, 2049, 64)),
)
FEW_HEADS = ("keys-129", "keys-257", "one-query", "queries-2049", "keys-2049")
GRIDS = (  # heads, queries, keys
    ("keys-4097", (12, 65, 4097)),
    ("keys-129", (8, 129, 129)),
    ("one-query", (33, 1, 257)),
    ("keys-257", (2, 257, 257)),
    ("keys-769", (8, 65, 769)),
    ("keys-63", (5, 33, 63)),
    ("square-1030", (1, 1030, 1030)),  # a window shows at its edges alone
)
IMAGES = (  # images, heads, rows and columns of patches, channels
    ("patches-129", (2, 3, 3, 43, 80)),
    ("patches-257", (1, 2, 257, 1, 64)),
    ("patches-196", (3, 1, 14, 14, 64)),
    ("heads-33", (1, 33, 5, 7, 16)),
    ("one-patch", (5, 2, 1, 1, 96)),
)
WHOLE: tuple[tuple[str, dict[str, Any]], ...] = (  # of other kinds, besides their own sizes
    ("rows-257", {"P": (257,), "T": 257, "R": (2,), "I": 14, "J": 19}),
    ("batch-1030", {"P": (1030, 3), "T": 3, "R": (1030,), "I": 3, "J": 2}),
    ("rows-4099", {"P": (4099,), "T": 4099, "R": ()}),
    ("rows-65537", {"P": (65537,), "T": 65537, "R": (), "D": 8}),
)
COLUMNS = (  # positions alone
    ("tokens-257", (257,)),
    ("rows-65537", (65537,)),
    ("tokens-129", (3, 129)),
    ("one-token", (1,)),
    ("tokens-63", (7, 63)),
)
ALONE = (("model", (1,)),)  # where options and tables say all sizes
STRIDED = ("tokens-257", "keys-257")  # of rotations and of queries and keys: the arrays are not contiguous


def positions(rng: np.random.Generator, shape: tuple[int, ...], form: str) -> npt.NDArray[np.int64]:
    """Return positions for x of a shape: one for every token, or with "rows" for every token of every row."""
    tokens = shape[-2]
    if form == "rows":
        first = rng.integers(0, 3000, (shape[0], *(1 for _ in shape[1:-1])))
        return np.asarray(first + np.arange(tokens), dtype=np.int64)
    if form == "shuffled":
        return np.asarray(rng.permutation(tokens) * 3 + 1, dtype=np.int64)
    return np.asarray(np.arange(tokens) + (0 if form == "from 0" else 37), dtype=np.int64)


# ---- arrays ---------------------------------------------------------------------------------------------------------------
def _axes(rng: np.random.Generator, p: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return several coordinates for every token."""
    return np.stack([p, *(rng.integers(0, 64, p.shape) for _ in range(count - 1))])


@dataclass(frozen=True)
class Beside:
    """What the arrays of parameters depend on: tokens, and how many coordinates, pairs and blocks of channels there are."""

    tokens: tuple[int, ...]
    coordinates: int
    pairs: int
    blocks: int


def _parameters(rng: np.random.Generator, op: str, name: str, sizes: Beside, known: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return an array of parameters: numbers of the size that they have in models, within the domain of the registry."""
    count, pairs, blocks = sizes.coordinates, sizes.pairs, sizes.blocks
    match name:
        case "cos" | "sin":
            return reals(rng, *sizes.tokens, pairs) / 2
        case "inv_freq":
            ladder = (10_000.0 ** -(np.arange(32) / 32)).astype(np.float32).astype(np.float64)
            return rng.integers(1, 256, pairs) / 1024 if count > 1 else ladder
        case "frequencies":
            return rng.integers(1, 256, (count, pairs)) / 1024
        case "generators":
            return rng.integers(-64, 64, (count, blocks, 4, 4)) / 1024
        case "coefficients":
            return rng.integers(-64, 64, (count, blocks, 4)) / 1024
        case "skew":
            return rng.integers(-64, 64, (2 * pairs, 2 * pairs)) / 1024
        case "cos_mix" | "sin_mix":
            return reals(rng, pairs, pairs // 2) / 16
    return _reals(rng, op, name, known)


def _reals(rng: np.random.Generator, op: str, name: str, known: Mapping[str, Any], scale: float = 1.0) -> npt.NDArray[Any]:
    """Return reals of the shape that the registry states, within their domain."""
    axes = REGISTRY[op].arrays[name]
    ways = alternatives(axes.shape)
    shape = shape_of(ways[min(usual_way(op), len(ways) - 1)], {**SIZES, **facts_of(op).sizes, **known}, rows=True)
    if axes.kind == "mask":
        return np.asarray(np.indices(shape).sum(axis=0) % 3 != 1)
    return within(scale * reals(rng, *shape), axes, known, 8)


def _given(op: str) -> list[str]:
    """Return the arrays that a call must have."""
    return [name for name, axes in REGISTRY[op].arrays.items() if not axes.optional]


def _view(name: str) -> str:
    """Return the form of a call of this name."""
    return "non-contiguous" if name in STRIDED else ""


# ---- operations that rotate x ----------------------------------------------------------------------------------------------
def _rotating(op: str) -> Iterator[Row]:
    summed = "skew" in REGISTRY[op].arrays  # each channel is a sum over all of them
    multiplied = "matrices" in REGISTRY[op].arrays  # over half of them, by a matrix of every token
    for params in facts_of(op).kernel:
        for name, shape, form in ROTARY:
            if facts_of(op).every_size or name in FEW:
                x = (*shape[:-1], 16) if summed or (multiplied and shape == ALL_ROWS) else shape
                yield f"{_word(op, params, 'layout')}-{name}".strip("-"), _view(name), _rotated(op, params, x, form)
        if "rotary_dim" in REGISTRY[op].domains or "cos" in REGISTRY[op].arrays:
            for part, head in PARTS if facts_of(op).every_size else FEW_PARTS:
                name = f"{params['layout']}-part-{part}-of-{head}"
                yield name, "", _rotated(op, params, (2, 3, 33, head), "later", part)
            yield f"{params['layout']}-32-of-heads-and-tokens", "", _rotated(op, params, ALL_ROWS, "later", 32)


def _rotated(
    op: str, params: Options, x: tuple[int, ...], form: str, part: int | None = None
) -> Callable[[np.random.Generator], Asked]:
    """Return a maker of calls that rotate all channels, or a part."""
    channels, domains = part or x[-1], REGISTRY[op].domains
    options = dict(params)
    if part is not None and "rotary_dim" in domains:
        options["rotary_dim"] = part
    if "sections" in domains:
        options["sections"] = (channels // 4, channels // 8, channels // 8)
    if "dims" in domains:
        options["dims"] = (channels // 2, channels // 2)
    count = len(options.get("sections", options.get("dims", "xy")))

    def make(rng: np.random.Generator) -> Asked:
        p = positions(rng, x, form)
        sizes = Beside(p.shape, count, channels // 2, channels // 8)
        beside: Arrays = {}
        for name in (name for name in _given(op) if name != "x"):
            if REGISTRY[op].arrays[name].kind in ("position", "integer"):
                beside[name] = _places(rng, op, name, p, count, options)
            else:
                rest = x[-1] - channels
                known = {**options, "n": channels // 2, "tail": rest, "T": x[-2], "R": x[:-2]}
                known |= {"E": rest} if "sections" in options else {}
                beside[name] = _parameters(rng, op, name, sizes, known)
        return options, {"x": reals(rng, *x), **beside}

    return make


def _places(
    rng: np.random.Generator, op: str, name: str, p: npt.NDArray[np.int64], count: int, options: Options
) -> npt.NDArray[np.int64]:
    """Return positions as an operation takes them: with several coordinates, and not beyond the largest."""
    if has_coordinates(op, name):
        near = {"generators", "coefficients"} & {*REGISTRY[op].arrays}  # an exponential of matrices costs more the farther
        return _axes(rng, p, count) % 64 if near else _axes(rng, p, count)
    high = limits(REGISTRY[op].arrays[name], options)[1]
    return p if high is None else p % (int(high) + 1)


# ---- operations of queries and keys ----------------------------------------------------------------------------------------
SMALL = {"q": 0.5, "k": 0.5, "weights": 1 / 16}  # so that logits are of the size that they have in models


def _attending(op: str) -> Iterator[Row]:
    for params in facts_of(op).kernel:
        for name, sizes in HEADS:
            if facts_of(op).every_size or name in FEW_HEADS:
                yield f"{_word(op, params, 'layout')}-{name}".strip("-"), _view(name), _attended(op, params, sizes)


def _attended(op: str, params: Options, sizes: tuple[int, ...]) -> Callable[[np.random.Generator], Asked]:
    heads, groups, queries, keys, channels = sizes
    axes = letters(op)
    known = {
        "R": (1,) if {"G", "H"} & axes else (1, heads), "H": heads, "G": groups, "g": heads // groups, "Q": queries, "K": keys,
        "D": channels, "N": channels, "E": channels, "n": 16 if "N" in axes else channels // 2, **params,
    }  # fmt: skip

    def make(rng: np.random.Generator) -> Asked:
        arrays: Arrays = {}
        for name in _given(op):
            made = _of_pairs(name, queries, keys)
            arrays[name] = _reals(rng, op, name, known, SMALL.get(name, 1.0)) if made is None else made
        if "mask" in REGISTRY[op].arrays and queries > 1 and keys in (127, 257):
            arrays["mask"] = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        elif "bias" in REGISTRY[op].arrays and keys == 193:  # 32 more every 16 keys: in 64 more than exp holds in float32
            arrays["bias"] = np.broadcast_to(32.0 * (np.arange(keys) // 16), (heads, queries, keys)).copy()
        return params, arrays

    return make


def _of_pairs(name: str, queries: int, keys: int) -> npt.NDArray[Any] | None:
    """Return the positions of queries or of keys, the last query at the last key; None for another argument."""
    if name == "q_positions":
        return np.arange(queries) + max(keys - queries, 0)
    return np.arange(keys) if name == "k_positions" else None


def _grid(op: str) -> Iterator[Row]:
    for params in facts_of(op).kernel:
        for name, sizes in GRIDS:
            if facts_of(op).every_size or name != "keys-63":
                yield f"{_word(op, params, 'form', 'sides')}-{name}".strip("-"), "", _biased(op, params, sizes)


def _word(op: str, params: Options, *names: str) -> str:
    """Return the word by which calls with several options differ."""
    if "bidirectional" in params:
        return "both" if params["bidirectional"] else "before"
    every = facts_of(op).kernel
    word = next((name for name in params if name in names), None)
    if word is None or sum(other.get(word) == params[word] for other in every) > 1:
        return _words_apart(params, every)
    return str(params[word])


def _biased(op: str, params: Options, sizes: tuple[int, int, int]) -> Callable[[np.random.Generator], Asked]:
    heads, queries, keys = sizes
    options = {**params, **({"heads": heads} if "heads" in REGISTRY[op].domains else {})}

    def make(rng: np.random.Generator) -> Asked:
        arrays: Arrays = {}
        for name in _given(op):
            made = _of_pairs(name, queries, keys)
            arrays[name] = _reals(rng, op, name, {"N": 32, "H": heads, **options}) if made is None else made
        return options, arrays

    return make


# ---- operations of images --------------------------------------------------------------------------------------------------
def _imaged(op: str) -> Iterator[Row]:
    for params in facts_of(op).kernel:
        for name, sizes in IMAGES:
            yield name, "", _of_patches(op, params, sizes)


def _of_patches(op: str, params: Options, sizes: tuple[int, ...]) -> Callable[[np.random.Generator], Asked]:
    images, heads, rows, columns, channels = sizes
    known = {"R": (images, heads), "I": rows, "J": columns, "D": channels, "d": channels, **params}

    def make(rng: np.random.Generator) -> Asked:
        return params, {name: _reals(rng, op, name, known, SMALL.get(name, 1.0)) for name in _given(op)}

    return make


# ---- operations of positions alone -----------------------------------------------------------------------------------------
def _column(op: str) -> Iterator[Row]:
    for params in facts_of(op).kernel:
        for name, shape in COLUMNS if positions_of(op) or "inv_freq" in REGISTRY[op].arrays else ALONE:
            yield f"{_word(op, params, 'layout')}-{name}".strip("-"), "", _placed(op, params, shape)


def _placed(op: str, params: Options, shape: tuple[int, ...]) -> Callable[[np.random.Generator], Asked]:
    def make(rng: np.random.Generator) -> Asked:
        p = rng.permutation(np.prod(shape)).reshape(shape) % 4096
        arrays: Arrays = {}
        for name, axes in REGISTRY[op].arrays.items():
            if axes.kind not in ("position", "integer"):
                known = {"N": 4096 + params.get("offset", 0), "d": 48, **params}
                count = 3 if has_coordinates(op) else 1
                arrays[name] = _parameters(rng, op, name, Beside(shape, count, 16, 2), known)
            elif name == "relative_positions":
                arrays[name] = p - 2048
            else:
                arrays[name] = _axes(rng, p % 64, 3) if has_coordinates(op, name) else p
        return params, arrays

    return make


# ---- operations of another kind --------------------------------------------------------------------------------------------
def _whole(op: str) -> Iterator[Row]:
    """Yield calls with many rows, each with the widths in the operation's evidence, if it has row axes."""
    letters_of = {axis.lstrip("~*") for axis in letters(op)}
    needed = {
        "rows-4099": letters_of & {"P", "T"},
        "rows-65537": letters_of >= {"T", "D"} and "x" in REGISTRY[op].arrays,
    }
    for params in facts_of(op).kernel:
        word = _words_apart(params, facts_of(op).kernel)
        several = letters_of & {"P", "T", "R", "B"} and "R" not in (facts_of(op).kernel_sizes or {})
        for name, sizes in WHOLE if several else [("widths", {})]:
            if needed.get(name, True):
                yield f"{word}-{name}".strip("-"), "", _widened(op, params, sizes)


def _words_apart(params: Options, every: Sequence[Options]) -> str:
    """Return the options in which a call differs from the others of its operation, for its name."""
    apart = [name for name, value in params.items() if any(other.get(name) != value for other in every)]
    words = [params[n] if isinstance(params[n], str) else f"{n}-{params[n]}" for n in apart]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def _widened(op: str, params: Options, sizes: Options) -> Callable[[np.random.Generator], Asked]:
    of_kernel = facts_of(op).kernel_sizes or {}
    known = {**SIZES, **facts_of(op).sizes, **sizes, **of_kernel, **params} | {n: sizes[n] for n in ("D",) if n in sizes}

    def make(rng: np.random.Generator) -> Asked:
        arrays: Arrays = {}
        for name in _given(op):
            axes = REGISTRY[op].arrays[name]
            ways = alternatives(axes.shape)
            shape = shape_of(ways[min(usual_way(op), len(ways) - 1)], known, rows=True)
            if axes.kind == "mask":
                arrays[name] = rng.random(shape) < 0.875
            elif axes.kind == "integer" or (axes.kind == "position" and name != "x"):
                low, high = limits(axes, known)
                places = rng.integers(int(low or 0), MOST if high is None else int(high) + 1, shape)
                arrays[name] = arranged(places, axes)
            else:
                arrays[name] = within(reals(rng, *shape), axes, known, 8)
        return params, arrays

    return make


def names(op: str) -> list[str]:
    """Return the ids of an operation's cases."""
    return [f"{op}/{GROUP}/{name}" for name, _, _ in _rows(op)]


def kernel(op: str, only: str | None = None) -> Iterator[Case]:
    """Yield the cases of an operation, or `only` the one of that id. Their arrays are a function of the id."""
    for name, form, make in _rows(op):
        known = f"{op}/{GROUP}/{name}"
        if only in (None, known):
            params, inputs = make(np.random.default_rng(crc32(known.encode())))
            yield Case(known, params, inputs, tier=GROUP, form=form)


def _rows(op: str) -> Iterator[Row]:
    yield from _maker(op)(op)


def _maker(op: str) -> Callable[[str], Iterator[Row]]:
    """Return what makes the calls of an operation, by the axes of its arrays."""
    arrays = REGISTRY[op].arrays
    if facts_of(op).kernel_sizes is not None:
        return _whole
    if {"I", "J"} <= letters(op):
        return _imaged
    if "x" in arrays:
        return _rotating
    if not {"Q", "K"} <= letters(op):
        return _column
    of_reals = " ".join(axes.shape for axes in arrays.values() if axes.kind == "real").replace("~", "").split()
    return _attending if {"Q", "K"} & {*of_reals} else _grid

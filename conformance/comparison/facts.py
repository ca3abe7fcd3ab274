"""
What an encoding does, computed by moving, exchanging and scaling positions in drawn calls of its definition.

The effect of positions a and b is what a query at a gets from a key at b: a logit, a bias, a mask or a value. Vectors that are
rotated, and vectors to which an encoding is added, are drawn once; their effect is the logit. So the effect changes with the
positions alone. A fact holds for every option ("yes"), for none ("no"), or for the options that it names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.about import described
from posref.spec import REGISTRY, Encoding, Flag, OneOf

from ..calls import bind
from ..evidence.every.facts import facts_of
from ..evidence.every.made_calls import call, usual_way
from ..vocabulary.axes import alternative, limits

Numbers = npt.NDArray[np.float64]
Effect = Callable[[int, int], Numbers]

PLACES = ("position", "integer")
PAIRS = ((40, 33), (40, 39), (61, 40), (17, 5), (9, 0), (40, 1), (300, 7), (6, 4), (5, 6), (2, 8))  # of a query and a key
SHIFTS = (1, 7, 64)
SHORT = 16  # positions: a range of no more is tried whole
OCTAVES = range(3, 20)
PER_OCTAVE = 16
DRAWS = 4  # of learned numbers: only what all of them show is a fact
NEAR = 11  # octaves that a text may have, 2**14 tokens
CLOSE = 1e-7  # of float64, angles of 2**15 included


def facts(op: str) -> dict[str, str]:
    """Return the facts of an encoding, "" where a fact has no meaning or is not computed."""
    probes = list(_probes(op))
    return {
        "acts on": acts_on(REGISTRY[op]),
        **{name: _of_options(probes, test) for name, test in TESTS.items()},
        "axes": _axes(op),
        "weights": ", ".join(_learned(op)),
        "size": _size(REGISTRY[op]),
    }


# ---- what is read from the registry's axes -----------------------------------------------------------------------------------
def acts_on(record: Encoding) -> str:
    """Return what the positions change."""
    result = record.result[0]
    if record.returns == "mask":
        return "mask"
    if record.family == "absolute":
        return "embeddings"
    if {"weights", "v"} <= set(record.arrays):
        return "values"
    role = record.domains.get("role")
    if isinstance(role, OneOf) and "output" in role.words:
        return "queries, keys, values and the output"
    if record.returns == "integer":
        return "logits, by a table"
    if record.family == "extension" and "Q" not in result.split():
        return "queries"
    return "queries and keys" if {"x", "v"} & set(record.arrays) else "logits"


def _learned(op: str) -> list[str]:
    """Return the arrays whose description says that they are learned."""
    record = REGISTRY[op]
    return [
        name
        for name, text in described(record).items()
        if name in record.arrays and re.search(r"\blearned\b", text, re.IGNORECASE)
    ]


def _size(record: Encoding) -> str:
    """Return how the numbers that it makes grow with the tokens."""
    words = re.findall("[a-z_]+|[A-Z]", record.result[0])
    twice = any(words.count(word) > 1 for word in ("N", "width"))  # nodes, or cells of a grid
    pairs = twice or {"Q", "K"} <= set(words) or {"queries", "k_rows"} & set(words) or "relative_positions" in record.arrays
    return "each pair of tokens" if pairs else "each token"


def _axes(op: str) -> str:
    """Return how many coordinates a position has."""
    record = REGISTRY[op]
    for axes in record.arrays.values():
        letters = axes.shape.split("|")[0].split()
        if axes.kind in PLACES and letters:
            if letters[0] == "A" or letters[0].startswith("len(") or letters[-1] == "c":
                return "any"
            if letters[0] == "2" or letters[-1] == "4":
                return "2" if letters[0] == "2" else "box"
    if {"matrices", "distances", "adjacency"} & set(record.arrays):
        return "pose" if "matrices" in record.arrays else "graph"
    names = {"height", "depth", "k_rows"} & set(record.domains)
    grid = names or any({"I J", "H W"} & {axes.shape[-3:], axes.shape[-5:-2]} for axes in record.arrays.values())
    return "2 or 3" if "depth" in names else "2" if grid else "1"


# ---- what is computed --------------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class Probe:
    """Generated calls with one choice of options: `word` is that of `option`, which the others have as usual."""

    op: str
    option: str
    word: Any
    options: dict[str, Any]
    draw: int = 0

    @cached_property
    def effect(self) -> tuple[Effect | None, int | None]:
        """The effect of two positions, if there are any, and the largest position that has one."""
        try:
            effect, top = _effect(self.op, self.options, self.draw)
            if effect is not None:
                effect(1, 0)
        except (ValueError, TypeError, KeyError, IndexError, NameError):  # words of options that exclude each other
            return None, None
        return effect, top

    @cached_property
    def octaves(self) -> list[Numbers]:
        """What a query at 2p gets from a key at p, for distances p of each octave up to the largest position."""
        effect, top = self.effect
        ends = [octave for octave in OCTAVES if top is None or 2 ** (octave + 2) <= top]
        if effect is None or len(ends) < 5:
            return []
        places = [np.unique(np.geomspace(2**octave, 2 ** (octave + 1) - 1, PER_OCTAVE).astype(int)) for octave in ends]
        return [np.stack([effect(2 * int(place), int(place)) for place in each]) for each in places]


def _probes(op: str) -> Iterator[Probe]:
    """Yield the usual options, then every word in turn of each option that is a word or a flag."""
    usual = facts_of(op).options
    yield Probe(op, "", "", usual)
    for name, domain in REGISTRY[op].domains.items():
        words = domain.words if isinstance(domain, OneOf) else (False, True) if isinstance(domain, Flag) else ()
        yield from (Probe(op, name, word, usual | {name: word}) for word in words if name != "role")


def _of_options(probes: list[Probe], test: Callable[[Probe], bool | None]) -> str:
    """Return for which options a test holds."""
    results: dict[str, dict[str, bool]] = {}
    for probe in probes:
        holds = test(probe) if probe.effect[0] is not None else None
        if holds is not None:
            results.setdefault(probe.option, {})[f"{probe.option}={probe.word}"] = holds
    deciding = [words for words in results.values() if len(set(words.values())) == 2]
    if deciding:
        return " or ".join(word for words in deciding for word, holds in words.items() if holds)
    return "" if not results else "yes" if next(iter(next(iter(results.values())).values())) else "no"


def _pairs(top: int | None) -> list[tuple[int, int]]:
    """Return pairs of positions up to the largest, all of them if they are few."""
    if top is not None and top < SHORT:
        return [(a, b) for a in range(top + 1) for b in range(top + 1)]
    return [(a, b) for a, b in PAIRS if top is None or max(a, b) <= top]


def _relative(probe: Probe) -> bool | None:
    """Return whether nothing changes if all positions move."""
    effect, top = probe.effect
    assert effect is not None
    moves = [(a, b, shift) for a, b in _pairs(top) for shift in SHIFTS if top is None or max(a, b) + shift <= top]
    return all(_same(effect(a + shift, b + shift), effect(a, b)) for a, b, shift in moves)


def _direction(probe: Probe) -> bool | None:
    """Return whether something changes if a query and a key exchange their positions."""
    effect, top = probe.effect
    if effect is None or acts_on(REGISTRY[probe.op]) in ("queries", "mask"):
        return None
    return not all(_same(effect(a, b), effect(b, a)) for a, b in _pairs(top))


def _bounded(probe: Probe) -> bool | None:
    """Return whether the effect stops growing as positions do."""
    levels = [float(np.max(np.abs(octave))) for octave in probe.octaves[-7:]]
    if not levels:
        return None
    return not (all(after > before for before, after in pairwise(levels)) and levels[-1] > 1.2 * levels[0])


def _decays(probe: Probe) -> bool | None:
    """Return whether the largest effect in an octave of distances falls from octave to octave, until nothing is left."""
    record, changed = REGISTRY[probe.op], acts_on(REGISTRY[probe.op])
    meets = changed == "logits" or "keys" in changed
    if not probe.octaves or record.returns != "real" or "v" in record.arrays or not meets:
        return None
    draws = range(1, DRAWS) if _learned(probe.op) else ()
    return all(map(_falls, (probe, *(replace(probe, draw=draw) for draw in draws))))


def _falls(probe: Probe) -> bool:
    size = (lambda octave: octave) if REGISTRY[probe.op].family == "bias" else np.abs
    levels = [float(np.max(size(octave))) for octave in probe.octaves[:NEAR]]
    floor = 1e-9 * abs(levels[0])
    return all(after < before - floor or 0 <= before <= floor for before, after in pairwise(levels))


def _past(probe: Probe) -> bool | None:
    """Return whether a position beyond the last row of its tables has a value, as every position has without a table."""
    arrays = {name: axes for name, axes in REGISTRY[probe.op].arrays.items() if axes.index}
    params, inputs = _drawn(probe.op, probe.options)
    larger = params | {name: params[name] + 1 for name in ("height", "width") if name in params}  # with the same tables
    calls = [(larger, inputs)] if larger != params else []
    for name, axes in arrays.items():
        high = limits(axes, _sizes(probe.op, params, inputs))[1]
        calls.append((params, {**inputs, name: np.full(inputs[name].shape, int(high or 0) + 1, dtype=np.int64)}))
    try:
        for options, arguments in calls:
            _run(probe.op, options, arguments)
    except (ValueError, IndexError):
        return False
    return True


TESTS: dict[str, Callable[[Probe], bool | None]] = {
    "relative": _relative, "direction": _direction, "bounded": _bounded, "decays": _decays, "past its table": _past,
}  # fmt: skip


def _same(one: Numbers, other: Numbers) -> bool:
    largest = max(float(np.max(np.abs(one), initial=0)), 1.0)
    return bool(np.allclose(one, other, rtol=0, atol=CLOSE * largest, equal_nan=True))


# ---- the effect of two positions ---------------------------------------------------------------------------------------------
def _effect(op: str, options: dict[str, Any], draw: int) -> tuple[Effect | None, int | None]:
    """Return the effect of two positions and the largest position that has one; no effect where there are no positions."""
    record = REGISTRY[op]
    names = [name for name, axes in record.arrays.items() if axes.kind in PLACES]
    if set(record.arrays) == {"mask"}:
        settings = {name: value for name, value in facts_of(op).with_option[""].items() if name in record.domains}
        return (lambda a, b: _logit_of_sums(_run(op, settings, {"mask": np.ones((1, 5, 5), dtype=bool)})[0][[a, b], [a, b]])), 4
    params, inputs = _drawn(op, options, draw)
    top = None
    if names:
        highs = [limits(record.arrays[name], _sizes(op, params, inputs))[1] for name in names]
        top = min((int(high) for high in highs if high is not None), default=None)
    if len(names) == 2 and names[0].startswith("q_"):
        first = slice(1) if record.result[0].split()[-1] == "K" else slice(None)  # the key at b, not the one beside the query
        return (lambda a, b: _run(op, params, inputs | _two(op, names, inputs, a, b))[..., first].ravel()), top
    if names == ["relative_positions"]:
        return (lambda a, b: _run(op, params, {names[0]: np.asarray(b - a)}).ravel()), top
    if "matrices" in inputs:
        return (lambda a, b: _posed(op, params, inputs, a, b)), top
    if len(names) == 1 and "x" in record.arrays and record.family == "rotary":
        return (lambda a, b: _product(op, params, {**inputs, names[0]: _places(op, names[0], inputs, [a, b])})), top
    if len(names) == 1 and record.family == "absolute":
        return (lambda a, b: _added(op, params, inputs, names[0], a, b)), top
    if len(names) == 1 and acts_on(record) == "queries":
        return (lambda a, b: _run(op, params, {**inputs, names[0]: _places(op, names[0], inputs, [a])}).ravel()), top
    if {"height", "width"} <= set(params) and not params.get("class_token"):
        return _of_cells(op, params, inputs)
    return None, None


def _drawn(op: str, options: Mapping[str, Any], draw: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and arrays of a call with one query and two keys, or two tokens. Masks hide nothing."""
    params, arrays = call(op, f"comparison{draw or ''}", options, R=(), T=2, Q=1, K=2, P=(2,), bits=24)
    masks = {name for name, axes in REGISTRY[op].arrays.items() if axes.kind == "mask"}
    return params, {name: np.ones_like(array) if name in masks else array for name, array in arrays.items()}


def _sizes(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(params)
    for name, array in inputs.items():
        letters = alternative(op, REGISTRY[op].arrays[name].shape, usual_way(op))
        ends = zip(letters[::-1], np.shape(array)[::-1], strict=False)  # leading axes may be missing
        known |= {letter: size for letter, size in ends if letter.isidentifier()}
    return known


def _run(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any]) -> Numbers:
    positional, keywords = bind(op, {name: array for name, array in inputs.items() if array is not None}, params)
    results = REGISTRY[op].function(*positional, **keywords)
    return np.asarray(results[0] if isinstance(results, tuple) else results, dtype=np.float64)


def _places(op: str, name: str, inputs: Mapping[str, Any], places: list[int]) -> npt.NDArray[Any]:
    """Return positions in the shape of an argument: the same number in every coordinate; of a box, the sides."""
    axes, like = REGISTRY[op].arrays[name], inputs[name]
    dtype = np.int64 if axes.kind == "integer" else np.float64
    letters = alternative(op, axes.shape, usual_way(op))
    if letters[-1:] in (["c"], ["4"]):
        return np.repeat(np.asarray(places, dtype=dtype)[:, None], like.shape[-1], axis=1)
    return np.broadcast_to(np.asarray(places, dtype=dtype), (*like.shape[:-1], len(places))).copy()


def _two(op: str, names: list[str], inputs: Mapping[str, Any], a: int, b: int) -> dict[str, Any]:
    """Return the positions of a query at a, of a key at b and of a key beside the query, which a normalized sum needs."""
    return {names[0]: _places(op, names[0], inputs, [a]), names[1]: _places(op, names[1], inputs, [b, a])}


def _posed(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any], a: int, b: int) -> Numbers:
    """Return the logit of two drawn vectors at two poses. A larger number is a pose further along one path: G, G G, ..."""
    size = inputs["matrices"].shape[-1]
    drawn = np.random.default_rng(7).standard_normal((size, size))
    skew = (drawn - drawn.T) / 8
    step = np.linalg.solve(np.eye(size) - skew, np.eye(size) + skew)  # a rotation (Cayley)
    poses = np.stack([inputs["matrices"][k] @ np.linalg.matrix_power(step, place) for k, place in enumerate((a, b))])
    return _product(op, params, {**inputs, "matrices": poses, "inverses": np.linalg.inv(poses)})


def _product(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any]) -> Numbers:
    """Return the logit of the first token's query and the second one's key."""
    role = REGISTRY[op].domains.get("role")
    words = role.words[:2] if isinstance(role, OneOf) else ()
    query, key = (_run(op, {**params, "role": word}, inputs) for word in words) if words else (_run(op, params, inputs),) * 2
    return np.asarray([query[..., 0, :].ravel() @ key[..., 1, :].ravel()])


def _added(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any], name: str, a: int, b: int) -> Numbers:
    """Return the logit of two drawn vectors and a drawn matrix, once two rows of the encoding are added."""
    return _logit_of_sums(_run(op, params, {**inputs, name: _places(op, name, inputs, [a, b])}).reshape(2, -1))


def _logit_of_sums(rows: Numbers) -> Numbers:
    width = rows.shape[1]
    drawn = np.random.default_rng(43)
    vectors, matrix = drawn.standard_normal((2, width)), drawn.standard_normal((width, width)) / width
    query, key = vectors + rows
    return np.asarray([query @ matrix @ key])


def _of_cells(op: str, params: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[Effect | None, int | None]:
    """Return the effect of two cells on the diagonal of a square grid, and the last cell."""
    side = 4
    sizes = {"height": side, "width": side, **({"depth": 1} if "depth" in params else {})}
    options = dict(params) | sizes
    _, arrays = call(op, "comparison", options, R=(), T=2, Q=1, K=2, bits=24)
    whole = _run(op, options, arrays)[..., : side * side, : side * side]
    cells = whole.reshape(-1, side, side, side, side)
    return (lambda a, b: cells[:, a, a, b, b]), side - 1

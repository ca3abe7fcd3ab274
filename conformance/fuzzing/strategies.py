"""
Draws random calls with hypothesis: valid options and inputs of any operation, as the registry describes them.

Everything is simplest first, so that shrinking ends in a short call: defaults left out, sizes of 1, positions near 0, zeros.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from posref.backends.rounding import BITS, round_to
from posref.scaling import RECORDS
from posref.spec import REGISTRY, Axes, Domain, Encoding, Flag, Integer, Integers, OneOf, Real, Record

from ..accuracy import DEFAULT_CLAIM
from ..calls import bind, class_of_claim, given_dtype
from ..errors import TargetError, no_operation
from ..judge import judge
from ..model import Call
from ..proof.evaluation import result_placeholders
from ..vocabulary.axes import alternatives, arranged, holds, limits, meets, names_in, size_options, value_of, within
from ..vocabulary.traits import defaults

SIZES = (1, 2, 3, 4, 5, 1, 2, 3, 4, 6, 7, 8, 0, 9, 12, 16, 24, 33, 40, 56, 64)
LEADING, ALONE = (1, 2, 3, 0), (4, 7, 16, 40, 150)  # sizes of the axes that a star stands for: a few, or a long one
MOST, WORK = 400, 1500  # elements of an array, and of the product of all sizes
DISTINCT = 24  # different elements of an array
TOPS = (8, 40, 300, 4100, 70_000, 2**20, 2**24 + 8, 2**30 - 1)  # of positions: differences stay within int32
EDGES = tuple(2**k + d for k in range(3, 31) for d in (-1, 0, 1))
MULTIPLE = re.compile(r"(\w+) % (.+) == 0")
LENGTH, FACTOR = Integer(1, usual=2**17), Real(0)  # of the fields of a record

Values = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """A call without its numbers: options, the shapes of the arrays, and the sizes drawn for them."""

    params: Values
    shapes: dict[str, tuple[int, ...]]
    sizes: Values

    def known(self, record: Encoding) -> Values:
        """Return what the names in expressions stand for."""
        return {**defaults(record.name), **self.params, **self.sizes}


@st.composite
def calls(draw: st.DrawFn, op: str, dtype: str) -> Call:
    """Draw a call of an operation, reals in float64 and integers in int64; its real inputs are representable in `dtype`."""
    arrays = REGISTRY[op].arrays
    frame = draw(frames(op))
    known = frame.known(REGISTRY[op])
    fractional = any(axes.kind == "position" for axes in arrays.values()) and draw(st.booleans())
    inputs = {}
    for name, shape in frame.shapes.items():
        wide = given_dtype(op, name, dtype)
        inputs[name] = np.asarray(draw(numbers(arrays[name], shape, wide, fractional, known)))  # NumPy's 0-d sums are scalars
    return Call(frame.params, inputs)


def arguments(op: str, dtype: str) -> st.SearchStrategy[tuple[tuple[Any, ...], Values]]:
    """Return a strategy of the arrays and the options of NumPy calls that can be judged; bfloat16 comes in float32."""
    if op not in REGISTRY:
        raise TargetError(no_operation("op", op))
    if dtype not in DEFAULT_CLAIM:
        msg = f"dtype must be one of {', '.join(DEFAULT_CLAIM)}; got {dtype!r}."
        raise TargetError(msg)

    def bound(call: Call) -> tuple[tuple[Any, ...], Values]:
        wide = {name: given_dtype(op, name, dtype).replace("bfloat16", "float32") for name in call.inputs}
        inputs = {name: x.astype(wide[name]) if x.dtype.kind == "f" else x for name, x in call.inputs.items()}
        arrays, options = bind(op, inputs, call.params)
        return tuple(arrays), options

    judged_in = {dtype, dtype.replace("bfloat16", "float32")}
    return calls(op, dtype).filter(lambda call: all(can_be_judged(op, call, name) for name in judged_in)).map(bound)


def can_be_judged(op: str, call: Call, dtype: str) -> bool:
    """Return whether the default class of a dtype says something of every result of a call."""
    zeros = result_placeholders(op, call.inputs, call.params)
    judgement = judge(op, replace(call, expected=zeros), zeros, class_of_claim(op, DEFAULT_CLAIM[dtype]), dtype, truth="live")
    return judgement.sample is not None and all(verdict.judged or not verdict.of for verdict in judgement.verdicts)


@cache
def frames(op: str) -> st.SearchStrategy[Frame]:
    """Return a strategy for the frames of an operation's calls that meet its requirements and are not too large."""
    record = REGISTRY[op]
    return _frames(op).filter(lambda frame: _is_small(record, frame) and meets(record, frame.known(record)))


@st.composite
def _frames(draw: st.DrawFn, op: str) -> Frame:
    record = REGISTRY[op]
    params = _in_multiples(record, {n: v for n, v in ((n, draw(option(op, n))) for n in record.domains) if v is not ...})
    known = {**defaults(op), **params}
    arrays = {n: axes for n, axes in record.arrays.items() if not axes.optional or draw(st.booleans())}
    tokens = _one_way(draw, arrays)
    sizes = _sizes(draw, tokens, known)
    long = draw(st.sampled_from([*sizes])) if sizes else ""
    params, sizes = _mended(record, params, _within_limits(record, params, sizes, tokens, long))
    known = {**defaults(op), **params}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, axes in tokens.items():
        alike = axes and axes[0].startswith("=")
        shapes[name] = shapes[axes[0][1:]] if alike else _shape(draw, axes, known | sizes)
    return Frame(params, shapes, sizes)


def _is_small(record: Encoding, frame: Frame) -> bool:
    """Return whether a frame has no more numbers than a call is proved with."""
    known = frame.known(record)
    counts = [n for size in frame.sizes.values() for n in (size if isinstance(size, tuple) else (size,))]
    counts += [known[name] or 1 for name in size_options(record.name)]  # one that is not given says nothing
    return math.prod(counts) <= WORK and all(math.prod(shape) <= MOST for shape in frame.shapes.values())


def _within_limits(record: Encoding, params: Values, sizes: Values, tokens: Mapping[str, Sequence[str]], long: str) -> Values:
    """Return sizes of a call that is small enough, where there is one: the largest are halved, the one of `long` last."""
    known = {**defaults(record.name), **params}
    while not _is_small(record, Frame(params, _full_shapes(tokens, known | sizes), sizes)):
        others = [name for name in sizes if _largest(sizes[name]) > (name == long)]
        if not others:
            break
        name = max(others, key=lambda other: (other != long and _largest(sizes[other]) > 1, _largest(sizes[other])))
        if _largest(sizes[name]) < 2:
            break
        most = _largest(sizes[name]) // 2
        size = sizes[name]
        sizes = {**sizes, name: tuple(min(n, most) for n in size) if isinstance(size, tuple) else min(size, most)}
    return sizes


def _largest(size: Any) -> int:
    """Return the largest of the sizes of a star, or the size of an axis."""
    return max(size, default=0) if isinstance(size, tuple) else int(size)


def _full_shapes(tokens: Mapping[str, Sequence[str]], known: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of arrays that lack no axis."""
    result: dict[str, tuple[int, ...]] = {}
    for name, axes in tokens.items():
        bare = [axis.lstrip("~") for axis in axes if not axis.startswith("=")]
        result[name] = tuple(n for axis in bare for n in (known[axis] if axis[0] == "*" else (value_of(axis, known),)))
    return result


def _in_multiples(record: Encoding, params: Values) -> Values:
    """Return options, each rounded up to a multiple of another one where it must be."""
    result = dict(params)
    for parts in filter(None, map(MULTIPLE.fullmatch, record.requires)):
        name, of = parts.groups()
        if type(result.get(name)) is int and names_in(of) <= result.keys():
            result[name] += -result[name] % value_of(of, result)
    return result


def _mended(record: Encoding, params: Values, sizes: Values) -> tuple[Values, Values]:
    """Return options and sizes of a call that meets its requirements, if one more change gives that."""
    usual = defaults(record.name)
    bare = {name: value for name, value in params.items() if name not in usual}
    for options in (params, *({n: v for n, v in params.items() if n != name} for name in params if name in usual), bare):
        known = {**usual, **options}
        axes = [name for name, size in sizes.items() if not isinstance(size, tuple)]
        for other in (sizes, *({**sizes, name: sizes[name] + more} for name in axes for more in (1, 2))):
            if meets(record, known | other):
                return options, other
    return params, sizes


# ---- options -------------------------------------------------------------------------------------------------------------
@cache
def option(op: str, name: str) -> st.SearchStrategy[Any]:
    """Return a strategy for an option; an ellipsis says that it is left out, so that its default holds."""
    values = of_domain(REGISTRY[op].domains[name])
    return st.just(...) | values if name in defaults(op) else values


@cache
def of_domain(domain: Domain) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a domain."""
    strategy: st.SearchStrategy[Any]
    match domain:
        case OneOf():
            return st.sampled_from(domain.words)
        case Flag():
            return st.booleans()
        case Record():
            return st.none() | st.one_of([_record(kind).filter(_valid_record) for kind in RECORDS])
        case Integers():
            few = st.sampled_from([domain.low + n * domain.step for n in (*range(5), 8, 16)])
            return st.lists(few, min_size=1, max_size=3)
        case Integer():
            strategy = _integers(domain)
        case Real():
            strategy = _real(*domain.usual)
    return st.none() | strategy if domain.optional else strategy


def _integers(domain: Integer) -> st.SearchStrategy[int]:
    """Return a strategy for the ints of a domain: small ones, those around powers of two, and any up to what is usual."""
    top = max(domain.low, domain.usual if domain.high is None else domain.high)
    all_of_them = range(domain.low, top + 1, domain.step)
    kinds = [st.sampled_from(all_of_them[:9]), st.sampled_from(all_of_them)]
    edges = [e for e in EDGES if e in all_of_them]
    return st.one_of(*kinds, st.sampled_from(edges)) if edges else st.one_of(*kinds)


def _real(low: float, high: float) -> st.SearchStrategy[float]:
    """Return a strategy for the floats of a range: round ones, and others spread evenly over their logarithm."""
    tens = [a * 10.0**k for k in range(-4, 9) for a in (1, 5)]
    round_ones = sorted({1.0, 2.0, 0.5, *tens}, key=lambda x: abs(math.log2(x)))
    spread = st.integers(0, 1000).map(lambda k: low * (high / low) ** (k / 1000))
    return st.sampled_from([x for x in round_ones if low <= x <= high]) | spread


@st.composite
def _record(draw: st.DrawFn, kind: type[Any]) -> Any:
    """Draw a record of a kind, by the types of its fields: an int is a length, a float above 0; lists have one length."""
    entries = draw(st.integers(1, 6))
    hints = get_type_hints(kind)
    return kind(**{f.name: draw(_field(hints[f.name], entries)) for f in fields(kind)})


@cache
def _field(hint: Any, entries: int) -> st.SearchStrategy[Any]:
    """Return a strategy for a field of a record."""
    real = _real(*FACTOR.usual)
    if get_origin(hint) is tuple:
        return st.lists(real, min_size=entries, max_size=entries).map(tuple)
    kinds = get_args(hint) or (hint,)
    result = {bool: st.booleans(), int: _integers(LENGTH), float: real}[kinds[0]]
    if type(None) not in kinds:
        return result
    return st.sampled_from([None, 0.0]) | result if float in kinds else st.none() | result  # None is not given, 0.0 is zero


def _valid_record(record: Any) -> bool:
    """Return whether a record's fields are what it requires of them."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return all(holds(text, values) for text in getattr(record, "requires", ()))


# ---- shapes --------------------------------------------------------------------------------------------------------------
def _one_way(draw: st.DrawFn, arrays: Mapping[str, Axes]) -> dict[str, list[str]]:
    """Return the axes of every array, of one alternative for all."""
    ways = {n: alternatives(axes.shape) for n, axes in arrays.items()}
    which = draw(st.integers(0, max((len(way) for way in ways.values()), default=1) - 1))
    return {n: way[min(which, len(way) - 1)] for n, way in ways.items()}


def _sizes(draw: st.DrawFn, arrays: Mapping[str, Sequence[str]], known: Mapping[str, Any]) -> Values:
    """Draw the sizes that no option fixes; a star's are a tuple."""
    names: dict[str, None] = {}
    for token in (token.lstrip("~") for tokens in arrays.values() for token in tokens if not token.startswith("=")):
        names |= dict.fromkeys([token] if token.startswith("*") else sorted(names_in(token)))
    sizes, alone = st.sampled_from(SIZES), st.sampled_from(ALONE).map(lambda n: (n,))
    leading = st.lists(st.sampled_from(LEADING), max_size=2).map(tuple) | alone
    return {n: draw(leading if n.startswith("*") else sizes) for n in names if n not in known}


def _shape(draw: st.DrawFn, tokens: Sequence[str], known: Mapping[str, Any]) -> tuple[int, ...]:
    """Return an array's shape; which of its axes are 1 or missing is drawn where they may be."""
    shape: list[int] = []
    for token in tokens:
        name = token.lstrip("~")
        full = known[name] if name.startswith("*") else (value_of(name, known),)
        if not token.startswith("~"):
            shape += full
        elif shape or not draw(st.booleans()):
            shape += (1 if draw(st.booleans()) else n for n in full)
    return tuple(shape)


# ---- numbers -------------------------------------------------------------------------------------------------------------
def numbers(
    axes: Axes, shape: tuple[int, ...], dtype: str, fractional: bool, known: Mapping[str, Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy for an array of a shape; a call's positions are all integers, or `fractional`."""
    if axes.kind == "mask":
        return _filled(st.booleans(), shape, "bool")
    if axes.kind in ("real", "wide"):
        return _reals(shape, dtype).map(lambda x: round_to(within(x, axes, known, BITS[dtype]), dtype))
    low, high = limits(axes, known)
    if high is not None:
        strategy = _filled(st.integers(int(low or 0), int(high)), shape, "int64")
        return strategy.map(lambda drawn: arranged(drawn, axes))
    drawn = _fractions(shape, dtype) if fractional and axes.kind == "position" else _positions(shape)
    return drawn if low is None else drawn.map(lambda p: np.maximum(p, np.asarray(math.ceil(low), dtype=p.dtype)))


def _filled(elements: st.SearchStrategy[Any], shape: tuple[int, ...], kind: str) -> st.SearchStrategy[npt.NDArray[Any]]:
    """Return a strategy for an array of drawn elements, over and over: in a smaller one, when shrunk, they stay the same."""
    lists = st.lists(elements, min_size=1, max_size=DISTINCT)
    return lists.map(lambda some: np.resize(np.asarray(some, dtype=kind), shape))


@st.composite
def _positions(draw: st.DrawFn, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Draw integer positions: a run from anywhere, or any of a range in no order, with repeats; negative ones too."""
    top = draw(st.sampled_from(TOPS))
    low = -top if draw(st.booleans()) else 0
    if draw(st.booleans()):
        return draw(_filled(_within(low, top), shape, "int64"))
    start = draw(st.integers(low, top - 8))
    return start + np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


@lru_cache
def _within(low: int, high: int) -> st.SearchStrategy[int]:
    """Return a strategy for the ints of a range, those around powers of two more often."""
    edges = [sign * e for e in EDGES for sign in (1, -1) if low <= sign * e <= high]
    return st.integers(low, high) | st.sampled_from(edges)


@st.composite
def _fractions(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> npt.NDArray[np.float64]:
    """Draw positions between the integers."""
    parts = 2 ** draw(st.integers(0, 6))
    return round_to(draw(_positions(shape)) / parts, dtype)


@st.composite
def _reals(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> npt.NDArray[np.float64]:
    """Draw reals of a dtype: of few bits, so that ties and exact results occur, or of all; near 1, small, or large."""
    bits = draw(st.sampled_from((2, 8, BITS[dtype])))
    exponents = (0, -1, 3, -8) if bits == 2 else (2 - bits, -bits, 8 - bits, -bits - 8, 12 - bits)
    exponent = draw(st.sampled_from(exponents))
    return round_to(draw(_filled(_mantissas(bits), shape, "float64")) * 2.0**exponent, dtype)


@lru_cache
def _mantissas(bits: int) -> st.SearchStrategy[int]:
    return st.integers(1 - 2**bits, 2**bits - 1)

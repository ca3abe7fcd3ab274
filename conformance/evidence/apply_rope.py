"""Rotation by a table of cosines and sines: cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..model import Case
from .shared.rotary import LAYOUTS, ROTATED_FORMS, members, reads_writes, usual_heads
from .tools.cotangents import gradient
from .tools.deviation import (
    Deviation,
    Function,
    Real,
    Wrap,
    after,
    always,
    argument,
    around,
    before,
    deviations_of,
    narrowed,
    option,
    tf32,
)
from .tools.forms import form_case
from .tools.hints import BRANCH, IGNORED, ROUND_ONCE, SKIPPED, SLICE, TENSOR_CORES
from .tools.numbers import floats, reals, seed_of

USUAL: dict[str, Any] = {"layout": "half"}
WITH_OPTION = {"lanes": {"tail": 2}}
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "half"}, {"layout": "interleaved"})
EVERY_SIZE = True


def _case(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *,
    pairs: int | None = None,
    bits: int = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of apply_rope on an x of `shape`, with tables of `rows`, in (-1, 1), that are no unit circle."""
    pairs = shape[-1] // 2 if pairs is None else pairs
    arrays = {"x": shape, "cos": (*rows, pairs), "sin": (*rows, pairs)}
    inputs = {
        key: floats(*size, seed=seed_of(name + key), bits=bits) / (1 if key == "x" else 4) for key, size in arrays.items()
    }
    return Case(f"apply_rope/{name}", params, inputs, comment, kind, tier)


def _apply_layout(layout: str) -> Iterator[Case]:
    """Yield the cases of apply_rope that every layout has."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    yield _case(f"{group}/small", (3, 8), (3,), tier=first, layout=layout)
    yield _case(f"{group}/24-bits", (3, 2, 5, 12), (5,), bits=24, layout=layout)
    yield _case(f"{group}/53-bits", (2, 3, 6), (3,), bits=53, layout=layout)
    yield _case(f"{group}/tokens-first", (2, 5, 3, 10), (2, 5, 1), bits=24, layout=layout)
    yield _case(f"{group}/packed", (5, 3, 12), (5, 1), "(T, H, D), as kernels for serving have them", layout=layout)
    yield _case(f"{group}/packed-heads", (3, 7, 8), (3, 1), layout=layout)
    yield _case(f"{group}/inverse", (5, 12), (5,), bits=24, layout=layout, inverse=True)


def _apply_forms() -> Iterator[Case]:
    """Yield the forms of x for a rotation by a table."""
    for rotated in ROTATED_FORMS:
        name = "apply_rope" + rotated.name
        x, rows = reals(name, *rotated.x), np.shape(rotated.positions)
        signs = tuple(-n if "expanded" in rotated.name and axis == 0 else n for axis, n in enumerate(rows))
        tables = {n: reals(name + n, *signs, x.shape[-1] // 2) / 4 for n in ("cos", "sin")}
        options = {"layout": rotated.options["layout"]}
        yield form_case("apply_rope", rotated.name, {"x": x, **tables}, options, rotated.comment, rotated.form)


def _apply(
    name: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *, pairs: int | None = None,
    wrt: str = "x", out: tuple[int, ...] = (), bits: int = 8, **params: Any,
) -> Case:  # fmt: skip
    """Return a case of apply_rope, with tables of `rows` that are no unit circle; of x alone unless said otherwise."""
    pairs = shape[-1] // 2 if pairs is None else pairs
    tables = {n: reals(name + n, *rows, pairs, bits=bits) / 4 for n in ("cos", "sin")}
    inputs = {"x": reals(name, *shape, bits=bits), **tables}
    return gradient("apply_rope", name, inputs, {"out": out or shape}, comment, wrt=wrt, bits=bits, **params)


def _usual(layout: str) -> Iterator[Case]:
    """Yield whole heads of 64 and 128 channels, which even the narrowest kernels rotate."""
    for name, heads, x in usual_heads(layout):
        shape = len(heads.positions), heads.channels // 2
        tables = {table: floats(*shape, seed=seed_of(name + table)) / 4 for table in ("cos", "sin")}
        yield Case(f"apply_rope/usual/{name}", {"layout": layout}, {"x": x, **tables})


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for layout in LAYOUTS for case in _apply_layout(layout)),
        _case("shapes/vector", (6,), (), layout="half"),
        _case("shapes/single-head-interleaved", (3, 1, 2, 6), (3, 1, 2), layout="interleaved"),
        _case("shapes/one-row", (3, 2, 1, 20), (3, 1, 1), layout="half"),
        _case("shapes/20-of-72", (5, 72), (5,), pairs=20, layout="interleaved"),
        _case("trailing/interleaved", (5, 22), (5,), pairs=6, bits=24, layout="interleaved", lanes="trailing"),
        _case("trailing/inverse", (3, 5, 17), (3, 5), pairs=5, layout="interleaved_to_half", inverse=True, lanes="trailing"),
        _case("trailing/deepseek-v4", (1, 512), (1,), pairs=32, layout="interleaved", lanes="trailing"),
        _case("refused/layout", (3, 8), (3,), "no such layout", kind="reject", layout="neox"),
        _case("refused/lanes", (3, 8), (3,), "no such lanes", pairs=2, kind="reject", layout="half", lanes="last"),
        _case("refused/wide-table", (3, 8), (3,), "more pairs than x has", pairs=5, kind="reject", layout="half"),
        _case("refused/rows-as-heads", (3, 3, 5, 8), (3, 5), "(B, T) would be taken for (H, T)", kind="reject", layout="half"),
        Case("apply_rope/refused/two-widths", {"layout": "half"},
             {"x": floats(3, 8, seed=1), "cos": floats(3, 4, seed=2) / 4, "sin": floats(3, 3, seed=3) / 4},
             "cos and sin of different widths", "reject"),
        *_apply_forms(),
        _apply("half", (2, 3, 8), (3,), layout="half"),
        _apply("interleaved", (2, 3, 6), (3,), layout="interleaved"),
        _apply("mixed", (3, 2, 10), (2,), "written where it was not read", layout="interleaved_to_half"),
        _apply("24-bits", (2, 3, 6), (3,), bits=24, layout="half"),
        _apply("partial", (2, 3, 11), (3,), pairs=3, layout="half"),
        _apply("partial-interleaved", (3, 2, 9), (2,), pairs=2, layout="interleaved"),
        _apply("trailing", (3, 2, 9), (2,), pairs=2, layout="interleaved", lanes="trailing"),
        _apply("trailing-tables", (2, 3, 7), (3,), pairs=2, wrt="x cos sin", layout="half", lanes="trailing"),
        _apply("inverse", (2, 3, 8), (3,), layout="half", inverse=True),
        _apply("inverse-mixed", (3, 2, 7), (2,), pairs=3, layout="interleaved_to_half", inverse=True),
        _apply("rows", (3, 2, 2, 6), (3, 1, 2), layout="interleaved"),
        _apply("tables", (2, 3, 8), (3,), wrt="x cos sin", layout="half"),
        _apply("tables-rows", (2, 3, 2, 7), (2, 1, 2), pairs=3, wrt="cos sin", layout="interleaved"),
        _apply("tables-inverse", (3, 2, 4), (2,), "the sine's gradient has the other sign", wrt="cos sin",
               layout="interleaved_to_half", inverse=True),
        _apply("strided", (2, 3, 2, 6), (2, 1, 2), layout="half", view="non-contiguous"),
        _apply("strided-interleaved", (3, 2, 7), (3, 2), pairs=2, wrt="x cos sin", layout="interleaved", view="non-contiguous"),
        _apply("expanded", (2, 3, 6), (3,), "cotangents as a sum over the batch has them",
               wrt="x cos sin", out=(-2, 3, 6), layout="half", view="broadcast-view"),
        *(case for layout in LAYOUTS for case in _usual(layout)),
    )  # fmt: skip


LANES = "Compare which channels rotate together: (i, i + d/2) is half, (2i, 2i + 1) is interleaved."
LAYOUT = (
    "If the code has one layout alone, raise NotImplementedError for others. Half is (i, i + d/2), interleaved (2i, 2i + 1)."
)
TERMS = "Both channels of a pair have two terms, a cos - b sin and b cos + a sin: look for an assignment where a sum is due."
STRIDE = "A row of the table has as many numbers as pairs rotate: compare its stride with D/2."
CONCATENATED = "Stack and flatten for neighbouring pairs, or split in the middle for halves, each with its own table."
OTHER_WAY = "rotate_half returns (x2, -x1): a convention where queries and keys both have it, since scores stay as they are."
XOR = "Add or subtract d/2: an XOR finds the partner only for powers of two."
LOOP = "Look for a squeeze, or for a loop over heads that starts at 1."


@around
def _mixed_table(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """Columns duplicated for one layout, channels paired as in the other."""
    half = cos.shape[-1]
    reads_half = layout == "half" or (layout == "interleaved_to_half" and inverse)
    paired = [(i, i + half) if reads_half else (2 * i, 2 * i + 1) for i in range(half)]
    a, b = (np.asarray([pair[k] for pair in paired]) for k in (0, 1))
    wide = [
        np.repeat(t, 2, axis=-1) if reads_half else np.concatenate([t, t], axis=-1) for t in (cos, -sin if inverse else sin)
    ]
    shape = (*x.shape[:-1], half)
    one = np.broadcast_to(x[..., a] * wide[0][..., a] - x[..., b] * wide[1][..., a], shape)
    other = np.broadcast_to(x[..., b] * wide[0][..., b] + x[..., a] * wide[1][..., b], shape)
    writes_half = layout == "half" or (layout == "interleaved_to_half" and not inverse)
    turned = np.concatenate([one, other], -1) if writes_half else np.stack([one, other], -1).reshape(*shape[:-1], 2 * half)
    return np.concatenate([turned, x[..., 2 * half :]], axis=-1)


@around
def _second_from_first(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """b' computed from a', already rotated: an update in place."""
    sine = -sin if inverse else sin
    reads, writes = (members(cos.shape[-1], halves) for halves in reads_writes(layout, inverse))
    out, a, b = np.array(x, dtype=np.float64), x[..., reads[0]], x[..., reads[1]]
    out[..., writes[0]] = first = a * cos - b * sine
    out[..., writes[1]] = b * cos + first * sine
    return out


@around
def _both_sums(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """Both members of a pair are sums: (x2, x1) in place of (-x2, x1)."""
    out, halves = np.array(x, dtype=np.float64), reads_writes(layout, inverse)
    (first, second), (a, b) = members(cos.shape[-1], halves[1]), members(cos.shape[-1], halves[0])
    out[..., first] = x[..., a] * cos + x[..., b] * sin
    out[..., second] = x[..., b] * cos + x[..., a] * sin
    return out


def _start(x: Real, cos: Real, lanes: str) -> int:
    """Return the first channel that rotates."""
    return int(x.shape[-1] - 2 * cos.shape[-1]) if lanes == "trailing" else 0


def _others(value: float) -> Wrap:
    """Return a wrap in which lanes that do not rotate come out as a constant."""

    def change(out: Real, x: Real, cos: Real, *rest: Any, lanes: str = "leading", **options: Any) -> Real:
        out = np.array(out, dtype=np.float64)
        out[..., : _start(x, cos, lanes)] = value
        out[..., _start(x, cos, lanes) + 2 * cos.shape[-1] :] = value
        return out

    return after(change)


def _of_rotated(wrap: Wrap) -> Wrap:
    """Return a wrap that takes leading lanes for granted as one of whichever lanes rotate."""

    def wrapped(function: Function) -> Function:
        leading = wrap(function)

        def deviating(x: Real, cos: Real, sin: Real, /, *, lanes: str = "leading", **options: Any) -> Real:
            start = _start(x, cos, lanes)
            return np.concatenate([x[..., :start], leading(x[..., start:], cos, sin, **options)], axis=-1)

        return deviating

    return wrapped


def _lanes(which: str) -> Wrap:
    """Return a wrap that always rotates these lanes."""
    return before(lambda *args, **options: (args, options | {"lanes": which}))


def _inverse_exchanged(function: Function) -> Function:
    return lambda x, cos, sin, /, *, inverse=False, **rest: function(x, cos, sin, inverse=not inverse, **rest)


def _inverse_keeps_lanes(function: Function) -> Function:
    """The inverse negates the sine and forgets that the third layout reads and writes differently."""
    return lambda x, cos, sin, /, *, inverse=False, **rest: function(x, cos, -sin if inverse else sin, **rest)


def _concatenated(out: Real, x: Real, cos: Real, *rest: Any, layout: str, inverse: bool = False) -> Real:
    kept = 2 * cos.shape[-1]
    if layout != "interleaved":
        return out
    return np.concatenate([out[..., 0:kept:2], out[..., 1:kept:2], out[..., kept:]], axis=-1)


def _last_pair(out: Real, x: Real, cos: Real, *rest: Any, layout: str, inverse: bool = False) -> Real:
    half, out = cos.shape[-1], np.array(out)
    last = [half - 1, 2 * half - 1] if layout == "half" else [2 * half - 2, 2 * half - 1]
    if layout != "interleaved_to_half":
        out[..., last] = x[..., last]
    return out


@around
def _vector_tail(function: Function, x: Real, cos: Real, sin: Real, /, **options: Any) -> Real:
    """Pairs after the last full four of them keep their lanes' values, a rotation by nothing."""
    turned = np.arange(cos.shape[-1]) < cos.shape[-1] // 4 * 4
    return function(x, np.where(turned, cos, 1.0), np.where(turned, sin, 0.0), **options)


def _narrow_rotation(dtype: str) -> Wrap:
    """Return a wrap in which every operation of the rotation is rounded to `dtype`."""
    narrow = narrowed(dtype)

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        half = cos.shape[-1]
        x, cos, sin = narrow(x), narrow(cos), narrow(-sin if inverse else sin)
        reads, writes = (members(half, halves) for halves in reads_writes(layout, inverse))
        out, a, b = np.array(x), x[..., reads[0]], x[..., reads[1]]
        out[..., writes[0]] = narrow(narrow(a * cos) - narrow(b * sin))
        out[..., writes[1]] = narrow(narrow(b * cos) + narrow(a * sin))
        return out

    return lambda function: deviating


def _terms(first: tuple[int, int], second: tuple[int, int]) -> Wrap:
    """
    Return a wrap with other terms of the rotation.

    A member is ``m (a cos) + n (b sin)``, or ``m (b cos) + n (a sin)`` if it is the second; the numbers are 1, -1 or 0.
    """

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        half, sin = cos.shape[-1], -sin if inverse else sin
        reads, writes = (members(half, halves) for halves in reads_writes(layout, inverse))
        out, a, b = np.array(x), x[..., reads[0]], x[..., reads[1]]
        out[..., writes[0]] = first[0] * a * cos + first[1] * b * sin
        out[..., writes[1]] = second[0] * b * cos + second[1] * a * sin
        return out

    return _of_rotated(lambda _: deviating)


def _each_its_own(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    half, sin = cos.shape[-1], -sin if inverse else sin
    reads, writes = (members(half, halves) for halves in reads_writes(layout, inverse))
    out = np.array(x)
    out[..., writes[0]], out[..., writes[1]] = x[..., reads[0]] * cos, x[..., reads[1]] * sin
    return out


def _whole_head(partners: Callable[[Real], Real], wide: Callable[[Real], Real]) -> Wrap:
    """Return a wrap with ``x cos + partners(x) sin``, whatever the layout; `wide` gives each channel a column of the table."""

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        rotating = 2 * cos.shape[-1]
        rotated = x[..., :rotating] * wide(cos) + partners(x[..., :rotating]) * wide(-sin if inverse else sin)
        tail = np.broadcast_to(x[..., rotating:], (*rotated.shape[:-1], x.shape[-1] - rotating))
        return np.concatenate([rotated, tail], axis=-1)

    return _of_rotated(lambda _: deviating)


def _concatenated_halves(x: Real) -> Real:
    return np.concatenate([-x[..., 1::2], x[..., 0::2]], axis=-1)


def _in_halves(table: Real) -> Real:
    return np.concatenate([table, table], axis=-1)


def _in_neighbours(table: Real) -> Real:
    return np.repeat(table, 2, axis=-1)


@around
def _partner_over_head(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """Channels that do not rotate are paired too, with an angle of 0: the partner of channel i is half of the head away."""
    rest = x.shape[-1] - 2 * cos.shape[-1]
    if layout == "half" and rest % 2 == 0:
        wide = [(0, 0)] * (cos.ndim - 1) + [(0, rest // 2)]
        cos, sin = np.pad(cos, wide, constant_values=1), np.pad(sin, wide)
    return function(x, cos, sin, layout=layout, inverse=inverse)


@around
def _partner_or_itself(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """The partner of channel i is i XOR d/2, and channel i itself where that is outside, as a shuffle of lanes has it."""
    if layout != "half":
        return function(x, cos, sin, layout=layout, inverse=inverse)
    lane = np.arange(2 * cos.shape[-1])
    partner = np.where((lane ^ cos.shape[-1]) < len(lane), lane ^ cos.shape[-1], lane)
    sine = np.concatenate([-sin, sin], axis=-1) * (-1 if inverse else 1)
    turned = x[..., lane] * np.concatenate([cos, cos], axis=-1) + x[..., partner] * sine
    return np.concatenate([turned, x[..., len(lane) :]], axis=-1)


@around
def _partner_by_xor(function: Function, x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
    """The partner of channel i is i XOR d/2, and the nearest channel there is where that is outside."""
    if layout != "half":
        return function(x, cos, sin, layout=layout, inverse=inverse)
    half, out = cos.shape[-1], np.array(x)
    lane = np.arange(2 * half)
    sine = np.concatenate([-sin, sin], axis=-1) * (-1 if inverse else 1)
    partner = x[..., np.minimum(lane ^ half, 2 * half - 1)]
    out[..., lane] = x[..., lane] * np.concatenate([cos, cos], axis=-1) + partner * sine
    return out


def _row_stride(*, of_x: bool) -> Wrap:
    """
    Return a wrap in which row t of a table begins at t D/2, as rows would if the whole head rotated.

    Beyond its end, a table is read again from the start. It has a row for every row of x, or its own.
    """

    def change(x: Real, cos: Real, sin: Real, /, **options: Any) -> Any:
        shape, pairs = np.broadcast_shapes(x.shape[:-1], cos.shape[:-1]) if of_x else cos.shape[:-1], cos.shape[-1]
        at = np.arange(int(np.prod(shape)))[:, None] * (x.shape[-1] // 2) + np.arange(pairs)

        def strided(table: Real) -> Real:
            whole = np.broadcast_to(table, (*shape, pairs)).reshape(-1)
            return whole[at % max(whole.size, 1)].reshape(*shape, pairs) if whole.size else table

        return (x, strided(cos), strided(sin)), options

    return before(change)


def _heads_kept(which: slice) -> Wrap:
    """Return a wrap that leaves some heads as they are."""

    def change(out: Real, x: Real, *rest: Any, **options: Any) -> Real:
        if x.ndim < 3:
            return out
        out = np.array(out)
        out[..., which, :, :] = x[..., which, :, :]
        return out

    return after(change)


def _fused(dtype: str, *, cosine: bool) -> Wrap:
    """Return a wrap with one product rounded to `dtype`, as a fused multiply-add of the other one has it."""
    narrow = narrowed(dtype)

    def deviating(x: Real, cos: Real, sin: Real, /, *, layout: str, inverse: bool = False) -> Real:
        half, sin = cos.shape[-1], -sin if inverse else sin
        reads, writes = (members(half, halves) for halves in reads_writes(layout, inverse))
        out, a, b = np.array(x, dtype=np.float64), x[..., reads[0]], x[..., reads[1]]
        first, second = (narrow, np.asarray) if cosine else (np.asarray, narrow)
        out[..., writes[0]] = first(a * cos) - second(b * sin)
        out[..., writes[1]] = first(b * cos) + second(a * sin)
        return out

    return lambda _: deviating


def _head_zero(out: Real, x: Real, *rest: Any, **options: Any) -> Real:
    if x.ndim < 3:
        return out
    out = np.array(out)
    out[..., 0, :, :] = x[..., 0, :, :]
    return out


_deviation = deviations_of("apply_rope")

DEVIATIONS = (
    _deviation("layout-half", "layout is always 'half'", option(layout=always("half")), hint=LAYOUT,
               seen_in="LLMs-from-scratch#747, vllm-ascend#12820", one_of="layout"),
    _deviation("layout-interleaved", "layout is always 'interleaved'", option(layout=always("interleaved")), hint=LAYOUT,
               seen_in="ik_llama.cpp#2290", one_of="layout"),
    _deviation("layout-interleaved-to-half", "layout is always 'interleaved_to_half'",
               option(layout=always("interleaved_to_half")), hint=LAYOUT, seen_in="vllm-metal#44", one_of="layout"),
    _deviation("writes-halves", "interleaved pairs are read, but their results are written as halves",
               _of_rotated(after(_concatenated)), hint="Results are concatenated rather than interleaved.",
               seen_in="vllm-metal#44"),
    _deviation("table-other-layout", "the table is duplicated for one layout, but channels are paired as in the other",
               _of_rotated(_mixed_table), hint="repeat and repeat_interleave are exchanged.",
               seen_in="ark-nlp#47, Megatron-LM#3900"),
    _deviation("sign-flipped", "the rotation has the wrong direction: the sign of the sine is flipped",
               argument(2, lambda sin: -sin), hint=OTHER_WAY,
               seen_in="lalamo#268, the convention of nanochat and modded-nanogpt", one_of="direction"),
    _deviation("writes-interleaved", "layout 'interleaved_to_half' writes its results back interleaved",
               option(layout=lambda name: "interleaved" if name == "interleaved_to_half" else name), hint=LANES,
               seen_in="the convention of DeepSeek's own code"),
    _deviation("inverse-ignored", "inverse=True rotates forward", option(inverse=always(False)), hint=IGNORED,
               one_of="inverse"),
    _deviation("inverse-exchanged", "inverse=True rotates forward, and inverse=False back", _inverse_exchanged,
               hint="In a backward pass, the cotangent is rotated like x, not back.",
               seen_in="PaddlePaddle#74716, in the gradient", one_of="inverse"),
    _deviation("inverse-keeps-layout", "the inverse reads and writes channels as the forward rotation does",
               _inverse_keeps_lanes, hint="The transpose swaps the read and the write layout."),
    _deviation("writes-pairs", "halves are read, but their results are written as neighbouring pairs",
               before(lambda x, cos, sin, **o: ((x, cos, sin if o.get("inverse") else -sin),
                      o | {"layout": "interleaved_to_half", "inverse": True})),
               hint="Scores stay as they are where queries and keys are both rotated so: then it is a convention."),
    _deviation("rotate-half-concatenated",
               "rotate_half gives minus the odd channels and then the even ones, with a table of halves (freqs, freqs)",
               _whole_head(_concatenated_halves, _in_halves), hint=CONCATENATED, seen_in="naver/croco#3"),
    _deviation("rotate-half-concatenated-neighbours",
               "rotate_half gives minus the odd channels and then the even ones, with a table repeated in neighbours",
               _whole_head(_concatenated_halves, _in_neighbours), hint=CONCATENATED, seen_in="naver/croco#3"),
    _deviation("partner-rolled", "the partner of a channel is the one before it, without a sign, as roll(x, 1) gives",
               _whole_head(lambda x: np.roll(x, 1, axis=-1), _in_halves), hint=LANES),
    _deviation("in-place-update", "the second member of a pair is computed from the first one, already rotated in place",
               _of_rotated(_second_from_first), hint="The first half is overwritten before it is read again.",
               seen_in="transformers#11725"),
    _deviation("both-sums", "both channels of a pair are sums: the minus of the first is missing", _of_rotated(_both_sums),
               hint="rotate_half returns (x2, x1): it must be (-x2, x1)."),
    _deviation("not-rotated", "nothing is rotated: the input comes back", after(lambda out, x, *a, **o: x), hint=SKIPPED,
               seen_in="Liger-Kernel#342", one_of="direction"),
    _deviation("both-differences", "both channels of a pair are differences: the plus of the second is a minus",
               _terms((1, -1), (1, -1)), hint="The two channels are a cos - b sin and b cos + a sin."),
    _deviation("partner-missing", "channels are multiplied by the cosine alone: the term with the sine is missing",
               _terms((1, 0), (1, 0)), hint=TERMS),
    _deviation("partner-missing-first", "the first channel of a pair lacks its term with the sine", _terms((1, 0), (1, 1)),
               hint=TERMS),
    _deviation("partner-missing-second", "the second channel of a pair lacks its term with the sine", _terms((1, -1), (1, 0)),
               hint=TERMS),
    _deviation("cosines-missing", "the terms with the cosine are missing", _terms((0, -1), (0, 1)), hint=TERMS,
               seen_in="NVIDIA/ngpt#10"),
    _deviation("each-its-own", "the first channel of a pair is multiplied by the cosine and the second by the sine",
               _of_rotated(lambda _: _each_its_own), hint=TERMS),
    _deviation("partner-xor", "the partner of channel i is i XOR d/2, which is right only where d/2 is a power of two",
               _of_rotated(_partner_by_xor), hint=XOR),
    _deviation("partner-xor-itself", "the partner of channel i is i XOR d/2, and channel i itself where that is outside",
               _of_rotated(_partner_or_itself), hint=XOR),
    _deviation("partner-over-head", "channels are paired over the whole head, where only some rotate",
               _of_rotated(_partner_over_head),
               hint="With half layout the partner is half of the rotated channels away, not half of the head."),
    _deviation("table-row-stride", "rows of the table are read as if the whole head rotated: D/2 numbers apart",
               _row_stride(of_x=False), hint=STRIDE, seen_in="XPU-Forces/mojo_opset#253"),
    _deviation("table-row-stride-of-x", "rows of the table, one for each row of x, are read D/2 numbers apart",
               _row_stride(of_x=True), hint=STRIDE),
    _deviation("last-pair-unrotated", "the last pair is not rotated", _of_rotated(after(_last_pair)),
               hint="A loop ends one pair early.", seen_in="flashinfer#2470"),
    _deviation("vector-tail-unrotated", "pairs beyond a multiple of four are not rotated", _vector_tail,
               hint="A vectorised loop has no tail.", seen_in="flashinfer#2470"),
    _deviation("rotation-float16", "the rotation is computed in float16: inputs, products and sums",
               _of_rotated(_narrow_rotation("float16")), hint=ROUND_ONCE, seen_in="sglang#3134, flashinfer#585"),
    _deviation("rotation-bfloat16", "the rotation is computed in bfloat16: inputs, products and sums",
               _of_rotated(_narrow_rotation("bfloat16")), hint=ROUND_ONCE, seen_in="sglang#3134, flashinfer#585"),
    *(
        Deviation(f"{name}-{dtype}", f"{text} to {dtype}, and the other product and the sum are rounded once",
                  {"apply_rope": _of_rotated(_fused(dtype, cosine=name == "cosine-rounded"))}, exact=True,
                  hint="A fused multiply-add rounds one product: round only the sum, or state a wider class.")
        for dtype in ("float16", "bfloat16")
        for name, text in (
            ("cosine-rounded", "the product with the cosine is rounded"),
            ("sine-rounded", "the product with the sine is rounded"),
        )
    ),
    _deviation("rotation-tf32", "the rotation is computed in TensorFloat-32: inputs, cosines and sines",
               before(lambda x, cos, sin, **options: ((tf32(x), tf32(cos), tf32(sin)), options)), hint=TENSOR_CORES),
    _deviation("single-head-unrotated", "nothing is rotated when there is one head",
               after(lambda out, x, *rest, **options: x if x.ndim > 2 and x.shape[-3] == 1 else out), hint=LOOP,
               seen_in="Liger-Kernel#342"),
    _deviation("head-zero-unrotated", "head 0 is not rotated", after(_head_zero), hint=LOOP, seen_in="transformers#47403"),
    _deviation("last-head-unrotated", "the last head is not rotated", _heads_kept(slice(-1, None)),
               hint="A loop over heads ends one too early."),
    _deviation("heads-after-first-unrotated", "only head 0 is rotated", _heads_kept(slice(1, None)), hint=LOOP),
    _deviation("tail-zeroed", "channels that do not rotate are zero", _others(0.0), hint=SLICE, seen_in="labml#215"),
    _deviation("tail-ones", "channels that do not rotate are one", _others(1.0), hint=SLICE,
               seen_in="apex#1750, in the gradient"),
    _deviation("trailing-lanes", "the last rotary_dim channels are always rotated", _lanes("trailing"), hint=BRANCH,
               seen_in="the convention of DeepSeek-V4", one_of="rotated channels"),
    _deviation("leading-lanes", "the first rotary_dim channels are always rotated", _lanes("leading"), hint=BRANCH,
               seen_in="the convention of GPT-NeoX, where DeepSeek-V4 rotates the last", one_of="rotated channels"),
    _deviation("x-through-bfloat16", "the input is held in bfloat16", argument(0, narrowed("bfloat16")), hint=ROUND_ONCE,
               seen_in="Modalities#462"),
    _deviation("x-through-float16", "the input is held in float16", argument(0, narrowed("float16")), hint=ROUND_ONCE),
)  # fmt: skip

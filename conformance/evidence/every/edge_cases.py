"""Cases that no rule makes: calls without tokens or rows, what a call leaves to the next, parts, and numbers of two dtypes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from posref.core.composition import makes_frequencies
from posref.spec import REGISTRY

from ...model import Case, Step
from ...vocabulary.axes import alternatives, holds, is_star, names_in
from .facts import facts_of
from .made_calls import answers, call, differ, has_one_position, is_bounded, letters, shifted, usual_way, way_by_rows

EMPTY: dict[str, tuple[dict[str, Any], ...]] = {  # two calls each, by what there is none of
    "tokens": ({"T": 0, "Q": 0, "K": 3}, {"T": 0, "Q": 0, "K": 2, "D": 4, "n": 2}),
    "keys": ({"K": 0}, {"K": 0, "Q": 2}),
    "heads": ({"R": (2, 0)}, {"R": (3, 0)}),
    "head-groups": ({"H": 0, "G": 0}, {"H": 0, "G": 0, "R": (3,)}),
    "batch": ({"R": (0,), "rows": True}, {"R": (0,), "rows": True, "T": 2, "Q": 2, "K": 3}),
}


def one(op: str, name: str, comment: str = "", params: Any = None, *, form: str = "", **how: Any) -> Case:
    """Return one call of an operation."""
    options, arrays = call(op, f"again/{name}", params, **how)
    return Case(f"{op}/again/{name}", options, arrays, comment, form=form)


def several(op: str, name: str, comment: str, *calls: dict[str, Any], state: str = "") -> Case:
    """Return several calls of an operation on one instance."""
    steps = tuple(Step(*call(op, f"again/{name}{k}", **how)) for k, how in enumerate(calls))
    return Case(f"{op}/again/{name}", comment=comment, kind="sequence", steps=steps, state=state)


def _has_leading_heads(op: str) -> bool:
    """Return whether the last of any number of leading axes is that of the heads, and no other letter is."""
    ways = [way for axes in REGISTRY[op].arrays.values() if axes.kind == "real" for way in alternatives(axes.shape)]
    named = ({letter for axis in way if axis.strip("~")[0] not in "*=" for letter in names_in(axis)} for way in ways)
    return any({"T", "H"} <= letters for letters in named) or any(way[:2] == ["*R", "Q"] for way in ways)


def _is_in_result(op: str, letter: str) -> bool:
    """Return whether the size of an axis is that of an axis of a result: sums over it are not."""
    results = (shape for shape in REGISTRY[op].result if not shape.startswith("="))
    axes = {axis for shape in results for way in alternatives(shape) for axis in way}
    return any(letter in names_in(axis) for axis in axes if not is_star(axis))


def _empty(op: str) -> Iterator[Case]:
    """Yield calls without tokens, heads or rows."""
    if has_one_position(op):
        return
    known, used = letters(op), letters(op, usual_way(op))
    kinds = {
        "tokens": bool({"T", "Q", "*P"} & known),
        "heads": _has_leading_heads(op),
        "head-groups": bool({"H", "G*g"} & used) and all(holds(text, {"H": 0, "G": 0}) for text in REGISTRY[op].requires),
        "keys": "K" in known and _is_in_result(op, "K"),
        "batch": bool({"*R", "*B", "*P"} & known),
    }
    for kind in (kind for kind, there in kinds.items() if there):
        for number, how in enumerate(EMPTY[kind]):
            name = f"no-{kind}" + "-once-more" * number
            case = one(op, name, way=way_by_rows(op) if "R" in how else None, **how)
            if answers(op, case.inputs, case.params):  # a query may need a key
                yield case


def _sequences(op: str) -> Iterator[Case]:
    """Yield calls of one instance: a longer input than before and a shorter one, and the same input in two dtypes."""
    near, longer = {"places": shifted(3), "T": 3, "Q": 2, "K": 3}, {"places": shifted(300), "T": 6, "Q": 4, "K": 5}
    if is_bounded(op):
        near, longer = {**near, "N": 12}, {**longer, "places": shifted(5), "N": 19}
    steps = near, longer, {**near, "T": 4, "Q": 3}, near
    if REGISTRY[op].arrays:
        yield several(op, "grown", "short, longer than before, short again, as at first", *steps)
    if REGISTRY[op].returns == "real" and not makes_frequencies(op):  # which are float32 where others are half
        same: dict[str, Any] = {"T": 4, "Q": 2, "K": 3}
        comment = "the first call is made in half precision where the implementation states it"
        options = facts_of(op).options
        if "base" in options:
            same["params"] = {**options, "base": 20011.0}
            comment += ", with a base that no other case has"
        yield several(op, "kept-dtype", comment, *(same,) * 2, state="other-dtype-first")


def _decode(op: str) -> Iterator[Case]:
    """Yield a prompt, one token further on, and the tokens after it, with the same weights."""
    pairs = {"Q", "K"} <= letters(op)
    if has_one_position(op) or not (pairs or "T" in letters(op)):
        return
    steps = []
    for start, count in ((0, 4), (8, 1), (9, 3)):
        sizes: dict[str, Any] = {"T": count, "Q": count, "places": shifted(start), "last": True}
        steps.append(Step(*call(op, "again/decode", **sizes | ({"K": start + count, "places": shifted(0)} if pairs else {}))))
    if all(answers(op, step.inputs, step.params) for step in steps):
        comment = "a prompt, one token further on, and the tokens after it"
        yield Case(f"{op}/again/decode", comment=comment, kind="sequence", steps=tuple(steps))


def _axes(op: str) -> Iterator[Case]:
    """Yield calls with other numbers of position axes."""
    for count in dict.fromkeys(facts_of(op).axes):
        options = facts_of(op).options
        for name in {"sections", "dims"} & {*options}:
            options[name] = [{"sections": 3, "dims": 6}[name] if count == 1 else 2] * count
        sizes: dict[str, Any] = {} if {"sections", "dims"} & {*options} else {"A": count}
        yield one(op, f"axes-{count}", params=options, **sizes)


def _tables(op: str) -> Iterator[Case]:
    """Yield rotations by tables in another dtype than that of x."""
    if not {"cos", "sin"} <= {*REGISTRY[op].arrays}:
        return
    for name in ("float32", "half"):
        sizes: dict[str, dict[str, Any]] = {"half": {}, "interleaved": {"R": (2, 3), "T": 4}}
        for layout, of_layout in sizes.items():
            comment = f"cos and sin in {name} precision"
            options = {**facts_of(op).options, "layout": layout}
            yield one(op, f"{name}-tables-{layout}", comment, options, form=f"{name}-tables", **of_layout)


PARTS = 4, 6, 8, 12  # of 16 channels: a quarter, three eighths, a half and three quarters


def _parts(op: str) -> Iterator[Case]:
    """Yield rotations of a part of the channels."""
    if "layout" not in REGISTRY[op].domains or not ("rotary_dim" in REGISTRY[op].domains or "cos" in REGISTRY[op].arrays):
        return
    for layout in ("half", "interleaved"):
        for part in PARTS:
            options = {**facts_of(op).options, "layout": layout}
            if "rotary_dim" in REGISTRY[op].domains:
                options["rotary_dim"] = part
            sizes: dict[str, Any] = {"D": 16, "n": part // 2, "tail": 16 - part, "T": 3, "Q": 2, "K": 3}
            yield one(op, f"part-{layout}-{part}", f"{part} of 16 channels", options, **sizes)


def _ranges(op: str) -> Iterator[Case]:
    """Yield calls with numbers that bfloat16 has and float16 has not, where results follow them."""
    arrays = REGISTRY[op].arrays
    plain = [n for n, axes in arrays.items() if axes.kind == "real" and axes.limits == "" and not axes.optional]
    if not plain or REGISTRY[op].returns != "real" or facts_of(op).saturates:
        return
    names = [name for name in plain if "v" not in plain or name.startswith("v")]  # of an attention, what is summed
    optional = tuple(name for name, axes in arrays.items() if axes.optional)
    for word, scale in (("large", 2.0**17), ("small", 2.0**-30)):
        comment = f"{', '.join(names)} times {scale:g}"
        case = one(op, f"{word}-values", comment, without=optional, T=3, Q=2, K=3)
        scaled = {**case.inputs, **{name: np.asarray(case.inputs[name]) * scale for name in names}}
        if differ(op, case.params, scaled, _through_float16(scaled)):  # a constant beside them may hide them
            yield replace(case, inputs=scaled)


def _through_float16(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays whose reals were held in float16."""
    with np.errstate(all="ignore"):
        return {n: x.astype(np.float16).astype(np.float64) if x.dtype.kind == "f" else x for n, x in arrays.items()}


def small(op: str) -> Case:
    """Return the smoke case of an operation whose own cases have none."""
    return Case(f"{op}/again/small", *call(op, "again/small", H=2, Q=3, K=4), "in no order", tier="smoke")


def cases(op: str) -> Iterator[Case]:
    """Yield the cases of an operation."""
    for make in (_empty, _sequences, _decode, _axes, _tables, _parts, _ranges):
        yield from make(op)

"""Second cases, of what is otherwise asked once: so that code that lacks something can be told from code that fails it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from posref.scaling import DynamicNTK, DynamicYaRN, Linear, LongRoPE, NTKMixed, YaRN, YaRNByTurns
from posref.spec import REGISTRY

from ...model import Case, Step
from ...suite.axes import alternatives, holds, is_star, names_in
from .facts import facts_of
from .made_calls import call, has_one_position, is_bounded, letters, shifted, usual_way

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "expanded": ("broadcast-view", {"alike": True, "R": (3,), "G": 2}),
    "expanded-once-more": ("broadcast-view", {"alike": True, "R": (2,), "G": 2}),
    "strided": ("non-contiguous", {"R": (3,)}),
}
EMPTY: dict[str, dict[str, Any]] = {
    "tokens": {"T": 0, "Q": 0, "K": 3},
    "keys": {"K": 0},
    "heads": {"R": (2, 0)},
    "head-groups": {"H": 0, "G": 0},
    "head-groups-once-more": {"H": 0, "G": 0, "R": (3,)},
    "batch": {"R": (0,), "rows": True},
    "batch-once-more": {"R": (0,), "rows": True, "T": 2, "Q": 2, "K": 3},
}


def one(op: str, name: str, comment: str = "", params: Any = None, *, form: str = "", **how: Any) -> Case:
    """Return one call of an operation."""
    options, arrays = call(op, f"again/{name}", params, **how)
    return Case(f"{op}/again/{name}", options, arrays, comment, form=form)


def several(op: str, name: str, comment: str, *calls: dict[str, Any], state: str = "") -> Case:
    """Return several calls of an operation on one instance."""
    steps = tuple(Step(*call(op, f"again/{name}{k}", **how)) for k, how in enumerate(calls))
    return Case(f"{op}/again/{name}", comment=comment, kind="sequence", steps=steps, state=state)


def _by_rows(op: str) -> int | None:
    """Return the first alternative in which every array that may have the leading axes has them, None if there is one alone."""
    ways = [alternatives(axes.shape.replace("~", "")) for axes in REGISTRY[op].arrays.values() if "*R" in axes.shape]
    if not ways or len(ways[0]) == 1:
        return None
    return next((k for k in range(len(ways[0])) if all("*R" in way[min(k, len(way) - 1)] for way in ways)), None)


def _has_leading_heads(op: str) -> bool:
    """Return whether the last of any number of leading axes is that of the heads, and no other letter is."""
    ways = [way for axes in REGISTRY[op].arrays.values() if axes.kind == "real" for way in alternatives(axes.shape)]
    return any({"T", "H"} <= {*way} or way[:2] == ["*R", "Q"] for way in ways)


def _is_in_result(op: str, letter: str) -> bool:
    """Return whether the size of an axis is that of an axis of a result: sums over it are not."""
    results = (shape for shape in REGISTRY[op].result if not shape.startswith("="))
    axes = {axis for shape in results for way in alternatives(shape) for axis in way}
    return any(letter in names_in(axis) for axis in axes if not is_star(axis))


def _admits(op: str, sizes: dict[str, int]) -> bool:
    """Return whether the registry's requirements admit these sizes."""
    return all(holds(text, sizes) for text in REGISTRY[op].requires)


def _forms(op: str) -> Iterator[Case]:
    """Yield calls with views, and without tokens, heads or rows."""
    if has_one_position(op):
        return
    for name, (form, how) in FORMS.items() if any(is_star(letter) for letter in letters(op)) else ():
        yield one(op, name, form=form, rows=True, way=_by_rows(op), **{"T": 4, "Q": 3} | how)
    known, used = letters(op), letters(op, usual_way(op))
    groups = bool({"H", "G*g"} & used) and _admits(op, {"H": 0, "G": 0})
    batch = bool({"*R", "*B", "*P"} & known)
    kinds = {
        "tokens": bool({"T", "Q", "*P"} & known),
        "heads": _has_leading_heads(op),
        "head-groups": groups,
        "head-groups-once-more": groups,
        "keys": "K" in known and _is_in_result(op, "K"),
        "batch": batch,
        "batch-once-more": batch,
    }
    for kind in (kind for kind, there in kinds.items() if there):
        how = EMPTY[kind]
        yield one(op, f"no-{kind}", way=_by_rows(op) if "R" in how else None, **how)


def _sequences(op: str) -> Iterator[Case]:
    """Yield calls of one instance: a longer input than before and a shorter one, and the same input in two dtypes."""
    near, longer = {"places": shifted(3), "T": 3, "Q": 2, "K": 3}, {"places": shifted(300), "T": 8, "Q": 4, "K": 7}
    if is_bounded(op):
        near, longer = {**near, "N": 12}, {**longer, "places": shifted(5), "N": 19}
    steps = near, longer, {**near, "T": 5, "Q": 3}, near
    yield several(op, "grown", "short, longer than before, short again, as at first", *steps)
    if REGISTRY[op].returns == "real":
        same: dict[str, Any] = {"T": 6, "Q": 3, "K": 4}
        comment = "the first call is made in half precision where the implementation states it"
        options = facts_of(op).options
        if "base" in options:
            same["params"] = {**options, "base": 20011.0}
            comment += ", with a base that no other case has"
        yield several(op, "kept-dtype", comment, *(same,) * 2, state="other-dtype-first")


def _places(op: str) -> Iterator[Case]:
    """Yield calls with negative, fractional and single positions, and with one token."""
    kinds = {axes.kind for axes in REGISTRY[op].arrays.values()}
    if {"position", "integer"} & kinds and not is_bounded(op):
        yield one(op, "negative", places=lambda n: np.arange(n) * 3 - 11)
        yield one(op, "negative-once-more", places=lambda n: 5 - np.arange(n) * 40)
    if "position" in kinds:
        yield one(op, "fractional", places=lambda n: ((np.arange(n) * 9 + 3) % 23) / 4)
        yield one(op, "fractional-once-more", places=lambda n: 3 + (np.arange(n) * 29 % 31) / 8)
    for letter, name in (("T", "token"), ("Q", "query"), ("K", "key")):
        if letter in letters(op):
            yield one(op, f"one-{name}", places=shifted(29), **dict[str, Any]({letter: 1}))
    shapes = [axes.shape for axes in REGISTRY[op].arrays.values()]
    if any("|" in shape for shape in shapes) and not {"T", "Q", "*R"} & letters(op, 0) and shapes[0].split()[0] != "A":
        yield one(op, "vector", way=0, places=shifted(6))


LONG = LongRoPE((1.0, 2.0, 3.0), (2.0, 4.0, 7.0), 9, max_length=36, attention_factor=1.25)
NEUTRAL = YaRN(4.0, 64, attention_factor=1.0), YaRN(12.0, 500, beta_fast=16, beta_slow=2, attention_factor=1.0)
MIXED = ("ntk-mixed", "ntk-mixed-mix")
EXTENDED: dict[str, dict[str, Any]] = {  # words of records at rope_frequencies, where they differ from another case
    "neutral-factor": {"scaling": NEUTRAL[0]},
    "neutral-factor-betas": {"scaling": NEUTRAL[1]},
    "ntk-mixed": {"scaling": NTKMixed(3.0)},
    "ntk-mixed-mix": {"scaling": NTKMixed(3.0, mix=1.25)},
    "yarn-dynamic": {"scaling": DynamicYaRN(80, beta_slow=2, truncate=False), "length": 300},
    "longrope-given": {"scaling": LONG, "length": 40},
    "yarn-turns": {"scaling": YaRNByTurns(3.0, 200)},
    "yarn-turns-factor": {"scaling": YaRNByTurns(3.0, 200, attention_factor=1.25)},
}  # fmt: skip


def with_scaling(op: str) -> dict[str, Any]:
    """Return the options of a call that has a scaling: the lists of the scalings here are of three pairs."""
    return {**facts_of(op).options, **({"sections": [1, 1, 1]} if "sections" in REGISTRY[op].domains else {})}


def rotates_alone(op: str) -> bool:
    """Return whether an operation rotates by positions of one axis, and nothing is summed over keys afterwards."""
    domains = REGISTRY[op].domains
    return {"scaling", "layout"} <= {*domains} and "sections" not in domains and "K" not in letters(op)


def _scaled(op: str) -> Iterator[Case]:
    """Yield calls with scalings, and options of theirs, that the operation is otherwise asked once."""
    domains = REGISTRY[op].domains
    if not {"scaling", "layout"} <= {*domains}:
        return
    options = with_scaling(op)
    for number, scaling in enumerate(NEUTRAL):
        layout = ("half", "interleaved")[number]
        name, comment = f"neutral-factor-{layout}", "1 is given, not 0.1 ln s + 1"
        yield one(op, name, comment, {**options, "layout": layout, "scaling": scaling})
    if "K" in letters(op):
        yield one(op, "mixed-layout", params={**options, "layout": "interleaved_to_half"})
        yield one(op, "linear", params={**options, "scaling": Linear(2.5)})
        yield one(op, "dynamic", params={**options, "scaling": DynamicNTK(3.0, 8), "length": 40})
        return
    for name in list(EXTENDED)[2:] if rotates_alone(op) else MIXED:
        yield one(op, name, params={**options, **EXTENDED[name]})


def _axes(op: str) -> Iterator[Case]:
    """Yield calls with other numbers of position axes."""
    counts = facts_of(op).axes
    for number, count in enumerate(counts):
        options = facts_of(op).options
        for name in {"sections", "dims"} & {*options}:
            options[name] = [{"sections": 3, "dims": 6}[name] if count == 1 else 2] * count
        sizes: dict[str, Any] = {} if {"sections", "dims"} & {*options} else {"A": count}
        yield one(op, f"axes-{count}" + "-once-more" * (count in counts[:number]), params=options, **sizes)


def _tables(op: str) -> Iterator[Case]:
    """Yield rotations by tables in another dtype than that of x."""
    if not {"cos", "sin"} <= {*REGISTRY[op].arrays}:
        return
    for name in ("float32", "half"):
        sizes: dict[str, dict[str, Any]] = {"half": {}, "interleaved": {"R": (2, 3), "T": 4}}
        for layout, own in sizes.items():
            comment = f"cos and sin in {name} precision"
            options = {**facts_of(op).options, "layout": layout}
            yield one(op, f"{name}-tables-{layout}", comment, options, form=f"{name}-tables", **own)


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
    if not plain or REGISTRY[op].returns != "real":
        return
    names = [name for name in plain if "v" not in plain or name.startswith("v")]  # of an attention, what is summed
    optional = tuple(name for name, axes in arrays.items() if axes.optional)
    for word, scale in (("large", 2.0**17), ("small", 2.0**-30)):
        comment = f"{', '.join(names)} times {scale:g}"
        case = one(op, f"{word}-values", comment, without=optional, T=3, Q=2, K=3)
        yield replace(case, inputs={**case.inputs, **{name: np.asarray(case.inputs[name]) * scale for name in names}})


def _frequencies(op: str) -> Iterator[Case]:
    """Yield calls of what makes frequencies, or a table of them, with words of records."""
    domains = REGISTRY[op].domains
    if "scaling" in domains and "layout" not in domains:
        for name, options in EXTENDED.items():
            yield one(op, name, params={"dim": 6, "base": 10000.0, **options})


def small(op: str) -> Case:
    """Return the smoke case of an operation whose own cases have none."""
    return Case(f"{op}/again/small", *call(op, "again/small", H=2, Q=3, K=4), "in no order", tier="smoke")


def possible(op: str) -> Iterator[Case]:
    """Yield the cases of an operation, those that it leaves out too."""
    if facts_of(op).usual is not None:
        yield from (
            case for make in (_forms, _sequences, _places, _scaled, _axes, _tables, _parts, _ranges) for case in make(op)
        )
    yield from _frequencies(op)


def cases(op: str) -> Iterator[Case]:
    """Yield the cases of an operation that it does not leave out."""
    yield from (case for case in possible(op) if facts_of(op).needs(case.id))

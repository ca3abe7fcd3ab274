"""What the cases of an operation ask: every form, dtype and option, gradients, and nothing that a wrong answer passes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sizes import takes_matrices_alone

from posref.conformance import judge
from posref.conformance.calls import array_names, differentiable, positions_of
from posref.conformance.checks.scope import is_fixed
from posref.conformance.evidence.every.made_calls import has_one_position, is_bounded
from posref.conformance.model import FORMS, STATES, LoadedCase
from posref.conformance.targets.python import load_python
from posref.conformance.vocabulary.traits import traits_of
from posref.spec import REGISTRY

from .encoding import Encoding, part

DTYPES = ("float64", "float32", "bfloat16", "float16")


@part()
def cases_have_names_and_one_is_small(encoding: Encoding) -> None:
    cases = encoding.built
    assert len({case.id for case in cases}) == len(cases)
    assert {case.id.partition("/")[0] for case in cases} == {encoding.op}
    assert [case.tier for case in cases].count("smoke") == 1
    assert {case.form for case in cases} <= {"", *FORMS}
    assert {case.state for case in cases} <= {"", *STATES} - {"still"}  # which is of a model's layer, asked live
    assert {dtype for case in encoding.of_kind("value") for dtype in case.dtypes} == {*DTYPES}


@part()
def inputs_are_asymmetric(encoding: Encoding) -> None:
    """No real input of three values or more is constant or its own mirror image; positions and symmetric matrices aside."""
    for name, case, array in _inputs(encoding):
        symmetric = array.ndim > 1 and np.array_equal(array, np.swapaxes(array, -1, -2))
        positions = name in encoding.record.arrays and encoding.record.arrays[name].kind == "position"
        if array.dtype.kind == "f" and array.size > 2 and not (symmetric or positions):
            flat = array.reshape(-1)
            assert len(np.unique(flat)) > 1, f"{case}: {name} is constant"
            assert not np.array_equal(flat, flat[::-1]), f"{case}: {name} is its own mirror image"


def _inputs(encoding: Encoding) -> Iterator[tuple[str, str, Any]]:
    """Yield the name of each array, the case that gives it, and the array; of calls that must be answered."""
    for case in encoding.built:
        for call in case.calls if case.kind != "reject" else ():
            yield from ((name, case.id, np.asarray(value)) for name, value in call.inputs.items())


@part(of=lambda op: bool(array_names(op)) and not has_one_position(op))  # which is a number nearly everywhere
def every_form_is_asked(encoding: Encoding) -> None:
    op, asked = encoding.op, [case for case in encoding.of_kind("value") if "float32" in case.dtypes]
    has_rows = any(re.search(r"(^|[ ~])\*\w", axes.shape) for axes in encoding.record.arrays.values())  # or weights alone
    for form in ("non-contiguous", *(("broadcast-view",) if has_rows else ())):
        forms = {case.form for case in asked}
        assert form in forms, f"{op}: `pairs` and `places` in conformance/evidence/tools/forms.py make {form} cases"
    shapes = [x.shape for case in asked for x in case.calls[0].inputs.values()]
    assert not has_rows or any(len(shape) > 1 and 1 in shape for shape in shapes), f"{op} has no case with a batch of one"
    for length in () if takes_matrices_alone(op) or not has_rows else (1, 0):
        assert any(length in shape for shape in shapes), f"{op} has no case with an axis of {length}"


@part()
def nothing_is_asked_once(encoding: Encoding) -> None:
    """Else code that lacks it cannot be told from code that fails it."""
    counts = Counter(pair for case in encoding.stored if case.kind != "reject" for pair in _words(case))
    assert counts
    single = [what for what, count in counts.items() if count == 1]
    assert not single, f"write another case in conformance/evidence for each of these: {single}"


def _words(case: LoadedCase) -> set[tuple[str, Any]]:
    """Return what a case asks, but for ranks, and numbers of which any other than the one answered explains a refusal."""
    axes = traits_of(case, "float32").words.items()
    once = ("dtype", "rank", "axes")
    return {(axis, word) for axis, had in axes if axis not in once and not is_fixed(case.op, axis) for word in had}


@part()
def tokens_are_many_and_far(encoding: Encoding) -> None:
    """But of operations at one position, or whose positions have a limit."""
    calls, positions = [call for case in encoding.stored for call in case.calls], positions_of(encoding.op)
    longest = max((size for call in calls for x in call.inputs.values() for size in x.shape), default=0)
    farthest = max((int(np.max(np.abs(call.inputs[n]), initial=0)) for call in calls for n in positions), default=0)
    if any({"T", "Q", "*P"} & {*axes.shape.split()} for axes in encoding.record.arrays.values()):
        assert (longest < 129) == has_one_position(encoding.op)
    assert not positions or farthest >= 2**17 or is_bounded(encoding.op)


@part()
def smoke_case_is_not_answered_by_counting(encoding: Encoding) -> None:
    for name in positions_of(encoding.op):
        p = encoding.smoke.calls[0].inputs[name]
        counted = np.broadcast_to(np.arange(p.shape[-1]) if p.ndim else 0, p.shape)
        assert not np.array_equal(p, counted), name


# ---- gradients ------------------------------------------------------------------------------------------------------------
def gradients_are_asked(op: str) -> bool:
    """Return whether an operation has gradients that say something. Its docstring says where it has none."""
    return "gradients are not asked" not in " ".join((REGISTRY[op].function.__doc__ or "").split())


def is_of_tables(op: str) -> bool:
    """Return whether what is inside is float64, and rounded."""
    kinds = {axes.kind for axes in REGISTRY[op].arrays.values()}
    return "wide" in kinds and "real" not in kinds


@part()
def every_real_array_has_gradients(encoding: Encoding) -> None:
    """In two cases at least, with cotangents that are neither constant nor their own mirror image."""
    op, cases = encoding.op, encoding.of_kind("vjp")
    calls = [call for case in encoding.built if case.kind != "reject" and gradients_are_asked(op) for call in case.calls[:1]]
    names = {n for call in calls for n in differentiable(op, {k: np.asarray(v) for k, v in call.inputs.items()})}
    assert (len(cases) >= 2) == bool(names)
    asked = {n for case in cases for n in case.calls[0].expected}
    assert asked == names, f"{op}: {names - asked} is never differentiated in"
    for case in cases:
        for value in case.calls[0].cotangents.values():
            assert len(np.unique(value)) > 2, case.id
            assert not np.array_equal(value.reshape(-1), value.reshape(-1)[::-1]), case.id


@part(of=gradients_are_asked, dear=True)
def automatic_differentiation_keeps_within_the_bounds(encoding: Encoding) -> None:
    """Of every case in every dtype of PyTorch; and where rounding shows at all, the worst is not far below the bound."""
    if encoding.of_kind("vjp"):
        worst = worst_of("torch", encoding.of_kind("vjp"), DTYPES)
        missing = [dtype for dtype in DTYPES if dtype not in worst]
        why = "a bound there allows zeros, or the dtype lacks a number. Add a vjp case with larger gradients"
        assert not missing, f"no case has gradients in {', '.join(missing)}: {why}"
        assert is_of_tables(encoding.op) or not [dtype for dtype, ratio in worst.items() if 0 < ratio < 0.01]


def worst_of(backend: str, cases: Iterable[LoadedCase], dtypes: tuple[str, ...]) -> dict[str, float]:
    """Assert that gradients are within their bounds; return the worst ratio of error and bound by dtype."""
    target = load_python("posref", backend=backend)
    worst: dict[str, float] = {}
    for case in cases:
        for dtype in set(dtypes) & set(case.dtypes):
            (call,) = case.calls
            accuracy = {"float64": "float64"}.get(dtype, "angle64")
            for name, gradient in target.run(case, call, dtype).items():
                error, width = judge.errors(case.op, call, name, gradient, accuracy, dtype)
                assert np.all(error <= width), (case.id, dtype, name)
                ratio = float(np.max(error[error > 0] / width[error > 0], initial=0.0))
                worst[dtype] = max(ratio, worst.get(dtype, 0.0))
    return worst

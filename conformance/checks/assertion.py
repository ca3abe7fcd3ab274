"""Judges one call of a user's code against live bounds: its inputs, its result, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from posref.backends import load, names
from posref.spec import REGISTRY

from ..accuracy import DEFAULT_CLAIM, OF_DTYPE
from ..calls import PLACED, array_names, class_of_claim, parameters_of
from ..errors import Failure, TargetError, no_operation
from ..judge import judge
from ..model import Answer, Arrays, Call, LoadedCase
from ..proof.evaluation import result_placeholders, wide
from ..proof.live_truth import Sample
from ..targets import invocation
from .case_run import TIER, divide, with_few

NAME = "assert_conforms"


def fault_of(
    op: str, actual: Any, arrays: Sequence[Any], options: Mapping[str, Any], claim: str | None, *, everything: bool
) -> str | None:
    """
    Return what is wrong with the result of a call, in words with the diagnosis, or None if it conforms.

    Raises
    ------
    TargetError
        If the call is none of the operation, the claim none of the dtype, or the class says nothing of this call.
    """
    call = call_of(NAME, op, arrays, options)
    try:
        outputs = results_on_host(op, actual, arrays)
    except Failure as failure:
        return f"{op}: {failure}."
    return fault_in(NAME, op, call, outputs, claim, everything=everything)


def fault_in(
    who: str, op: str, call: Call, found: invocation.Collected, claim: str | None, *, everything: bool = False, why: bool = True
) -> str | None:  # fmt: skip
    """Return what is wrong with results on the host, as `fault_of` does; `who` asks, and `why` wants the diagnosis."""
    try:
        dtype, outputs = accepted(op, call, found)
    except Failure as failure:
        return f"{op}: {failure}."
    accuracy = class_of_claim(op, DEFAULT_CLAIM[dtype]) if claim is None else claim
    if accuracy.partition("(")[0] not in OF_DTYPE[dtype]:
        msg = f"{who}: claim must be one of {', '.join(OF_DTYPE[dtype])} for {dtype}; got {claim!r}."
        raise TargetError(msg)
    judgement = judge(op, call, outputs, accuracy, dtype, truth="live", everything=everything)
    if judgement.sample is None:
        msg = f"{who}: {op} in {dtype} cannot be judged by {accuracy}: {judgement.reason}."
        raise TargetError(msg)
    silent = [one.output for one in judgement.verdicts if not one.judged and one.of]
    if silent:
        msg = f"{who}: no value of {', '.join(silent)} can be decided in {accuracy}; ask for fewer at once."
        raise TargetError(msg)
    wrong = judgement.failures
    if not wrong:
        return None
    exact = all(outputs[verdict.output].dtype.kind != "f" for verdict in wrong)  # masks and indices have no accuracy
    first = f"{op} is not right:" if exact else f"{op} in {dtype} is not within {accuracy}:"
    lines = [first, *(f"  {verdict}" for verdict in wrong)]
    lines += [f"  diagnosis: {_diagnosis(op, call, judgement.sample, accuracy, dtype)}"] if why else []
    return "\n".join(lines)


def call_of(who: str, op: str, arrays: Sequence[Any], options: Mapping[str, Any]) -> Call:
    """Return a call of an operation, its arrays as NumPy, its options with those that have their default."""
    if not isinstance(op, str) or op not in REGISTRY:
        raise TargetError(no_operation(f"{who}: op", op))
    parameters = parameters_of(REGISTRY[op].function)
    known = [n for n in parameters if n not in PLACED]
    unknown = [n for n in options if n not in known]
    if unknown:
        msg = f"{who}: {op} takes {', '.join(known)}; got {', '.join(map(repr, unknown))}."
        raise TargetError(msg)
    positional = [n for n in known if parameters[n].kind is parameters[n].POSITIONAL_ONLY]
    if len(arrays) > len(positional):
        msg = f"{who}: {op} takes {len(positional)} arguments by position, {', '.join(positional)}; got {len(arrays)}."
        raise TargetError(msg)
    arguments = {**dict(zip(positional, arrays, strict=False)), **options}
    values = {n: arguments.get(n, parameters[n].default) for n in known}
    missing = [n for n in known if values[n] is parameters[n].empty]
    if missing:
        msg = f"{who}: {op} needs {', '.join(missing)}; give the arguments and options of the call that was made."
        raise TargetError(msg)
    inputs = {n: on_host(values[n]) for n in array_names(op) if values[n] is not None}
    return Call({n: v for n, v in values.items() if n not in array_names(op)}, inputs)


def library_of(*arrays: Any) -> ModuleType:
    """Return the backend of the first array that is not NumPy's, else NumPy's."""
    for array in arrays:
        root = type(array).__module__.partition(".")[0].removesuffix("lib")  # jaxlib's arrays are JAX's
        if root != "numpy" and _islibrary_of(root):
            return load(root)
    return load("numpy")


@cache
def _islibrary_of(name: str) -> bool:
    """Return whether a backend has that name; looking for those of other packages takes milliseconds."""
    return name in names()


def on_host(value: Any) -> Any:
    """Return an array as NumPy, not copied where that can be avoided; reals in a dtype that holds them."""
    if isinstance(value, np.generic | int | float | list | tuple):
        return np.asarray(value)
    return _viewed(library_of(value))(value)


def _viewed(library: ModuleType) -> Callable[[Any], Any]:
    """Return the function of a backend that brings an array to the host, fastest."""
    view: Callable[[Any], Any] = getattr(library, "view", library.to_numpy)
    return view


def results_on_host(op: str, actual: Any, arrays: Sequence[Any]) -> invocation.Collected:
    """Return results as NumPy, as `call_of` does arguments, each with the name of its dtype; `Failure` for another count."""
    library = library_of(actual, *arrays)
    viewing = SimpleNamespace(
        name=library.name, dtypes=library.dtypes, dtype=library.dtype, to_numpy=_viewed(library)
    )  # fmt: skip
    target: Any = SimpleNamespace(backend=viewing, implementation=None, device=None, in_place=())
    return invocation.collected(target, op, actual)


def accepted(op: str, call: Call, found: invocation.Collected) -> tuple[str, Arrays]:
    """Return the dtype of a call and its results; `Failure` for a shape or dtype that they cannot have."""
    expected = result_placeholders(op, call.inputs, call.params, {n: x.shape for n, (x, _) in found.items()})
    call = replace(call, expected=expected)
    reals = [dtype for dtype in (found[n][1] for n in expected if expected[n].dtype.kind == "f") if dtype in OF_DTYPE]
    dtype = reals[0] if reals else "float32"
    outputs = {n: invocation.accept(op, n, *found[n], call, dtype, asked=False) for n in found}
    return dtype, outputs


def _diagnosis(op: str, call: Call, sample: Sample, accuracy: str, dtype: str) -> str:
    """Return what `posref check` would say of a case that fails so."""
    from ..diagnosis.explanation import diagnose  # the mistakes take long to load, and what conforms needs none

    shapes = {n: np.broadcast_to(np.zeros(()), shape) for n, shape in sample.shapes.items()}
    call = replace(call, inputs=wide(call.inputs), expected=shapes)
    case = LoadedCase(f"{op}/your/call", op, "value", TIER, "", (dtype,), (call,))
    answer = Answer(case, dtype, [sample.outputs])
    divide(answer, sample)
    return str(diagnose(op, [(with_few(answer).few or answer, True)], accuracy)["text"])

"""What an operation is made of is read from its definition; what is read is what is called."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import mpmath
import numpy as np
from numpy.testing import assert_array_equal
from quality import record

from posref.conformance.accuracy import BASE, OF_FREQUENCIES
from posref.conformance.diagnosis import hypotheses, strength
from posref.conformance.evidence.deviations import Deviation
from posref.conformance.evidence.tools.deviation import after
from posref.conformance.proof import witnesses
from posref.conformance.proof.evaluation import half_widths
from posref.core.composition import called, formula, has_frequencies, is_known, noun
from posref.spec import PARTS, REGISTRY

from .encoding import Encoding, part

WITNESS = witnesses._transcription
KNOWN = {**{name: record.function for name, record in REGISTRY.items()}, **{name: p.function for name, p in PARTS.items()}}
NOUNS = {noun(name) for name in KNOWN} | {output for record in REGISTRY.values() for output in record.outputs}


def below(function: Callable[..., Any]) -> set[str]:
    """Return every known function that a definition calls, through others too."""
    direct = called(function)
    return set(direct).union(*(below(KNOWN[name]) for name in direct))


@contextmanager
def watched(codes: dict[Any, str]) -> Iterator[set[str]]:
    """Note which functions run, by their code."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in codes:
            seen.add(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(before)


@part()
def record_of_catches_lists_its_cases(encoding: Encoding) -> None:
    """The record of which cases catch which deviation has the cases that can be measured, in their order."""
    recorded = record().get(encoding.op, {"cases": None})["cases"]
    assert recorded == [case.id for case in encoding.measured], "python docs/generate.py"


def forget() -> None:
    """Have constants that are computed once computed again."""
    for function in KNOWN.values():
        getattr(function, "forget", int)()


@part()
def definition_calls_what_is_read(encoding: Encoding) -> None:
    """On every second core case; a call through an attribute, a table or a closure would be missed by reading."""
    op, asked = encoding.op, encoding.measured
    assert asked
    own = [f for f in (encoding.record.function, encoding.record.equals) if f is not None]
    codes = {unwrap(f).__code__: name for name, f in KNOWN.items() if f not in own}
    for function in own:
        with hypotheses.quiet(), watched(codes) as seen:
            for case in asked[::2]:
                for call in case.calls:
                    positional, keywords = hypotheses._arguments(op, call)
                    forget()
                    function(*positional, **keywords)
        assert seen == below(function), f"{op}: see the limits in posref/core/composition.py"


@part()
def transcription_calls_what_is_read(encoding: Encoding) -> None:
    op, function = encoding.op, WITNESS(encoding.op)
    folder = Path(str(sys.modules[function.__module__].__file__)).parent
    names = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    modules = [import_module(f"{function.__module__.rpartition('.')[0]}.{name}") for name in names]
    found = [f for m in modules for f in vars(m).values() if isinstance(f, FunctionType) and f.__module__ == m.__name__]
    codes = {f.__code__: f.__name__ for f in found if is_known(f) and f is not function}

    def deep(f: Callable[..., Any]) -> set[str]:
        direct = called(f)
        return set(direct).union(*(deep(next(g for g in found if g.__name__ == name)) for name in direct))

    small = min(encoding.measured, key=lambda case: sum(v.size for call in case.calls for v in call.expected.values()))
    with mpmath.workprec(128), watched(codes) as seen:
        for call in small.calls:
            lists = {name: witnesses._to_lists(value) for name, value in call.inputs.items()}
            witnesses._transcribed(op, lists, {name: witnesses._option(value) for name, value in call.params.items()})
    assert seen == deep(function)


@part()
def nothing_changes_without_a_deviation(encoding: Encoding) -> None:
    """Wraps that do nothing, on every operation and part: all is rebound, and gives the bits of the definition."""
    op = encoding.op
    nothing = Deviation("nothing", "", dict.fromkeys(KNOWN, after(lambda result, *args, **options: result)))
    rebound = nothing.operations()[op]
    for case in encoding.measured[::4]:
        for call in case.calls:
            arguments = hypotheses._arguments(op, call)
            changed = hypotheses._call(op, rebound, *arguments)
            plain = hypotheses._call(op, formula(op), *arguments)
            for name in call.expected:
                assert_array_equal(changed[name], plain[name], case.id)


@part(of=lambda op: bool(REGISTRY[op].equals))
def registered_as_equal(encoding: Encoding) -> None:
    """Within the tolerance of the class in which deviations are measured, on every fourth core case."""
    for case in encoding.measured[::4]:
        given = strength.outputs(Deviation("nothing", "", {}), case)
        assert all(given), case.id
        assert not strength.fails(case, given), case.id


@part(of=has_frequencies)
def every_class_allows_what_a_tighter_one_allows(encoding: Encoding) -> None:
    """A computed class is no tighter than the stored angle64, nor product32 than frequency32, in all but rounding."""
    (call,) = encoding.of_kind("value")[0].calls
    frequency32, product32 = (half_widths(encoding.op, call, name) for name in OF_FREQUENCIES)
    assert not {*OF_FREQUENCIES} & {*BASE}
    for name, width in frequency32.items():
        assert np.all(width >= (1 - 1e-6) * call.widths["angle64"][name])
        assert np.all(product32[name] >= width)

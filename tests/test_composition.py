"""What operations are made of is read from their definitions; what is read is what is called."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posref
from posref.conformance.diagnosis import hypotheses, strength
from posref.conformance.errors import BuildError
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.evidence.tools.deviation import after
from posref.conformance.model import LoadedCase
from posref.conformance.proof import prove
from posref.conformance.suite import INSTALLED
from posref.core.composition import Observed, called, formula, is_known, noun, reaches, rebound, stages
from posref.spec import PARTS, REGISTRY, Axes, Integer, encoding, part

WITNESS = prove._transcription
KNOWN = {**{name: record.function for name, record in REGISTRY.items()}, **{name: p.function for name, p in PARTS.items()}}


@cache
def measured() -> dict[str, list[LoadedCase]]:
    return strength.cases()[0]


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


@pytest.mark.parametrize("op", REGISTRY)
def test_what_is_read_from_a_definition_is_what_it_calls(op: str) -> None:
    """On every second core case; a call through an attribute, a table or a closure would be missed by reading."""
    own, asked = [f for f in (REGISTRY[op].function, REGISTRY[op].equals) if f is not None], measured()[op]
    codes = {f.__code__: name for name, f in KNOWN.items() if f not in own}
    for function in own:
        with hypotheses.quiet(), watched(codes) as seen:
            for case in asked[::2]:
                for call in case.calls:
                    positional, keywords = hypotheses._arguments(op, call)
                    function(*positional, **keywords)
        assert seen == below(function), f"{op}: see the limits in posref/core/composition.py"


@pytest.mark.parametrize("op", REGISTRY)
def test_what_is_read_from_a_transcription_is_what_it_calls(op: str) -> None:
    function = WITNESS(op)
    folder = Path(str(sys.modules[function.__module__].__file__)).parent
    names = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    modules = [import_module(f"{function.__module__.rpartition('.')[0]}.{name}") for name in names]
    found = [f for m in modules for f in vars(m).values() if isinstance(f, FunctionType) and f.__module__ == m.__name__]
    codes = {f.__code__: f.__name__ for f in found if is_known(f) and f is not function}

    def deep(f: Callable[..., Any]) -> set[str]:
        direct = called(f)
        return set(direct).union(*(deep(next(g for g in found if g.__name__ == name)) for name in direct))

    small = min(measured()[op], key=lambda case: sum(v.size for call in case.calls for v in call.expected.values()))
    with mpmath.workprec(128), watched(codes) as seen:
        for call in small.calls:
            lists = {name: prove._to_lists(value) for name, value in call.inputs.items()}
            prove._transcribed(op, lists, {name: prove._option(value) for name, value in call.params.items()})
    assert seen == deep(function)


def test_the_stages_of_rope_and_of_a_method_that_only_equals_its_map() -> None:
    assert stages("rope") == ("rope_frequencies", "rope_table", "apply_rope")
    assert stages("rerope") == ("rope_frequencies", "rope_table", "apply_rope", "rerope_distances")
    assert stages("mla_logits") == ("rope", "attention_logits")
    assert reaches("rope") == {"rope_frequencies", "rope_table", "waves", "apply_rope"}
    assert reaches("rerope") == {"rerope_distances", "rotated_products"}
    assert reaches("fope") == frozenset()  # closed


def test_names_of_parts_say_one_thing() -> None:
    assert not set(PARTS) & set(REGISTRY)
    for name in PARTS:
        assert any(name in reaches(op) for op in REGISTRY), f"{name} is part of no operation"
    for name, module in list(sys.modules.items()):
        if name.startswith("posref.") and not name.startswith("posref.conformance"):
            for function in vars(module).values():
                if isinstance(function, FunctionType) and function.__module__ == name and is_known(function):
                    assert function is KNOWN[function.__name__], f"{name}.{function.__name__} has the name of a part"


@pytest.mark.parametrize("op", REGISTRY)
def test_without_a_deviation_nothing_changes(op: str) -> None:
    """Wraps that do nothing, on every operation and part: all is rebound, and gives the bits of the definition."""
    nothing = Deviation("nothing", "", dict.fromkeys(KNOWN, after(lambda result, *args, **options: result)))
    operations = nothing.operations()
    for case in measured()[op][::4]:
        for call in case.calls:
            arguments = hypotheses._arguments(op, call)
            changed = hypotheses._call(op, operations[op], *arguments)
            plain = hypotheses._call(op, formula(op), *arguments)
            for name in call.expected:
                assert_array_equal(changed[name], plain[name])


@pytest.mark.parametrize("op", [name for name, record in REGISTRY.items() if record.equals])
def test_what_is_registered_as_equal_is(op: str) -> None:
    """Within the tolerance of the class in which deviations are measured, on every fourth core case."""
    for case in measured()[op][::4]:
        given = strength.outputs(Deviation("nothing", "", {}), case)
        assert all(given), case.id
        assert not strength.fails(case, given), case.id


def test_every_deviation_is_made_for_what_it_touches_alone() -> None:
    for deviation in DEVIATIONS.values():
        operations = deviation.operations()
        for op in REGISTRY:
            touched = operations[op] is not formula(op)
            assert touched == deviation.touches(op), f"{deviation.name} in {op}"


def test_a_copy_calls_others_and_leaves_the_definition_alone() -> None:
    x, positions = np.asarray([[1.0, 2.0, 3.0, 4.0]]), np.asarray([5])
    options = {"layout": "half", "base": 100.0}
    before = posref.rope(x, positions, **options)
    seen = []

    def known(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def deviating(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return function(*args, **kwargs)

        return deviating

    copy = rebound(posref.rope, {"rope_table", "apply_rope"}, known)
    assert_array_equal(copy(x, positions, **options), before)
    assert seen == ["rope_table", "apply_rope"]
    assert_array_equal(posref.rope(x, positions, **options), before)
    assert seen == ["rope_table", "apply_rope"]
    through_a_helper = rebound(posref.rerope, {"rope_table"}, known)
    places = {"window": 3, **options}
    assert_array_equal(
        through_a_helper(x, x, positions, positions, **places), posref.rerope(x, x, positions, positions, **places)
    )
    assert seen[2:] == ["rope_table"] * 4


def test_a_stage_is_what_is_called_once_has_a_name_and_is_used() -> None:
    x, p = np.asarray([[1.0, 2.0, 3.0, 4.0]]), np.asarray([5])
    observed = Observed(posref.xpos, set(called(posref.xpos)))
    observed.function(x, p, role="query", layout="half", base=100.0, centre=2)
    assert list(observed.outputs()) == ["inv_freq", "attention_factor", "cos", "sin", "scales"]
    assert_array_equal(observed.outputs()["scales"], posref.xpos_scales(p, 4, role="query", centre=2))
    assert noun("apply_rope") == ""
    polar = Observed(posref.pope, set(called(posref.pope)))
    polar.function(x, p, layout="cos_sin", base=100.0)
    assert list(polar.outputs()) == ["inv_freq"]  # it does not take the factor
    twice = Observed(posref.rotated_values, {"rope"})
    twice.function(np.ones((1, 1)), x, p, p, layout="half", base=100.0)
    assert twice.outputs() == {}


def test_stages_are_those_of_the_stored_vectors() -> None:
    """Every tensor of a stage that is stored has a registered name, and the definition gives it."""
    nouns = {noun(name) for name in KNOWN} | {output for record in REGISTRY.values() for output in record.outputs}
    for op, cases in measured().items():
        for case in cases[:1]:
            for call in case.calls:
                _, mid = prove.golden_with_stages(op, call.inputs, call.params)
                assert set(mid) <= nouns - {"out", ""}


def test_two_parts_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def waves() -> None:
        """Of another module."""

    with pytest.raises(ValueError, match=r"part: names must be unique; 'waves' is already defined in posref.rotary.rope_table"):
        part()(waves)


def test_a_new_operation_has_stages_by_calling_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posref.spec.REGISTRY", REGISTRY)

    described: dict[str, Any] = {"arrays": {"positions": Axes("*P", "position")}, "domains": {"heads": Integer(1)}}

    @encoding(family="bias", source="a test", result="*P", **described)
    def toy_twice(positions: Any, heads: int, /) -> Any:
        """Slopes, twice."""
        return _toy_helper(heads) * 2 + positions

    try:
        assert stages("toy_twice") == ()  # a helper outside posref is not looked into
        changed = DEVIATIONS["slopes-reversed"].operations()["toy_twice"]
        assert changed is REGISTRY["toy_twice"].function
    finally:
        del REGISTRY["toy_twice"]


def _toy_helper(heads: int) -> Any:
    return posref.alibi_slopes(heads)


def test_the_installed_suite_is_read() -> None:
    assert INSTALLED.exists()
    assert sum(map(len, measured().values())) > 1000


def test_a_second_witness_that_is_missing_is_named_with_its_file() -> None:
    with pytest.raises(
        BuildError, match=r"^spiral has no second witness: write the function spiral in conformance/witness/spiral\.py\.$"
    ):
        WITNESS("spiral")

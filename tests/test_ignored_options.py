"""Code that takes any option and ignores it is told which ones, and what it computes instead."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.conformance import check
from posref.spec import REGISTRY, Flag, OneOf

USUAL = {  # what code of one form computes, whatever it is asked
    "rope": {"layout": "half", "rotary_dim": None, "scaling": None, "inverse": False},
    "apply_rope": {"layout": "interleaved", "inverse": False, "lanes": "leading"},
    "mrope": {"arrangement": "chunked", "layout": "half", "inverse": False},
    "norm_rope": {"layout": "half", "weight_offset": 0.0, "precedence": "norm_first"},
    "axial_rope": {"layout": "half", "arrangement": "chunked", "inverse": False},
    "sinusoidal": {"layout": "interleaved", "endpoint": False, "scale": 1.0},
}


def diagnosis(function: Any, op: str, **options: Any) -> dict[str, Any]:
    report = check(SimpleNamespace(dtypes=("float32",), **{op: function}), op=op, seed=1, **options)
    return report.operations[0].diagnosis or {}


@few(3, "op", [op for op in USUAL if len(USUAL[op].keys() & REGISTRY[op].domains.keys()) > 1])
def test_ignored_options_are_told_with_what_is_computed(op: str) -> None:
    usual = {name: value for name, value in USUAL[op].items() if name in REGISTRY[op].domains}

    def swallowing(*arrays: Any, **options: Any) -> Any:
        return REGISTRY[op].function(*arrays, **{**options, **usual})

    found = diagnosis(swallowing, op)
    assert "options are ignored: " in found["text"], found["text"]
    told = {name for name in REGISTRY[op].domains if f"{name} (always " in found["text"]}
    assert told <= usual.keys()
    assert {name for name in usual if isinstance(REGISTRY[op].domains[name], OneOf | Flag)} <= told
    assert "NotImplementedError" in found["hint"]


def test_two_ignored_options_have_the_names_of_the_registry() -> None:
    def apply_rope(*arrays: Any, **options: Any) -> Any:
        return posref.apply_rope(*arrays, **{**options, "layout": "interleaved", "inverse": False})

    assert diagnosis(apply_rope, "apply_rope")["names"] == ["layout-interleaved", "inverse-ignored"]


def test_another_mistake_stands_beside_them() -> None:
    def rope(x: Any, positions: Any, *, base: float, **_: Any) -> Any:
        """The rotation of a tutorial, which takes the place in the array for the position."""
        return posref.rope(x, np.arange(x.shape[-2]), base=base, layout="half")

    found = diagnosis(rope, "rope")
    assert "in place of the positions (positions-arange" in found["text"]
    assert "layout (always 'half')" in found["text"]
    assert "scaling (always None)" in found["text"]


def test_what_is_honoured_is_not_called_ignored() -> None:
    def rope(x: Any, positions: Any, *, layout: str, base: float, **_: Any) -> Any:
        return posref.rope(x, positions, base=base, layout=layout)

    found = diagnosis(rope, "rope")
    assert "options are ignored: " in found["text"], found["text"]
    assert "layout (" not in found["text"]
    assert "base (" not in found["text"]


@pytest.mark.parametrize("factor", [1.01, -1.0])
def test_what_is_wrong_everywhere_ignores_nothing(factor: float) -> None:
    def rope(*arrays: Any, **options: Any) -> Any:
        return np.float32(factor) * posref.rope(*arrays, **options)

    assert "ignored" not in diagnosis(rope, "rope")["text"]


def test_an_option_that_a_wrapped_function_lacks_is_outside() -> None:
    """A decorator without functools.wraps, and a module of PyTorch, take any keywords and pass them on."""

    def half(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        if layout != "half":
            raise NotImplementedError
        return posref.rope(x, positions, layout=layout, base=base)

    def decorated(*args: Any, **options: Any) -> Any:
        return half(*args, **options)

    report = check(SimpleNamespace(rope=decorated), op="rope", dtype="float32", seed=1)
    assert report.conformant
    assert "no option 'scaling'" in {case.message for case in report.operations[0].cases}


def test_a_wrapped_function_that_fails_by_itself_is_wrong() -> None:
    def half(x: Any, positions: Any, /, **options: Any) -> Any:
        return posref.rope(x, positions, lay="half", base=10.0)

    report = check(SimpleNamespace(rope=half), op="rope", dtype="float32", seed=1, experiments=0)
    assert report.operations[0].counts["error"]
    assert not report.conformant

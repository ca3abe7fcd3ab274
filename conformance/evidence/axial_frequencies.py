"""Frequencies of axial RoPE: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.rotary import BASE
from .tools import Case, Function, Real, after, around, around_with, deviations_of, option
from .tools.hints import BRANCH, DEFAULT, TWO_PI

USUAL: dict[str, Any] = {"dims": [4, 6], "base": 100.0, "allocation": "own", "unit": "radians"}
WITH_OPTION: dict[str, dict[str, Any]] = {"allocation": {"dims": [4, 4]}}


def _case(name: str, dims: list[int], *, kind: str = "value", tier: str = "core", **params: Any) -> Case:
    params = {"dims": dims, "base": BASE, **params}
    return Case(f"axial_frequencies/{name}", params, {}, "", kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("own/small", [8, 8], tier="smoke", allocation="own"),
        _case("own/flux", [16, 56, 56], allocation="own"),
        _case("own/wan", [44, 42, 42], allocation="own"),
        _case("own/one-axis", [14], allocation="own", base=5e5),
        _case("shared/pixtral", [32, 32], allocation="shared"),
        _case("shared/three", [6, 6, 6], allocation="shared", base=500.0),
        _case("turns/dinov3", [32, 32], allocation="own", base=100.0, unit="turns"),
        _case("endpoint/dinov3", [8, 8], allocation="own", base=16.0, unit="turns", endpoint=True, first_frequency=2.0),
        _case("endpoint/ltx", [682, 682, 682], allocation="own", base=1e-4, unit="turns", endpoint=True, first_frequency=0.25),
        _case("endpoint/shared", [6, 6, 6], allocation="shared", endpoint=True),
        _case("endpoint/unequal", [4, 10, 6], allocation="own", base=500.0, endpoint=True),
        _case("endpoint/two-pairs", [4], allocation="own", base=70.0, endpoint=True),
        _case("first/own", [6, 12], allocation="own", base=70.0, first_frequency=0.375),
        _case("first/shared", [10, 10], allocation="shared", unit="turns", first_frequency=3.0),
        _case("refused/endpoint", [2, 4], kind="reject", allocation="own", endpoint=True),
        _case("refused/first", [4, 4], kind="reject", allocation="own", first_frequency=0.0),
        _case("refused/odd", [7, 8], kind="reject", allocation="own"),
        _case("refused/unequal", [6, 8], kind="reject", allocation="shared"),
        _case("refused/word", [6, 6], kind="reject", allocation="even_odd"),
    )


ALLOCATION = "Compare `allocation`: one list of frequencies for all axes, or one for each."


def _powers(pairs: int, width: int, base: float, unit: str, *, endpoint: bool, first_frequency: float) -> Real:
    each = base ** -(2 * np.arange(pairs) / (width - 2 * endpoint))
    return np.asarray(each * first_frequency * (2 * np.pi if unit == "turns" else 1.0))


def _one_ladder(
    f: Real, dims: Any, /, *, base: float, allocation: str, unit: str = "radians", endpoint: bool = False,
    first_frequency: float = 1.0,
    **rest: Any,
) -> Real:  # fmt: skip
    return _powers(sum(dims) // 2, sum(dims), base, unit, endpoint=endpoint, first_frequency=first_frequency)


def _whole_width(
    f: Real, dims: Any, /, *, base: float, allocation: str, unit: str = "radians", endpoint: bool = False,
    first_frequency: float = 1.0,
    **rest: Any,
) -> Real:  # fmt: skip
    each = np.concatenate(
        [_powers(dim // 2, sum(dims), base, unit, endpoint=endpoint, first_frequency=first_frequency) for dim in dims]
    )
    return f if allocation == "shared" else each


@around
def _inverted(function: Function, dims: Any, /, *, first_frequency: float = 1.0, **options: Any) -> Any:
    return function(dims, first_frequency=1 / first_frequency, **options)


@around
def _ends(function: Function, dims: Any, /, *, endpoint: bool = False, **options: Any) -> Any:
    return function(dims, endpoint=min(dims) > 2, **options)


@around_with
def _allocated(other: str, function: Function, dims: Any, /, *, allocation: str, **rest: Any) -> Any:
    return function(dims, allocation=other if len(set(dims)) == 1 else allocation, **rest)


_deviation = deviations_of("axial_frequencies")

DEVIATIONS = (
    _deviation("ladder-shared", "all axes share one list of frequencies, and each takes every n-th", _allocated("shared"),
               hint=ALLOCATION, one_of="allocation"),
    _deviation("ladder-own", "each axis has its own list of frequencies where all should share one", _allocated("own"),
               hint=ALLOCATION, one_of="allocation"),
    _deviation("ladder-chunked", "one list of frequencies is cut into pieces, the fast ones for the first axis",
               after(_one_ladder), hint=ALLOCATION, seen_in="vllm-omni#1784"),
    _deviation("ladder-whole-width", "the exponent is divided by the number of channels of all axes, not of its own",
               after(_whole_width), hint="RoPE-ViT has b^(-4k/d) for d channels of two axes: b^(-2k/(d/2))."),
    _deviation("ladder-radians", "coordinates are not multiplied by 2 pi", option(unit=lambda _: "radians"), hint=TWO_PI),
    _deviation("ladder-endpoint-never", "the last frequency is always one step before 1/base",
               option(endpoint=lambda _: False), hint=BRANCH),
    _deviation("ladder-endpoint-always", "the last frequency is always 1/base", _ends, hint=BRANCH),
    _deviation("ladder-first-1", "the first frequency is always 1", option(first_frequency=lambda _: 1.0), hint=DEFAULT),
    _deviation("ladder-first-inverted", "the first frequency is taken for a period, or a period for a frequency", _inverted,
               hint="Divide the coordinate by a period; multiply it by a frequency."),
    _deviation("ladder-base-10000", "the base is always 10000", option(base=lambda _: 10000.0), hint=DEFAULT),
)  # fmt: skip

"""Log-spaced coordinates of Swin v2: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Real, after, argument, cases_of, deviations_of, held, option, places
from .tools.hints import DEFAULT, FRACTIONS, INTEGERS

OP = "log_spaced_coordinates"
USUAL: dict[str, Any] = {"window": 8}
OTHER_VALUES = {"window": 12}
KERNEL: tuple[dict[str, Any], ...] = ({"window": 8}, {"window": None})

FAR = (-131071, -65537, -2049, -257, 0, 129, 255, 2047, 4097)

_cases = cases_of(OP)


def _case(name: str, offsets: Any, window: Any, comment: str = "", **rest: Any) -> Case:
    return _cases(name, {"window": window}, {"offsets": offsets}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("window/small", (-3, -1, 0, 2, 5), 6, tier="smoke"),
        _case("window/16-of-8", tuple(range(-15, 16)), 8, "windows of 16, trained with 8"),
        _case("window/two", (-1, 0, 1), 2),
        _case("window/one", (0, 0), 1, "a window of one row has offset 0 alone"),
        _case("window/24-bits", (-1.0000001192092896, 2.000000238418579, 0.10000000149011612), 5),
        _case("natural/small", (-3, -1, 0, 2, 6), None),
        _case("natural/far", FAR, None),
        _case("refused/window", (-1, 0, 1), 0, "a window has at least one cell", kind="reject"),
        *places(OP, "offsets", USUAL),
    )


_deviation = deviations_of(OP)
_of_logarithm = deviations_of("signed_logarithm")
FORMULA = "The code has sign(u) * log2(1 + abs(u)) / log2(8), with u = 8 * offset / (window - 1)."
NATURAL = "Without a window it is sign(x) * ln(1 + abs(x))."


def _scaled(factor: Any) -> Any:
    """Return a wrap that multiplies offsets if there is a window."""
    return lambda f: lambda x, /, *, window, **rest: f(x if window is None else x * factor(window), window=window, **rest)


def _result(factor: float) -> Any:
    """Return a wrap that multiplies the result if there is a window."""
    return after(lambda out, x, /, *, window, **rest: out if window is None else out * factor)


def _over_zero(out: Real, x: Real, /, *, window: Any, **rest: Any) -> Real:
    return np.where(x == 0, np.nan, np.where(x < 0, -np.inf, np.inf)) if window == 1 else out


DEVIATIONS = (
    _deviation("log-spaced-natural", "the logarithm is natural, and still divided by log2(8)", _result(np.log(2.0)),
               hint=FORMULA),
    _deviation("log-spaced-undivided", "the logarithm is not divided by log2(8)", _result(3.0), hint=FORMULA),
    _deviation("log-spaced-width", "offsets are divided by the window, not by the window less 1",
               _scaled(lambda w: max(w - 1, 1) / w), hint=FORMULA),
    _deviation("log-spaced-no-8", "offsets are not multiplied by 8", _scaled(lambda w: 1 / 8), hint=FORMULA),
    _deviation("log-spaced-equation-4", "it is the paper's equation (4) with the window too: the logarithm of the offset",
               option(window=lambda w: None), hint=FORMULA, seen_in="arXiv:2111.09883, equation (4)"),
    _deviation("log-spaced-window-8", "the window is always 8", option(window=lambda w: w and 8), hint=DEFAULT),
    _deviation("log-spaced-over-zero", "a window of one row or column is divided by its size less 1, which is 0",
               after(_over_zero), hint="Divide by 1 there, as transformers does for the model's own window.",
               seen_in="timm, Swin v2's authors"),
    _deviation("log-spaced-log2", "without a window the logarithm has base 2",
               after(lambda out, x, /, *, window, **rest: out / np.log(2.0) if window is None else out), hint=NATURAL),
    _deviation("log-spaced-truncated", "offsets are truncated to integers", argument(0, np.trunc), hint=FRACTIONS),
    _deviation("log-spaced-bfloat16", "offsets are held in bfloat16", held("bfloat16", 0), hint=INTEGERS),
    _of_logarithm("log-spaced-unsigned", "the sign is lost", after(lambda out, *args, **options: np.abs(out)),
                  hint="Multiply by the sign of the offset."),
    _of_logarithm("log-spaced-without-one", "the logarithm is of the absolute value, at least 1, without the one added",
                  lambda f: lambda x, /: np.sign(x) * np.log(np.maximum(np.abs(x), 1.0)), hint="Add 1 before the logarithm."),
)  # fmt: skip

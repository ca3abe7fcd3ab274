"""Attention temperature by position: cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .shared.factors import TEXTS, factor_case, negative_positions
from .shared.masks import held_in
from .tools import Case, Deviation, Make, Wrap, always, argument, deviations_of, option, places
from .tools.hints import BRANCH, COMPARE_INTEGERS, DEFAULT, ROUND_DOWN

USUAL: dict[str, Any] = {"form": "steps", "beta": 0.75, "original_length": 8, "offset": 0}
OTHER_VALUES = {"original_length": 16}
UNSTORED = ("word/usual-far-negative",)
KERNEL: tuple[dict[str, Any], ...] = ({"form": "steps", "beta": 0.1, "original_length": 64, "offset": 0},)

MINISTRAL = {"form": "steps", "original_length": 16384, "beta": 0.1, "offset": 0}
INKLING = {"form": "smooth", "original_length": 128000, "beta": 0.1, "offset": 1}


def _case(*args: Any, **more: Any) -> Case:
    """Return a case of attention_temperature."""
    return factor_case("attention_temperature", *args, **more)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("steps/small", (3, 6, 7, 8, 15, 40), form="steps", beta=0.5, original_length=8, offset=1, tier="smoke"),
        _case("steps/ministral-3", (0, 16383, 16384, 32767, 32768, 262143), **MINISTRAL),
        _case("steps/negative", (-7, 40, -1, 0, 900), form="steps", beta=0.75, original_length=13, offset=1),
        _case("steps/beyond-float32", (2**25 - 2, 2**25 - 1, 2**29 - 1, 2**29), "one token before a step, and on it",
              form="steps", beta=2.0, original_length=2**24, offset=0),
        _case("steps/beyond-float32-llama-4", (2**26 - 3, 2**26 - 2, 2**26 - 1), form="steps", beta=1.5, original_length=8192,
              offset=1),
        _case("steps/no-axis", 23, "one position", form="steps", beta=0.5, original_length=8, offset=1),
        _case("steps/more-axes", np.asarray(TEXTS)[:, None, :3], form="steps", beta=0.5, original_length=7, offset=1),
        _case("smooth/inkling", (0, 127998, 127999, 128000, 200000, 1048575), **INKLING),
        _case("smooth/rows", TEXTS, form="smooth", beta=0.25, original_length=600, offset=0),
        _case("smooth/from-zero", (99, 100, 101, 149, 900), form="smooth", beta=0.3, original_length=100, offset=0),
        _case("smooth/strong", (10, 1000, 131071), form="smooth", beta=3.7, original_length=7, offset=2),
        _case("refused/length", (1, 2), "nothing divides by 0", form="steps", beta=0.1, original_length=0, offset=1,
              kind="reject"),
        _case("refused/form", (1, 2), "no such form", form="floor", beta=0.1, original_length=8, offset=1, kind="reject"),
        _case("refused/fractions", (1.5, 2.0), "positions are integers", form="steps", beta=0.1, original_length=8, offset=1,
              kind="reject"),
        *places("attention_temperature", "positions", {"form": "steps", "beta": 0.5, "original_length": 2, "offset": 1}),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a second call with negative positions."""
    yield negative_positions(make, USUAL)


LOGARITHM = "The logarithm is the natural one, of 1 plus the quotient."


def _of_temperature(change: Callable[[Any, int, str], Any]) -> dict[str, Wrap]:
    """Return a wrap that changes the growth: `change` takes the number of keys, the length and the form, and gives it."""

    def deviating(p: Any, /, *, form: str, beta: float, original_length: int, offset: int, **rest: Any) -> Any:
        return 1 + beta * change(np.maximum(p + offset, 0), original_length, form)

    return {"attention_temperature": lambda _: deviating}


def _steps_as(steps: Callable[[Any], Any]) -> dict[str, Wrap]:
    """Return a wrap that decides the steps in another way."""

    def change(n: Any, original_length: int, form: str) -> Any:
        return (
            np.log(np.maximum(n / original_length, 1))
            if form == "smooth"
            else np.log(np.maximum(1 + steps(n / original_length), 1))
        )

    return _of_temperature(change)


def _true_growth(n: Any, original_length: int, form: str) -> Any:
    return np.log(np.maximum(n / original_length, 1) if form == "smooth" else 1 + n // original_length)


def _without_one(n: Any, original_length: int, form: str) -> Any:
    return _true_growth(n, original_length, form) if form == "smooth" else np.log(np.maximum(n // original_length, 1))


_deviation = deviations_of("attention_temperature")

DEVIATIONS = (
    _deviation("temperature-smooth", "the factor always grows smoothly", option(form=always("smooth")), hint=BRANCH),
    _deviation("temperature-steps", "the factor always grows in steps", option(form=always("steps")), hint=BRANCH),
    Deviation("temperature-no-floor", "the quotient of steps keeps its fraction", _steps_as(lambda x: x),
              hint="Floor the quotient in form 'steps'."),
    Deviation("temperature-rounded", "the quotient is rounded to the nearest", _steps_as(np.rint), hint=ROUND_DOWN),
    Deviation("temperature-ceil", "the quotient is rounded up", _steps_as(np.ceil), hint=ROUND_DOWN),
    Deviation("temperature-one-missing", "1 is not added to the steps", _of_temperature(_without_one), hint=LOGARITHM),
    _deviation("temperature-float32", "the quotient is computed from positions in float32", argument(0, held_in("float32")),
               hint=COMPARE_INTEGERS),
    Deviation("temperature-log2", "the logarithm is of base 2", _of_temperature(lambda *a: _true_growth(*a) / np.log(2)),
              hint=LOGARITHM),
    _deviation("temperature-beta-0.1", "beta is always 0.1", option(beta=always(0.1)), hint=DEFAULT),
    _deviation("temperature-length-8192", "the length is always 8192", option(original_length=always(8192)), hint=DEFAULT),
)  # fmt: skip

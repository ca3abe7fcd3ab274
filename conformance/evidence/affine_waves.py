"""Learned time waves: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Step, after, argument, before, cases_of, deviations_of, floats, gradient, held, option, places, reals
from .tools.hints import BRANCH, KEEP_FLOAT32

OP = "affine_waves"
USUAL: dict[str, Any] = {"wave": "cos"}
KERNEL = ({"wave": "cos"},)
SIZES: dict[str, Any] = {"m": 5}

_cases = cases_of(OP)


def _learned(name: str, m: int, bits: int = 8, by: float = 0.25) -> dict[str, Any]:
    """Return frequencies and phases."""
    return {"weight": reals(f"{OP} {name} w", m, bits=bits) * by, "bias": reals(f"{OP} {name} b", m, bits=bits) / 2}


def _case(
    name: str, x: Any, m: int, wave: str = "cos", comment: str = "", *, bits: int = 8, by: float = 0.25, **rest: Any
) -> Case:
    """Return a case of affine_waves."""
    learned = rest.pop("given", None) or _learned(name, m, bits, by)
    return _cases(name, {"wave": wave}, {"x": x, **learned}, comment, **rest)


PERIODS = {"weight": 10.0 ** -np.linspace(0, 9, 7), "bias": np.arange(7) / 8}  # TGAT's first frequencies


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("cos/small", (1, 30, 2), 3, tier="smoke"),
        _case("cos/tgn", (0, 3, 86400, 5), 100, comment="100 channels; seconds", by=2.0**-12),
        _case("cos/periods", (0, 1, 3600, 604800), 7, comment="one frequency for each power of ten", given=PERIODS),
        _case("cos/whole-floats", (1.0, 40.0, 9.0), 4, comment="whole numbers as floats"),
        _case("sin/whole-floats", (3.0, 0.0, 17.0), 5, "sin"),
        _case("cos/scalar", 30, 3, comment="one time"),
        _case("sin/far", (258, 4097, 65539), 4, "sin", by=2.0**-8),
        _case("sin/rows", ((1, 4), (30, 7), (9, 0)), 64, "sin"),
        _case("sin/one-channel", (3, 8), 1, "sin"),
        _case("empty/channels", (1, 4), 0, "sin"),
        _case("empty/channels-rows", ((1, 4), (2, 0)), 0),
        Case(f"{OP}/sequence/events", kind="sequence", comment="one batch after another",
             steps=tuple(Step({"wave": "cos"}, {"x": x, **_learned("events", 4)}) for x in ((1, 4, 9), (300,), (2, 301)))),
        _case("refused/phases", (1, 4), 0, "cos", "a phase for each frequency", kind="reject",
              given={"weight": floats(3, seed=1), "bias": floats(2, seed=2)}),
        _case("refused/wave", (1, 4), 3, "tan", "no such wave", kind="reject"),
        *places(OP, "x", USUAL, **_learned("forms", 4)),
        gradient(OP, "cos", {"x": (1, 4), **_learned("gradient", 3)}, {"out": (2, 3)}, wave="cos"),
        gradient(OP, "sin", {"x": ((1, 4), (9, 0)), **_learned("gradient sin", 2)}, {"out": (2, 2, 2)}, wave="sin"),
        gradient(OP, "strided", {"x": ((1, 4, 2), (30, 7, 9)), **_learned("gradient strided", 2)},
                 {"out": (2, 3, 2)}, wave="cos", view="non-contiguous"),
    )  # fmt: skip


_deviation = deviations_of(OP)
PHASE = "Add the phase to the product of time and frequency, before the wave."

DEVIATIONS = (
    _deviation("waves-cos", "the wave is always the cosine", option(wave=lambda w: "cos"), hint=BRANCH),
    _deviation("waves-sin", "the wave is always the sine", option(wave=lambda w: "sin"), hint=BRANCH),
    _deviation("waves-no-phase", "the phase is left out", argument(2, lambda b: 0 * b), hint=PHASE),
    _deviation("waves-phase-subtracted", "the phase is subtracted", argument(2, lambda b: -b), hint=PHASE),
    _deviation("waves-exchanged", "weight and bias are exchanged", before(lambda x, w, b, /, **o: ((x, b, w), o)),
               hint="PyTorch's linear layer has the frequencies in weight and the phases in bias."),
    _deviation("waves-turns", "frequencies are in turns", argument(1, lambda w: 2 * np.pi * w),
               hint="Frequencies are in radians per unit of time: do not multiply by 2 pi."),
    _deviation("waves-absolute", "the absolute value of the time is taken", argument(0, np.abs), hint="Times may be before 0."),
    _deviation("waves-linear-first", "the first channel is linear in time, as in Time2Vec",
               after(lambda out, x, w, b, /, **o: np.concatenate([np.asarray(x)[..., None] * w[:1] + b[:1], out[..., 1:]], -1)),
               hint="All channels are waves; the linear channel of Time2Vec is apart."),
    _deviation("waves-times-bfloat16", "times are held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
    _deviation("waves-weights-bfloat16", "frequencies and phases are held in bfloat16", held("bfloat16", 1, 2),
               hint=KEEP_FLOAT32),
)  # fmt: skip

"""Kernelized relative positions (KERPLE): cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Real, after, argument, before, cases_of, deviations_of, floats, gradient, held, pairs
from .tools.hints import ARANGE, BOTH_SIDES, EACH_HEAD, FROM_ZERO, INTEGERS, KEEP_FLOAT32, SIGN

OP = "kerple"
USUAL: dict[str, Any] = {"form": "log"}
FORMS = ("log", "power", "weight")
KERNEL = tuple({"form": form} for form in FORMS)

FAR = (0, 1, 255, 256, 257, 2047, 2049, 16383, 65537, 131071)
LONG = (0, 7, 511, 512, 513, 4096, 16380, 16383)  # trained on 512 tokens, tried on 16384

_cases = cases_of(OP)


def _learned(heads: int, seed: int, bits: int = 8) -> dict[str, Any]:
    """Return parameters as the authors' code has them: amplitudes in (0, 2), rates or exponents in (0, 1]."""
    return {
        "r1": np.abs(floats(heads, seed=seed, bits=bits)) / 2,
        "r2": np.abs(floats(heads, seed=seed + 1, bits=bits)) / 4,
    }


def _case(name: str, form: str, q: Any, k: Any, heads: int = 3, comment: str = "", bits: int = 8, **rest: Any) -> Case:
    """Return a case of kerple."""
    learned = rest.pop("given", None) or _learned(heads, len(name), bits)
    return _cases(name, {"form": form}, {"q_positions": q, "k_positions": k, **learned}, comment, **rest)


def _given(*r: tuple[float, float]) -> dict[str, Any]:
    r1, r2 = zip(*r, strict=True)
    return {"r1": np.asarray(r1), "r2": np.asarray(r2)}


def _of_form(form: str) -> tuple[Case, ...]:
    """Return the cases that every form has."""
    tier = "smoke" if form == "log" else "core"
    return (
        _case(f"{form}/small", form, (2, 3), (0, 2, 1, 3, 6), 3, tier=tier),
        _case(f"{form}/125m", form, (16383,), LONG, 12, "12 heads, 16384 tokens"),
        _case(f"{form}/negative", form, (-3, 0), (-300, -1, 2), 5),
        _case(f"{form}/fractional", form, (0.5, 7.25), (1.75, 0.25, 3.0), 4),
        _case(f"{form}/clamped", form, (3, 9), (0, 1, 2, 3), 0, "as the authors' code clamps them",
              given=_given((0.01, 2.0), (0.2, 0.01), (0.25, 0.01))),
        gradient(OP, form, {"q_positions": (3, 1), "k_positions": (0, 1, 9), **_learned(2, 5)}, {"out": (2, 2, 3)}, form=form),
        gradient(OP, f"{form}-rows",
                 {"q_positions": ((4, 5), (260, 262)), "k_positions": ((0, 5), (262, 250)), **_learned(3, 7)},
                 {"out": (2, 3, 2, 2)}, form=form),
    )  # fmt: skip


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for form in FORMS for case in _of_form(form)),
        _case("log/far", "log", (0, 2049), FAR, 3),
        _case("power/exponent-one", "power", (9, 4), (0, 1, 4, 30), 0, "ALiBi with learned slopes",
              given=_given((0.5, 1.0), (0.25, 1.0))),
        _case("weight/no-query", "weight", np.zeros(0, dtype=np.int64), (0, 1), 2),
        _case("refused/form", "logarithm", (2, 3), (0, 1, 2), 3, "no such form", kind="reject"),
        _case("refused/shapes", "log", (2, 3), (0, 1, 2), 0, "an r2 for each r1", kind="reject",
              given={"r1": np.asarray([0.5, 1.0]), "r2": np.asarray([1.0])}),
        *pairs(OP, USUAL, **_learned(3, 21)),
    )  # fmt: skip


def _form(given: str, used: str) -> Any:
    return before(lambda *args, form, **rest: (args, {**rest, "form": used if form == given else form}))


def _future_zero(q: Any, k: Any, r1: Real, r2: Real, /, **options: Any) -> Any:
    below = np.maximum(q[..., :, None] - k[..., None, :], 0)[..., None, :, :]
    r1, r2 = r1[:, None, None], r2[:, None, None]
    if options["form"] == "log":
        return -r1 * np.log(1 + r2 * below)
    bias = -r1 * np.where(below == 0, 0.0, np.where(below == 0, 1.0, below) ** r2)
    return bias if options["form"] == "power" else np.exp(bias)


def _first_head(q: Any, k: Any, r1: Real, r2: Real, /, **options: Any) -> Any:
    return (q, k, *(np.broadcast_to(r[:1], r.shape) for r in (r1, r2))), options


_deviation = deviations_of(OP)
_logarithm = deviations_of("kerple_logarithm")
_power = deviations_of("kerple_power")
NAMES = "In the authors' code bias_p is the amplitude of the logarithm, and the exponent of the power."

DEVIATIONS = (
    _deviation("kerple-sign", "the bias has the wrong sign", before(lambda q, k, r1, r2, /, **o: ((q, k, -r1, r2), o)),
               hint=SIGN),
    _deviation("kerple-exchanged", "r1 and r2 are exchanged", before(lambda q, k, r1, r2, /, **o: ((q, k, r2, r1), o)),
               hint=NAMES),
    _deviation("kerple-power-as-log", "form 'power' is computed as form 'log'", _form("power", "log"), hint=NAMES),
    _deviation("kerple-log-as-power", "form 'log' is computed as form 'power'", _form("log", "power"), hint=NAMES),
    _deviation("kerple-weight-as-bias", "form 'weight' is a bias: the exponential is missing", _form("weight", "power"),
               hint="The weight multiplies the logits: take the exponential of the bias."),
    _deviation("kerple-future-zero", "keys after the query have distance 0", lambda f: _future_zero,
               hint=BOTH_SIDES, seen_in="chijames/KERPLE@25be3d7"),
    _deviation("kerple-clamped", "parameters are raised to at least 0.01",
               before(lambda q, k, r1, r2, /, **options: ((q, k, np.maximum(r1, 0.01), np.maximum(r2, 0.01)), options)),
               hint="Clamp when the parameters are updated, not where the bias is computed.",
               seen_in="chijames/KERPLE@25be3d7"),
    _deviation("kerple-first-head", "every head has the parameters of the first", before(_first_head), hint=EACH_HEAD),
    _deviation("kerple-off-by-one", "distances are one too large on the left", argument(0, lambda q: q + 1), hint=FROM_ZERO),
    _deviation("kerple-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), hint=ARANGE),
    _deviation("kerple-positions-bfloat16", "positions are held in bfloat16", held("bfloat16", 0, 1), hint=INTEGERS),
    _deviation("kerple-bfloat16", "the result is held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32),
    _logarithm("kerple-log-without-one", "the logarithm is of the rate times the distance, at least 1, without the one added",
               lambda f: lambda apart, rate, /: np.log(np.maximum(rate * apart, 1.0)), hint="ln(1 + r2 |r|): add 1 first."),
    _logarithm("kerple-rate-outside", "the rate multiplies the logarithm, not the distance",
               lambda f: lambda apart, rate, /: rate * np.log(1 + apart), hint="The rate is inside: ln(1 + r2 |r|)."),
    _logarithm("kerple-log2", "the logarithm has base 2", after(lambda out, *args: out / np.log(2.0)),
               hint="The logarithm is the natural one."),
    _power("kerple-exponent-outside", "the exponent multiplies the distance",
           lambda f: lambda apart, exponent, /: exponent * apart, hint="r2 is an exponent: |r| ** r2."),
)  # fmt: skip

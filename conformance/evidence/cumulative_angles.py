"""Cumulative angles: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Step, cases_of, form_case, gradient, reals
from .tools.deviation import Function, Real, after, argument, around, deviations_of, held, narrowed
from .tools.hints import BATCH_OF_SUMS, EACH_HEAD, KEEP_FLOAT32

OP = "cumulative_angles"
KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"B": (2, 33), "T": 257, "n": 5}

_cases = cases_of(OP)


def _inputs(name: str, shape: tuple[int, ...], bits: int = 8, by: float = 0.25) -> dict[str, Any]:
    """Return increments of this shape, and the angles before them."""
    start = reals(f"{OP} {name} start", *shape[:-2], shape[-1], bits=bits)
    return {"increments": reals(f"{OP} {name}", *shape, bits=bits) * by, "start": start}


def _case(name: str, shape: tuple[int, ...], comment: str = "", bits: int = 8, by: float = 0.25, **rest: Any) -> Case:
    inputs = {**_inputs(name, shape, bits, by), **rest.pop("given", {})}
    return _cases(name, {}, inputs, comment, **rest)


def _form(name: str, shape: tuple[int, ...], comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, _inputs(name, shape), {}, comment, form=form)


def _chunks(*ends: int) -> tuple[Step, ...]:
    """Return calls of one chunk after another, each from the last angles of the one before."""
    whole = _inputs("chunks", (2, ends[-1], 3))
    sums = np.cumsum(whole["increments"], axis=-2) + whole["start"][:, None, :]
    begins = (0, *ends[:-1])
    starts = [whole["start"], *(sums[:, end - 1, :] for end in ends[:-1])]
    parts = [whole["increments"][:, a:b, :] for a, b in zip(begins, ends, strict=True)]
    return tuple(Step({}, {"increments": part, "start": start}) for part, start in zip(parts, starts, strict=True))


PADDED = np.where(np.arange(7)[:, None] < 2, 0.0, reals(f"{OP} padded", 7, 3) / 4)  # two padding tokens, then five


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("text/small", (4, 3), tier="smoke"),
        _case("text/rows", (2, 3, 5, 4)),
        _case("text/from-zero", (6, 2), "the start of a text", given={"start": np.zeros(2)}),
        _case("text/turns", (9, 3), "many whole turns", by=4.0),
        _case("text/padding", (7, 3), "the first two tokens are padding", given={"increments": PADDED}),
        _case("text/mamba-3", (2, 7, 32), "32 pairs; fewer heads and tokens"),
        _case("text/128-pairs", (2, 3, 128)),
        _case("text/large-start", (5, 2), "after thousands of tokens", given={"start": np.asarray([1000.5, -724.25])}),
        _case("text/large-start-rows", (2, 3, 2), given={"start": np.asarray([[513.5, -2.25], [-4097.0, 1.5]])}),
        _case("text/2000-tokens", (2000, 1), bits=24, by=0.5),
        _case("empty/no-pair", (3, 4, 0)),
        _case("empty/no-pair-of-rows", (2, 3, 5, 0)),
        _form("strided-rows", (2, 3, 5), form="non-contiguous"),
        _form("batch-one", (1, 5, 3)),
        _form("length-one", (3, 1, 2)),
        _form("length-one-alone", (1, 4)),
        Case(f"{OP}/sequence/chunks", kind="sequence",
             comment="a text in chunks of four, one and three tokens", steps=_chunks(4, 5, 8)),
        _case("refused/one-axis", (1, 3), "no axis of tokens", given={"increments": np.ones(3)}, kind="reject"),
        _case("refused/start", (4, 3), "a start of fewer pairs", given={"start": np.ones(2)}, kind="reject"),
        _case("refused/start-tokens", (4, 3), "a start for each token", given={"start": np.ones((4, 3))}, kind="reject"),
        gradient(OP, "small", _inputs("gradient", (4, 2)), {"out": (4, 2)}),
        gradient(OP, "rows", _inputs("gradient rows", (2, 3, 2)), {"out": (2, 3, 2)}),
        gradient(OP, "strided", _inputs("gradient strided", (2, 3, 3)), {"out": (2, 3, 3)}, view="non-contiguous"),
    )  # fmt: skip


@around
def _other_axis(function: Function, increments: Real, start: Real, /, **_: Any) -> Real:
    axis = -3 if increments.ndim > 2 else -1
    return np.cumsum(increments, axis=axis) + start[..., None, :]


def _first(axes: int) -> Any:
    """Return a change that gives all indices of an axis the increments of the first."""
    return argument(0, lambda d: np.broadcast_to(np.take(d, [0], axis=-axes), d.shape) if d.ndim >= axes else d)


_deviation = deviations_of(OP)


@around
def _state_in_bfloat16(function: Function, increments: Real, start: Real, /) -> Real:
    """Each token adds to a state that is rounded, as a step after a step has it."""
    round_state, state, states = narrowed("bfloat16"), start, []
    for token in np.moveaxis(increments, -2, 0):
        state = round_state(state + token)
        states.append(state)
    return np.stack(states, axis=-2) if states else function(increments, start)


_running = deviations_of("running_angles")
KEEP_STATE = "The state of angles must stay in float32: bfloat16 cannot tell 256 from 257."
OWN = "The increments of the token itself count: rotate by the sum after the token's own is added."
STATE = "A chunk begins from the last angles of the chunk before: add them once, to every token."
WHOLE = "Return the whole sum. To compare code that takes it modulo 2 pi, use cumulative_rope."

DEVIATIONS = (
    _running("running-exclusive", "the token's own increment does not count",
             after(lambda out, increments, start, /: out - increments), hint=OWN),
    _running("running-start-lost", "the angles before the first token are left out", argument(1, np.zeros_like), hint=STATE),
    _running("running-start-each", "the angles before the first token are added again for each token",
             after(lambda out, increments, start, /: out + start[..., None, :] * np.arange(increments.shape[-2])[:, None]),
             hint=STATE),
    _running("running-not-summed", "each token has only its own increment",
             lambda f: lambda increments, start, /: increments + start[..., None, :], hint="Sum along the tokens."),
    _running("running-other-axis", "increments are summed along the axis before or after the tokens", _other_axis,
             hint="Sum along the tokens: look for the order of the axes of heads and tokens."),
    _running("running-sums-bfloat16", "sums are held in bfloat16", held("bfloat16"), hint=KEEP_STATE),
    _running("running-state-bfloat16", "the sum so far is held in bfloat16 from token to token", _state_in_bfloat16,
             hint=KEEP_STATE),
    _running("running-sums-float16", "sums are held in float16", held("float16"), hint=KEEP_FLOAT32),
    _running("running-bfloat16", "increments are held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
    _running("running-first-head", "every head has the increments of the first", _first(3), hint=EACH_HEAD),
    _running("running-first-row", "every row of the batch has the increments of the first", _first(4), hint=BATCH_OF_SUMS),
    _deviation("running-modulo", "whole turns are taken off the sum", after(lambda out, *a, **o: np.mod(out, 2 * np.pi)),
               hint=WHOLE, seen_in="mamba-ssm's angle_dt, as a convention"),
)  # fmt: skip

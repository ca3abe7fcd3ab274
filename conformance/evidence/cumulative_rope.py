"""Rotation by cumulative angles: cases and known mistakes."""

from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .tools.case import cases_of
from .tools.cotangents import gradient
from .tools.deviation import always, deviations_of, option
from .tools.forms import form
from .tools.hints import BRANCH
from .tools.numbers import reals

OP = "cumulative_rope"
FLAGS = {
    "cumulative-layout": Flag("pairs taken in the other layout", "Mamba-3's SISO and MIMO forms"),
    "cumulative-sign": Flag("a rotation by the negative angle"),
    "cumulative-own": Flag("the token's own increment left out"),
    "cumulative-start": Flag("the angles of the chunk before left out"),
    "cumulative-chunk": Flag("a chunk that is not the part of the whole"),
    "cumulative-heads": Flag("increments of one head used for all, or increments for all heads used for one"),
    "cumulative-partial": Flag("channels that do not rotate changed, or others rotated"),
    "cumulative-inverse": Flag("the inverse rotated forward"),
    "cumulative-turns": Flag("sums of many turns held in half precision"),
    "cumulative-long": Flag("sums of many increments that lose their last digits"),
    "cumulative-bits": Flag("increments of 24 bits narrowed on the way"),
    "cumulative-true-size": Flag("a model's own numbers of heads and pairs not reproduced"),
    "cumulative-empty": Flag("no token: a crash or a wrong shape"),
    "cumulative-refuse": Flag("more pairs than x has, or another number of tokens, accepted"),
}
USUAL: dict[str, Any] = {"layout": "interleaved"}
GAPS = ("running-modulo", "partner-over-head")  # the rotation is the same; one case of half rotates a part
WITH_OPTION = {"lanes": {"tail": 2}}
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "half"}, {"layout": "interleaved"})

_cases = cases_of(OP, "cumulative-")


def _inputs(
    name: str, shape: tuple[int, ...], lead: tuple[int, ...] | None, pairs: int, bits: int = 8, by: float = 0.25
) -> dict[str, Any]:
    """Return x of this shape, with increments of these leading axes and of as many tokens."""
    lead = shape[:-2] if lead is None else lead
    return {
        "x": reals(f"{OP} {name}", *shape, bits=bits),
        "increments": reals(f"{OP} {name} increments", *lead, shape[-2], pairs, bits=bits) * by,
        "start": reals(f"{OP} {name} start", *lead, pairs, bits=bits),
    }


def _case(
    name: str, flags: str, shape: tuple[int, ...], pairs: int, layout: str, comment: str = "", *,
    lead: tuple[int, ...] | None = None, bits: int = 8, by: float = 0.25, **rest: Any,
) -> Case:  # fmt: skip
    options = {key: rest.pop(key) for key in ("inverse", "lanes") if key in rest}
    inputs = {**_inputs(name, shape, lead, pairs, bits, by), **rest.pop("given", {})}
    return _cases(name, flags, {"layout": layout, **options}, inputs, comment, **rest)


def _form(name: str, flag: str, shape: tuple[int, ...], layout: str, comment: str = "") -> Case:
    return form(OP, name, flag, _inputs(name, shape, None, abs(shape[-1]) // 2), {"layout": layout}, comment)


def _gradient(name: str, flags: str, shape: tuple[int, ...], lead: tuple[int, ...] | None, pairs: int, **options: Any) -> Case:
    return gradient(OP, name, flags, _inputs(f"gradient {name}", shape, lead, pairs), {"out": shape}, **options)


def _chunks(layout: str, *ends: int) -> tuple[Step, ...]:
    """Return calls of one chunk after another, each from the last angles of the one before."""
    whole = _inputs(f"chunks {layout}", (2, ends[-1], 6), None, 3)
    sums = np.cumsum(whole["increments"], axis=-2) + whole["start"][:, None, :]
    begins = (0, *ends[:-1])
    starts = [whole["start"], *(sums[:, end - 1, :] for end in ends[:-1])]
    parts = [{key: whole[key][:, a:b, :] for key in ("x", "increments")} for a, b in zip(begins, ends, strict=True)]
    return tuple(Step({"layout": layout}, {**part, "start": start}) for part, start in zip(parts, starts, strict=True))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("half/small", "layout sign own start", (4, 6), 3, "half", tier="smoke"),
        _case("half/heads", "heads layout", (2, 3, 5, 8), 4, "half"),
        _case("half/rows", "heads own", (8, 2, 2), 1, "half", "8 heads"),
        _case("half/partial", "partial layout", (3, 4, 10), 3, "half"),
        _case("half/24-bits", "bits sign", (2, 3, 8), 4, "half", bits=24),
        _case("half/inverse", "inverse sign", (5, 8), 4, "half", inverse=True),
        _case("half/selective", "true-size heads", (3, 5, 64), 32, "half", "32 pairs; fewer heads"),
        _case("half/turns", "turns own", (9, 4), 2, "half", "many whole turns", by=4.0),
        _case("half/tokens-first", "own start", (6, 4), 2, "half", "the start of a text", given={"start": np.zeros(2)}),
        _case("interleaved/small", "layout sign own start", (4, 6), 3, "interleaved"),
        _case("interleaved/shared", "heads own", (2, 3, 5, 8), 4, "interleaved", "all heads share increments", lead=(2, 1)),
        _case("interleaved/one-for-all", "heads start", (3, 2, 4, 6), 2, "interleaved", "all rows and heads share increments",
              lead=()),
        _case("interleaved/mamba-3", "true-size partial", (3, 5, 128), 32, "interleaved", "half of 128 channels; fewer heads"),
        _case("interleaved/24-bits", "bits partial", (2, 4, 7), 3, "interleaved", bits=24),
        _case("interleaved/inverse", "inverse partial", (2, 3, 9), 3, "interleaved", inverse=True),
        _case("interleaved/turns", "turns heads", (2, 5, 6), 3, "interleaved", by=8.0),
        _case("interleaved/large-start", "start turns", (5, 4), 2, "interleaved", "after thousands of tokens",
              given={"start": np.asarray([1000.5, -724.25])}),
        _case("interleaved/1000-tokens", "long own", (1000, 2), 1, "interleaved", by=1.0),
        _case("half/2000-tokens", "long bits", (2000, 2), 1, "half", bits=24, by=0.5),
        _case("mixed/small", "layout inverse", (4, 8), 4, "interleaved_to_half"),
        _case("mixed/inverse", "layout inverse", (3, 4, 7), 3, "interleaved_to_half", inverse=True),
        _case("mixed/inverse-heads", "layout inverse", (2, 3, 6), 2, "interleaved_to_half", inverse=True),
        _case("interleaved/one-head", "heads own", (2, 1, 4, 6), 3, "interleaved", "a head alone"),
        _case("trailing/half", "partial layout", (3, 9), 3, "half", lanes="trailing"),
        _case("trailing/interleaved", "partial heads", (2, 4, 8), 3, "interleaved", lanes="trailing"),
        _case("chunk/one-token", "chunk start", (2, 1, 6), 3, "interleaved", "a decode step"),
        _case("chunk/one-token-half", "chunk own", (2, 3, 1, 4), 2, "half"),
        _case("empty/no-token", "empty", (2, 0, 6), 3, "half"),
        _case("empty/no-heads", "empty heads", (2, 0, 4, 6), 3, "half"),
        _case("empty/no-token-interleaved", "empty", (3, 0, 4), 1, "interleaved"),
        _form("strided", "non-contiguous", (3, 4, 6), "half"),
        _form("strided-interleaved", "non-contiguous", (2, 3, 8), "interleaved"),
        _form("expanded", "broadcast-view", (-3, 4, 6), "half", "one row stands for a batch of three"),
        _form("batch-one", "batch-one", (1, 5, 6), "interleaved"),
        _form("length-one", "length-one", (3, 1, 4), "half"),
        _form("length-one-alone", "length-one", (1, 4), "interleaved"),
        Case(f"{OP}/sequence/chunks", flags=("cumulative-chunk", "cumulative-start"), kind="sequence",
             comment="a text in chunks of four, one and three tokens", steps=_chunks("half", 4, 5, 8)),
        Case(f"{OP}/sequence/chunks-interleaved", flags=("cumulative-chunk", "cumulative-start"), kind="sequence",
             comment="a text in chunks of two, one and one tokens", steps=_chunks("interleaved", 2, 3, 4)),
        _case("refused/pairs", "refuse", (3, 6), 4, "half", "more pairs than x has", kind="reject"),
        _case("refused/tokens", "refuse", (3, 6), 3, "half", "increments of one token for three", kind="reject",
              given={"increments": np.ones((1, 3))}),
        _case("refused/layout", "refuse", (3, 6), 3, "neox", "no such layout", kind="reject"),
        _gradient("half", "sign layout term", (3, 4), None, 2, layout="half"),
        _gradient("interleaved", "angle tail repeat", (2, 2, 5), None, 2, layout="interleaved"),
        _gradient("shared", "heads broadcast angle", (1, 2, 3, 2), (1, 1), 1, layout="interleaved"),
        _gradient("inverse", "inverse sign", (3, 2), None, 1, layout="half", inverse=True),
        _gradient("strided", "non-contiguous angle", (2, 3, 2), None, 1, layout="half"),
    )  # fmt: skip


_deviation = deviations_of(OP)
LAYOUT = "Mamba-3 pairs neighbouring channels in its SISO form and the two halves in its MIMO form."

DEVIATIONS = (
    _deviation("cumulative-interleaved", "pairs are always neighbouring channels", option(layout=always("interleaved")),
               hint=LAYOUT),
    _deviation("cumulative-half", "pairs are always of the two halves", option(layout=always("half")), hint=LAYOUT),
    _deviation("cumulative-forward", "the inverse rotates forward", option(inverse=always(False)), hint=BRANCH),
)  # fmt: skip

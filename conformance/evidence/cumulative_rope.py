"""Rotation by cumulative angles: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Step, always, cases_of, deviations_of, form_case, gradient, option, reals
from .tools.hints import BRANCH

OP = "cumulative_rope"
USUAL: dict[str, Any] = {"layout": "interleaved"}
GAPS = (  # the rotation is the same; one case of half rotates a part; its sums are few turns
    "running-modulo", "partner-over-head", "angles-reduced", "angles-reduced-fused",
)  # fmt: skip
WITH_OPTION = {"lanes": {"tail": 2}}
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "half"}, {"layout": "interleaved"})

_cases = cases_of(OP)


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
    name: str, shape: tuple[int, ...], pairs: int, layout: str, comment: str = "", *,
    lead: tuple[int, ...] | None = None, bits: int = 8, by: float = 0.25, **rest: Any,
) -> Case:  # fmt: skip
    options = {key: rest.pop(key) for key in ("inverse", "lanes") if key in rest}
    inputs = {**_inputs(name, shape, lead, pairs, bits, by), **rest.pop("given", {})}
    return _cases(name, {"layout": layout, **options}, inputs, comment, **rest)


def _form(name: str, shape: tuple[int, ...], layout: str, comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, _inputs(name, shape, None, abs(shape[-1]) // 2), {"layout": layout}, comment, form=form)


def _gradient(name: str, shape: tuple[int, ...], lead: tuple[int, ...] | None, pairs: int, **options: Any) -> Case:
    return gradient(OP, name, _inputs(f"gradient {name}", shape, lead, pairs), {"out": shape}, **options)


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
        _case("half/small", (4, 6), 3, "half", tier="smoke"),
        _case("half/rows", (8, 2, 2), 1, "half", "8 heads"),
        _case("half/selective", (5, 64), 32, "half", "32 pairs; fewer heads"),
        _case("half/turns", (9, 4), 2, "half", "many whole turns", by=4.0),
        _case("half/tokens-first", (6, 4), 2, "half", "the start of a text", given={"start": np.zeros(2)}),
        _case("interleaved/shared", (2, 3, 5, 8), 4, "interleaved", "all heads share increments", lead=(2, 1)),
        _case("interleaved/mamba-3", (5, 128), 32, "interleaved", "half of 128 channels; fewer heads"),
        _case("interleaved/24-bits", (2, 4, 7), 3, "interleaved", bits=24),
        _case("interleaved/inverse", (2, 3, 9), 3, "interleaved", inverse=True),
        _case("interleaved/large-start", (5, 4), 2, "interleaved", "after thousands of tokens",
              given={"start": np.asarray([1000.5, -724.25])}),
        _case("half/1000-tokens", (1000, 2), 1, "half", bits=24, by=0.5),
        _case("mixed/small", (4, 8), 4, "interleaved_to_half"),
        _case("mixed/inverse", (3, 4, 7), 3, "interleaved_to_half", inverse=True),
        _case("mixed/inverse-heads", (2, 3, 6), 2, "interleaved_to_half", inverse=True),
        _case("interleaved/one-head", (2, 1, 4, 6), 3, "interleaved", "a head alone"),
        _case("trailing/half", (3, 9), 3, "half", lanes="trailing"),
        _case("trailing/interleaved", (2, 4, 8), 3, "interleaved", lanes="trailing"),
        _form("batch-one", (1, 5, 6), "interleaved"),
        _form("length-one-alone", (1, 4), "interleaved"),
        Case(f"{OP}/sequence/chunks", kind="sequence",
             comment="a text in chunks of four, one and three tokens", steps=_chunks("half", 4, 5, 8)),
        Case(f"{OP}/sequence/chunks-interleaved", kind="sequence",
             comment="a text in chunks of two, one and one tokens", steps=_chunks("interleaved", 2, 3, 4)),
        _case("refused/pairs", (3, 6), 4, "half", "more pairs than x has", kind="reject"),
        _case("refused/tokens", (3, 6), 3, "half", "increments of one token for three", kind="reject",
              given={"increments": np.ones((1, 3))}),
        _case("refused/layout", (3, 6), 3, "neox", "no such layout", kind="reject"),
        _gradient("half", (3, 4), None, 2, layout="half"),
        _gradient("interleaved", (2, 2, 5), None, 2, layout="interleaved"),
        _gradient("shared", (1, 2, 3, 2), (1, 1), 1, layout="interleaved"),
        _gradient("inverse", (3, 2), None, 1, layout="half", inverse=True),
        _gradient("strided", (2, 3, 2), None, 1, layout="half", view="non-contiguous"),
    )  # fmt: skip


_deviation = deviations_of(OP)
LAYOUT = "Mamba-3 pairs neighbouring channels in its SISO form and the two halves in its MIMO form."

DEVIATIONS = (
    _deviation("cumulative-interleaved", "pairs are always neighbouring channels", option(layout=always("interleaved")),
               hint=LAYOUT),
    _deviation("cumulative-half", "pairs are always of the two halves", option(layout=always("half")), hint=LAYOUT),
    _deviation("cumulative-forward", "the inverse rotates forward", option(inverse=always(False)), hint=BRANCH),
)  # fmt: skip

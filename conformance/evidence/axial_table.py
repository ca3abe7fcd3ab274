"""Cosines and sines of multimodal RoPE: cases and known mistakes."""

from typing import Any

import numpy as np

from posref.rotary.axial_table import ARRANGEMENTS, axes_of_pairs

from .shared.axial import ARRANGED, PROMPT, SECTIONS, Change, exchanged, first_row, placed_forms, with_axes
from .shared.rotary import FAR, FREQUENCIES, TRIPLES
from .tools import Case, Deviation, Function, Wrap, argument, around, deviations_of, floats, form_case, gradient, seed_of
from .tools.hints import ALL_AXES, AXIS_ORDER, EACH_ROW, LEFT_OVER

USUAL: dict[str, Any] = SECTIONS
WITH_OPTION = {"arrangement=interleaved": {"sections": [2, 2, 1]}}
AXES = (4, 2)
KERNEL: tuple[dict[str, Any], ...] = ({"sections": (8, 4, 4), "arrangement": "chunked"},)


def _case(
    name: str, positions: Any, pairs: int, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    inputs = {"positions": positions, "inv_freq": np.abs(floats(pairs, seed=seed_of(name), bits=8)) / 4}
    return Case(f"axial_table/{name}", params, inputs, comment, kind, tier)


def _tables(arrangement: str) -> tuple[Case, ...]:
    """Return the cases of axial_table that every arrangement has."""
    group = arrangement.replace("_", "-")
    small: dict[str, Any] = {"sections": ARRANGED[arrangement], "arrangement": arrangement}
    first = "smoke" if arrangement == "chunked" else "core"
    far = (FAR, FAR[::-1], tuple(p // 2 for p in FAR))
    return (_case(f"{group}/prompt", PROMPT, 6, tier=first, **small), _case(f"{group}/far", far, 6, **small))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for arrangement in ARRANGED for case in _tables(arrangement)),
        _case("interleaved/tail", PROMPT, 12, sections=[8, 2, 2], arrangement="interleaved"),
        _case("ernie/tail", PROMPT, 10, sections=[6, 2, 2], arrangement="ernie"),
        _case("chunked/empty-section", PROMPT, 5, "no pairs for time", sections=[0, 2, 3], arrangement="chunked"),
        _case("chunked/centred", ((-0.5, -0.5, 0.5, 0.5), (-0.75, 0.25, -0.75, 0.25)), 6,
              "coordinates from -1 to 1", sections=[3, 3], arrangement="chunked"),
        _case("refused/sum", PROMPT, 6, kind="reject", sections=[2, 3, 2], arrangement="chunked"),
        _case("refused/axes", PROMPT, 6, kind="reject", sections=[3, 3], arrangement="chunked"),
        _case("refused/tail", PROMPT, 6, "width cannot have four of six pairs", kind="reject",
              sections=[1, 1, 4], arrangement="interleaved"),
        _case("refused/ernie", PROMPT, 6, "height and width alternate", kind="reject", sections=[1, 4, 1], arrangement="ernie"),
        _case("refused/word", PROMPT, 6, kind="reject", sections=[2, 2, 2], arrangement="blocks"),
        *(form_case("axial_table", placed.name, {"positions": placed.positions, "inv_freq": np.asarray((*FREQUENCIES, 0.5))},
                    SECTIONS, placed.comment, placed.form) for placed in placed_forms()),
        gradient("axial_table", "chunked", {"positions": TRIPLES, "inv_freq": np.asarray((1.0, 0.5, 0.125, 0.25))},
                 {"cos": (3, 4), "sin": (3, 4)}, sections=[1, 2, 1], arrangement="chunked"),
        gradient("axial_table", "ernie",
                 {"positions": TRIPLES, "inv_freq": np.asarray((0.75, 0.375, 0.25, 0.0625, 1.5))},
                 {"cos": (3, 5), "sin": (3, 5)}, sections=[1, 2, 2], arrangement="ernie", attention_factor=1.25),
    )  # fmt: skip


AXIS_OF_PAIRS = "Which pairs belong to which axis: Qwen2-VL has chunks, Qwen3-VL interleaves."


def _map(change: Change) -> dict[str, Wrap]:
    return {"axial_table": with_axes(change)}


def _arranged(other: str) -> Change:
    """Return axes arranged in another way, where the sections allow it."""

    def change(axes: list[int], sections: list[int], arrangement: str) -> list[int]:
        try:
            return axes_of_pairs("axial_table", sections, other)
        except ValueError:
            return axes

    return change


def _tail_last(axes: list[int], sections: list[int], arrangement: str) -> list[int]:
    last = max((i for i, axis in enumerate(axes) if axis), default=-1)
    return axes if arrangement == "chunked" else [2 if i > last else axis for i, axis in enumerate(axes)]


def _turn_goes_on(axes: list[int], sections: list[int], arrangement: str) -> list[int]:
    if arrangement != "round_robin":
        return axes
    return [axis for turn in range(max(sections)) for axis, section in enumerate(sections) if turn < section]


def _exchanged_in(arrangement: str) -> dict[str, Wrap]:
    """Return a wrap that exchanges the last two rows of positions in one arrangement alone."""
    exchange = exchanged(-1, -2)

    def deviating(function: Function, positions: Any, inv_freq: Any, /, **options: Any) -> Any:
        there = options["arrangement"] == arrangement
        return function(exchange(positions) if there else positions, inv_freq, **options)

    return {"axial_table": around(deviating)}


@around
def _restarting(function: Function, positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, **rest: Any) -> Any:
    """The k-th pair of every axis has the k-th frequency, whichever pair of the head it is."""
    axes = axes_of_pairs("axial_table", sections, arrangement)
    ranks = [axes[:pair].count(axis) for pair, axis in enumerate(axes)]
    again = np.asarray(inv_freq)[..., ranks]
    return function(positions, again, sections=sections, arrangement=arrangement, **rest)


@around
def _leftover_at_0(
    function: Function, positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, **rest: Any
) -> Any:
    """Pair i belongs to axis i mod 3 if i < 3 n of that axis; the others get an axis whose positions are 0."""
    if arrangement == "interleaved":
        pair, limits = np.arange(len(inv_freq)), 3 * np.asarray(sections)
        inv_freq = np.where(pair < limits[pair % 3], inv_freq, 0.0)
    return function(positions, inv_freq, sections=sections, arrangement=arrangement, **rest)


def _summed(p: Any) -> Any:
    return np.broadcast_to(np.sum(p, axis=0), np.shape(p))


_deviation = deviations_of("axial_table")

DEVIATIONS = (
    *(Deviation(f"axes-{name.replace('_', '-')}", f"the arrangement is always {name.replace('_', ' ')}", _map(_arranged(name)),
      hint=AXIS_OF_PAIRS, one_of="arrangement") for name in ARRANGEMENTS),
    Deviation("axes-tail-last", "pairs past the shorter sections go to the last axis, not to the first", _map(_tail_last),
              hint=LEFT_OVER),
    Deviation("axes-turn-goes-on", "after an axis that is full, the round-robin goes on from its substitute",
              _map(_turn_goes_on), hint="Pair i starts again from axis i mod A, wherever pair i - 1 went."),
    Deviation("axes-first-alone", "every pair rotates with the first axis", _map(lambda axes, *rest: [0] * len(axes)),
              hint=ALL_AXES),
    Deviation("axes-sections-reversed", "sections are read from the last to the first",
              _map(lambda axes, sections, arrangement: axes_of_pairs("axial_table", tuple(sections[::-1]), arrangement)),
              hint=AXIS_ORDER),
    _deviation("axes-exchanged", "the last two axes, height and width, are exchanged", argument(0, exchanged(-1, -2)),
               hint=AXIS_ORDER),
    *(Deviation(f"axes-exchanged-{name.replace('_', '-')}",
      f"the last two axes, height and width, are exchanged where the arrangement is {name.replace('_', ' ')}",
      _exchanged_in(name), hint=AXIS_ORDER) for name in ARRANGEMENTS),
    _deviation("axes-leftover-at-0", "interleaved pairs past three times their axis's section have no position",
               _leftover_at_0, hint=LEFT_OVER,
               seen_in="llama.cpp (ggml's imrope, pairs 61 and 62 of Qwen3-VL)"),
    _deviation("axes-frequencies-restart", "the frequencies start again with the first pair of every axis", _restarting,
               hint="Pair i of the head has frequency i, whichever axis it rotates with."),
    _deviation("axes-time-last", "the first and the last axis are exchanged", argument(0, exchanged(0, -1)), hint=AXIS_ORDER),
    _deviation("axes-one-based", "cells are counted from one", argument(0, lambda p: p + 1),
               hint="Llama 4's vision encoder does so."),
    _deviation("axes-summed", "every pair turns by the coordinates of all axes, added", argument(0, _summed),
               hint="A pair turns by one coordinate alone."),
    _deviation("axes-first-row", "the first row's positions are used for every row", argument(0, first_row), hint=EACH_ROW),
)  # fmt: skip

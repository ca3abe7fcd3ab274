"""Deviations of RoPE over several position axes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from posref.rotary.axial_table import ARRANGEMENTS, axes_of_pairs

from .compose import Deviation, Function, Real, Wrap, after, argument, narrowed, option


def _map(change: Callable[[list[int], list[int], str], list[int]]) -> dict[str, Wrap]:
    """Return a wrap that changes the axis of pairs: `change` takes the right axes, the sections and the arrangement."""

    def wrap(function: Function) -> Function:
        def deviating(
            positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, attention_factor: float = 1.0, **rest: Any
        ) -> Any:
            axes = change(axes_of_pairs("axial_table", sections, arrangement), list(sections), arrangement)
            angle = np.moveaxis(np.asarray(positions, dtype=np.float64)[axes, ...], 0, -1) * np.asarray(inv_freq)
            return np.cos(angle) * attention_factor, np.sin(angle) * attention_factor

        return deviating

    return {"axial_table": wrap}


def _arranged(other: str) -> Callable[[list[int], list[int], str], list[int]]:
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


def _exchanged(a: int, b: int) -> Callable[[Any], Any]:
    """Return a function that exchanges two rows of positions."""

    def change(p: Real) -> Real:
        order = list(range(len(p)))
        order[a], order[b] = order[b], order[a]
        return p[order]

    return change


def _exchanged_in(arrangement: str) -> dict[str, Wrap]:
    """Return a wrap that exchanges the last two rows of positions in one arrangement alone."""
    exchange = _exchanged(-1, -2)

    def wrap(function: Function) -> Function:
        def deviating(positions: Any, inv_freq: Any, /, **options: Any) -> Any:
            there = options["arrangement"] == arrangement
            return function(exchange(positions) if there else positions, inv_freq, **options)

        return deviating

    return {"axial_table": wrap}


def _restarting(function: Function) -> Function:
    """The k-th pair of every axis has the k-th frequency, whichever pair of the head it is."""

    def deviating(positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, **rest: Any) -> Any:
        axes = axes_of_pairs("axial_table", sections, arrangement)
        ranks = [axes[:pair].count(axis) for pair, axis in enumerate(axes)]
        again = np.asarray(inv_freq)[..., ranks]
        return function(positions, again, sections=sections, arrangement=arrangement, **rest)

    return deviating


def _first_row(p: Real) -> Real:
    return np.broadcast_to(p[:, :1], p.shape) if p.ndim > 2 and p.shape[1] else p


def _powers(pairs: int, width: int, base: float, unit: str, *, endpoint: bool, first: float) -> Real:
    each = base ** -(2 * np.arange(pairs) / (width - 2 * endpoint))
    return np.asarray(each * first * (2 * np.pi if unit == "turns" else 1.0))


def _one_ladder(
    f: Real, dims: Any, /, *, base: float, allocation: str, unit: str = "radians", endpoint: bool = False, first: float = 1.0,
    **rest: Any,
) -> Real:  # fmt: skip
    return _powers(sum(dims) // 2, sum(dims), base, unit, endpoint=endpoint, first=first)


def _whole_width(
    f: Real, dims: Any, /, *, base: float, allocation: str, unit: str = "radians", endpoint: bool = False, first: float = 1.0,
    **rest: Any,
) -> Real:  # fmt: skip
    each = np.concatenate([_powers(dim // 2, sum(dims), base, unit, endpoint=endpoint, first=first) for dim in dims])
    return f if allocation == "shared" else each


def _inverted(function: Function) -> Function:
    def deviating(dims: Any, /, *, first: float = 1.0, **options: Any) -> Any:
        return function(dims, first=1 / first, **options)

    return deviating


def _ends(function: Function) -> Function:
    def deviating(dims: Any, /, *, endpoint: bool = False, **options: Any) -> Any:
        return function(dims, endpoint=min(dims) > 2, **options)

    return deviating


def _laid_out(layout: str, other: str) -> dict[str, Wrap]:
    """Return a wrap that takes one layout of axial_rope for another, where axes are in blocks."""

    def wrap(function: Function) -> Function:
        return lambda *args, **options: function(
            *args, **options | ({"layout": other} if (options["layout"], options["arrangement"]) == (layout, "chunked") else {})
        )

    return {"axial_rope": wrap}


def _allocated(other: str) -> Wrap:
    def wrap(function: Function) -> Function:
        def deviating(dims: Any, /, *, allocation: str, **rest: Any) -> Any:
            return function(dims, allocation=other if len(set(dims)) == 1 else allocation, **rest)

        return deviating

    return wrap


def _axial_only(f: Real) -> Real:
    """Return frequencies of which every axis keeps those of its own block of pairs."""
    axes, pairs = f.shape[0], f.shape[-1]
    own = np.arange(pairs) * axes // pairs
    return f * (own == np.arange(axes).reshape(axes, *(1,) * (f.ndim - 1)))


def _signed(f: Real) -> Real:
    return f * np.where(np.arange(f.shape[0]) > 0, -1.0, 1.0).reshape(-1, *(1,) * (f.ndim - 1))


def _first_head(f: Real) -> Real:
    return np.broadcast_to(f[:, *(slice(0, 1),) * (f.ndim - 2)], f.shape) if f.ndim > 2 else f


DEVIATIONS = (
    *(
        Deviation(f"axes-{name.replace('_', '-')}", f"the arrangement is always {name.replace('_', ' ')}",
                  _map(_arranged(name)), "Which pairs belong to which axis: Qwen2-VL has chunks, Qwen3-VL interleaves.")
        for name in ARRANGEMENTS
    ),
    Deviation("axes-tail-last", "pairs past the shorter sections go to the last axis, not to the first", _map(_tail_last),
              hint="Pairs that are left over belong to axis 0."),
    Deviation("axes-turn-goes-on", "after an axis that is full, the round-robin goes on from its substitute", _map(_turn_goes_on),
              hint="Pair i starts again from axis i mod A, wherever pair i - 1 went."),
    Deviation("axes-first-alone", "every pair rotates with the first axis", _map(lambda axes, *rest: [0] * len(axes))),
    Deviation("axes-exchanged", "the last two axes, height and width, are exchanged", {"axial_table": argument(0, _exchanged(-1, -2))}),
    *(
        Deviation(f"axes-exchanged-{name.replace('_', '-')}",
                  f"the last two axes, height and width, are exchanged where the arrangement is {name.replace('_', ' ')}",
                  _exchanged_in(name))
        for name in ARRANGEMENTS
    ),
    Deviation("axes-frequencies-restart", "the frequencies start again with the first pair of every axis",
              {"axial_table": _restarting}, "Pair i of the head has frequency i, whichever axis it rotates with."),
    Deviation("axes-time-last", "the first and the last axis are exchanged", {"axial_table": argument(0, _exchanged(0, -1))}),
    Deviation("axes-one-based", "cells are counted from one", {"axial_table": argument(0, lambda p: p + 1)},
              "Llama 4's vision encoder does so."),
    Deviation("axes-first-row", "the first row's positions are used for every row", {"axial_table": argument(0, _first_row)}),
    Deviation("ladder-shared", "all axes share one list of frequencies, and each takes every n-th",
              {"axial_frequencies": _allocated("shared")}),
    Deviation("ladder-own", "each axis has its own list of frequencies where all should share one", {"axial_frequencies": _allocated("own")}),
    Deviation("ladder-chunked", "one list of frequencies is cut into pieces, the fast ones for the first axis",
              {"axial_frequencies": after(_one_ladder)}, "", "vllm-omni#1784"),
    Deviation("ladder-whole-width", "the exponent is divided by the number of channels of all axes, not of its own",
              {"axial_frequencies": after(_whole_width)}, "RoPE-ViT has b^(-4k/d) for d channels of two axes: b^(-2k/(d/2))."),
    Deviation("ladder-radians", "coordinates are not multiplied by 2 pi", {"axial_frequencies": option(unit=lambda _: "radians")}),
    Deviation("ladder-endpoint-never", "the last frequency is always one step before 1/base",
              {"axial_frequencies": option(endpoint=lambda _: False)}),
    Deviation("ladder-endpoint-always", "the last frequency is always 1/base", {"axial_frequencies": _ends}),
    Deviation("ladder-first-1", "the first frequency is always 1", {"axial_frequencies": option(first=lambda _: 1.0)}),
    Deviation("ladder-first-inverted", "the first frequency is taken for a period, or a period for a frequency", {"axial_frequencies": _inverted},
              "Divide the coordinate by a period; multiply it by a frequency."),
    Deviation("ladder-base-10000", "the base is always 10000",
              {"axial_frequencies": option(base=lambda _: 10000.0)}),
    Deviation("axial-over-head", "channels are paired over the whole head where each axis should have its own block",
              _laid_out("half_by_axis", "half"), "The layout is [h h w w], not [h w h w]."),
    Deviation("axial-by-axis", "each axis has its own block of channels where they should be paired over the whole head",
              _laid_out("half", "half_by_axis"), "The layout is [h w h w], not [h h w w]."),
    Deviation("axial-whole-numbers", "coordinates are truncated to integers", {"axial_rope": argument(1, np.trunc)}),
    Deviation("mixed-first-axis", "a pair rotates with the first axis alone",
              {"mixed_table": argument(1, lambda f: np.concatenate([f[:1], 0 * f[1:]]))}),
    Deviation("mixed-by-axis", "every axis rotates its own pairs, as in axial RoPE", {"mixed_table": argument(1, _axial_only)}),
    Deviation("mixed-difference", "the angles of later axes are subtracted", {"mixed_table": argument(1, _signed)}),
    Deviation("mixed-exchanged", "the frequencies of the first and the last axis are exchanged",
              {"mixed_table": argument(1, _exchanged(0, -1))}, "RoPE-ViT and timm have the width first."),
    Deviation("mixed-first-head", "the frequencies of the first head are used for every head", {"mixed_table": argument(1, _first_head)}),
    Deviation("mixed-first-row", "the first row's positions are used for every row", {"mixed_table": argument(0, _first_row)}),
    Deviation("mixed-one-based", "cells are counted from one", {"mixed_table": argument(0, lambda p: p + 1)}),
    Deviation("mixed-bfloat16", "learned frequencies are held in bfloat16", {"mixed_table": argument(1, narrowed("bfloat16"))}),
    Deviation("axial-turns-blocks", "frequencies are in blocks, one for each axis, where axes should alternate",
              {"in_pair_order": lambda function: lambda inv_freq, **options: inv_freq},
              hint="Frequencies and axes must be put in the same order."),
)  # fmt: skip

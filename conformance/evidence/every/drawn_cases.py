"""Makes an operation's own cases from the axes that the registry states: a case names only the sizes and arrays that matter."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ...calls import parameters_of
from ...vocabulary.axes import alternative, is_star, result_axes
from ..tools import Case, Options, cases_of, gradient
from .facts import facts_of
from .made_calls import SIZES, call, shape_of, usual_way


def drawn_cases_of(op: str) -> Callable[..., Case]:
    """
    Return what makes cases of one operation, as `cases_of` does, and draws the arrays that are not given.

    ``_case("true-size", {"form": "log"}, {"k_positions": (0, 257, 65537)}, H=12, bits=24)`` has the usual options
    but one. Its other arrays are drawn within their domains, and have the sizes of the given ones. Sizes are given by letter,
    and what else `made_calls.call` takes. A name without a group is in group "plain".
    A case of kind "vjp" is in group "gradient".
    """

    def case(
        name: str, params: Options | None = None, inputs: Options | None = None, comment: str = "", *,
        kind: str = "value", tier: str = "core", wrt: str = "", form: str = "", **drawn: Any,
    ) -> Case:  # fmt: skip
        stated = dict(inputs or {})
        options, arrays = call(op, name, facts_of(op).options | dict(params or {}), **_sizes(op, stated) | drawn)
        arrays |= stated
        if kind == "vjp":
            defaults = {option: parameters_of(REGISTRY[op].function)[option].default for option in REGISTRY[op].domains}
            known = {**SIZES, **facts_of(op).sizes, **defaults, **options, **_sizes(op, arrays)}
            shapes = {out: shape_of(result_axes(op, out, usual_way(op)), known, rows=True) for out in REGISTRY[op].outputs}
            bits = drawn.get("bits", 8)
            return gradient(op, name, arrays, shapes, comment, wrt=wrt, bits=bits, view=form, **options)
        name = name if "/" in name else f"plain/{name}"
        return cases_of(op)(name, options, arrays, comment, kind=kind, tier=tier, form=form)

    return case


def _sizes(op: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of axes that arrays have, by letter; those of several leading axes are a tuple."""
    known: dict[str, Any] = {}
    for argument, array in arrays.items():
        axes, shape = alternative(op, REGISTRY[op].arrays[argument].shape, usual_way(op)), np.shape(array)
        star = next((place for place, axis in enumerate(axes) if is_star(axis)), None)
        first, last = ([], axes) if star is None else (axes[:star], axes[star + 1 :])
        if star is not None:
            name = axes[star].lstrip("~*")
            known[name] = np.broadcast_shapes(known.get(name, ()), shape[star : len(shape) - len(last)])
        named = (*zip(first, shape, strict=False), *zip(reversed(last), reversed(shape), strict=False))
        known |= {axis: size for axis, size in named if axis.isidentifier()}  # no expression, and none that may be missing
    return known

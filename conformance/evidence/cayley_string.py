"""Cayley-STRING: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES
from .shared.lie import IMAGES, in_rows, learned, matrix_forms, skew_symmetric
from .shared.rotary import TRIPLES
from .tools import Case, Function, Real, Step, always, around, deviations_of, floats, gradient, option, reals, seed_of, sequence

USUAL: dict[str, Any] = {"form": "conjugate"}
SIZES: dict[str, Any] = {"D": 4, "N": 2}
AXES = (1, 1)
UNSTORED = ("size/usual-d-33", "value/usual-beyond-24-bits")
KERNEL: tuple[dict[str, Any], ...] = ({"form": "conjugate"},)


def _case(
    name: str, x: tuple[int, ...], positions: Any, skew: tuple[int, ...], frequencies: tuple[int, ...],
    comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {
        "x": floats(*x, seed=seed_of("string" + name), bits=bits), "positions": positions,
        "skew": learned("skew" + name, *skew, bits=bits, over=over),
        "frequencies": learned("theta" + name, *frequencies, bits=bits, over=4),
    }  # fmt: skip
    return Case(f"cayley_string/{name}", params, inputs, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for form in ("conjugate", )
          for case in (_case(f"{form}/small", (5, 4), PATCHES, (4, 4), (2, 2), form=form,
          tier="smoke" if form == "conjugate" else "core"),
          _case(f"{form}/partial", (3, 7), FRAMES, (7, 7), (3, 2), bits=24, form=form),
          _case(f"{form}/far", (4, 4), FAR, (4, 4), (2, 2), bits=24, form=form),
          _case(f"{form}/rows", (2, 2, 3, 6), in_rows(FRAMES), (6, 6), (2, 2), form=form),
          _case(f"{form}/between", (3, 6), BETWEEN, (6, 6), (2, 3), over=3, form=form),)),
        _case("models/head-64", (2, 64), ((0, 5), (0, 11)), (64, 64), (2, 32),
              "a class token and a patch", bits=20, over=64, form="product"),
        _case("shapes/vector", (4,), (4, 9), (4, 4), (2, 1), form="conjugate"),
        _case("shapes/one-head", (2, 1, 3, 4), BETWEEN, (4, 4), (2, 2), form="product"),
        _case("shapes/one-head-conjugate", (3, 1, 2, 4), ((1, 7), (4, 2)), (3, 1, 1, 4, 4), (2, 2), form="conjugate"),
        _case("refused/skew", (5, 6), PATCHES, (4, 4), (2, 2), "a basis of four lanes for six", kind="reject", form="product"),
        _case("refused/lanes", (5, 6), PATCHES, (6, 6), (2, 4), "eight lanes of six", kind="reject", form="conjugate"),
        _case("refused/form", (5, 6), PATCHES, (6, 6), (2, 2), kind="reject", form="transpose"),
        sequence("cayley_string/sequence/sizes", IMAGES,
                 tuple(Step({"form": "product"},
                 {"x": x, "positions": p, "skew": learned("sizes-s", 5, 5), "frequencies": learned("sizes-f", 2, 2)})
                 for x in (floats(4, 5, seed=4),)
                 for x, p in ((x, ((0, 0, 7, 7), (0, 30, 0, 30))), (x[:2], ((0, 1), (1, 0))), (x[3:], ((7,), (30,)))))),
        *matrix_forms("cayley_string", "frequencies", (1,), skew=True, form="product"),
        gradient("cayley_string", "product",
                 {"x": reals("string-x", 3, 3), "positions": TRIPLES[:2], "skew": reals("string-s", 3, 3) / 8,
                 "frequencies": reals("string-f", 2, 1) / 4}, {"out": (3, 3)}, form="product"),
        gradient("cayley_string", "conjugate",
                 {"x": reals("string-y", 2, 2, 2), "positions": ((0, 3), (1, 257)), "skew": reals("string-t", 2, 1, 2, 2) / 8,
                 "frequencies": reals("string-g", 2, 1) / 4}, {"out": (2, 2, 2)}, form="conjugate"),
    )  # fmt: skip


FORM_OF_BASIS = "RoPE(p) P x suffices in a dot product; equation (9) has P RoPE(p) P^T x."


def _times(skew: Real, x: Real) -> Real:
    s = skew_symmetric(skew)
    one = np.eye(s.shape[-1])
    return ((one - s) @ np.linalg.inv(one + s) @ x[..., None])[..., 0]


@around
def _after_rope(function: Function, x: Real, positions: Any, skew: Real, frequencies: Real, /, *, form: str) -> Real:
    """Change the basis of RoPE's result instead of its argument's."""
    if form != "product":
        return function(x, positions, skew, frequencies, form=form)
    conjugated = function(_times(skew, x), positions, skew, frequencies, form="conjugate")  # P RoPE P^T P x
    return np.asarray(conjugated)


_deviation = deviations_of("cayley_string")

DEVIATIONS = (
    _deviation("string-conjugate", "the basis is changed twice where once is asked for", option(form=always("conjugate")),
               hint=FORM_OF_BASIS),
    _deviation("string-product", "the basis is changed once where twice is asked for", option(form=always("product")),
               hint=FORM_OF_BASIS),
    _deviation("string-after", "the basis is changed after the rotation, not before it", _after_rope,
               hint="Of P RoPE P^T, the factor that remains is P^T, on the right."),
)  # fmt: skip

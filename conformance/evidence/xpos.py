"""Extrapolatable position embedding (xPos): cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import posref

from .shared.rotary import BASE, BESIDE, BEYOND, FROM_AFAR, HALFWAY, NEAR, OFFSETS, ROLE, ROLES, ROTARY, UNSORTED, rotations
from .tools import Case, Function, Real, Step, Wrap, around, deviations_of, floats, gradient, reals, seed_of, sequence
from .tools.hints import SCALES

USUAL: dict[str, Any] = {**ROTARY, **ROLE}
KERNEL: tuple[dict[str, Any], ...] = (
    {"layout": "half", "base": 10000.0, "role": "query", "centre": 2048, "scale_base": 512.0},
    {"layout": "interleaved", "base": 10000.0, "role": "key", "centre": 2048, "scale_base": 512.0},
)


def _case(
    name: str, shape: tuple[int, ...], positions: Any, role: str, layout: str, comment: str = "", *,
    bits: int = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    params = {"base": BASE, "centre": 160, "role": role, "layout": layout, **params}
    inputs = {"x": floats(*shape, seed=seed_of("xpos" + name), bits=bits), "positions": positions}
    return Case(f"xpos/{name}", params, inputs, comment, kind, tier)


def _layout(layout: str, role: str, other: str) -> Iterator[Case]:
    """Yield the cases that every layout has, in one role or the other."""
    group = layout.replace("_", "-")
    tier = "smoke" if layout == "interleaved" else "core"
    by_row, by_token = np.asarray(OFFSETS)[:, None].tolist(), np.asarray(OFFSETS)[1:, :, None].tolist()
    yield _case(f"{group}/small", (3, 8), (0, 1, 5), role, layout, centre=3, scale_base=16.0, tier=tier)
    yield _case(f"{group}/far", (17, 6), FROM_AFAR, other, layout, **HALFWAY)
    yield _case(f"{group}/unsorted", (2, 3, 5, 12), UNSORTED, role, layout, base=5e5, centre=5, scale_base=48.0)
    yield _case(f"{group}/rows", (3, 2, 5, 6), by_row, other, layout, centre=131, base=1e6)
    yield _case(f"{group}/24-bits", (7, 18), (0, 1, 2, 3, 5, 8, 13), role, layout, bits=24, centre=300)
    yield _case(f"{group}/tokens-first", (2, 5, 3, 8), by_token, other, layout, base=2500.0)
    yield _case(f"{group}/decode", (3, 2, 1, 10), (((257,),), ((2049,),), ((6,),)), role, layout, centre=1024)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *_layout("interleaved", "query", "key"),
        *_layout("interleaved_to_half", "key", "query"),
        _case("shapes/three-axes", (5, 3, 20), (1, 6, 4), "query", "half", centre=4, scale_base=10.0),
        _case("shapes/single-head", (2, 1, 5, 12), UNSORTED, "key", "half"),
        _case("shapes/single-head-interleaved", (3, 1, 2, 6), (4, 11), "query", "interleaved"),
        _case("shapes/one-pair", (3, 2), (0, 1, 40), "key", "half"),
        _case("positions/negative", (7, 8), (-1, -2, -63, 0, -257, -2049, 3), "query", "half"),
        _case("positions/negative-interleaved", (3, 5, 10), (-7, -1, -4096, 5, -300), "key", "interleaved", scale_base=1024.0),
        _case("positions/fractional", (5, 6), (0.5, 1.75, 0.25, 999.5, 2.0), "query", "half"),
        _case("positions/far-centre", (3, 4, 6), BEYOND, "key", "half", **BESIDE),
        _case("positions/far-centre-query", (5, 6), (1048575, 1048577, 1048321, 1048580, 1048576),
              "query", "interleaved", centre=1048576, scale_base=65536.0),
        _case("options/odd", (5, 12), (0, 1, 2, 3, 4), "key", "interleaved", centre=2, scale_base=8.0),
        _case("options/gamma", (5, 10), NEAR, "query", "interleaved", gamma=1.25, base=500.0),
        _case("options/gamma-small", (3, 6), (1, 300, 80), "key", "half", gamma=0.125, centre=100),
        _case("options/base", (3, 5, 18), NEAR, "query", "interleaved", bits=24, base=150000.0),
        _case("models/lex-key", (2, 64), (7, 1023), "key", "interleaved", centre=512),
        _case("refused/role", (3, 8), (0, 1, 2), "both", "half", kind="reject"),
        _case("refused/layout", (3, 8), (0, 1, 2), "key", "neox", kind="reject"),
        _case("refused/rotary-dim", (3, 8), (0, 1, 2), "key", "half", kind="reject", rotary_dim=5),
        _case("refused/positions", (2, 3, 4, 8), ((0, 1, 2, 3), (4, 5, 6, 7)), "key", "half",
              "(B, T) for (B, H, T, D)", kind="reject"),
        _case("refused/centre", (3, 8), (0, 1, 2), "key", "half", kind="reject", centre=-3),
        *(sequence(f"xpos/sequence/decode-{role}", "a prompt, tokens, a next prompt",
          tuple(Step({"base": BASE, "layout": "interleaved", "role": role, "centre": 4, "scale_base": 32.0},
          {"x": floats(len(p), 12, seed=i), "positions": p})
          for i, p in enumerate(((0, 1, 2, 3, 4, 5, 6), (7,), (9,), (100, 101, 102, 103, 104, 105, 106))))) for role in ROLES),
        *rotations("xpos", **ROLE),
        *(gradient("xpos", name, {"x": reals("xpos" + name, *shape), "positions": positions}, {"out": shape}, role=role,
          layout=layout, base=10000.0, **params)
          for name, shape, positions, role, layout, params in (("query", (2, 3, 8), (0, 4, 9),
          "query", "half", {"centre": 4, "scale_base": 16.0}),
          ("key", (3, 6), (100, 260, 7), "key", "interleaved", {"centre": 130}),
          ("partial", (2, 7), (3, 11), "key", "interleaved_to_half", {"centre": 1, "rotary_dim": 4, "gamma": 1.5}),)),
    )  # fmt: skip


REPEATED = "The scale of a pair is for both of its channels: repeat scales as the rotation's layout does."


@around
def _on_cosine(
    function: Function, x: Real, p: Any, /, *, role: Any, layout: Any, base: float, rotary_dim: Any = None, **decay: Any
) -> Real:
    """The scale multiplies the cosine and not the sine."""
    dim = rotary_dim or x.shape[-1]
    cos, sin = posref.rope_table(p, posref.rope_frequencies(dim, base=base)[0], dtype=np.float64)
    scales = posref.xpos_scales(p, dim, role=role, dtype=np.float64, **decay)
    return np.asarray(posref.apply_rope(np.asarray(x, dtype=np.float64), cos * scales, sin, layout=layout))


def _scaled_apart(order: str) -> Wrap:
    """The scales multiply the result: their own list of channels has another layout than the rotation."""

    @around
    def deviating(
        function: Function, x: Real, p: Any, /, *, role: Any, layout: Any, base: float, rotary_dim: Any = None, **decay: Any
    ) -> Real:
        dim = rotary_dim or x.shape[-1]
        scales = np.asarray(posref.xpos_scales(p, dim, role=role, dtype=np.float64, **decay))
        lists = np.concatenate([scales, scales], axis=-1) if order == "half" else np.repeat(scales, 2, axis=-1)
        out = np.array(posref.rope(np.asarray(x, dtype=np.float64), p, layout=layout, base=base, rotary_dim=rotary_dim))
        out[..., :dim] *= lists
        return out

    return deviating


_deviation = deviations_of("xpos")

DEVIATIONS = (
    _deviation("xpos-scale-on-cos", "the cosine is scaled and the sine is not", _on_cosine, hint=SCALES),
    _deviation("xpos-scales-in-halves", "scales are repeated in halves, whatever the layout", _scaled_apart("half"),
               hint=REPEATED),
    _deviation("xpos-scales-in-pairs", "scales are repeated for neighbours, whatever the layout",
               _scaled_apart("interleaved"), hint=REPEATED),
)  # fmt: skip

"""Cases of xPos: xpos_scales and xpos."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, FAR, NEAR, OFFSETS, UNSORTED, seed_of, sequence

FLAGS = {
    "xpos-role": Flag("queries grown and keys decayed, or both alike"),
    "xpos-centre": Flag(
        "scales that are 1 at another position: the start, or the middle of the call", "rotary-embedding-torch"
    ),
    "xpos-rounded": Flag("the middle of an odd number of tokens rounded the other way", "torchscale, against x-transformers"),
    "xpos-base": Flag("the scale's base or gamma fixed at 512 and 0.4"),
    "xpos-zeta": Flag("another base of the powers than (2i/d + gamma) / (1 + gamma)"),
    "xpos-precision": Flag("scales, or the powers they are, held in half precision", "rotary-embedding-torch"),
    "xpos-range": Flag("scales that overflow far from 0 where the centre is far too"),
    "xpos-tail": Flag("channels that do not rotate scaled"),
}
ROLES = ("query", "key")
FROM_AFAR = FAR[:-2]  # to 65537
HALFWAY: dict[str, Any] = {"centre": 32768, "scale_base": 8192.0}  # so that scales stay in range, with a base of 512 too
BEYOND = (131071, 131073, 130817, 131080)
BESIDE: dict[str, Any] = {"centre": 131072, "scale_base": 8192.0}  # with a centre of 0 too


def _scales(
    name: str, flags: str, dim: int, positions: Any, role: str, comment: str = "", *, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    params = {"dim": dim, "role": role, **params}
    return Case(f"xpos_scales/{name}", params, {"positions": positions}, tuple(flags.split()), comment, kind, tier)


def _of_role(role: str) -> Iterator[Case]:
    """Yield what the scales of queries and those of keys are asked."""
    yield _scales(
        f"{role}/small", "xpos-role xpos-zeta", 8, (0, 1, 300, 7), role, tier="smoke" if role == "query" else "core", centre=160
    )
    yield _scales(f"{role}/far", "far-position table-end xpos-base", 6, FROM_AFAR, role, **HALFWAY)
    yield _scales(f"{role}/far-centre", "xpos-range far-position xpos-precision", 10, BEYOND, role, **BESIDE)
    yield _scales(f"{role}/unsorted", "position-ids xpos-precision", 12, UNSORTED, role, centre=300, scale_base=100.0)
    yield _scales(f"{role}/rows", "row-offsets xpos-centre", 6, OFFSETS, role, centre=130, scale_base=48.0)
    yield _scales(f"{role}/negative", "negative xpos-base", 6, (-1, -257, 0, -63, -2049, 5), role, centre=7, gamma=1.5)
    yield _scales(f"{role}/fractional", "fractional", 4, (0.5, 1.75, 999.5, 2.0), role, centre=40, scale_base=160.0)
    yield _scales(
        f"{role}/odd",
        "xpos-rounded xpos-centre",
        10,
        (0, 1, 2, 3, 4),
        role,
        "five tokens: floor(5/2)",
        centre=2,
        scale_base=20.0,
    )
    yield _scales(f"{role}/gamma", "xpos-base xpos-zeta", 14, (0, 100, 900), role, centre=500, gamma=0.1)
    yield _scales(f"{role}/one-pair", "xpos-zeta odd-size", 2, (0, 100, 2049), role, centre=1024, scale_base=300.0)
    yield _scales(f"{role}/one-token", "decode", 8, (257,), role, centre=1)
    yield _scales(f"{role}/no-token", "empty", 8, np.zeros(0, dtype=np.int64), role, centre=1)


SCALES = (
    *(case for role in ROLES for case in _of_role(role)),
    _scales("models/lex", "true-size xpos-role", 64, (0, 1, 512, 1023), "query", centre=512),
    _scales("refused/role", "refuse-option", 8, (0, 1), "value", kind="reject", centre=0),
    _scales("refused/dim", "refuse-width", 7, (0, 1), "key", kind="reject", centre=0),
    _scales("refused/centre", "refuse-option", 8, (0, 1), "key", "a position, not a share", kind="reject", centre=-1),
    _scales("refused/gamma", "refuse-option", 8, (0, 1), "key", "the first scale is 0 to a power", kind="reject", centre=0,
            gamma=0.0),
    _scales("refused/scale-base", "refuse-option", 8, (0, 1), "key", kind="reject", centre=0, scale_base=0.0),
    sequence("xpos_scales/sequence/decode", "xpos-centre decode", "a prompt, a token after it, and one far on", tuple(
        Step({"dim": 6, "role": "key", "centre": 3, "scale_base": 40.0}, {"positions": positions})
        for positions in ((0, 1, 2, 3, 4, 5, 6), (7,), (107,))
    )),
)  # fmt: skip


def _xpos(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, role: str, layout: str, comment: str = "", *,
    bits: int = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    params = {"base": BASE, "centre": 160, "role": role, "layout": layout, **params}
    inputs = {"x": floats(*shape, seed=seed_of("xpos" + name), bits=bits), "positions": positions}
    return Case(f"xpos/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _layout(layout: str, role: str, other: str) -> Iterator[Case]:
    """Yield what every layout is asked, of one role or the other."""
    group = layout.replace("_", "-")
    tier = "smoke" if layout == "interleaved" else "core"
    by_row, by_token = np.asarray(OFFSETS)[:, None].tolist(), np.asarray(OFFSETS)[1:, :, None].tolist()
    yield _xpos(
        f"{group}/small", "layout sign xpos-role", (3, 8), (0, 1, 5), role, layout, centre=3, scale_base=16.0, tier=tier
    )
    yield _xpos(f"{group}/far", "far-position table-end quantised-angle", (17, 6), FROM_AFAR, other, layout, **HALFWAY)
    yield _xpos(f"{group}/unsorted", "position-ids token-axis mixed-layout base", (2, 3, 5, 12), UNSORTED, role, layout,
                base=5e5, centre=5, scale_base=48.0)  # fmt: skip
    yield _xpos(
        f"{group}/rows", "row-offsets position-ids every-head", (3, 2, 5, 6), by_row, other, layout, centre=131, base=1e6
    )
    yield _xpos(f"{group}/24-bits", "downcast half-precision xpos-precision", (7, 18), (0, 1, 2, 3, 5, 8, 13), role, layout,
                bits=24, centre=300)  # fmt: skip
    yield _xpos(f"{group}/tokens-first", "token-axis rank every-head", (2, 5, 3, 8), by_token, other, layout, base=2500.0)
    yield _xpos(f"{group}/decode", "decode row-offsets xpos-centre", (3, 2, 1, 10), (((257,),), ((2049,),), ((6,),)), role,
                layout, centre=1024)  # fmt: skip
    yield _xpos(f"{group}/partial", "partial partial-tail xpos-tail", (5, 17), NEAR, other, layout, rotary_dim=10, bits=24)
    yield _xpos(f"{group}/partial-heads", "partial xpos-tail every-head", (2, 3, 2, 18), (9, 40), role, layout, rotary_dim=12)


XPOS = (
    *_layout("half", "query", "key"),
    *_layout("interleaved", "query", "key"),
    *_layout("interleaved_to_half", "key", "query"),
    _xpos("shapes/vector", "rank decode", (6,), 5, "key", "half"),
    _xpos("shapes/three-axes", "rank odd-size", (5, 3, 20), (1, 6, 4), "query", "half", centre=4, scale_base=10.0),
    _xpos("shapes/single-head", "single-head", (2, 1, 5, 12), UNSORTED, "key", "half"),
    _xpos("shapes/single-head-interleaved", "single-head", (3, 1, 2, 6), (4, 11), "query", "interleaved"),
    _xpos("shapes/odd-rows", "odd-size aliasing", (3, 14), (3, 1, 4), "query", "interleaved", bits=24),
    _xpos("shapes/one-pair", "odd-size", (3, 2), (0, 1, 40), "key", "half"),
    _xpos("shapes/no-token", "empty", (2, 3, 0, 8), np.zeros(0, dtype=np.int64), "key", "half"),
    _xpos("positions/negative", "negative sign", (7, 8), (-1, -2, -63, 0, -257, -2049, 3), "query", "half"),
    _xpos("positions/negative-interleaved", "negative sign", (3, 5, 10), (-7, -1, -4096, 5, -300), "key", "interleaved",
          scale_base=1024.0),
    _xpos("positions/fractional", "fractional", (5, 6), (0.5, 1.75, 0.25, 999.5, 2.0), "query", "half"),
    _xpos("positions/fractional-key", "fractional", (3, 4, 10), (0.5, 7.375, 63.25, 3.0), "key", "interleaved"),
    _xpos("positions/chunk", "position-ids", (2, 5, 8), (100, 101, 102, 103, 104), "key", "half", centre=102),
    _xpos("positions/far-centre", "xpos-range far-position", (3, 4, 6), BEYOND, "key", "half", **BESIDE),
    _xpos("positions/far-centre-query", "xpos-range far-position", (5, 6), (1048575, 1048577, 1048321, 1048580, 1048576),
          "query", "interleaved", centre=1048576, scale_base=65536.0),
    _xpos("options/odd", "xpos-rounded xpos-centre", (5, 12), (0, 1, 2, 3, 4), "key", "interleaved", centre=2, scale_base=8.0),
    _xpos("options/gamma", "xpos-base xpos-zeta", (5, 10), NEAR, "query", "interleaved", gamma=1.25, base=500.0),
    _xpos("options/gamma-small", "xpos-base xpos-zeta", (3, 6), (1, 300, 80), "key", "half", gamma=0.125, centre=100),
    _xpos("options/base", "base exponent", (3, 5, 18), NEAR, "query", "interleaved", bits=24, base=150000.0),
    _xpos("models/lex", "true-size xpos-role", (3, 64), (1, 512, 1023), "query", "interleaved", centre=512),
    _xpos("models/lex-key", "true-size xpos-role", (2, 64), (7, 1023), "key", "interleaved", centre=512),
    _xpos("refused/role", "refuse-option", (3, 8), (0, 1, 2), "both", "half", kind="reject"),
    _xpos("refused/layout", "refuse-option", (3, 8), (0, 1, 2), "key", "neox", kind="reject"),
    _xpos("refused/rotary-dim", "refuse-width", (3, 8), (0, 1, 2), "key", "half", kind="reject", rotary_dim=5),
    _xpos("refused/positions", "refuse-positions", (2, 3, 4, 8), ((0, 1, 2, 3), (4, 5, 6, 7)), "key", "half",
          "(B, T) for (B, H, T, D)", kind="reject"),
    _xpos("refused/centre", "refuse-option", (3, 8), (0, 1, 2), "key", "half", kind="reject", centre=-3),
    *(
        sequence(f"xpos/sequence/decode-{role}", "xpos-centre decode cache-key", "a prompt, tokens, a next prompt", tuple(
            Step({"base": BASE, "layout": "interleaved", "role": role, "centre": 4, "scale_base": 32.0},
                 {"x": floats(len(p), 12, seed=i), "positions": p})
            for i, p in enumerate(((0, 1, 2, 3, 4, 5, 6), (7,), (9,), (100, 101, 102, 103, 104, 105, 106)))
        ))
        for role in ROLES
    ),
)  # fmt: skip

CASES = (*SCALES, *XPOS)

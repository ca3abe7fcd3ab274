"""xPos scales: cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .shared.rotary import BESIDE, BEYOND, FROM_AFAR, HALFWAY, ROLE, ROLES, UNSORTED
from .tools import Case, Deviation, Function, Real, Wrap, after, always, around, deviations_of, held, narrowed, option, places
from .tools.hints import DEFAULT, KEEP_FLOAT32, SCALES

USUAL: dict[str, Any] = {"dim": 6, **ROLE}
KERNEL: tuple[dict[str, Any], ...] = ({"dim": 64, "role": "query", "centre": 2048, "scale_base": 512.0},)


def _case(
    name: str, dim: int, positions: Any, role: str, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    params = {"dim": dim, "role": role, **params}
    return Case(f"xpos_scales/{name}", params, {"positions": positions}, comment, kind, tier)


def _of_role(role: str) -> Iterator[Case]:
    """Yield the cases of the scales of queries and keys."""
    yield _case(f"{role}/small", 8, (0, 1, 300, 7), role, tier="smoke" if role == "query" else "core", centre=160)
    yield _case(f"{role}/far", 6, FROM_AFAR, role, **HALFWAY)
    yield _case(f"{role}/far-centre", 10, BEYOND, role, **BESIDE)
    yield _case(f"{role}/unsorted", 12, UNSORTED, role, centre=300, scale_base=100.0)
    yield _case(f"{role}/negative", 6, (-1, -257, 0, -63, -2049, 5), role, centre=7, gamma=1.5)
    yield _case(f"{role}/fractional", 4, (0.5, 1.75, 999.5, 2.0), role, centre=40, scale_base=160.0)
    yield _case(f"{role}/odd", 10, (0, 1, 2, 3, 4), role, "five tokens: floor(5/2)", centre=2, scale_base=20.0)
    yield _case(f"{role}/gamma", 14, (0, 100, 900), role, centre=500, gamma=0.1)
    yield _case(f"{role}/one-pair", 2, (0, 100, 2049), role, centre=1024, scale_base=300.0)
    yield _case(f"{role}/no-token", 8, np.zeros(0, dtype=np.int64), role, centre=1)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for role in ROLES for case in _of_role(role)),
        _case("models/lex", 64, (0, 1, 512, 1023), "query", centre=512),
        _case("refused/role", 8, (0, 1), "value", kind="reject", centre=0),
        _case("refused/dim", 7, (0, 1), "key", kind="reject", centre=0),
        _case("refused/centre", 8, (0, 1), "key", "a position, not a share", kind="reject", centre=-1),
        _case("refused/gamma", 8, (0, 1), "key", "the first scale is 0 to a power", kind="reject", centre=0, gamma=0.0),
        _case("refused/scale-base", 8, (0, 1), "key", kind="reject", centre=0, scale_base=0.0),
        *places("xpos_scales", "positions", USUAL),
    )


QUERY_SCALES = "Query scales fall with the position, key scales grow: look up which one is called."
ZETA = "zeta is (2i/d + gamma) / (1 + gamma): compare numerator and denominator."

FLIPPED = {"query": "key", "key": "query"}


def _powers(change: Any) -> dict[str, Wrap]:
    """Return a wrap that forms scales anew: `change` takes pairs, (p - c) / S and gamma, and returns the scales of queries."""

    def deviating(
        function: Function,
        p: Real,
        dim: int,
        /,
        *,
        role: str,
        centre: int,
        scale_base: float = 512.0,
        gamma: float = 0.4,
        **_: Any,
    ) -> Real:
        powers = (np.asarray(p, dtype=np.float64) - centre)[..., None] / scale_base
        return np.asarray(change(2 * np.arange(dim // 2) / dim, powers, gamma) ** (1 if role == "query" else -1))

    return {"xpos_scales": around(deviating)}


def _zeta(pairs: Real, gamma: float) -> Real:
    return (pairs + gamma) / (1 + gamma)


@around
def _middle(function: Function, p: Real, dim: int, /, *, centre: int, **rest: Any) -> Real:
    """The centre is the middle of the tokens of a call, which moves when keys are cached."""
    return function(p, dim, centre=np.shape(p)[-1] // 2 if np.ndim(p) else 0, **rest)


@around
def _centre_divided(
    function: Function, p: Real, dim: int, /, *, role: str, centre: int, scale_base: float = 512.0, gamma: float = 0.4, **_: Any
) -> Real:
    powers = np.asarray(p, dtype=np.float64)[..., None] - centre / scale_base
    return np.asarray(_zeta(2 * np.arange(dim // 2) / dim, gamma) ** (powers if role == "query" else -powers))


_deviation = deviations_of("xpos_scales")

DEVIATIONS = (
    _deviation("xpos-roles-exchanged", "the scales of queries and keys are exchanged", option(role=FLIPPED.__getitem__),
               hint="Query scales fall with the position, key scales grow.", one_of="role"),
    _deviation("xpos-keys-as-queries", "keys are scaled like queries", option(role=always("query")), hint=QUERY_SCALES,
               one_of="role"),
    _deviation("xpos-queries-as-keys", "queries are scaled like keys", option(role=always("key")), hint=QUERY_SCALES,
               one_of="role"),
    _deviation("xpos-unscaled", "nothing is scaled: the rotation of RoPE alone", after(lambda out, *a, **o: np.ones_like(out)),
               hint=SCALES),
    _deviation("xpos-centre-0", "scales are always 1 at position 0", option(centre=always(0)), hint=DEFAULT),
    _deviation("xpos-centre-plus-1", "the centre is one position too large", option(centre=lambda c: c + 1),
               hint="The middle of an odd number of tokens is rounded up.", seen_in="the convention of torchscale"),
    _deviation("xpos-centre-of-call", "the centre is the middle of the call's tokens", _middle,
               hint="Cached keys were scaled with another centre.", seen_in="rotary-embedding-torch 0.9.1"),
    _deviation("xpos-centre-divided", "only the centre is divided by the scale's base: p - c/S", _centre_divided,
               hint="Parentheses are missing: it is (p - c) / S."),
    _deviation("xpos-base-512", "the scale's base is always 512", option(scale_base=always(512.0)), hint=DEFAULT),
    _deviation("xpos-gamma-0.4", "gamma is always 0.4", option(gamma=always(0.4)), hint=DEFAULT),
    Deviation("xpos-exponent-half", "the scale of a pair uses i/d rather than 2i/d",
              _powers(lambda pairs, powers, gamma: _zeta(pairs / 2, gamma) ** powers), hint=ZETA),
    Deviation("xpos-not-normalised", "2i/d + gamma is not divided by 1 + gamma",
              _powers(lambda pairs, powers, gamma: (pairs + gamma) ** powers), hint=ZETA),
    Deviation("xpos-divided-by-1.4", "2i/d + gamma is always divided by 1.4, whatever gamma is",
              _powers(lambda pairs, powers, gamma: ((pairs + gamma) / 1.4) ** powers), hint=ZETA),
    Deviation("xpos-powers-bfloat16", "the powers (p - c) / S are held in bfloat16",
              _powers(lambda pairs, powers, gamma: _zeta(pairs, gamma) ** narrowed("bfloat16")(powers)), hint=KEEP_FLOAT32,
              seen_in="rotary-embedding-torch 0.9.1"),
    _deviation("xpos-scales-bfloat16", "scales are held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32,
               seen_in="rotary-embedding-torch 0.9.1"),
    _deviation("xpos-scales-float16", "scales are held in float16", held("float16"), hint=KEEP_FLOAT32),
)  # fmt: skip

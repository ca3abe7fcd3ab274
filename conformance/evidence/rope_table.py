"""Cosines and sines of RoPE: cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .shared.rotary import FAR, HEADS, NEAR, OFFSETS
from .tools import Case, Function, Make, Step, Wrap, after, always, deviations_of, gradient, narrowed, option, sequence
from .tools.hints import FACTOR, ORDER, ROUND_ONCE

USUAL: dict[str, Any] = {"attention_factor": 1.25}
KERNEL: tuple[dict[str, Any], ...] = ({},)

EIGHT_BITS = tuple(n / 2**k for n, k in ((1, 0), (205, 9), (165, 10), (133, 11), (215, 13), (171, 14)))  # falling by about 2.5
WIDE = tuple(n / 2**24 for n in (16777215, 6675213, 2657431, 1057921, 421177, 167647, 66751))  # 24 bits each
HEAD_128 = tuple(float(np.float32(13347**i / 16384**i)) for i in range(64))  # within 1% of base 500000's; 24 bits each
PAIRS = (1.0, 0.1171875, 0.013671875)  # 3 pairs


def _case(
    name: str, positions: Any, inv_freq: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of rope_table."""
    inputs = {"positions": positions, "inv_freq": inv_freq}
    return Case(f"rope_table/{name}", params, inputs, comment, kind, tier)


def _tables(name: str, *calls: tuple[Any, tuple[float, ...]]) -> Case:
    """Return a case of several calls of rope_table."""
    steps = tuple(Step({}, {"positions": positions, "inv_freq": inv_freq}) for positions, inv_freq in calls)
    return sequence(f"rope_table/sequence/{name}", "the same number of positions, elsewhere", steps)


THREE_PAIRS = (1.0, 0.1171875, 0.013671875)
SLOW = (0.00390625, 0.001953125 * 0.625, 0.000244140625)  # so that far positions are few radians away


def _table(name: str, positions: Any, inv_freq: Any, comment: str = "", **params: Any) -> Case:
    """Return a case of rope_table, for learned frequencies."""
    shape = (*np.shape(positions), len(inv_freq))
    inputs = {"positions": positions, "inv_freq": inv_freq}
    return gradient("rope_table", name, inputs, {"cos": shape, "sin": shape}, comment, **params)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (0, 1, 5, 2), PAIRS, tier="smoke"),
        _case("plain/far", FAR, EIGHT_BITS),
        _case("plain/far-24-bits", FAR, WIDE, "frequencies that bfloat16 does not hold"),
        _case("plain/rows-and-heads", np.asarray(OFFSETS)[:2, None, :4].tolist(), PAIRS, "(B, 1, T)"),
        _case("plain/tokens-first", np.asarray(OFFSETS)[1:, :, None].tolist(), WIDE, "(B, T, 1)"),
        _case("plain/scalar", 300, EIGHT_BITS, "a position without axes"),
        _case("plain/negative", (-1, -2, -63, 3, -257, -4096), EIGHT_BITS[:4]),
        _case("plain/fractional-24-bits", (63.125, 2.5, 0.375), WIDE),
        _case("plain/head-128", (0, 1, 7, 63, 8191), HEAD_128),
        _case("factor/below-one", NEAR, PAIRS, attention_factor=0.6875),
        _case("refused/frequency-rows", (0, 1, 5), ((1.0, 0.5), (0.25, 0.125)), "frequencies have one axis", kind="reject"),
        _tables("offset", (NEAR, EIGHT_BITS), ((64, 65, 66, 67, 68), EIGHT_BITS)),
        _tables("offset-decode", ((8,), WIDE), ((9,), WIDE), ((300,), WIDE)),
        _tables("frequencies", (NEAR, PAIRS), (NEAR, EIGHT_BITS[1:4]), (NEAR, PAIRS)),
        _table("small", (0, 1, 5, 2), THREE_PAIRS, "learned frequencies"),
        _table("factor", ((1, 4, 6), (2, 0, 3)), THREE_PAIRS[:2], attention_factor=1.25),
        _table("far", (257, 7, 2049, 300), SLOW),
    )


def more(make: Make) -> Iterator[Case]:
    """Yield tables of 32 and 64 frequencies."""
    for name, heads in HEADS.items():
        count = len(heads.positions)
        _, arrays = make.call(name, T=count, P=(count,), n=heads.channels // 2)
        yield Case(f"rope_table/usual/{name}", {}, {**arrays, "positions": heads.positions})


BOTH_FACTORS = "Multiply both cosine and sine by the attention factor."


def _before_factor(dtype: str) -> Wrap:
    """Return a wrap in which cosine and sine are rounded to `dtype` before the attention factor multiplies them."""
    narrow = narrowed(dtype)

    def change(table: Any, *args: Any, attention_factor: float = 1.0, **rest: Any) -> Any:
        return tuple(narrow(t / attention_factor) * attention_factor if attention_factor != 1 else t for t in table)

    return after(change)


def _cached(key: Callable[[Any, Any], Any]) -> Wrap:
    """Return a wrap that caches tables by too few of their arguments."""

    def wrap(function: Function) -> Function:
        kept: dict[Any, Any] = {}

        def deviating(p: Any, inv_freq: Any, /, **options: Any) -> Any:
            name = key(p, inv_freq)
            if name not in kept:
                kept[name] = function(p, inv_freq, **options)
            return kept[name]

        return deviating

    return wrap


_deviation = deviations_of("rope_table")

DEVIATIONS = (
    _deviation("factor-after-bfloat16", "cosine and sine are rounded to bfloat16 before the attention factor multiplies them",
               _before_factor("bfloat16"), hint=ROUND_ONCE),
    _deviation("factor-after-float16", "cosine and sine are rounded to float16 before the attention factor multiplies them",
               _before_factor("float16"), hint=ROUND_ONCE),
    _deviation("cos-of-sine", "the cosine is taken of the sine",
               after(lambda t, *a, attention_factor=1.0, **o: (np.cos(t[1] / attention_factor) * attention_factor, t[1])),
               hint="The angle is overwritten by its sine.", seen_in="transformers#11725"),
    _deviation("cos-sin-exchanged", "cosine and sine are exchanged", after(lambda t, *a, **o: (t[1], t[0])), hint=ORDER,
               seen_in="flashinfer#3819"),
    _deviation("table-cached-by-shape", "a second call of the same shape gets the first call's table",
               _cached(lambda p, f: (p.shape, f.shape)), hint="The cache's key needs the positions, not only the shape.",
               seen_in="rotary-embedding-torch#11", stateful=True),
    _deviation("table-cached-by-length", "a later call of the same shape and frequencies gets the first call's table",
               _cached(lambda p, f: (p.shape, f.tobytes())), hint="Offsets are not part of the cache's key.",
               seen_in="rotary-embedding-torch#11", stateful=True),
    _deviation("factor-dropped", "the attention factor is not applied", option(attention_factor=always(1.0)), hint=FACTOR,
               seen_in="exllamav3#259", one_of="attention factor"),
    _deviation("factor-squared", "the attention factor is applied twice", option(attention_factor=lambda f: f * f),
               hint="The factor is in the table and applied again later.", seen_in="sglang#33558", one_of="attention factor"),
    _deviation("factor-root", "the square root of the attention factor is applied", option(attention_factor=lambda f: f**0.5),
               hint="The factor multiplies cos and sin of queries and of keys, so logits grow by its square."),
    _deviation("factor-on-cos-only", "the attention factor is applied to the cosine alone",
               after(lambda t, *a, attention_factor=1.0, **o: (t[0], t[1] / attention_factor)), hint=BOTH_FACTORS),
    _deviation("factor-on-sin-only", "the attention factor is applied to the sine alone",
               after(lambda t, *a, attention_factor=1.0, **o: (t[0] / attention_factor, t[1])), hint=BOTH_FACTORS),
)  # fmt: skip

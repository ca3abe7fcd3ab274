"""Relative scores of Transformer-XL and its kin: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model import Case
from .tools.case import cases_of
from .tools.cotangents import gradient
from .tools.deviation import (
    Function,
    Real,
    Wrap,
    after,
    always,
    argument,
    around,
    before,
    deviations_of,
    held,
    narrowed,
    option,
)
from .tools.hints import BRANCH, DEFAULT, EACH_HEAD, INTEGERS, KEEP_FLOAT32, OWN_KEY, ROUND_ONCE, SIGN, TWO_SIDES, UNSCALED
from .tools.numbers import reals

OP = "transformer_xl_scores"

USUAL: dict[str, Any] = {"layout": "sin_cos"}
WAY = 0
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "sin_cos"}, {"layout": "interleaved", "max_distance": 100})

Places = tuple[Any, Any]
XL, CONFORMER, GEMMA = {"layout": "sin_cos"}, {"layout": "interleaved"}, {"layout": "sin_cos", "endpoint": True}
NEAR = ((2, 4, 3), (0, 3, 1, 4, 2))
WHOLE = (range(4), range(4))
UNSORTED = ((7, 0, 3), (5, 0, 0, 9, 2))
FAR = ((131071, 2050, 300), (0, 131060, 257, 1000, 2049))
ROWS = (((4, 5, 6), (260, 261, 262)), ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260)))
IN_HEADS = tuple(np.asarray(p)[:, None].tolist() for p in ROWS)

_case = cases_of(OP)


def _arrays(
    name: str, lead: tuple[int, ...], heads: int, lanes: int, width: int, places: Places, biases: str = "uv", bits: int = 8
) -> dict[str, Any]:
    """Return the arrays of a call: leading axes, heads, the head size, the width of R, positions, and which biases it has."""
    queries, keys = (np.shape(p)[-1] for p in places)
    inputs = {
        "q": reals(f"{OP}{name}q", *lead, heads, queries, lanes, bits=bits) / 4,
        "k": reals(f"{OP}{name}k", *lead, heads, keys, lanes, bits=bits),
        "r_weight": reals(f"{OP}{name}r", width, heads, lanes, bits=bits) / 4,
        "q_positions": places[0],
        "k_positions": places[1],
    }
    return inputs | {f"bias_{b}": reals(f"{OP}{name}{b}", heads, lanes, bits=bits) / 2 for b in biases}


def _scores(
    name: str, params: dict[str, Any], places: Places, *, lead: tuple[int, ...] = (), heads: int = 2,
    lanes: int = 3, width: int = 4, biases: str = "uv", bits: int = 8, comment: str = "", **rest: Any,
) -> Case:  # fmt: skip
    """Return a case."""
    return _case(name, params, _arrays(name, lead, heads, lanes, width, places, biases, bits), comment, **rest)


def _gradient(name: str, params: dict[str, Any], places: Places, biases: str = "uv") -> Case:
    shape = (2, *(np.shape(p)[-1] for p in places))
    return gradient(OP, name, _arrays(name, (), 2, 2, 4, places, biases), {"out": shape}, **params)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _scores("sin-cos/small", XL, NEAR, tier="smoke"),
        _scores("sin-cos/xlnet", XL, (range(126, 129), range(129)), heads=1, lanes=4, width=8,
                comment="three queries after a memory of 126"),
        _scores("sin-cos/53-bits", XL, NEAR, heads=3, bits=53),
        _scores("sin-cos/rows", XL, IN_HEADS, lead=(2,), heads=3, comment="positions (B, 1, Q)"),
        _scores("sin-cos/base", XL | {"base": 500.0}, UNSORTED, width=8),
        _scores("interleaved/conformer", CONFORMER, (range(33), range(33)), heads=1, lanes=2,
                width=8, comment="33 frames see each other"),
        _scores("interleaved/base", CONFORMER | {"base": 31.0}, WHOLE, width=6),
        _scores("endpoint/gemma", GEMMA, (range(12, 15), range(24)), lanes=4, width=8, biases="",
                comment="three queries of a chunk of 12 and their 24 keys"),
        _scores("clamp/memory", XL | {"max_distance": 3}, (range(5, 8), range(8)), heads=1),
        _scores("clamp/both-sides", XL | {"max_distance": 2}, (range(6), range(6)), width=6),
        _scores("clamp/one", CONFORMER | {"max_distance": 1}, UNSORTED),
        _scores("clamp/far", XL | {"max_distance": 400}, FAR, width=8),
        _case("decode/no-query", XL, _arrays("no-query", (2,), 2, 3, 4, (np.zeros(0, dtype=np.int64), (0, 1)))),
        _scores("forms/strided-rows", CONFORMER, IN_HEADS, lead=(2,), form="non-contiguous"),
        _scores("forms/batch-one", CONFORMER, UNSORTED, lead=(1,), heads=3),
        _scores("forms/length-one", XL, ((5,), (4,)), lead=(2,), comment="one query and one key"),
        _case("refused/odd", XL, _arrays("odd", (), 2, 3, 5, NEAR), "an odd width", kind="reject"),
        _case("refused/heads", XL, _arrays("q", (), 2, 3, 4, NEAR) | {"r_weight": reals("r", 4, 3, 2)},
              "(d, D, H) in place of (d, H, D)", kind="reject"),
        _case("refused/layout", {"layout": "cos_sin"}, _arrays("word", (), 2, 3, 4, NEAR), "no such layout", kind="reject"),
        _case("refused/endpoint", GEMMA, _arrays("pair", (), 2, 3, 2, NEAR, ""), "one pair has no last frequency",
              kind="reject"),
        _gradient("sin-cos", XL, ((3, 1), (0, 2, 9))),
        _gradient("interleaved", CONFORMER, ((7, 0, 2), (1, 2)), "v"),
        _gradient("clamp", XL | {"max_distance": 2}, ((7, 0), (1, 2, 8)), "u"),
        _gradient("endpoint", GEMMA, ((4, 5), (5, 3, 0)), ""),
    )  # fmt: skip


def _exchanged(*args: Any, **options: Any) -> Any:
    u, v = options.get("bias_u"), options.get("bias_v")
    return args, options | {"bias_u": v, "bias_v": u}


def _without(*names: str) -> Callable[..., Any]:
    return lambda *args, **options: (args, options | dict.fromkeys(names))


@around
def _distance_scaled(function: Function, *args: Any, **options: Any) -> Real:
    q, k, *rest = args
    distance = function(q, 0 * k, *rest, **options)  # the term of distances alone
    return function(*args, **options) + distance * (q.shape[-1] ** -0.5 - 1)


def _other_layout(*args: Any, **options: Any) -> Any:
    other = {"sin_cos": "interleaved", "interleaved": "sin_cos"}
    return args, options | {"layout": other[options["layout"]]}


def _from_zero(*args: Any, **options: Any) -> Any:
    *reals, q, k = args
    return (*reals, *(np.broadcast_to(np.arange(p.shape[-1]), p.shape) for p in (q, k))), options


def _heads_mixed(weight: Real) -> Real:
    width, heads, lanes = weight.shape
    return weight.reshape(width, lanes, heads).swapaxes(1, 2)


def _apart(change: Callable[..., Any]) -> Wrap:
    """Return a wrap of the distances: `change` takes them and the clamp."""
    return after(lambda apart, q, k, /, *, max_distance: change(apart, max_distance))


def _unclamped(q: Any, k: Any, /, *, max_distance: int | None) -> Any:
    return q[..., :, None] - k[..., None, :]


def _clamped_above(q: Any, k: Any, /, *, max_distance: int | None) -> Any:
    apart = q[..., :, None] - k[..., None, :]
    return apart if max_distance is None else np.minimum(apart, max_distance)


def _rounded_distances(dtype: str) -> Wrap:
    return _apart(lambda apart, max_distance: np.asarray(narrowed(dtype)(apart), dtype=np.int64))


WHICH_BIAS = "u goes with the key, v with the distance."

_deviation = deviations_of(OP)
_of_distances = deviations_of("xl_distances")

DEVIATIONS = (
    _of_distances("xl-key-minus-query", "distances are key minus query", _apart(lambda apart, max_distance: -apart), hint=SIGN,
                  seen_in="speechbrain/speechbrain #3073"),
    _of_distances("xl-no-future", "keys after the query have distance 0",
                  _apart(lambda apart, max_distance: np.maximum(apart, 0)),
                  hint=TWO_SIDES, seen_in="espnet #2684"),
    _of_distances("xl-absolute", "keys after the query have the distance of keys before it",
                  _apart(lambda apart, max_distance: np.abs(apart)), hint=TWO_SIDES),
    _of_distances("xl-one-more", "distances are one too large", _apart(lambda apart, max_distance: apart + 1),
                  hint=OWN_KEY,
                  seen_in="labml #185"),
    _of_distances("xl-one-less", "distances are one too small", _apart(lambda apart, max_distance: apart - 1), hint=OWN_KEY),
    _of_distances("xl-unclamped", "the clamp is ignored", lambda _: _unclamped, hint=DEFAULT),
    _of_distances("xl-clamped-above", "distances are clamped above, not below", lambda _: _clamped_above,
                  hint="Clamp to -l and l. A causal mask hides this mistake.", seen_in="Transformer-XL"),
    _of_distances("xl-bfloat16", "distances are held in bfloat16", _rounded_distances("bfloat16"), hint=INTEGERS,
                  seen_in="R made in the dtype of the model"),
    _of_distances("xl-float16", "distances are held in float16", _rounded_distances("float16"), hint=INTEGERS),
    _deviation("xl-biases-exchanged", "u is added for the distance and v for the content", before(_exchanged), hint=WHICH_BIAS),
    _deviation("xl-u-twice", "u is added for both", before(lambda *args, **o: (args, o | {"bias_v": o.get("bias_u")})),
               hint=WHICH_BIAS),
    _deviation("xl-no-biases", "u and v are left out", before(_without("bias_u", "bias_v")), hint=WHICH_BIAS),
    _deviation("xl-no-v", "v is left out", before(_without("bias_v")), hint=WHICH_BIAS),
    _deviation("xl-other-layout", "sines and cosines of R have the other order", before(_other_layout),
               hint="Compare the order of sines and cosines in R with that of the weight's rows."),
    _deviation("xl-interleaved", "sines and cosines always alternate", option(layout=always("interleaved")), hint=BRANCH),
    _deviation("xl-sin-cos", "sines always come before cosines", option(layout=always("sin_cos")), hint=BRANCH),
    _deviation("xl-no-endpoint", "the last frequency is not 1/b", option(endpoint=always(False)),
               hint="Gemma divides m by the number of frequencies less one."),
    _deviation("xl-base-10000", "the base is always 10000", option(base=always(10000.0)), hint=DEFAULT),
    _deviation("xl-heads-mixed", "the weight is read as (d, D, H)", argument(2, _heads_mixed), hint=EACH_HEAD),
    _deviation("xl-first-head", "all heads use the first's weight", argument(2, lambda w: 0 * w + w[:, :1]), hint=EACH_HEAD),
    _deviation("xl-from-zero", "queries and keys are both counted from 0", before(_from_zero),
               hint="The queries are the last tokens: with a memory of M they begin at M.", seen_in="TransformerEngine #1046"),
    _deviation("xl-scaled", "scores are divided by sqrt(D)", after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5),
               hint=UNSCALED),
    _deviation("xl-distance-scaled", "the term of distances alone is divided by sqrt(D)", _distance_scaled,
               hint="Both terms have the same scale."),
    _deviation("xl-weight-bfloat16", "the weight is held in bfloat16", held("bfloat16", 2), hint=KEEP_FLOAT32),
    _deviation("xl-queries-bfloat16", "queries are narrowed to bfloat16", held("bfloat16", 0), hint=ROUND_ONCE),
)  # fmt: skip

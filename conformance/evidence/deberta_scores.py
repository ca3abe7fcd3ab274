"""Disentangled attention of DeBERTa: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, cases_of, gradient, reals
from .tools.deviation import Function, Real, after, always, argument, around, before, deviations_of, held, narrowed, option
from .tools.hints import ARANGE, BRANCH, EACH_HEAD, KEEP_FLOAT32, ROUND_ONCE, ROW_OF_ZERO, ROWS_RISE, SIGN, UNSCALED

OP = "deberta_scores"

Places = tuple[Any, Any]
CODE, PAPER = {"p2c": "code"}, {"p2c": "paper"}
SMALL: dict[str, Any] = {"num_buckets": 6, "max_distance": 12}
SINGLE: dict[str, Any] = {"num_buckets": None, "max_distance": 4}
USUAL: dict[str, Any] = {**SMALL, **CODE}
WITH_OPTION: dict[str, dict[str, Any]] = {"": {"without": ()}}  # without tables no option acts
WAY = 0
KERNEL: tuple[dict[str, Any], ...] = ({"num_buckets": 32, "max_distance": 128, "p2c": "code"},)

NEAR = ((2, 4, 5, 9), (0, 3, 1, 5, 2, 7, 11, 9))
UNSORTED = ((7, 0, 13), (5, 0, 0, 19, 2))
FAR = ((131071, 2050, 300), (0, 131060, 257, 2045, 2049))
ROWS = tuple(np.asarray(p)[:, None].tolist() for p in (((4, 15, 6), (260, 261, 262)), ((0, 2, 13, 5), (262, 256, 261, 248))))

_case = cases_of(OP)


def _arrays(
    name: str, params: dict[str, Any], places: Places, lead: tuple[int, ...] = (), heads: int = 2, lanes: int = 3,
    terms: str = "kq", bits: int = 8,
) -> dict[str, Any]:  # fmt: skip
    """Return the arrays of a call: positions, leading axes, heads, the head size, and which tables it has."""
    queries, keys = (np.shape(p)[-1] for p in places)
    span = params["num_buckets"] or params["max_distance"]
    inputs = {
        "q": reals(f"{OP}{name}q", *lead, heads, queries, lanes, bits=bits) / 4,
        "k": reals(f"{OP}{name}k", *lead, heads, keys, lanes, bits=bits) / 2,
        "q_positions": places[0],
        "k_positions": places[1],
    }
    return inputs | {f"rel_{t}": reals(f"{OP}{name}rel{t}", heads, 2 * span, lanes, bits=bits) / 2 for t in terms}


def _scores(name: str, params: dict[str, Any], places: Places, comment: str = "", form: str = "", **how: Any) -> Case:
    """Return a case."""
    return _case(name, params, _arrays(name, params, places, **how), comment, form=form)


def _refused(name: str, comment: str, params: dict[str, Any], **changed: Any) -> Case:
    arrays = _arrays(name, USUAL, NEAR) | changed
    return _case(f"refused/{name}", params, arrays, comment, kind="reject")


def _gradient(name: str, params: dict[str, Any], places: Places, terms: str, bits: int = 8) -> Case:
    arrays = _arrays(name, params, places, heads=2, lanes=2, terms=terms, bits=bits)
    return gradient(OP, name, arrays, {"out": (2, *(np.shape(p)[-1] for p in places))}, bits=bits, **params)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    bucketed, single = {**SMALL, **CODE}, {**SINGLE, **CODE}
    v3: dict[str, Any] = {"num_buckets": 256, "max_distance": 512, "p2c": "code"}
    return (
        Case(f"{OP}/both/small", bucketed, _arrays("small", bucketed, NEAR), tier="smoke"),
        _scores("both/53-bits", bucketed, NEAR, bits=53),
        _scores("both/v3", v3, ((700, 0, 300), (0, 171, 172, 299, 301, 571, 699)), heads=1, lanes=2),
        _scores("both/keys-129", {"num_buckets": 32, "max_distance": 128, **CODE}, ((128, 64), range(129)), heads=1, lanes=2),
        _scores("both/keys-257", {"num_buckets": 16, "max_distance": 64, **CODE}, ((256, 3), range(257)), heads=1, lanes=2),
        _scores("both/other-buckets", {"num_buckets": 10, "max_distance": 17, **CODE}, ((9, 20), range(0, 24, 3))),
        _scores("single/v1", {"num_buckets": None, "max_distance": 512, **CODE},
                ((600, 0, 511), (0, 1, 88, 89, 511, 599)), "DeBERTa: a row for each distance", heads=1, lanes=1),
        _scores("single/heads", single, ROWS, lead=(2,), heads=3, lanes=2),
        _scores("single/far", single, FAR),
        _scores("first/single", single, UNSORTED, terms="k", lanes=4),
        _scores("second/single", single, UNSORTED, terms="q", lanes=4),
        _scores("decode/no-query", bucketed, (np.zeros(0, dtype=np.int64), (0, 1)), lead=(2,)),
        _scores("forms/strided-rows", single, ROWS, lead=(2,), form="non-contiguous"),
        _scores("forms/batch-one", single, UNSORTED, lead=(1,), heads=3),
        _scores("forms/length-one", bucketed, ((5,), (4,)), "one query and one key", lead=(2,)),
        _refused("rows", "tables of other rows", {**bucketed, "num_buckets": 8}),
        _refused("heads", "tables of three heads", bucketed, rel_k=reals("t", 3, 12, 3)),
        _refused("word", "no such p2c", {**SMALL, "p2c": "mirror"}),
        _gradient("both", {"num_buckets": 4, "max_distance": 9, **CODE}, ((3, 1), (0, 2, 9)), "kq"),
        _gradient("paper", {"num_buckets": None, "max_distance": 2, **PAPER}, ((7, 0, 2), (1, 2)), "q"),
        _gradient("first", {"num_buckets": 4, "max_distance": 7, **CODE}, ((4, 5), (5, 3, 0)), "k", 24),
    )  # fmt: skip


def _tables_exchanged(*args: Any, **options: Any) -> Any:
    k, q = options.get("rel_k"), options.get("rel_q")
    return args, options | {"rel_k": q, "rel_q": k}


def _without(*names: str) -> Callable[..., Any]:
    return lambda *args, **options: (args, options | dict.fromkeys(names))


def _of_tables(change: Callable[[Real], Real]) -> Callable[..., Any]:
    def changed(*args: Any, **options: Any) -> Any:
        return args, {n: change(x) if n in ("rel_k", "rel_q") and x is not None else x for n, x in options.items()}

    return changed


def _from_zero(*args: Any, **options: Any) -> Any:
    *arrays, q, k = args
    return (*arrays, *(np.broadcast_to(np.arange(p.shape[-1]), p.shape) for p in (q, k))), options


def _first_row(*args: Any, **options: Any) -> Any:
    *arrays, q, k = args
    return (*arrays, *(np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p for p in (q, k))), options


@around
def _position_scaled(function: Function, *args: Any, **options: Any) -> Real:
    whole, content = function(*args, **options), function(*args, **options | {"rel_k": None, "rel_q": None})
    return content + (whole - content) / args[0].shape[-1] ** 0.5


@around
def _by_query(function: Function, q: Any, k: Any, *places: Any, rel_q: Any = None, **options: Any) -> Real:
    """Read the third term by the query: as the second one, of keys."""
    if rel_q is None:
        return function(q, k, *places, **options)
    return function(q, k, *places, **options) + function(q, 0 * k, *places, **options | {"rel_k": rel_q})


_deviation = deviations_of(OP)
_of_rows = deviations_of("by_row")
C2P = "c2p is the query with the table of keys; p2c is the key with the table of queries."
TRANSPOSED = "p2c is gathered for every key, and then transposed."

DEVIATIONS = (
    _deviation("disentangled-key-minus-query", "relative positions are key minus query",
               before(lambda q, k, qp, kp, /, **o: ((q, k, -qp, -kp), o)), hint=SIGN, seen_in="nntrainer#3982"),
    _deviation("disentangled-other-second", "p2c has the other sign of the distance",
               option(p2c=lambda w: "paper" if w == "code" else "code"),
               hint="The code gathers p2c at query minus key, as c2p; the paper says key minus query.",
               seen_in="microsoft/DeBERTa #162"),
    _deviation("disentangled-code", "p2c is always that of the code", option(p2c=always("code")), hint=BRANCH),
    _deviation("disentangled-paper", "p2c is always that of the paper", option(p2c=always("paper")), hint=BRANCH),
    _deviation("disentangled-tables-exchanged", "the tables for queries and keys are exchanged", before(_tables_exchanged),
               hint=C2P),
    _deviation("disentangled-no-c2p", "c2p is left out", before(_without("rel_k")), hint=C2P),
    _deviation("disentangled-no-p2c", "p2c is left out", before(_without("rel_q")), hint=C2P),
    _deviation("disentangled-by-query", "p2c is read by the query, not by the key", _by_query, hint=TRANSPOSED),
    _of_rows("disentangled-row-plus-1", "each row is the one after the right one",
             before(lambda x, table, index, /: ((x, table, np.minimum(index + 1, table.shape[-2] - 1)), {})),
             hint=ROW_OF_ZERO),
    _of_rows("disentangled-first-head", "all heads use the tables of the first",
             argument(1, lambda t: 0 * t + t[:1]), hint=EACH_HEAD),
    _deviation("disentangled-scaled", "scores are divided by sqrt(D)", after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5),
               hint=UNSCALED),
    _deviation("disentangled-position-scaled", "the position terms alone are divided by sqrt(D)", _position_scaled,
               hint="All terms have the same scale, 1/sqrt(3 D) with both."),
    _deviation("disentangled-from-zero", "queries and keys are both counted from 0", before(_from_zero), hint=ARANGE,
               seen_in="transformers' DeBERTa"),
    _deviation("disentangled-first-row", "the first row's positions are used for every row", before(_first_row),
               hint="Each row of the batch has positions of its own."),
    _deviation("disentangled-reversed", "the tables are read from the last row", before(_of_tables(lambda t: t[:, ::-1])),
               hint=ROWS_RISE),
    _deviation("disentangled-tables-bfloat16", "the tables are held in bfloat16", before(_of_tables(narrowed("bfloat16"))),
               hint=KEEP_FLOAT32),
    _deviation("disentangled-queries-bfloat16", "queries are narrowed to bfloat16", held("bfloat16", 0), hint=ROUND_ONCE),
)  # fmt: skip

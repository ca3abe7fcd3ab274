"""Logits of PaTH attention: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .every.drawn_cases import drawn_cases_of
from .tools import Case, Function, Real, Wrap, after, argument, around, deviations_of, floats, narrowed
from .tools.hints import EACH_HEAD, HEAD_BLOCKS, IGNORED, KEEP_FLOAT32, LAST_TOKENS, ROOT_OF_SIZE

OP = __name__.rpartition(".")[2]
KERNEL: Any = ({},)

_case, _deviation = drawn_cases_of(OP), deviations_of(OP)


def _units(count: int, width: int) -> Any:
    """Return directions that float32 holds, of norm 1 nearly."""
    x = floats(1, count, width, seed=count)
    return np.float64(np.float32(x / np.linalg.norm(x, axis=-1, keepdims=True)))


def _turns(count: int) -> Any:
    """Return directions that alternate between two in a plane: two reflections rotate."""
    two = np.asarray([[1.0, 0.0], [0.8125, 0.58301]])
    return two[np.arange(count) % 2].astype(np.float32).astype(np.float64)[None]


def _even(count: int, value: float) -> npt.NDArray[np.float64]:
    """Return equal gates, but for the first token, whose gate no logit has."""
    return np.asarray([[0.5, *(value,) * (count - 1)]])


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", Q=2, K=3, tier="smoke"),
        _case("24-bits", bits=24, G=2, g=2),
        _case("whole", Q=5, K=5, comment="a first token sees itself alone"),
        _case("64-channels", {}, {"w": _units(4, 64)}, "as a head of the released layer", Q=2, G=1, g=2, bits=24),
        _case("unit/7", {}, {"w": _units(7, 5)}, "directions of norm 1", Q=7, G=1, bits=24),
        _case("unit/40", {}, {"w": _units(40, 6)}, "a long chain", Q=3, G=1, g=1, bits=24),
        _case("reflections/rotate", {}, {"w": _turns(9), "betas": _even(9, 2.0)}, "as RoPE does", Q=9, G=1, bits=24),
        _case("reflections/plain", {}, {"betas": _even(5, 0.0)}, "plain attention", Q=5, G=1),
        _case("scale/given", {"scale": 0.125}, Q=3),
        _case("scale/one", {"scale": 1.0}, Q=3, bits=24),
        _case("heads/6-and-2", G=2, g=3, Q=2, D=4),
        _case("heads/rows", G=3, g=2, Q=2, D=4, R=(2,)),
        _case("forms/strided", form="non-contiguous", R=(2,), rows=True),
        _case("forms/one-query", Q=1),
        _case("forms/one-key", Q=1, K=1),
        _case("forms/one-key-in-rows", Q=1, K=1, R=(2,)),
        _case("small", kind="vjp", Q=2, K=3, D=3),
        _case("24-bits", kind="vjp", bits=24, Q=2, K=3, D=2, G=1, g=2),
        _case("strided", kind="vjp", form="non-contiguous", Q=2, K=2, D=2),
        _case("refused/query-heads", {}, {"w": np.ones((4, 5, 6))}, "directions belong to key heads", G=2, g=2, kind="reject"),
        _case("refused/more-queries", G=1, Q=4, K=3, kind="reject", comment="a query without a token"),
    )


def _chain(tokens: Callable[[int, int], Any], change: Callable[[Real], Real] = lambda x: x) -> Wrap:
    """Return a wrap that carries each key by the matrices of these tokens of key j and query i, and changes it each time."""

    def deviating(function: Function, q: Real, k: Real, w: Real, betas: Real, /, *, scale: float | None = None) -> Real:
        if q.ndim > 2:
            k, w, betas = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=q.ndim - 3) for x in (k, w, betas))
        queries, keys = q.shape[-2], k.shape[-2]
        out = np.zeros((*q.shape[:-1], keys))
        for row in range(queries):
            i = keys - queries + row
            for j in range(i + 1):
                key = k[..., j, :]
                for t in tokens(j, i):
                    part = betas[..., t, None] * (key * w[..., t, :]).sum(-1, keepdims=True)
                    key = change(key - part * w[..., t, :])
                out[..., row, j] = (q[..., row, :] * key).sum(-1)
        return out * (q.shape[-1] ** -0.5 if scale is None else scale)

    return around(deviating)


@around
def _first_tokens(function: Function, q: Real, k: Real, w: Real, betas: Real, /, **options: Any) -> Real:
    """Take queries for the first tokens."""
    n = q.shape[-2]
    first = function(q, k[..., :n, :], w[..., :n, :], betas[..., :n], **options)
    return np.concatenate([first, np.zeros((*first.shape[:-1], k.shape[-2] - n))], axis=-1)


@around
def _tiled(function: Function, q: Real, k: Real, w: Real, betas: Real, /, **options: Any) -> Real:
    if q.ndim < 3:
        return function(q, k, w, betas, **options)
    heads = np.arange(q.shape[-3]) % k.shape[-3]
    return function(q, k[..., heads, :, :], w[..., heads, :, :], betas[..., heads, :], **options)


def _plain(q: Real, k: Real, scale: float | None) -> Real:
    keys = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else k
    return q @ np.swapaxes(keys, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)


def _normalized(w: Real) -> Real:
    norm = np.linalg.norm(w, axis=-1, keepdims=True)
    return w / np.where(norm == 0, 1.0, norm)


def _scale(value: Callable[[int], float]) -> Wrap:
    return lambda f: lambda q, *more, scale=None: f(q, *more, scale=value(q.shape[-1]))


BETWEEN = "The matrices of the tokens after the key count, the query's own included, the key's not."
REVERSED = "The key meets the matrix of the next token first: H_{j+1} stands next to k_j, and H_i next to q_i."

DEVIATIONS = (
    _deviation("path-key-matrix", "the key's own matrix counts too", _chain(lambda j, i: range(j, i + 1)), hint=BETWEEN),
    _deviation("path-exclusive", "the key's own matrix counts, and the query's does not", _chain(range), hint=BETWEEN),
    _deviation("path-no-query-matrix", "the query's own matrix does not count", _chain(lambda j, i: range(j + 1, i)),
               hint=BETWEEN),
    _deviation("path-reversed", "the matrices stand in the reverse order", _chain(lambda j, i: range(i, j, -1)), hint=REVERSED),
    _deviation("path-last-matrix-alone", "only the query's own matrix counts: cached keys are not carried on",
               _chain(lambda j, i: (i,) if i > j else ()), hint="Multiply every cached key by each new token's matrix."),
    _deviation("path-keys-bfloat16", "cached keys are rounded to bfloat16 after each token",
               _chain(lambda j, i: range(j + 1, i + 1), narrowed("bfloat16")), hint=KEEP_FLOAT32,
               seen_in="fla-core 0.6.0, with keys in bfloat16"),
    _deviation("path-query-arange", "queries are the first tokens, not the last", _first_tokens, hint=LAST_TOKENS),
    _deviation("path-beta-doubled", "beta is doubled once more", argument(3, lambda betas: 2 * betas),
               hint="beta is already 2 sigmoid of the projection."),
    _deviation("path-beta-1", "beta is not used", argument(3, np.ones_like), hint=IGNORED),
    _deviation("path-sign", "what lies along the direction is added", argument(3, lambda betas: -betas),
               hint="The matrix is I - beta w w^T."),
    _deviation("path-normalized", "directions are normalized once more", argument(2, _normalized),
               hint="w is used as it is: models normalize it before."),
    _deviation("path-w-bfloat16", "directions are held in bfloat16", argument(2, narrowed("bfloat16")), hint=KEEP_FLOAT32),
    _deviation("path-beta-bfloat16", "beta is held in bfloat16", argument(3, narrowed("bfloat16")), hint=KEEP_FLOAT32),
    _deviation("path-first-head", "every key head has the matrices of the first",
               argument(2, lambda w: np.broadcast_to(w[..., :1, :, :], w.shape) if w.ndim > 2 else w), hint=EACH_HEAD),
    _deviation("path-heads-tiled", "query head h uses key head h modulo G", _tiled, hint=HEAD_BLOCKS),
    _deviation("path-future-open", "keys after the query have the logit of plain attention",
               after(lambda out, q, k, w, betas, /, *, scale=None: np.where(
                   np.tri(out.shape[-2], out.shape[-1], out.shape[-1] - out.shape[-2], dtype=bool), out, _plain(q, k, scale))),
               hint="A mask hides these keys; their logit is 0 here."),
    _deviation("path-scale-ignored", "an explicit scale is ignored", _scale(lambda width: width**-0.5), hint=IGNORED),
    _deviation("path-scale-always-1", "logits are never scaled", _scale(lambda width: 1.0), hint=ROOT_OF_SIZE),
)  # fmt: skip

"""Scaled dot-product attention: cases and known mistakes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from posref.attention.attention_logits import attention_logits

from .shared.logits import attention_case, attention_cases, attention_forms, attention_gradient, is_square, usual_arrays
from .tools import Case, Deviation, Function, Real, Wrap, around, floats, narrowed, option
from .tools.hints import CAP_FIRST, EACH_HEAD, EACH_ROW, IGNORED, KEEP_FLOAT32, TRUE_IN_MASK

KERNEL: tuple[dict[str, Any], ...] = ({},)
EVERY_SIZE = True


BACK = np.tri(5, 7, 2, dtype=bool)  # a causal mask after two cached keys
HOLES = (
    np.asarray(
        [
            [1, 0, 1, 1, 0, 0, 1],
            [0, 1, 0, 0, 0, 0, 0],
            [1, 1, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 1, 1],
            [1, 0, 0, 0, 1, 0, 0],
        ]
    )
    > 0
)
NOTHING = HOLES & (np.arange(5)[:, None] != 3)  # row 3 may attend to nothing
OF_HEADS = np.stack([HOLES, BACK, HOLES[::-1]])
OF_ROWS = np.stack([[BACK, HOLES, HOLES[::-1]] * 2, [HOLES[:, ::-1], BACK, HOLES] * 2])
STEEP = -131072.0 - 8192.0 * (1 + np.arange(35).reshape(5, 7) * 3 % 5)  # below -1e5, of 5 significant bits, 8192 apart
CAUSAL = np.tri(3, 4, 1, dtype=bool)
UNSEEN = np.asarray([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]) > 0  # row 1 may attend to nothing
ONE = np.asarray([[0, 1, 0], [1, 0, 0]]) > 0


_case = partial(attention_case, "attention")
_gradient = partial(attention_gradient, "attention")


def _usual() -> Iterator[Case]:
    """Yield causal masks, the last query at the last key, and no mask where queries are as many as keys."""
    for name, arrays in usual_arrays():
        queries, keys = arrays["q"].shape[-2], arrays["k"].shape[-2]
        mask = np.tril(np.ones((queries, keys), dtype=bool), keys - queries)
        yield Case(f"attention/usual/causal-{name}", {}, {**arrays, "mask": mask})
        if is_square(arrays):
            yield Case(f"attention/usual/{name}", {}, arrays)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *attention_cases("attention", width=10, small=5),
        _case("mask/heads", (3, 5, 6), (3, 7, 6), "each head has its own", mask=OF_HEADS, width=10),
        _case("mask/heads-grouped", (2, 6, 5, 12), (2, 3, 7, 12), "as above, in rows of a batch", bits=24,
              mask=OF_ROWS, width=10),
        _case("mask/rows", (2, 1, 5, 6), (2, 1, 7, 6), "each row has its own", mask=OF_ROWS[:, :1], width=10),
        _case("mask/nothing", (2, 6), (3, 6), "no key for any query", mask=np.zeros((2, 3), dtype=bool), width=10),
        _case("mask/sloped-causal", (2, 5, 10), (2, 7, 10), "as above", mask=BACK, bias=STEEP / 8 - 4096, width=10),
        _case("mask/steep-empty-row", (5, 6), (7, 6), mask=NOTHING, bias=STEEP, bits=24, width=10),
        _case("softmax/large-scale", (2, 5, 12), (2, 7, 12), bits=24, scale=4.0, width=10),
        _case("softmax/large-bias", (5, 6), (7, 6), "all large: a shift that cancels",
              bias=200.0 + floats(5, 7, seed=5), width=10),
        _case("refused/mask-of-numbers", (2, 6), (3, 6), "0 and 1, or 0 and -inf: numbers are ambiguous",
              kind="reject", mask=((1, 0, 1), (1, 1, 0)), width=10),
        _case("softcap/causal", (2, 4, 8), (1, 4, 8), gain=4, scale=0.5, softcap=3.0, mask=np.tri(4, 4, 0, dtype=bool),
              width=5),
        _case("softcap/holes", (5, 6), (7, 6), bits=24, gain=2, softcap=1.5, mask=HOLES, width=3),
        _case("softcap/sinks", (3, 4, 8), (3, 5, 8), gain=2, scale=0.25, softcap=1.25, sinks=3, width=4),
        _case("softcap/one-sink", (4, 6), (7, 6), gain=2, bits=24, softcap=1.5, sinks=(2.75,), width=4),
        _case("sinks/grouped", (6, 4, 8), (2, 5, 8), width=3, sinks=6),
        _case("sinks/gpt-oss", (8, 3, 64), (4, 5, 64), gain=0.03125, width=4, sinks=8, mask=np.tri(3, 5, 2, dtype=bool)),
        _case("sinks/no-head", (4, 6), (7, 6), "(Q, D) and one sink", sinks=1, bits=24, width=10),
        _case("sinks/large", (3, 5, 6), (3, 7, 6), "logits beyond the exponential's range", gain=16,
              width=5, sinks=(96.0, -64.0, 131.0)),
        _case("sinks/above", (2, 5, 6), (2, 7, 6), "sinks above all logits: small results", width=4,
              sinks=(9.0, 12.5), bits=24),
        _case("refused/sinks-of-key-heads", (6, 4, 6), (2, 7, 6), "2 sinks for 6 query heads", kind="reject",
              sinks=2, width=10),
        *attention_forms("attention", values=True),
        _gradient("plain", (2, 2, 4), (2, 3, 4), width=3),
        _gradient("24-bits", (2, 5), (4, 5), bits=24, width=3),
        _gradient("scale", (3, 4), (2, 4), scale=0.75, width=3),
        _gradient("causal", (3, 3), (4, 3), mask=CAUSAL, width=3),
        _gradient("heads", (4, 2, 2), (2, 3, 2), width=3),
        _gradient("bias", (2, 3, 3), (2, 2, 3), bias=(3, 2), wrt="q k v bias", width=3),
        _gradient("empty-row", (3, 5), (4, 5), mask=UNSEEN, bias=(3, 4), wrt="q k v bias", width=3),
        _gradient("softcap", (2, 3, 4), (2, 4, 4), scale=2.0, softcap=1.5, width=3),
        _gradient("softcap-causal", (3, 3), (4, 3), mask=CAUSAL, bits=24, scale=4.0, softcap=1.25, width=3),
        _gradient("sinks", (2, 3, 4), (2, 4, 4), sinks=2, wrt="q k v sinks", bits=24, width=3),
        _gradient("sinks-grouped", (4, 2, 2), (2, 3, 2), sinks=4, wrt="q k v sinks", scale=0.5, width=3),
        _gradient("sinks-empty-row", (3, 5), (4, 5), mask=UNSEEN, sinks=1, wrt="q k v sinks", width=3),
        _gradient("strided", (2, 2, 4), (2, 3, 4), scale=0.5, width=3, view="non-contiguous"),
        _gradient("one-key", (2, 2), (3, 2), "one key each: no gradient of queries, keys and bias", mask=ONE,
                  bias=(2, 3), wrt="q k v bias", width=3),
        *_usual(),
    )  # fmt: skip


EXCLUDED = "Excluded keys need minus infinity, or where() after the softmax."
SINK_ENTRY = "The sink is one more entry of the softmax, without a value and without the scale."


def _mask_constant(value: float) -> dict[str, Wrap]:
    def wrap(function: Function) -> Function:
        return lambda logits, v, mask, /, **sinks: function(
            logits if mask is None else np.where(mask, logits, value), v, None, **sinks
        )

    return {"softmax": wrap}


def _wrong_axis(logits: Real, v: Real, mask: Any, **sinks: Any) -> Real:
    logits = np.where(mask, logits, -np.inf) if mask is not None else logits
    top = np.max(logits, axis=-2, keepdims=True)
    exps = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = np.sum(exps, axis=-2, keepdims=True)
    return (exps / np.where(total == 0, 1.0, total)) @ (np.repeat(v, logits.shape[-3] // v.shape[-3], -3) if v.ndim > 2 else v)


@around
def _mean_of_row(function: Function, logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
    """A row with nothing allowed is the mean of all values."""
    if mask is None:
        return function(logits, v, mask, **sinks)
    nothing = ~np.any(mask, axis=-1, keepdims=True)
    return function(np.where(nothing, 0.0, logits), v, mask | nothing, **sinks)


@around
def _plus_one(function: Function, logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
    """A key of logit 0 and value 0 besides those there are."""
    allowed = np.broadcast_to(True if mask is None else mask, logits.shape)
    logits, allowed = (
        np.concatenate([x, np.full((*x.shape[:-1], 1), new)], axis=-1) for x, new in ((logits, 0.0), (allowed, True))
    )
    return function(logits, np.concatenate([v, np.zeros((*v.shape[:-2], 1, v.shape[-1]))], axis=-2), allowed, **sinks)


def _masks(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    """Return a wrap that changes masks of several heads or rows, which have three axes or more."""

    def wrap(function: Function) -> Function:
        return lambda logits, v, mask, /, **sinks: function(
            logits, v, mask if mask is None or mask.ndim < 3 else change(mask), **sinks
        )

    return {"softmax": wrap}


def _sinks(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    """Return a wrap that changes the sinks."""
    return {"softmax": option(sinks=lambda s: None if s is None else change(np.asarray(s)))}


@around
def _to_first_key(function: Function, logits: Real, v: Real, mask: Any, *, sinks: Any) -> Real:
    """A sink is added to the logit of the first key."""
    if sinks is None:
        return function(logits, v, mask, sinks=None)
    first = np.arange(logits.shape[-1]) == 0
    return function(
        logits + np.where(first, np.reshape(sinks, (-1, 1, 1) if logits.ndim > 2 else (1, 1)), 0.0), v, mask, sinks=None
    )


@around
def _scaled(
    function: Function, q: Any, k: Any, v: Any, /, *, scale: float | None = None, sinks: Any = None, **rest: Any
) -> Any:
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return function(q, k, v, scale=scale, sinks=None if sinks is None else np.asarray(sinks) * factor, **rest)


@around
def _capped_mask(
    function: Function, q: Any, k: Any, v: Any, /, *, mask: Any = None, bias: Any = None, softcap: Any = None, **rest: Any
) -> Any:
    """Masked logits are minus infinity before the softcap, and minus the softcap after it."""
    if mask is None or softcap is None:
        return function(q, k, v, mask=mask, bias=bias, softcap=softcap, **rest)
    logits = attention_logits(q, k, scale=rest.get("scale"), softcap=softcap)
    seen = np.where(mask, 0.0 if bias is None else bias, -softcap - logits)
    return function(q, k, v, bias=seen, softcap=softcap, **rest)


@around
def _capped_sinks(function: Function, q: Any, k: Any, v: Any, /, *, softcap: Any = None, sinks: Any = None, **rest: Any) -> Any:
    capped = sinks if sinks is None or softcap is None else softcap * np.tanh(np.asarray(sinks) / softcap)
    return function(q, k, v, softcap=softcap, sinks=capped, **rest)


@around
def _by_query_first(function: Function, logits: Real, v: Real, mask: Any, *, sinks: Any) -> Real:
    """Sinks of grouped heads are read as (heads in a group, groups) where they are (groups, heads in a group)."""
    if sinks is not None and v.ndim > 2:
        sinks = np.asarray(sinks).reshape(-1, v.shape[-3]).T.ravel()
    return function(logits, v, mask, sinks=sinks)


DEVIATIONS = (
    Deviation("mask-constant-1e4", "masked logits are -10000 rather than excluded", _mask_constant(-1e4), hint=EXCLUDED,
              seen_in="transformers' older models"),
    Deviation("mask-constant-1e5", "masked logits are -100000 rather than excluded", _mask_constant(-1e5), hint=EXCLUDED),
    Deviation("mask-inverted", "the mask is inverted",
              {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None if m is None else ~m, **s)}, hint=TRUE_IN_MASK),
    Deviation("mask-ignored", "the mask is ignored", {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None, **s)},
              hint=IGNORED),
    Deviation("mask-first-head", "head 0's mask is used for every head", _masks(lambda m: m[..., :1, :, :]), hint=EACH_HEAD),
    Deviation("mask-first-batch-row", "the mask of the batch's first row is used for every row", _masks(lambda m: m[:1]),
              hint=EACH_ROW),
    Deviation("masked-row-mean", "a row that may see nothing is the mean of all values", {"softmax": _mean_of_row},
              hint="A row that may see nothing gives zeros: treat it after the softmax."),
    Deviation("softmax-plus-one", "one is added to the softmax's denominator", {"softmax": _plus_one},
              hint="A key of logit 0 and value 0 is attended to as well.", seen_in="PyTorch's add_zero_attn"),
    Deviation("softmax-over-queries", "the softmax runs over queries rather than keys", {"softmax": lambda _: _wrong_axis},
              hint="The softmax runs over the last axis, the keys."),
    Deviation("softcap-after-mask", "the softcap is applied after the mask, so that hidden keys are seen",
              {"attention": _capped_mask}, hint=CAP_FIRST, seen_in="onnx/onnx#7865, flashinfer#350", one_of="softcap"),
    Deviation("sinks-capped", "sinks are capped like logits", {"attention": _capped_sinks}, hint=SINK_ENTRY),
    Deviation("sinks-dropped", "learned sinks are left out", _sinks(lambda s: None), hint=IGNORED,
              seen_in="TransformerEngine#2541, vllm-metal#550"),
    Deviation("sinks-zero", "every sink is 0", _sinks(lambda s: 0 * s),
              hint="1 is added to the softmax's denominator in its place."),
    Deviation("sinks-to-first-key", "the sink is added to the logit of the first key", {"softmax": _to_first_key},
              hint=SINK_ENTRY),
    Deviation("sinks-scaled", "sinks are scaled like logits", {"attention": _scaled}, hint=SINK_ENTRY),
    Deviation("sinks-negated", "sinks have the wrong sign", _sinks(lambda s: -s),
              hint="The sigmoid is taken of the denominator's logarithm minus the sink."),
    Deviation("sinks-first-head", "the first head's sink is used for all heads",
              _sinks(lambda s: np.broadcast_to(s[:1], s.shape)), hint=EACH_HEAD),
    Deviation("sinks-grouped", "sinks of grouped heads are reshaped with groups as the last axis",
              {"softmax": _by_query_first}, hint="Query head h has sink h: compare the reshape for groups."),
    Deviation("sinks-bfloat16", "sinks are held in bfloat16", _sinks(narrowed("bfloat16")), hint=KEEP_FLOAT32),
)  # fmt: skip

"""Forgetting attention: cases and known mistakes."""

from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .tools.case import cases_of
from .tools.cotangents import gradient
from .tools.deviation import Function, Real, after, argument, deviations_of, narrowed
from .tools.forms import form
from .tools.hints import BATCH_OF_SUMS, EACH_HEAD, KEEP_FLOAT32, SIGN
from .tools.numbers import floats, reals

OP = "forgetting_bias"
FLAGS = {
    "forgetting-own": Flag("the key's own gate counted, or the query's not"),
    "forgetting-sign": Flag("far keys favoured"),
    "forgetting-future": Flag("keys after the query set to 0, or masked here"),
    "forgetting-index": Flag("queries at 0, 1, 2, ... where they are the last of the keys"),
    "forgetting-sums": Flag("cumulative sums held in half precision"),
    "forgetting-heads": Flag("the first head's gates used for all"),
    "forgetting-rows": Flag("row 0's gates used for every row of the batch"),
    "forgetting-bits": Flag("gates of 24 bits narrowed on the way"),
    "forgetting-padding": Flag("gates of padding counted"),
    "forgetting-decode": Flag("a decode row that is not the row of the whole"),
    "forgetting-true-size": Flag("a model's own number of heads not reproduced"),
    "forgetting-long": Flag("sums of many gates that lose their last digits"),
    "forgetting-empty": Flag("no query: a crash or a wrong shape"),
    "forgetting-refuse": Flag("gates without heads, or fractional indices, accepted"),
}
USUAL: dict[str, Any] = {"queries": 1}
KERNEL: tuple[dict[str, Any], ...] = ({"queries": 129},)
KERNEL_SIZES: dict[str, Any] = {"H": 33, "K": 257, "R": (2,)}
LEFT_OUT = ("again/no-keys",)  # no key for the query

_cases = cases_of(OP, "forgetting-")


def _gates(name: str, *shape: int, bits: int = 8) -> Any:
    """Return logarithms of gates, below 0."""
    return -np.abs(reals(OP + name, *shape, bits=bits)) / 4


def _case(name: str, flags: str, shape: tuple[int, ...], queries: int, comment: str = "", bits: int = 8, **rest: Any) -> Case:
    """Return a case of forgetting_bias."""
    gates = rest.pop("gates", None)
    gates = _gates(name, *shape, bits=bits) if gates is None else gates
    name = name if "/" in name else f"gates/{name}"
    return _cases(name, flags, {"queries": queries}, {"log_gates": gates}, comment, **rest)


def _form(name: str, flag: str, shape: tuple[int, ...], queries: int, comment: str = "") -> Case:
    return form(OP, name, flag, {"log_gates": _gates(name, *shape)}, {"queries": queries}, comment)


def _steps(*calls: tuple[int, int]) -> tuple[Step, ...]:
    whole = _gates("steps", 2, 3, 8)
    return tuple(Step({"queries": queries}, {"log_gates": whole[..., :keys]}) for keys, queries in calls)


PADDED = np.where(np.arange(7) < 2, 0.0, -np.abs(floats(3, 7, seed=5)) / 4)  # two padding tokens, then five


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", "own sign index", (2, 4), 2, tier="smoke"),
        _case("whole-text", "own sign future heads", (3, 5), 5, "as many queries as keys"),
        _case("last-queries", "index own", (2, 3, 7), 2, "the last two of seven"),
        _case("half", "index future", (2, 6), 3),
        _case("rows", "rows heads", (3, 2, 6), 4),
        _case("more-axes", "rows heads", (2, 3, 2, 5), 2, "two axes before the heads"),
        _case("12-heads", "true-size heads", (12, 40), 2, "as many heads"),
        _case("24-bits", "bits own", (4, 9), 5, bits=24),
        _case("24-bits-rows", "bits rows", (2, 3, 6), 2, bits=24),
        _case("padding", "padding own", (), 3, "the first two tokens are padding", gates=PADDED),
        _case("padding-rows", "padding rows", (), 4, gates=np.stack([PADDED, _gates("padded", 3, 7)])),
        _case("open-gates", "sign padding", (), 2, "the second head's gates are 1: it forgets nothing",
              gates=np.asarray([[-0.5, -0.25, -1.0, -0.125, -0.75], [0.0] * 5])),
        _case("closed", "sums sign", (), 4, "a gate of exp(-300)", gates=np.where(np.arange(6) == 3, -300.0, -0.125)
              * np.asarray([[1.0], [0.5]])),
        _case("one-query", "decode index", (3, 9), 1, "the last row of the whole"),
        _case("one-query-rows", "decode rows", (2, 2, 6), 1),
        _case("one-key", "decode own", (3, 1), 1),
        _case("1000-keys", "sums long", (1, 1000), 2),
        _case("2000-keys", "sums long bits", (2, 2000), 1, bits=24),
        _case("no-query", "empty", (3, 4), 0),
        _case("no-heads", "empty", (0, 4), 2),
        _form("strided", "non-contiguous", (3, 2, 6), 3),
        _form("strided-rows", "non-contiguous", (2, 8), 2),
        _form("expanded", "broadcast-view", (-3, 2, 5), 2, "one row stands for a batch of three"),
        _form("batch-one", "batch-one", (1, 2, 5), 2),
        _form("length-one", "length-one", (2, 3, 1), 1),
        _form("one-of-many", "length-one", (2, 7), 1),
        Case(f"{OP}/sequence/decode", flags=("forgetting-decode", "forgetting-index"), kind="sequence",
             comment="prefill, then one token after another", steps=_steps((4, 4), (5, 1), (8, 3))),
        _case("refused/no-heads", "refuse", (4,), 3, "an axis of heads", kind="reject"),
        _case("refused/more-queries", "refuse", (2, 4), 5, "a query without a token", kind="reject"),
        gradient(OP, "small", "term repeat", {"log_gates": _gates("gradient", 2, 4)}, {"out": (2, 2, 4)}, queries=2),
        gradient(OP, "rows", "term repeat", {"log_gates": _gates("gradient rows", 2, 2, 3)}, {"out": (2, 2, 3, 3)}, queries=3),
        gradient(OP, "strided", "non-contiguous term", {"log_gates": _gates("gradient strided", 2, 2, 4)},
                 {"out": (2, 2, 1, 4)}, queries=1),
    )  # fmt: skip


def _exclusive(out: Real, gates: Real, /, *, queries: int) -> Real:
    """Count the key's own gate, and not the query's."""
    return out + gates[..., None, :] - gates[..., gates.shape[-1] - queries :, None]


def _key_gate(out: Real, gates: Real, /, **options: Any) -> Real:
    return out + gates[..., None, :]


def _future(out: Real, gates: Real, /, *, queries: int) -> Real:
    keys = gates.shape[-1]
    return np.where(np.arange(keys - queries, keys)[:, None] < np.arange(keys), 0.0, out)


def _from_zero(function: Function) -> Function:
    def deviating(gates: Real, /, *, queries: int) -> Real:
        sums = np.cumsum(gates, axis=-1)
        return sums[..., :queries, None] - sums[..., None, :]

    return deviating


_deviation = deviations_of(OP)
_sums = deviations_of("gate_sums")
GATES = "The gates of the tokens after the key count, the query's own included, the key's not."
LAST = "The queries are the last tokens: with a cache their indices begin at K - Q."

DEVIATIONS = (
    _deviation("forgetting-sign", "the bias has the wrong sign", after(lambda out, *args, **options: -out), hint=SIGN),
    _deviation("forgetting-key-gate", "the key's own gate counts too", after(_key_gate), hint=GATES),
    _deviation("forgetting-exclusive", "the key's own gate counts, and the query's does not", after(_exclusive), hint=GATES),
    _deviation("forgetting-future-zero", "keys after the query have the bias 0", after(_future),
               hint="Mask these keys in the attention: a bias of 0 shows them to the query."),
    _deviation("forgetting-query-arange", "queries are the first tokens, not the last", _from_zero, hint=LAST),
    _deviation("forgetting-first-head", "every head has the gates of the first",
               argument(0, lambda g: np.broadcast_to(g[..., :1, :], g.shape)), hint=EACH_HEAD),
    _deviation("forgetting-first-row", "every row of the batch has the gates of the first",
               argument(0, lambda g: np.broadcast_to(g[:1], g.shape) if g.ndim > 2 else g),
               hint=BATCH_OF_SUMS),
    _deviation("forgetting-gates-bfloat16", "gates are held in bfloat16", argument(0, narrowed("bfloat16")), hint=KEEP_FLOAT32),
    _sums("forgetting-sums-bfloat16", "cumulative sums are held in bfloat16", after(lambda out, *a: narrowed("bfloat16")(out)),
          hint="Cumulative sums must stay in float32: bfloat16 cannot tell 256 from 257."),
    _sums("forgetting-not-summed", "the gates are not summed", lambda f: lambda g, /: g, hint=GATES),
    _sums("forgetting-from-the-end", "gates are summed from the last token on",
          lambda f: lambda g, /: np.flip(np.cumsum(np.flip(g, -1), -1), -1), hint="Sum from the first token on."),
)  # fmt: skip

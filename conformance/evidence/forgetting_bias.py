"""Forgetting attention: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, argument, around, cases_of, deviations_of, form_case, gradient, held, reals
from .tools.hints import BATCH_OF_SUMS, CUMULATIVE_SUMS, EACH_HEAD, KEEP_FLOAT32, LAST_TOKENS, SIGN

OP = "forgetting_bias"
USUAL: dict[str, Any] = {"queries": 1}
KERNEL: tuple[dict[str, Any], ...] = ({"queries": 129},)
KERNEL_SIZES: dict[str, Any] = {"H": 33, "K": 257, "R": (2,)}

_cases = cases_of(OP)


def _gates(name: str, *shape: int, bits: int = 8) -> Any:
    """Return logarithms of gates, below 0."""
    return -np.abs(reals(OP + name, *shape, bits=bits)) / 4


def _case(name: str, shape: tuple[int, ...], queries: int, comment: str = "", bits: int = 8, **rest: Any) -> Case:
    """Return a case of forgetting_bias."""
    gates = rest.pop("gates", None)
    gates = _gates(name, *shape, bits=bits) if gates is None else gates
    name = name if "/" in name else f"gates/{name}"
    return _cases(name, {"queries": queries}, {"log_gates": gates}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", (2, 4), 2, tier="smoke"),
        _case("more-axes", (2, 3, 2, 5), 2, "two axes before the heads"),
        _case("12-heads", (12, 40), 2, "as many heads"),
        _case("24-bits", (4, 9), 5, bits=24),
        _case("open-gates", (), 2, "the second head's gates are 1: it forgets nothing",
              gates=np.asarray([[-0.5, -0.25, -1.0, -0.125, -0.75], [0.0] * 5])),
        _case("one-key", (3, 1), 1),
        _case("2000-keys", (1, 2000), 1, bits=24),
        form_case(OP, "batch-one", {"log_gates": _gates("batch-one", 1, 2, 5)}, {"queries": 2}),
        _case("refused/no-heads", (4,), 3, "an axis of heads", kind="reject"),
        _case("refused/more-queries", (2, 4), 5, "a query without a token", kind="reject"),
        gradient(OP, "small", {"log_gates": _gates("gradient", 2, 4)}, {"out": (2, 2, 4)}, queries=2),
        gradient(OP, "rows", {"log_gates": _gates("gradient rows", 2, 2, 3)}, {"out": (2, 2, 3, 3)}, queries=3),
        gradient(OP, "strided", {"log_gates": _gates("gradient strided", 2, 2, 4)},
                 {"out": (2, 2, 1, 4)}, queries=1, view="non-contiguous"),
    )  # fmt: skip


def _exclusive(out: Real, gates: Real, /, *, queries: int) -> Real:
    """Count the key's own gate, and not the query's."""
    return out + gates[..., None, :] - gates[..., gates.shape[-1] - queries :, None]


def _future(out: Real, gates: Real, /, *, queries: int) -> Real:
    keys = gates.shape[-1]
    return np.where(np.arange(keys - queries, keys)[:, None] < np.arange(keys), 0.0, out)


@around
def _from_zero(function: Function, gates: Real, /, *, queries: int) -> Real:
    sums = np.cumsum(gates, axis=-1)
    return sums[..., :queries, None] - sums[..., None, :]


_deviation = deviations_of(OP)
_sums = deviations_of("gate_sums")
GATES = "The gates of the tokens after the key count, the query's own included, the key's not."

DEVIATIONS = (
    _deviation("forgetting-sign", "the bias has the wrong sign", after(lambda out, *args, **options: -out), hint=SIGN),
    _deviation("forgetting-key-gate", "the key's own gate counts too",
               after(lambda out, gates, /, **options: out + gates[..., None, :]), hint=GATES),
    _deviation("forgetting-exclusive", "the key's own gate counts, and the query's does not", after(_exclusive), hint=GATES),
    _deviation("forgetting-future-zero", "keys after the query have the bias 0", after(_future),
               hint="Mask these keys in the attention: a bias of 0 shows them to the query."),
    _deviation("forgetting-query-arange", "queries are the first tokens, not the last", _from_zero, hint=LAST_TOKENS),
    _deviation("forgetting-first-head", "every head has the gates of the first",
               argument(0, lambda g: np.broadcast_to(g[..., :1, :], g.shape)), hint=EACH_HEAD),
    _deviation("forgetting-first-row", "every row of the batch has the gates of the first",
               argument(0, lambda g: np.broadcast_to(g[:1], g.shape) if g.ndim > 2 else g),
               hint=BATCH_OF_SUMS),
    _deviation("forgetting-gates-bfloat16", "gates are held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
    _sums("forgetting-sums-bfloat16", "cumulative sums are held in bfloat16", held("bfloat16"), hint=CUMULATIVE_SUMS),
    _sums("forgetting-not-summed", "the gates are not summed", lambda f: lambda g, /: g, hint=GATES),
    _sums("forgetting-from-the-end", "gates are summed from the last token on",
          lambda f: lambda g, /: np.flip(np.cumsum(np.flip(g, -1), -1), -1), hint="Sum from the first token on."),
)  # fmt: skip

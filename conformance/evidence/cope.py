"""Contextual position encoding (CoPE): cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, cases_of, form_case, gradient, reals
from .tools.deviation import Function, Real, argument, around_with, before, deviations_of, held
from .tools.hints import KEEP_FLOAT32

OP = "cope"
KERNEL: tuple[dict[str, Any], ...] = ({},)

_cases = cases_of(OP)


def _inputs(
    name: str, lead: tuple[int, ...], queries: int, keys: int, rows: int, width: int, bits: int = 8, by: float = 0.5
) -> Any:
    return {
        "q": reals(OP + name + "q", *lead, queries, width, bits=bits) / 4,
        "logits": reals(OP + name + "logits", *lead, queries, keys, bits=bits) * by,
        "table": reals(OP + name + "table", rows, width, bits=bits) / 2,
        "mask": np.arange(keys - queries, keys)[:, None] >= np.arange(keys),  # of the last queries of a text
    }


def _case(
    name: str, lead: tuple[int, ...], queries: int, keys: int, rows: int, width: int, comment: str = "", *,
    bits: int = 8, by: float = 0.5, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of cope, causal unless another mask is given."""
    inputs = _inputs(name, lead, queries, keys, rows, width, bits, by) | rest.pop("given", {})
    return _cases(name if "/" in name else f"causal/{name}", {}, inputs, comment, **rest)


def _form(name: str, lead: tuple[int, ...], queries: int, keys: int, comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, _inputs(name, lead, queries, keys, 3, 4), {}, comment, form=form)


def _gradient(name: str, lead: tuple[int, ...], queries: int, keys: int, rows: int, width: int, view: str = "") -> Case:
    inputs = _inputs(f"gradient {name}", lead, queries, keys, rows, width)
    return gradient(OP, name, inputs, {"out": (*lead, queries, keys)}, view=view)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", (), 3, 4, 4, 2, tier="smoke"),
        _case("whole", (2,), 5, 5, 6, 3, "as many queries as keys"),
        _case("limit-two", (2,), 1, 8, 2, 4, by=1.0),
        _case("one-row", (), 2, 5, 1, 4, "a table of one row"),
        _case("open", (), 1, 6, 9, 3, "open and closed gates", by=4.0),
        _case("64-rows", (2,), 1, 100, 64, 64, "64 rows, as in the paper's language models"),
        _case("300-keys", (), 1, 300, 64, 12, bits=24),
        _form("batch-one", (1, 2), 3, 4),
        _form("length-one", (2,), 1, 1),
        _case("refused/mask", (), 2, 3, 4, 5, "a mask is boolean", kind="reject", given={"mask": np.zeros((2, 3))}),
        _case("refused/width", (), 2, 3, 4, 5, "vectors of the queries' width", kind="reject",
              given={"table": np.ones((4, 3))}),
        _gradient("small", (), 2, 3, 3, 2),
        _gradient("rows", (2,), 2, 2, 4, 2),
        _gradient("strided", (2,), 1, 3, 2, 3, view="non-contiguous"),
    )  # fmt: skip


@around_with
def _positions(change: Any, function: Function, logits: Real, mask: Any, /, *, last: int) -> Real:
    """Positions are computed from gates in another way."""
    gates = np.where(mask, 1 / (1 + np.exp(-logits)), 0.0)
    return change(gates, last)


def _summed(gates: Real, last: int) -> Real:
    return np.minimum(np.flip(np.cumsum(np.flip(gates, -1), axis=-1), -1), last)


_deviation = deviations_of(OP)
_of_gates = deviations_of("gated_positions")
_of_rows = deviations_of("interpolated")
GATE = "The gate is the sigmoid of the logit."
SUM = "Sum the gates from the key to the query, both included: flip, cumsum, flip."
BETWEEN = "Interpolate between the rows below and above the position."

DEVIATIONS = (
    _of_gates("cope-from-the-start", "gates are summed from the first key to the key",
              _positions(lambda g, last: np.minimum(np.cumsum(g, axis=-1), last)), hint=SUM),
    _of_gates("cope-exclusive", "the key's own gate does not count",
              _positions(lambda g, last: np.minimum(np.flip(np.cumsum(np.flip(g, -1), axis=-1), -1) - g, last)), hint=SUM),
    _of_gates("cope-counts-keys", "every visible key counts as one",
              _positions(lambda g, last: _summed(np.where(g > 0, 1.0, 0.0), last)),
              hint=GATE),
    _of_gates("cope-unmasked", "gates of masked keys count too",
              before(lambda logits, mask, /, **options: ((logits, np.ones_like(mask)), options)),
              hint="Set gates of masked keys to 0 before the sum."),
    _of_gates("cope-limit-early", "positions are limited to N - 2",
              _positions(lambda g, last: _summed(g, max(last - 1, 0))), hint="The last row is N - 1."),
    _of_gates("cope-exponential", "the gate is the exponential of the logit, at most 1",
              _positions(lambda g, last: _summed(np.minimum(g / np.maximum(1 - g, 1e-300), 1.0), last)),
              hint=GATE),
    _of_gates("cope-positions-bfloat16", "positions are held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32),
    _of_rows("cope-floor", "positions are rounded down", argument(1, np.floor), hint=BETWEEN),
    _of_rows("cope-rounded", "positions are rounded to the nearest row", argument(1, np.rint), hint=BETWEEN),
    _of_rows("cope-shares-exchanged", "the shares of the rows below and above are exchanged",
             argument(1, lambda p: np.floor(p) + np.ceil(p) - p), hint=BETWEEN),
    _of_rows("cope-table-reversed", "the table is read from its last row", argument(0, lambda u: u[..., ::-1]),
             hint="Row 0 is for position 0, which no open gate separates from the query."),
    _deviation("cope-scaled", "the query is multiplied by 1/sqrt(D)",
               argument(0, lambda q: q / np.sqrt(q.shape[-1])), hint="The logits are scaled, the query here is not."),
    _deviation("cope-first-row", "every row of the batch has the queries of the first",
               argument(0, lambda q: np.broadcast_to(q[:1], q.shape) if q.ndim > 2 else q),
               hint="Keep the axis of the batch in the product with the table."),
    _deviation("cope-query-bfloat16", "the query is held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
)  # fmt: skip

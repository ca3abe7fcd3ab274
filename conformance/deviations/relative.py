"""Deviations of Shaw's relative positions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Real, Wrap, after, before, narrowed


def _shaw(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, Wrap]:
    return {"shaw_scores": before(change), "shaw_values": before(change)}


def _other_order(*args: Any, **options: Any) -> Any:
    other = {"key_minus_query": "query_minus_key", "query_minus_key": "key_minus_query"}
    return args, options | {"order": other[options["order"]]}


def _order(order: str) -> Callable[..., Any]:
    return lambda *args, **options: (args, options | {"order": order})


def _clip_exchanged(a: Any, b: Any, table: Any, q: Any, k: Any, /, *, left: int, right: int, order: str) -> Any:
    """Clip to (-right, left), adding right."""
    apart = k[..., None, :] - q[..., :, None] if order == "key_minus_query" else q[..., :, None] - k[..., None, :]
    return np.clip(apart, -right, left) + right


def _shaw_rows(index: Callable[..., Any]) -> dict[str, Wrap]:
    """Return wraps that look up other rows of the table."""

    def scores(q: Real, k: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        rows = table[index(q, k, table, qp, kp, **options)]
        return q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)

    def values(w: Real, v: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        rows = table[index(w, v, table, qp, kp, **options)]
        return w @ v + np.sum(w[..., :, :, None] * rows, axis=-2)

    return {"shaw_scores": lambda _: scores, "shaw_values": lambda _: values}


def _modulo(a: Any, b: Any, table: Any, q: Any, k: Any, /, *, left: int, right: int, order: str) -> Any:
    """Let differences beyond the window wrap around."""
    apart = k[..., None, :] - q[..., :, None] if order == "key_minus_query" else q[..., :, None] - k[..., None, :]
    return (apart + left) % (left + right + 1)


def _one_row_up(a: Any, b: Any, table: Any, *rest: Any, **options: Any) -> Any:
    return (a, b, np.concatenate([table[1:], table[-1:]]), *rest), options


DEVIATIONS = (
    Deviation("shaw-other-order", "the difference of positions has the wrong sign", _shaw(_other_order), "", "SpeechT5's convention"),
    Deviation("shaw-key-minus-query", "the difference is always key minus query", _shaw(_order("key_minus_query"))),
    Deviation("shaw-query-minus-key", "the difference is always query minus key", _shaw(_order("query_minus_key"))),
    Deviation("shaw-clip-exchanged", "left and right are exchanged: rows are clip(difference, -right, left) + right",
              _shaw_rows(_clip_exchanged), "", "wav2vec2-BERT's 64 and 8"),
    Deviation("shaw-rows-modulo", "rows wrap around the table rather than being clipped", _shaw_rows(_modulo)),
    Deviation("shaw-row-plus-1", "each row is the one after the right one", _shaw(_one_row_up)),
    Deviation("shaw-row-minus-1", "each row is the one before the right one", _shaw(
        lambda a, b, t, *r, **o: ((a, b, np.concatenate([t[:1], t[:-1]]), *r), o))),
    Deviation("shaw-row-0-as-1", "row 0 of the table is never read: row 1 is read in its place",
              _shaw(lambda a, b, t, *r, **o: ((a, b, np.concatenate([t[1:2], t[1:]]) if len(t) > 1 else t, *r), o)),
              hint="Row 0 is a row like any other: it is for the farthest keys."),
    Deviation("shaw-row-0-zero", "row 0 of the table is zero",
              _shaw(lambda a, b, t, *r, **o: ((a, b, np.concatenate([0 * t[:1], t[1:]]), *r), o)), "padding_idx is 0."),
    Deviation("shaw-term-dropped", "the relative term is missing", _shaw(lambda a, b, t, *r, **o: ((a, b, 0 * t, *r), o)),
              "Add the product of the query with the relative vector, or the weighted relative vectors.",
              "transformers#11725 class"),
    Deviation("shaw-scaled", "scores are divided by sqrt(D)", {"shaw_scores": after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5)}),
    Deviation("shaw-table-bfloat16", "the table is held in bfloat16", _shaw(lambda a, b, t, *r, **o: ((a, b, narrowed("bfloat16")(t), *r), o))),
    Deviation("shaw-input-bfloat16", "the input is held in bfloat16", _shaw(lambda a, b, *r, **o: ((narrowed("bfloat16")(a), b, *r), o))),
)  # fmt: skip

"""Relative position keys (Shaw et al.): cases and known mistakes."""

from typing import Any

from .shared.relative import BACKWARD, FORWARD, WINDOW, shaw_case, shaw_cases, shaw_forms, shaw_gradients, squares
from .tools import Case, Function, Real, after, around, deviations_of
from .tools.hints import UNSCALED

USUAL: dict[str, Any] = WINDOW
KERNEL: tuple[dict[str, Any], ...] = ({"left": 16, "right": 16, "order": "key_minus_query"},)

SCORE_AXES = {"q": "qd", "k": "kd", "key_table": "nd"}  # of scores and of values: queries, keys, rows of the table, lanes


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *shaw_cases("shaw_scores", SCORE_AXES),
        *_with_keys(),
        *shaw_forms("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}),
        *shaw_gradients("shaw_scores", {"q": "qd", "k": "kd", "key_table": "nd"}, "qk"),
    )


def _with_keys() -> tuple[Case, ...]:
    """Return cases whose keys meet the vectors too, and tables of BERT's relative_key."""
    case, both = shaw_case("shaw_scores", SCORE_AXES), {"terms": "query_and_key"}
    return (
        case("both/relative-key-query", (), 3, ((0, 511, 88), (0, 5, 256, 87, 510, 511, 89)), (511, 511),
             BACKWARD, comment="512 tokens: a row for each distance", **both),
        case("both/zero", (2,), 4, ((1, 5, 2), (0, 1, 2, 9, 7)), (1, 2), FORWARD, outside="zero", **both),
        case("refused/terms", (), 4, ((1, 2), (0, 1, 2)), (2, 1), FORWARD, comment="no such terms", kind="reject", terms="key"),
    )  # fmt: skip


@around
def _key_reversed(function: Function, q: Real, k: Real, *rest: Any, order: str, terms: str = "query", **options: Any) -> Real:
    """Read the key's vectors at the other sign of the distance."""
    of_query = function(q, k, *rest, order=order, **options)
    if terms == "query":
        return of_query
    other = {FORWARD: BACKWARD, BACKWARD: FORWARD}[order]
    return of_query + function(0 * q, k, *rest, order=other, terms=terms, **options)


def _squared(scores: Real, q: Any, k: Any, table: Any, *places: Any, **options: Any) -> Real:
    return scores + squares(table, *places, **options) if options.get("terms") == "query_and_key" else scores


_deviation = deviations_of("shaw_scores")
KEY_TERM = "With relative_key_query the key meets the same vector as the query, in a term of its own."

DEVIATIONS = (
    _deviation("shaw-scaled", "scores are divided by sqrt(D)", after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5),
               hint=UNSCALED),
    _deviation("shaw-no-key-term", "the key's product with the vector is missing",
               lambda function: lambda *args, **options: function(*args, **options | {"terms": "query"}), hint=KEY_TERM),
    _deviation("shaw-key-term", "the key's product with the vector is always added",
               lambda function: lambda *args, **options: function(*args, **options | {"terms": "query_and_key"}),
               hint=KEY_TERM),
    _deviation("shaw-key-reversed", "the key's vector is that of the other sign of the distance", _key_reversed, hint=KEY_TERM),
    _deviation("shaw-squared", "the vector is added to the query and to the key, and so multiplied with itself",
               after(_squared), hint="(q + a).(k + a) has a term too much: a.a."),
)  # fmt: skip

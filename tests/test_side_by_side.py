"""Two mistakes of one function are both named where neither can be put inside the other."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from sampling import few

from posref.conformance import check
from posref.conformance.evidence.index import deviations_touching
from posref.spec import REGISTRY

PAIRS = [  # a value that the second changes is the second's, any other the first's
    ("to_float8", "float8-half-up", "float8-flushed"),
    ("to_float8", "float8-truncated", "float8-flushed"),
    ("window_bias", "window-bias-height-stride", "window-bias-class-both"),
]


def diagnosis(op: str, function: Any) -> dict[str, Any]:
    """Return the diagnosis of an operation in float32."""

    def rounded(*args: Any, dtype: Any = None, **options: Any) -> Any:
        return np.asarray(function(*args, **options)).astype(dtype or np.float32)

    report = check(SimpleNamespace(**{op: rounded}), op=op, dtype="float32", experiments=0)
    return dict(report.operations[0].diagnosis or {})


@few(1, ("op", "first", "second"), PAIRS)
def test_two_mistakes_that_share_the_values_of_a_case_are_named(op: str, first: str, second: str) -> None:
    known = {d.name: d.operations()[op] for d in deviations_touching(op)}
    right = REGISTRY[op].function

    def both(*args: Any, **options: Any) -> Any:
        a, b, c = (np.asarray(f(*args, **options)) for f in (known[first], known[second], right))
        return np.where(b != c, b, a)

    assert {*diagnosis(op, both)["names"]} == {first, second}


def test_a_second_mistake_that_gives_no_value_alone_is_not_named() -> None:
    known = {d.name: d.operations()["to_float8"] for d in deviations_touching("to_float8")}
    assert diagnosis("to_float8", known["float8-half-up"])["names"] == ["float8-half-up"]

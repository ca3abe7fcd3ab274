"""Forms of masks and ids, and mistakes that position ids share."""

from typing import Any

import numpy as np

from ..tools import Case, Step, cases_of


def in_sequence(op: str, *calls: tuple[dict[str, Any], dict[str, Any]]) -> Case:
    """Return several calls of an operation on one instance."""
    steps = tuple(Step(params, arrays) for params, arrays in calls)
    return Case(f"{op}/sequence/shapes", kind="sequence", steps=steps)


def id_forms(op: str, name: str, values: tuple[tuple[int, ...], ...], params: dict[str, Any]) -> tuple[Case, ...]:
    """Return the cases that every form of an array of integers, or of a mask, has."""
    case = cases_of(op)
    whole = np.asarray(values)
    kind = np.bool_ if name == "mask" else np.int64

    def asked(array: Any) -> dict[str, Any]:
        return {name: np.asarray(array).astype(kind)}

    return (
        case("forms/length-one", params, asked(whole[:1, 1:2])),
        case("forms/no-batch", params, asked(np.zeros((2, 0, 4)))),
        case("forms/no-batch-again", params, asked(np.zeros((3, 0, 5)))),
        in_sequence(op, (params, asked(whole)), (params, asked(whole[1, 1:4])), (params, asked(whole[:1]))),
    )


def every_rank(op: str, length: int) -> Case:
    """Return the shards of every rank, asked one after another."""
    return in_sequence(op, *(({"length": length, "rank": rank, "ranks": 3}, {}) for rank in (2, 0, 1)))


def counts(mask: Any) -> Any:
    """Return how many tokens there are up to each."""
    return np.cumsum(np.asarray(mask).astype(np.int64), axis=-1)


def changed_shard(change: Any) -> Any:
    """Return a shard made otherwise from length, rank and number of ranks."""
    return lambda function: lambda length, /, *, rank, ranks: np.asarray(change(length, rank, ranks), dtype=np.int64)

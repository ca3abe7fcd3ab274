"""Constants computed once: the results of a function of options alone, kept by these options."""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

KEPT = 256  # results of a function, the last ones used


def once(function: F) -> F:
    """
    Keep the results of a function whose results are host NumPy arrays, numbers, or a tuple of these.

    Options are told apart by value and type. A call is computed anew if an option is an array, a module or anything else that
    is no number, word, tuple or record. The caller gets a copy of every array. `forget` of the function returned forgets all.
    """

    @lru_cache(maxsize=KEPT)
    def kept(key: Hashable, call: _Call) -> Any:
        return function(*call.args, **call.options)

    @wraps(function)
    def remembered(*args: Any, **options: Any) -> Any:
        try:
            key = (*map(_key, args), *((name, _key(value)) for name, value in options.items()))
        except TypeError:
            return function(*args, **options)
        found = kept(key, _Call(args, options))
        return tuple(map(_copy, found)) if isinstance(found, tuple) else _copy(found)

    remembered.forget = kept.cache_clear  # type: ignore[attr-defined]
    return remembered  # type: ignore[return-value]  # it has the signature of what it wraps


class _Call:
    """Arguments that are equal to all others, so that the key alone decides."""

    def __init__(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.args, self.options = args, options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call)

    def __hash__(self) -> int:
        return 0


def _key(value: Any) -> Hashable:
    """Return a hashable value that is equal for the same options alone; `TypeError` where an option can be none."""
    if value is None or isinstance(value, int | float | str):
        return (type(value), value)
    if isinstance(value, tuple):
        return (tuple, *map(_key, value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(_key(getattr(value, field.name)) for field in fields(value)))
    raise TypeError


def _copy(value: Any) -> Any:
    """Return a copy of an array, and a number as it is."""
    return value.copy() if hasattr(value, "copy") else value

"""A scope in words for a report, and as the `supports` that an implementation may state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .scope import Asked, Bound, Restriction, is_fixed, is_option, shown
from .traits import DEFAULT, FORMS

ALL = {0: "positions 0, 1, 2, ... alone", 1: "consecutive positions", 2: "sorted positions"}
OF_FORM = {0: "0, 1, 2, ...", 1: "consecutive from elsewhere", 2: "sorted with gaps", 3: "unsorted"}
LACKS = {
    "sequence": "no calls in sequence", "strided": "contiguous arrays",
    "partial": "no partial rotation", "negative": "no negative positions",
    "per_row": "the same positions in all rows", "shared_rows": "positions without an axis for rows",
    "unequal": "equal sections", "unequal_old_size": "a square table", "unequal_size": "a square new size",
    "unequal_coordinates": "the same coordinate along every axis",
    "odd_dim": "even widths", "odd_taps": "an even number of taps",
    "step": "no ramp that begins where it ends",
    "tokens_before_heads": "heads before tokens", "other_length": "length one more than the largest position",
    "heads_not_power_of_two": "heads a power of two", "other_centre": "centre at half of all positions",
}  # fmt: skip
NAMES = {"position": "positions", "head_size": "head size", "rows": "rows of a table"}
SHOWN = 4  # pairs that are told one by one
FEW = 3  # words that are told where more are refused


def quantity(value: float) -> str:
    """Return a number in plain digits: integers whole."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def told(op: str, restriction: Restriction, asked: Sequence[Asked]) -> str:
    """Return a restriction in words, a limit with both of its sides."""
    if len(restriction.axis) > 1:
        return _pairs(restriction)
    [axis] = restriction.axis
    if isinstance(restriction.allowed, Bound):
        return _bound(axis, restriction.allowed, restriction.outside)
    return _words(op, axis, restriction.allowed, asked)


def is_limit(restriction: Restriction) -> bool:
    """Return whether a restriction is a limit rather than a choice: limits are told first."""
    return isinstance(restriction.allowed, Bound) or restriction.axis == ("one",)


def supports(op: str, restrictions: Iterable[Restriction], asked: Sequence[Asked]) -> dict[str, Any]:
    """Return restrictions as an implementation states them, and of options those words alone that were answered."""
    found: dict[str, Any] = {axis: _stated(op, axis, words) for axis, words in shown(op, asked).items()}
    for restriction in restrictions:
        if len(restriction.axis) > 1:
            pairs = [[_words_of(w) for w in pair] for pair in sorted(restriction.allowed, key=str)]
            found.setdefault("not", []).extend(dict(zip(restriction.axis, pair, strict=True)) for pair in pairs)
            continue
        [axis] = restriction.axis
        found[axis] = _stated(op, axis, restriction.allowed)
    return found


def _words_of(word: Any) -> Any:
    """Return a word of a pair, or several."""
    if word == frozenset({True}):
        return True
    return [*map(_whole, sorted(word, key=str))] if isinstance(word, frozenset) else word


def _stated(op: str, axis: str, allowed: Any) -> Any:
    if axis == "positions":
        return FORMS[int(allowed.high)]
    if isinstance(allowed, Bound):
        ends = {"min": allowed.low, "max": allowed.high, "multiple_of": allowed.multiple_of}
        return {name: _whole(value) for name, value in ends.items() if value is not None}
    if axis in LACKS or not allowed or (_is_yes(allowed) and not is_option(op, axis)):
        return True in allowed
    return sorted(map(_whole, allowed), key=lambda w: (w is not None, isinstance(w, str), 0 if w is None else w))


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _pairs(restriction: Restriction) -> str:
    pairs = sorted(restriction.allowed, key=str)
    texts = [
        f"not {' with '.join(_pairword(a, w) for a, w in zip(restriction.axis, pair, strict=True))}" for pair in pairs[:SHOWN]
    ]
    more = len(pairs) - SHOWN
    return ", ".join(texts) + (f" and {more} more such pairs" if more > 0 else "")


def _pairword(axis: str, word: Any) -> str:
    words = word if isinstance(word, frozenset) else frozenset({word})
    return axis if words == {True} else f"{axis} {', '.join(sorted(map(_plain, words)))}"


def _plain(word: Any) -> str:
    if word is None:
        return "none"
    return quantity(word) if isinstance(word, int | float) and not isinstance(word, bool) else str(word)


def _bound(axis: str, bound: Bound, outside: Sequence[Asked]) -> str:
    """Return a limit, and on its other side the nearest that was refused."""
    found = [one.traits.sizes[axis] for one in outside if axis in one.traits.sizes]
    above = min((high for _, high in found if bound.high is not None and high > bound.high), default=None)
    below = max((low for low, _ in found if bound.low is not None and low < bound.low), default=None)
    if axis == "positions":
        return ALL[int(bound.high or 0)] + ("" if above is None else f" (refused: {OF_FORM[int(above)]})")
    name = NAMES.get(axis, axis)
    if bound.low is not None and bound.low == bound.high:
        text = f"{name} {quantity(bound.low)}"
    elif bound.low is not None and bound.high is not None:
        text = f"{name} {quantity(bound.low)} to {quantity(bound.high)}"
    elif bound.high is not None:
        text = f"{name} up to {quantity(bound.high)}"
    else:
        text = "" if bound.low is None else f"{name} from {quantity(bound.low)}"
    if bound.multiple_of is not None:
        text = f"{text or name}, a multiple of {bound.multiple_of}" if text else f"{name} a multiple of {bound.multiple_of}"
    sides = [] if below is None else [f"{quantity(below)} and less"]
    sides += [] if above is None else [f"{quantity(above)} and more"]
    return text + (f" (refused: {', '.join(sides)})" if sides else "")


def _words(op: str, axis: str, allowed: frozenset[Any], asked: Sequence[Asked]) -> str:
    """Return what an axis has, or what it lacks where that is shorter."""
    every = frozenset[Any]().union(*(one.traits.words.get(axis, ()) for one in asked))
    missing = every - allowed
    if axis in LACKS:
        return LACKS[axis]
    if axis == "one":
        return " and ".join(f"more than one {word}" for word in sorted(missing))
    if axis == "gradient":
        return f"gradients of {', '.join(sorted(allowed))} alone" if allowed else "no gradients"
    if axis in ("empty", "expanded"):
        return f"no {'views of one row as' if axis == 'expanded' else 'empty'} {', '.join(sorted(missing))}"
    if axis == "per_head":
        return f"the same {', '.join(sorted(missing))} for all heads"
    if axis == "numbers":
        return f"no {', '.join(sorted(missing))} as positions"
    if not is_option(op, axis):
        return _trait(op, axis, allowed)
    if every <= {True, False}:
        return f"no {axis}" if allowed == {False} else f"{axis} alone"
    if allowed & every == {None}:
        return f"no {axis}"
    if len(missing) < len(allowed & every) or len(allowed & every) > FEW:  # what is refused has its name there
        return f"{axis}: all but {', '.join(sorted(map(_plain, missing)))}"
    return f"{axis} {', '.join(sorted(map(_plain, allowed)))}" if axis != "dtype" else ", ".join(sorted(allowed))


def _is_yes(words: frozenset[Any]) -> bool:
    """Return whether there is one word, and it is True: not the number 1."""
    return any(word is True for word in words) and len(words) == 1


def _trait(op: str, axis: str, allowed: frozenset[Any]) -> str:
    if allowed <= {DEFAULT} and not is_fixed(op, axis) and axis not in ("rank", "axes"):
        return f"{axis} at its default" if allowed else f"no {axis}"
    if _is_yes(allowed):
        return f"{axis} alone"
    if not allowed:
        return f"no {axis}"
    words = sorted(allowed, key=lambda w: (isinstance(w, str), w))
    return f"{NAMES.get(axis, axis)} {', '.join(map(_plain, words))}"

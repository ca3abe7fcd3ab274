"""A scope as text: the JSON of `supports`, the words of --require, and the words of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY, Integer, Integers, Real

from ..errors import TargetError, VectorError, meant
from ..reports.report import Report
from ..suite import safe_files
from ..suite.reader import load_manifest, parse
from ..suite.safe_files import SUITE_DOCUMENT
from ..targets.base import checked_supports
from ..vocabulary.traits import DEFAULT, FORMS, GIVEN, HAS, LACKS, LISTS, defaults, last_cells, numbers_or_none, vocabulary
from .learned_scope import OF_SIZES
from .scope import Asked, Bound, Restriction, is_fixed, is_option, shown, words_on

Stated = Mapping[str, Mapping[str, Any]]  # by operation: allowed words, bounds, and under "not" pairs
TERM = re.compile(r"([A-Za-z_][\w.]*)(=|<=|>=)(.+)")
WORDS = {"null": None, "none": None, "true": True, "false": False}
ALL = {0: "only positions 0, 1, 2, ...", 1: "consecutive positions", 2: "sorted positions"}
OF_FORM = {0: "0, 1, 2, ...", 1: "consecutive from elsewhere", 2: "sorted with gaps", 3: "unsorted"}
NAMES = {"position": "positions", "head_size": "head size", "rows": "rows of a table"}
SHOWN = 4  # pairs that are told one by one
FEW = 3  # words that are told where more are refused


def read(name: str, document: Mapping[str, Any]) -> Stated:
    """
    Return a stated scope by operation; what "*" says holds for every operation that has the axis.

    Raises
    ------
    TargetError
        If it names an operation, an axis or a word that does not exist.
    """
    general = document.get("*", {})
    for axis, value in general.items():
        known = [op for op in REGISTRY if axis in vocabulary(op)]
        if axis != "not" and not known:
            raise _unknown(name, "*", axis, {a for op in REGISTRY for a in vocabulary(op)})
        if isinstance(value, list) and axis != "not" and not any(_some(op, axis, value) for op in known):
            _list(name, "*", axis, value, tuple(dict.fromkeys(w for op in known for w in vocabulary(op)[axis] or ())))
    unknown = [op for op in document if op != "*" and op not in REGISTRY]
    if unknown:
        msg = f"{name}: supports must name operations, or * for all: {', '.join(REGISTRY)}; got {unknown[0]!r}."
        raise TargetError(msg)
    scope = {}
    for op in REGISTRY if "*" in document else document:
        shared = {axis: _some(op, axis, value) for axis, value in general.items() if axis in vocabulary(op)}
        shared = {axis: value for axis, value in shared.items() if value != [] or general[axis] == []}
        merged = {**shared, **document.get(op, {})}
        excluded = [pair for pair in general.get("not", ()) if all(axis in vocabulary(op) for axis in pair)]
        excluded += document.get(op, {}).get("not", [])
        scope[op] = {axis: _allowed(name, op, axis, value) for axis, value in merged.items() if axis != "not"}
        if excluded:
            scope[op]["not"] = [_together(name, op, pair) for pair in excluded]
    return scope


def _together(name: str, op: str, pair: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not offered together; `TargetError` if no call can have it."""
    pair_of_words = {axis: _allowed(name, op, axis, _listed(op, axis, word)) for axis, word in pair.items()}
    for axis, words in pair_of_words.items():
        if words == frozenset():
            raise _wrong(name, op, axis, "a word or a size that a call can have, since it is under not", pair[axis])
    return pair_of_words


def _some(op: str, axis: str, value: Any) -> Any:
    """Return what "*" says of an axis of one operation: of a list, the words that it has."""
    words = vocabulary(op)[axis]
    return [w for w in value if w in words] if isinstance(value, list) and words is not None else value


def _listed(op: str, axis: str, word: Any) -> Any:
    """Return a word or a bound of a pair as an axis has it alone."""
    return word if isinstance(word, list | dict) or vocabulary(op).get(axis) == (True,) else [word]


def _unknown(name: str, op: str, axis: str, known: set[str]) -> TargetError:
    near, listed = meant(axis, known), ", ".join(a for a in sorted(known) if "." not in a)
    wanted = "one of its axes" if near else f"{listed}, or a field such as YaRN.mscale"
    return TargetError(f"{name}: supports of {op} must name {wanted}; got {axis!r}.{near}")


def _allowed(name: str, op: str, axis: str, value: Any) -> Any:
    """Return what an axis allows, as a set of words or a bound; `TargetError` for what does not exist."""
    known = vocabulary(op)
    if axis not in known:
        raise _unknown(name, op, axis, set(known))
    words = known[axis]
    if axis == "positions":
        if value not in FORMS:
            raise _wrong(name, op, axis, f"one of {', '.join(map(repr, FORMS))}", value)
        return Bound(high=float(FORMS.index(value)))
    number = axis in defaults(op) or axis in numbers_or_none(op)
    number = number and words in ((DEFAULT, GIVEN), (None, GIVEN))  # told in words, or in numbers
    if number and isinstance(value, list) and value and not {DEFAULT, GIVEN, None} & {*value}:
        words = None
    if isinstance(value, dict):
        if words is not None and not number:
            raise _wrong(name, op, axis, f"a list of {_of(words)}", value)
        bound = Bound(value.get("min"), value.get("max"), value.get("multiple_of"))
        _expect_effect(name, op, axis, bound)
        return bound
    if isinstance(value, bool):
        if axis in ("expanded", "gradient", "per_head", "tables", *LISTS):
            return frozenset(words or ()) if value else frozenset()
        if words != (True,):
            raise _wrong(name, op, axis, f"a list of {_of(words)}", value)
        return frozenset({True} if value else ())
    return _list(name, op, axis, value, words)


def _expect_effect(name: str, op: str, axis: str, bound: Bound) -> None:
    """Raise `TargetError` for a bound that every call is within, or none."""
    domain = REGISTRY[op].domains.get(axis)
    least = domain.low if isinstance(domain, Integer | Integers | Real) else 0
    if (bound.low is None or bound.low <= least) and bound.high is None and bound.multiple_of in (None, 1):
        raise _wrong(name, op, axis, f"a bound that leaves something out: it is never below {least}", bound.low)
    if bound.high is not None and bound.high < max(least, -math.inf if bound.low is None else bound.low):
        raise _wrong(name, op, axis, "a bound that something is within", bound.high)


def _list(name: str, op: str, axis: str, value: Any, words: tuple[Any, ...] | None) -> frozenset[Any]:
    """Return a list of words as a set."""
    if not isinstance(value, list) or words == (True,):
        wanted = "true or false" if words == (True,) else f"a list of {_of(words)}"
        raise _wrong(name, op, axis, wanted, value)
    if words is None:
        if not all(isinstance(w, int | float) and not isinstance(w, bool) for w in value):
            raise _wrong(name, op, axis, "a list of numbers, or an object with min and max", value)
        return frozenset(value)
    for word in value:
        if not any(word is w or (word == w and type(word) is type(w)) for w in words):
            raise _wrong(name, op, axis, f"one of {_of(words)}", word, meant(word, [w for w in words if isinstance(w, str)]))
    return frozenset(value)


def _of(words: tuple[Any, ...] | None) -> str:
    return "numbers" if words is None else ", ".join("null" if w is None else str(w) for w in words)


def _wrong(name: str, op: str, axis: str, wanted: str, value: Any, near: str = "") -> TargetError:
    return TargetError(f"{name}: supports of {op}: {axis} must be {wanted}; got {str(value)[:80]!r}.{near}")


def implied(op: str, stated: Mapping[str, Any], scalings: tuple[str, ...], gradients: bool) -> dict[str, Any]:
    """Return a stated scope with what an implementation says elsewhere: its scalings, and whether it has gradients."""
    scope = dict(stated)
    if "scaling" in vocabulary(op) and "scaling" not in scope:
        scope["scaling"] = frozenset({None, *scalings})
    if not gradients:
        scope["gradient"] = frozenset[Any]()
    return scope


# ---- a scope in words, and as an implementation may state it ---------------------------------------------------------------
def quantity(value: float) -> str:
    """Return a number in plain digits: integers whole."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def in_words(op: str, restriction: Restriction, asked: Sequence[Asked]) -> str:
    """Return a restriction in words, a limit with both of its sides."""
    allowed = restriction.allowed
    if restriction.text:
        return restriction.text
    if len(restriction.axis) > 1:
        return _pairs(restriction)
    [axis] = restriction.axis
    return _bound(axis, allowed, restriction.outside) if isinstance(allowed, Bound) else _words(op, axis, allowed, asked)


def is_limit(restriction: Restriction) -> bool:
    """Return whether a restriction is a limit rather than a choice: limits come first."""
    return isinstance(restriction.allowed, Bound) or restriction.axis == ("one",)


def as_supports(op: str, restrictions: Iterable[Restriction], asked: Sequence[Asked]) -> dict[str, Any]:
    """Return restrictions as an implementation states them, and of options those words alone that were answered."""
    supports: dict[str, Any] = {axis: _stated(op, axis, words) for axis, words in shown(op, asked).items()}
    for restriction in restrictions:
        supports |= {trait: False for trait in restriction.lacks if trait in vocabulary(op)}
        if restriction.allowed is None or (restriction.allowed == frozenset() and "." in restriction.axis[0]):
            continue  # no axis says it
        if len(restriction.axis) > 1:
            pairs = [[_words_of(w) for w in pair] for pair in sorted(restriction.allowed, key=str)]
            supports.setdefault("not", []).extend(dict(zip(restriction.axis, pair, strict=True)) for pair in pairs)
            continue
        [axis] = restriction.axis
        if not (
            isinstance(restriction.allowed, Bound) and isinstance(supports.get(axis), list)
        ):  # a list says more than its ends
            supports[axis] = _stated(op, axis, restriction.allowed)
    return supports


def _words_of(word: Any) -> Any:
    """Return a word of a pair, several, or a bound."""
    if isinstance(word, Bound):
        return _ends(word)
    if word == frozenset({True}):
        return True
    return [*map(_whole, sorted(word, key=str))] if isinstance(word, frozenset) else word


def _stated(op: str, axis: str, allowed: Any) -> Any:
    if axis == "positions":
        return FORMS[int(allowed.high)]
    if isinstance(allowed, Bound):
        return _ends(allowed)
    if axis in LACKS or not allowed or (_is_yes(allowed) and not is_option(op, axis)):
        return True in allowed
    return sorted(map(_whole, allowed), key=lambda w: (w is not None, isinstance(w, str), 0 if w is None else w))


def _ends(bound: Bound) -> dict[str, Any]:
    """Return a bound as it is stated."""
    ends = {"min": bound.low, "max": bound.high, "multiple_of": bound.multiple_of}
    return {name: _whole(value) for name, value in ends.items() if value is not None}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _pairs(restriction: Restriction) -> str:
    pairs = sorted(restriction.allowed, key=str)
    texts = [f"not {' with '.join(map(_pairword, restriction.axis, pair))}" for pair in pairs[:SHOWN]]
    more = len(pairs) - SHOWN
    return ", ".join(texts) + (f" and {more} more such pairs" if more > 0 else "")


def _pairword(axis: str, word: Any) -> str:
    if isinstance(word, Bound):
        return _bound(axis, word, ())
    words = word if isinstance(word, frozenset) else frozenset({word})
    return HAS.get(axis, axis) if words == {True} else f"{axis} {', '.join(sorted(map(_plain, words)))}"


def _plain(word: Any) -> str:
    if word is None:
        return "none"
    return quantity(word) if isinstance(word, int | float) and not isinstance(word, bool) else str(word)


def _bound(axis: str, bound: Bound, outside: Sequence[Asked]) -> str:
    """Return a limit, and on its other side the nearest that was refused."""
    refused_sizes = [one.traits.sizes[axis] for one in outside if axis in one.traits.sizes]
    above = min((sizes[-1] for sizes in refused_sizes if bound.high is not None and sizes[-1] > bound.high), default=None)
    below = max((sizes[0] for sizes in refused_sizes if bound.low is not None and sizes[0] < bound.low), default=None)
    if axis == "positions" and not bound.high and outside and last_cells(outside[0].case.op):
        return OF_SIZES
    if axis == "positions":
        return ALL[int(bound.high or 0)] + ("" if above is None else f" (refused: {OF_FORM[int(above)]})")
    low, high = ("" if end is None else quantity(end) for end in (bound.low, bound.high))
    ends = low if bound.low == bound.high else f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}"
    name = NAMES.get(axis, axis)
    text = f"{name} {ends}" if ends else ""
    if bound.multiple_of is not None:
        text = f"{text}, a multiple of {bound.multiple_of}" if text else f"{name} a multiple of {bound.multiple_of}"
    sides = [] if below is None else [f"{quantity(below)} and less"]
    sides += [] if above is None else [f"{quantity(above)} and more"]
    return text + (f" (refused: {', '.join(sides)})" if sides else "")


def _words(op: str, axis: str, allowed: frozenset[Any], asked: Sequence[Asked]) -> str:
    """Return what an axis has, or what it lacks where that is shorter."""
    every = words_on(axis, asked)
    missing = every - allowed
    if axis in LACKS:
        return LACKS[axis]
    if axis == "one":
        return " and ".join(f"more than one {word}" for word in sorted(missing))
    if axis == "gradient":
        return f"only gradients of {', '.join(sorted(allowed))}" if allowed else "no gradients"
    if axis in ("empty", "expanded"):
        return f"no {'views of one row as' if axis == 'expanded' else 'empty'} {', '.join(sorted(missing))}"
    if axis == "per_head":
        return f"the same {', '.join(sorted(missing))} for all heads"
    if axis == "numbers":
        return "no fractional positions" if missing == {"fractional"} else f"no {', '.join(sorted(missing))} as positions"
    if axis == "rotated":
        return f"all of the head rotated, or {' or '.join(sorted(allowed))}"
    if not is_option(op, axis):
        return _trait(op, axis, allowed)
    if every <= {True, False}:
        return f"no {axis}" if allowed == {False} else f"only {axis}"
    if allowed & every == {None}:
        return f"no {axis}"
    if len(missing) < len(allowed & every) or len(allowed & every) > FEW:  # what is refused has its name there
        return f"{axis}: all but {', '.join(sorted(map(_plain, missing)))}"
    return f"{axis} {', '.join(sorted(map(_plain, allowed)))}" if axis != "dtype" else ", ".join(sorted(allowed))


def _is_yes(words: frozenset[Any]) -> bool:
    """Return whether there is one word, and it is True: not the number 1."""
    return any(word is True for word in words) and len(words) == 1


UNEQUAL = "unequal_"  # how the trait of a list begins whose entries differ


def _trait(op: str, axis: str, allowed: frozenset[Any]) -> str:
    if axis.startswith(UNEQUAL) and not allowed:
        return f"equal {axis.removeprefix(UNEQUAL)}"
    if allowed <= {DEFAULT} and not is_fixed(op, axis) and axis not in ("rank", "axes"):
        return f"{axis} at its default" if allowed else f"no {axis}"
    if _is_yes(allowed):
        return f"only {axis}"
    if not allowed:
        return f"no {axis}"
    words = sorted(allowed, key=lambda w: (isinstance(w, str), w))
    return f"{NAMES.get(axis, axis)} {', '.join(map(_plain, words))}"


# ---- what a scope is required to have --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Demands:
    """A scope that is required, by operation, and the operations that were named."""

    scope: Stated = field(default_factory=dict)
    named: tuple[str, ...] = ()


def require(
    required: str | Mapping[str, Any] | None, suite: Path, *, op: str | Collection[str] | None, case: str | None, tier: str
) -> Demands:
    """
    Return what is required of a check of some operations: a scope, the name of a JSON file that holds one, or words.

    Words are operations (all, if there are none) and what their scope must have: ``"rope layout=half,interleaved
    scaling=none,YaRN position<=131071 positions=any gradient=x"``.

    Raises
    ------
    TargetError
        If it names an operation, an axis or a word that does not exist or is not asked, or the file cannot be read.
    """
    if required is None:
        return Demands()
    if case is not None or tier == "smoke":
        msg = "require: a scope is known only when all core cases of an operation run; drop --case and --tier smoke."
        raise TargetError(msg)
    document = checked_supports("require", required if isinstance(required, Mapping) else _file(required) or _terms(required))
    named = tuple(op for op in document or () if op != "*")
    scope = read("require", document or {})
    held = {entry["op"] for entry in load_manifest(suite)["groups"]}
    asked = held if op is None else held & ({op} if isinstance(op, str) else {*op})
    strange = [name for name in named if name not in asked]
    if strange:
        msg = f"require: must name operations of the check; got {strange[0]!r}."
        raise TargetError(msg)
    return Demands(scope, named)


def _file(required: str) -> Any:
    """Return the content of a JSON file, or None if no file is named."""
    if not required.endswith(".json"):
        return None
    try:
        return parse(Path(required), safe_files.read_named(Path(required), SUITE_DOCUMENT))
    except VectorError as error:
        raise TargetError(str(error)) from error


def _terms(required: str) -> dict[str, Any]:
    """Return words as a scope."""
    ops: list[str] = []
    axes: dict[str, Any] = {}
    for word in re.split(r"[\s;]+", required.strip()):
        term = TERM.fullmatch(word)
        if term is not None:
            axis, sign, value = term.groups()
            axes[axis] = _required_bound(axis, sign, value, axes.get(axis)) if sign != "=" else _value(axis, value)
        elif word in REGISTRY:
            ops.append(word)
        else:
            msg = f"require: must be operations and terms such as layout=half,interleaved or position<=4096; got {word!r}."
            raise TargetError(msg)
    return dict.fromkeys(ops or ["*"], axes)


def _value(axis: str, text: str) -> Any:
    if axis == "positions":
        return next((form for form in FORMS if form.replace(" ", "_") == text.replace("-", "_")), text)
    words = [_word(word) for word in text.split(",")]
    options = {name for record in REGISTRY.values() for name in record.domains}
    return words[0] if axis not in options and len(words) == 1 and isinstance(words[0], bool) else words


def _word(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text


def _required_bound(axis: str, sign: str, value: str, before: Any) -> dict[str, Any]:
    try:
        limit = float(value)
    except ValueError:
        msg = f"require: {axis}{sign} must be followed by a number; got {value!r}."
        raise TargetError(msg) from None
    return {**(before if isinstance(before, dict) else {}), "max" if sign == "<=" else "min": limit}


def unmet(required: Demands, report: Report, *, by_name: bool) -> tuple[str, ...]:
    """Return what is required of a scope and not in it, in words; if operations were asked `by_name`, none may be missing."""
    scopes = report.scopes
    texts = [f"{op} is not offered" for op in report.missing if by_name or op in required.named]
    if not report.complete:
        return ()
    if required.scope and not any(required.scope.get(scope.op) or scope.op in required.named for scope in scopes):
        texts.append("no operation that is offered has what is required")
    for scope in scopes:
        wanted = required.scope.get(scope.op, {})
        has = read(scope.op, {scope.op: scope.supports}).get(scope.op, {})
        texts += [f"{scope.op} lacks {text}" for text in _lacking(wanted, has)]
        if wanted and not scope.answered:
            texts.append(f"{scope.op} answers nothing")
    return tuple(texts)


def _lacking(wanted: Mapping[str, Any], has: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wanted of one operation and not there."""
    for axis, wish in wanted.items():
        if axis == "not" or axis not in has:
            continue
        if isinstance(wish, Bound):
            for end, sign in ((wish.low, "from"), (wish.high, "up to")):
                if end is not None and not _allows(has[axis], end):
                    yield f"{axis} {sign} {FORMS[int(end)] if axis == 'positions' else f'{end:g}'}"
        else:
            lacking = [word for word in wish if not _allows(has[axis], word)]
            if lacking:
                yield f"{axis} {', '.join(sorted('none' if w is None else str(w) for w in lacking))}"
    for pair in has.get("not", ()):
        if any(isinstance(words, Bound) or isinstance(wanted.get(axis), Bound) for axis, words in pair.items()):
            continue
        if all(axis in wanted and wanted[axis] & words for axis, words in pair.items()):
            words_of_pair = (f"{axis} {', '.join(sorted(map(str, words & wanted[axis])))}" for axis, words in pair.items())
            yield " with ".join(words_of_pair)


def _allows(allowed: Any, word: Any) -> bool:
    """Return whether an axis allows a word or a number."""
    return allowed.holds((word, word)) if isinstance(allowed, Bound) else word in allowed

"""Puts a cause into words: what the refused or wrong calls have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from posref.scaling import Scaling
from posref.spec import REGISTRY

from ..vocabulary.axes import alternatives
from .cause_search import Cause, kind_of
from .number_rules import Rule
from .quantities import OF_QUERIES
from .records import BLIND, is_number, word_of

VERBS = {
    "wrong": "wrong with",
    "error": "raises with",
    "crash": "crashes with",
    "timeout": "times out with",
    "refused": "refuses",
}
FORMS = {"consecutive": "consecutive positions", "gaps": "positions with gaps", "unsorted": "unsorted positions",
         "fractional": "fractional positions", "grid": "the cells of a grid, row by row",
         "whole": "all positions that the sizes allow"}  # fmt: skip
LIES = {"last": "the last of the keys", "first": "from the first key on", "beyond": "beyond the keys"}
TEXTS = {
    ("rows", "of their own"): "rows of their own positions", ("rows", "alike"): "positions without axes for rows",
    ("rows", "shared"): "the same positions in rows of their own",
    ("order", "heads first"): "heads before tokens", ("order", "tokens first"): "tokens before heads",
    ("marks", "none"): "no -1", ("marks", "some"): "entries of -1",
    ("memory", ""): "contiguous inputs", ("memory", "non-contiguous"): "an input that is not contiguous",
    ("circle", "off"): "tables that are no cosines and sines", ("circle", "on"): "tables of cosines and sines",
    ("bands", "other"): "bands that are not powers of two", ("bands", "powers of two"): "bands that are powers of two",
    ("memory", "broadcast-view"): "an input that is a broadcast view", ("mask", "causal"): "a causal mask",
    ("coordinates", "alike"): "the same coordinate along every axis",
    ("coordinates", "unlike"): "coordinates that differ from axis to axis",
    ("mask", "scattered"): "a mask that is not causal", ("mask", BLIND): BLIND,
}  # fmt: skip
SHOWN = 4  # values that are told
NEGATIVE = re.compile(r"\b(no|not)\b")  # in words


def sentence(op: str, cause: Cause) -> str:
    """Return a cause in one sentence, with how many fresh calls came out as it predicts."""
    fresh = f" [{cause.true} of {cause.asked} fresh calls agree]" if cause.asked else ""
    verb, end = f"{'mostly ' * cause.mostly}{VERBS.get(cause.kind, cause.kind)}", ", and elsewhere" * cause.elsewhere
    text = f"{verb} {conditions(op, cause, joined=', and ')}{end}"
    return re.sub(r"\bwith no\b", "without", text, count=1) + fresh


NEEDS: Mapping[str, tuple[tuple[str, float], ...]] = {  # numbers from which on a feature can be seen at all
    "form": tuple((name, 2.0) for name in ("tokens", "queries", "keys", "batch rows", "size of the first axis")),
    "order": (("tokens", 2.0),),
    "rows": (("batch rows", 2.0), ("size of the first axis", 2.0), ("leading axes", 1.0)),
    "memory": (("batch rows", 2.0), ("size of the first axis", 2.0), ("leading axes", 1.0), ("tokens", 2.0)),
}


ROWS = frozenset(name for name, _ in NEEDS["memory"])
FAR = frozenset({"largest position", "smallest position", "largest distance", *OF_QUERIES})
UNSEEN = 2.0**16  # beyond, what is allowed at a position may be more than a mistake does


def _is_of_bounds(kind: str, rule: Rule) -> bool:
    """Return whether wrong values have a limit only because far positions are allowed more."""
    return kind == "wrong" and rule.kind == "most" and rule.quantity in FAR and rule.numbers[0] >= UNSEEN


def says_nothing(cause: Cause) -> bool:
    """Return whether a cause has only limits of visible tokens."""
    return not cause.shows and all(_is_of_bounds(cause.kind, rule) for rule in cause.rules)


def essential(cause: Cause) -> Cause:
    """
    Return a cause without what its features need to be seen at all.

    These are two tokens for gaps, two rows that differ, and for wrong values positions that are not so far that all pass.
    """
    needs = {need for name in cause.shows for need in NEEDS.get(name, ())}
    rules = [rule for rule in cause.rules if not (rule.kind == "least" and (rule.quantity, rule.numbers[0]) in needs)]
    rules = [rule for rule in rules if not _is_of_bounds(cause.kind, rule)]
    has_tokens = any(value is None for value in cause.lacks.get("leading axes", ())) and "form" in cause.shows
    no_view = "rows" in cause.shows and cause.lacks.get("memory") == ["broadcast-view"]  # whose rows are alike
    of_view = cause.shows.get("memory") == ["broadcast-view"]  # which only several rows have
    rules = [rule for rule in rules if not (of_view and rule.kind == "least" and rule.quantity in ROWS)]
    left_out = {"leading axes": has_tokens or of_view, "memory": no_view, "way": of_view, "array mask": "mask" in cause.shows}
    shows = {name: values for name, values in cause.shows.items() if not left_out.get(name)}
    left = tuple(name for name in cause.features if name in shows or (rules and name not in cause.shows))
    return replace(cause, rules=rules, shows=shows, features=left) if left else cause


def conditions(op: str, cause: Cause, joined: str = ", with ") -> str:
    """Return in words what calls with a cause have."""
    cause = essential(cause)
    named = [name for name in cause.shows if name in cause.features]
    parts = [*_of_rules(cause.rules, joined), *(words(op, name, cause) for name in named)]
    beside = [words(op, name, cause) for name in cause.shows if name not in cause.features]
    return joined.join(part for part in (*parts, *beside) if part)


def _of_rules(rules: Sequence[Rule], joined: str) -> list[str]:
    """Return rules in words, two of one number with its name once."""
    texts = dict[str, str]()
    for rule in rules:
        before, name = texts.get(rule.quantity, ""), f"{rule.quantity} "
        is_again = before.startswith(name) and rule.text.startswith(name)
        more = f"{before} and {rule.text.removeprefix(name)}" if is_again else f"{before}{joined}{rule.text}"
        texts[rule.quantity] = more if before else rule.text
    return [*texts.values()]


def what_is_left(op: str, cause: Cause) -> str:
    """Return in words which calls lack a cause: what an implementation takes that refuses those with it."""
    cause = essential(cause)
    if cause.lacks.get("memory") == [""] and len(cause.shows) == 1 and not cause.rules:
        return "contiguous arrays"
    if len(cause.rules) == 1 and not cause.shows:
        return cause.rules[0].opposite
    for name, shows in cause.shows.items() if len(cause.shows) == 1 and not cause.rules else ():
        lacks = cause.lacks.get(name, [])
        if name in ("form", "rows", "marks") and len(lacks) == 1:
            return f"only {FORMS[lacks[0]]}" if name == "form" else TEXTS[name, lacks[0]]
        if shows == [BLIND]:
            return "a key for every query"
        if cause.rough and is_number(shows[0]):
            return f"{words(op, name, replace(cause, shows={name: lacks}, lacks={name: shows}))} (of the values tried)"
        is_only_way = name == "way" and len(lacks) == 1 and len({*shows, *lacks}) == _count_of_ways(op)
        if (is_number(shows[0]) and 0 < len(lacks) < min(len(shows), SHOWN)) or is_only_way:
            return f"only {words(op, name, replace(cause, shows={name: lacks}, lacks={name: shows}))}"
    if [*cause.shows] == ["leading axes"] and not cause.rules and (text := _axes_left(cause)):
        return text
    return _only_with(op, cause) or f"not {conditions(op, cause)}"


def _only_with(op: str, cause: Cause) -> str:
    """Return in words what two conditions leave, of which one says what is missing: the other only with that."""
    parts = [(rule.text, rule.opposite.removeprefix("only ")) for rule in cause.rules]
    parts += [(text, text.removeprefix("no ")) for text in (words(op, name, cause) for name in cause.shows)]
    lacking = [part for part in parts if NEGATIVE.search(part[0]) and not NEGATIVE.search(part[1])]
    if len(parts) != 2 or len(lacking) != 1:
        return ""
    return f"{next(part[0] for part in parts if part not in lacking)} only with {lacking[0][1]}"


def _axes_left(cause: Cause) -> str:
    """Return the leading axes that are taken, where their number alone decides; empty arrays say nothing of it."""
    shows, lacks = ([x for x in values["leading axes"] if 0 not in (x or ())] for values in (cause.shows, cause.lacks))
    if shows and all(value is None for value in shows):
        return "an axis of tokens"
    counts, left = ({len(value) for value in values if value is not None} for values in (shows, lacks))
    if len(left) != 1 or not counts or counts & left or None in lacks:
        return ""
    [count] = left
    return f"only {count} leading {'axis' if count == 1 else 'axes'}" if count else "no leading axes"


def words(op: str, name: str, cause: Cause) -> str:
    """Return the values of one feature in words, those with which the outcome comes."""
    shows, lacks = cause.shows[name], cause.lacks.get(name, [])
    kind, _, rest = name.partition(" ")
    match kind:
        case "option":
            return _of_option(rest, shows, lacks)
        case "array":
            return rest if shows == [True] else f"no {rest}"
        case "leading":
            return _leading(shows, lacks)
        case "form" if lacks == ["fractional"]:
            return "positions without fractions"
        case "form":
            return " or ".join(FORMS[value] for value in shows)
        case "queries":
            return f"queries {'not the last of the keys' if lacks == ['last'] else ' or '.join(map(LIES.__getitem__, shows))}"
        case "way":
            return " or ".join(dict.fromkeys(_axes(op, way, lacks) for way in shows))
        case "bits":
            return f"reals of {' or '.join(map(str, shows))} bits"
        case "size" | "start":
            return f"{'positions from' if kind == 'start' else word_of(op, rest)} {_listed(shows)}"
    if lacks == ["broadcast-view"] and len(shows) > 1:
        return "no input that is a broadcast view"
    return " or ".join(TEXTS.get((name, value), f"{name} {value}") for value in shows)


def _of_option(name: str, shows: Sequence[Any], lacks: Sequence[Any]) -> str:
    """Return the values of an option in words: of records the types, or a type with what its values have alone."""
    if lacks == [None] or (lacks and all(value is None for value in lacks)):
        return f"{name} given" if not isinstance(shows[0], Scaling) or len(set(map(kind_of, shows))) == 1 else name
    if isinstance(shows[0], bool) and len(shows) == 1:
        return name if shows[0] else f"no {name}"
    mixed = {kind_of(value) for value in shows} & {kind_of(value) for value in lacks}
    if any(isinstance(value, Scaling) for value in shows):
        kinds = list(dict.fromkeys("none" if value is None else kind_of(value) for value in shows))
        parts = [_field(kind, shows, lacks) for kind in kinds if kind in mixed]
        return f"{name} {', '.join([*(kind for kind in kinds if kind not in mixed), *parts])}"
    if len(lacks) == 1 and len(shows) > 1 and not isinstance(shows[0], str):
        return f"{name} other than {_plain(lacks[0])}"
    return f"{name} {_listed(shows)}"


def is_vague(cause: Cause) -> bool:
    """Return whether a cause has some records of a type and not others, and no field tells them apart by its default."""
    parted = ((cause.shows[name], cause.lacks.get(name, [])) for name in cause.shows if name.startswith("option "))
    return any(
        not _field(kind, shows, lacks)
        for shows, lacks in parted
        for kind in {kind_of(value) for value in shows if isinstance(value, Scaling)} & {kind_of(value) for value in lacks}
    )


def _field(kind: str, shows: Sequence[Any], lacks: Sequence[Any]) -> str:
    """Return a type of records with the field that all that show an outcome have, and none that lacks it; "" without one."""
    having, others = ([value for value in values if kind_of(value) == kind] for values in (shows, lacks))
    for one in fields(having[0]):
        here, other = ({getattr(value, one.name) == one.default for value in values} for values in (having, others))
        if one.default is not MISSING and here == {False} and other == {True}:
            return f"{kind} with {one.name} given"
    return ""


def _leading(shows: Sequence[Any], lacks: Sequence[Any]) -> str:
    """Return numbers of leading axes in words, or their sizes where these decide."""
    if lacks and all(value is None for value in lacks):
        return "an axis of tokens"
    if all(value is None for value in shows):
        return "no axis of tokens"
    counts, others = ({len(value or ()) for value in values} for values in (shows, lacks))
    if not counts & others:
        few = sorted(counts)
        least = few[0] if few and others and max(others) < few[0] else None
        many = f"{least} or more" if least is not None and len(few) > 1 else " or ".join(COUNTS.get(n, str(n)) for n in few)
        return f"{many} leading {'axis' if few == [1] else 'axes'}"
    return (
        f"leading axes other than {_listed(lacks)}" if len(shows) > SHOWN >= len(lacks) else f"leading axes of {_listed(shows)}"
    )


COUNTS: Mapping[int, str] = {0: "no", 1: "one", 2: "two", 3: "three"}


def _axes(op: str, way: int, others: Sequence[int]) -> str:
    """Return one alternative of the axes of an operation's arrays, of the first that has different ones in the others."""
    texts = []
    for name, axes in REGISTRY[op].arrays.items():
        ways = alternatives(axes.shape)
        one, *rest = (ways[min(k, len(ways) - 1)] for k in (way, *others))
        if len(ways) > 1:
            texts.append((one in rest, f"{name} of shape ({', '.join(axis.lstrip('~') for axis in one)})"))
    return min(texts, key=lambda text: text[0])[1] if texts else ""


def _count_of_ways(op: str) -> int:
    """Return how many alternatives the axes of an operation's arrays have."""
    return max(len(alternatives(axes.shape)) for axes in REGISTRY[op].arrays.values())


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_plain, values[:SHOWN])) + (", ..." if len(values) > SHOWN else "")


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.12g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)

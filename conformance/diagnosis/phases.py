"""
What the phases of a black box say: layout, rotary_dim, gain, direction, base, and the scale and offset of its positions.

What is found is said only if the definition, given it, reproduces the outputs of failing cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..evidence.tools.deviation import Deviation, Function
from .hypotheses import Hypothesis, Question, score
from .phase_fit import Seen, Turned, along_table, fit, frequencies, seen_in, turned_in

EXAMINED = 12  # failing cases whose phases are looked at, those with most pairs first
STATED = 3  # sets of facts, each of some cases
LEAST = 2  # cases that facts must reproduce; positions must be more


@dataclass(frozen=True)
class Facts:
    """How a rotation differs from the one asked for; None is as asked."""

    layout: str | None = None
    rotary_dim: int | None = None
    base: float | None = None
    gain: float = 1.0
    scale: float = 1.0  # of positions; negative in the other direction
    offset: float = 0.0  # of positions, before the scale

    def changed(self) -> dict[str, Any]:
        """Return what is not as asked."""
        return {name: value for name, value in vars(self).items() if value != getattr(Facts(), name)}

    def wraps(self) -> dict[str, Any]:
        """Return wraps of the operations that rotate."""
        return {"rope": self._rope, "rotation_matrix": self._matrix, "apply_rope": self._apply}

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        names = ("layout", "rotary_dim", "base")
        return options | {n: getattr(self, n) for n in names if getattr(self, n) is not None}

    def _gained(self, out: Any, kept: int, lanes: str = "leading") -> Any:
        start = out.shape[-1] - kept if lanes == "trailing" else 0
        parts = [out[..., :start], self.gain * out[..., start : start + kept], out[..., start + kept :]]
        return np.concatenate(parts, axis=-1)

    def _rope(self, definition: Function) -> Function:
        def deviating(x: Any, positions: Any, /, **options: Any) -> Any:
            options = self._options(options)
            out = definition(x, self.scale * (positions + self.offset), **options)
            return self._gained(out, options.get("rotary_dim") or x.shape[-1], options.get("lanes", "leading"))

        return deviating

    def _matrix(self, definition: Function) -> Function:
        def deviating(position: Any, dim: int, /, **options: Any) -> Any:
            return self.gain * definition(self.scale * (position + self.offset), dim, **self._options(options))

        return deviating

    def _apply(self, definition: Function) -> Function:
        def deviating(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
            out = definition(x, cos, np.copysign(1.0, self.scale) * sin, **self._options(options))
            return self._gained(out, 2 * cos.shape[-1], options.get("lanes", "leading"))

        return deviating


OPERATIONS = tuple(Facts().wraps())


@dataclass(frozen=True)
class Recovered:
    """What phases say: which parameters give the outputs of failing cases, or else what all cases have in common."""

    said: str = ""
    whole: bool = False  # whether they give the outputs of all cases, those that pass too
    common: str = ""


def recover(op: str, questions: Sequence[Question]) -> Recovered:
    """Return in words what the phases of failing cases say about an operation that rotates; nothing where they say nothing."""
    if op not in OPERATIONS:
        return Recovered()
    failing = [q for q in questions if q.failed]
    examined = [s for q in sorted(failing, key=_telling)[:EXAMINED] if (s := seen_in(q)) is not None]
    turned = [(turn, seen) for seen in examined if (turn := turned_in(seen)) is not None]
    found = dict.fromkeys(f for turn, seen in turned if (f := _facts(turn, seen)) is not None and f.changed())
    told = _chosen([(facts, _reproduced(facts, questions)) for facts in _candidates(found)])
    if 2 * sum(len(cases) for _, cases in told) >= len(failing):
        whole = len(told) == 1 and len(told[0][1]) == len(failing) and _leaves_others(told[0][0], questions)
        where = ["" if whole else _where(cases, failing) for _, cases in told]
        said = ", and ".join(w + "if " + _said(facts, cases) for w, (facts, cases) in zip(where, told, strict=True))
        return Recovered(said, whole)
    return Recovered(common=_in_common(turned) if len(turned) == len(examined) else "")


def _believable(facts: Facts, cases: Sequence[Question]) -> bool:
    """Return whether facts reproduce several cases and, of numbers that positions show, several positions."""
    if len(cases) < LEAST:
        return False
    if facts.base is None and facts.offset == 0 and abs(facts.scale) == 1:
        return True
    places = [q.calls[0].inputs.get("positions", q.calls[0].inputs.get("position")) for q in cases]
    return len(np.unique(np.concatenate([np.ravel(p) for p in places if p is not None]))) > LEAST


def _chosen(tried: Sequence[tuple[Facts, list[Question]]]) -> list[tuple[Facts, list[Question]]]:
    """Return the facts that reproduce most cases, and those that reproduce most of the rest, three at most."""
    chosen: list[tuple[Facts, list[Question]]] = []
    while tried and len(chosen) < STATED:
        facts, cases = max(tried, key=lambda pair: len(pair[1]))
        if not _believable(facts, cases):
            break
        chosen.append((facts, cases))
        tried = [(f, [q for q in rest if q not in cases]) for f, rest in tried]
    return chosen


def _telling(question: Question) -> tuple[bool, int]:
    """Return a key that puts cases without scaling first, and those with many pairs."""
    call = question.calls[0]
    size = call.params.get("rotary_dim") or call.expected["out"].shape[-1]
    return call.params.get("scaling") is not None, -int(size)


def _facts(turn: Turned, seen: Seen) -> Facts | None:
    """Return how a rotation differs from the one asked for; None if no base, scale and offset give its phases."""
    layout = None if turn.layout == seen.params["layout"] else turn.layout
    if seen.turns is not None:
        direction = along_table(turn, seen.turns, seen.sign)
        return Facts(layout, gain=_plain(turn.gain, 2 * seen.unit, 1.0), scale=direction) if direction else None
    inv_freq, factor = frequencies(seen, turn.dim)
    found = fit(turn, inv_freq, seen.sign, seen.jitter)
    if found is None:
        return None
    (scale, ratio, offset), (d_scale, d_ratio, d_offset) = found
    asked = seen.params["base"]
    base = _plain(asked * ratio, asked * d_ratio, asked)
    if base != asked and seen.params.get("scaling") is not None:
        return None
    return Facts(
        layout,
        rotary_dim=None if turn.dim == seen.dim else turn.dim,
        base=None if base == asked else base,
        gain=_plain(turn.gain / factor, 2 * seen.unit, 1.0),
        scale=_scale(scale, d_scale),
        offset=_plain(offset, d_offset, 0.0),
    )


def _plain(value: float, error: float, asked: float) -> float:
    """Return what was asked if it is within three errors, else the shortest number that is."""
    shorter = (float(f"{value:.{digits}e}") for digits in range(12))
    return next((v for v in (asked, *shorter) if abs(value - v) <= 3 * error), value)


def _scale(value: float, error: float) -> float:
    """Return a scale in plain numbers: one, a short number, or one over a short number."""
    short, inverse = _plain(value, error, 1.0), _plain(1 / value, error / value**2, 1.0)
    return 1 / inverse if len(repr(inverse)) < len(repr(short)) else short


def _candidates(found: Iterable[Facts]) -> Iterator[Facts]:
    """Yield what single cases say, and what they say together: a case of the same base as the one used says nothing of it."""
    found = list(found)
    yield from found
    together = Facts()
    for facts in found:
        together = replace(together, **facts.changed())
    if found and together not in found:
        yield together


def _reproduced(facts: Facts, questions: Sequence[Question]) -> list[Question]:
    """Return the failing cases whose outputs the definition gives with these facts."""
    hypothesis = _hypothesis(facts, questions)
    return [q for n, q in enumerate(questions) if q.failed and score(q, q.found, hypothesis.predicted(n)) <= 1]


def _leaves_others(facts: Facts, questions: Sequence[Question]) -> bool:
    """Return whether the definition gives what is expected of passing cases with these facts too."""
    hypothesis = _hypothesis(facts, questions)
    return all(q.failed or score(q, q.true, hypothesis.predicted(n)) <= 1 for n, q in enumerate(questions))


def _hypothesis(facts: Facts, questions: Sequence[Question]) -> Hypothesis:
    op = questions[0].op
    return Hypothesis(Deviation("recovered", "", {op: facts.wraps()[op]}), questions)


def _where(cases: Sequence[Question], failing: Sequence[Question]) -> str:
    """Return which failing cases facts reproduce, in words."""
    if len(cases) == len(failing):
        return "in the failing cases, "
    return f"in {len(cases)} of {len(failing)} failing cases ({cases[0].id}, ...), "


def _said(facts: Facts, cases: Sequence[Question]) -> str:
    """Return facts that reproduce cases, in words."""

    def asked(name: str) -> str:
        values = list(dict.fromkeys(_asked(q, name) for q in cases))
        return f"asked: {', '.join(values[:3])}{', ...' * (len(values) > 3)}"

    size = abs(facts.scale)
    words = {
        f"the layout is {facts.layout!r} ({asked('layout')})": facts.layout is not None,
        f"rotary_dim is {facts.rotary_dim} ({asked('rotary_dim')})": facts.rotary_dim is not None,
        f"the frequencies are those of base {facts.base or 0:.9g} ({asked('base')})": facts.base is not None,
        f"the gain is {facts.gain:.9g} times what it should be": facts.gain != 1,
        "the rotation is by the negative angle": facts.scale < 0,
        f"positions are offset by {facts.offset:.9g}": facts.offset != 0,
        f"positions are {'then ' * bool(facts.offset)}{_multiplied(size)}": size != 1,
    }
    return "; ".join(word for word, true in words.items() if true)


def _asked(question: Question, name: str) -> str:
    """Return an option of a case in words."""
    value = question.calls[0].params.get(name)
    if value is None:  # rotary_dim is the whole head
        value = question.calls[0].expected["out"].shape[-1]
    return value if isinstance(value, str) else f"{value:.9g}"


def _multiplied(size: float) -> str:
    return f"multiplied by {size:.9g}" if len(f"{size:.9g}") <= len(f"{1 / size:.9g}") else f"divided by {1 / size:.9g}"


def _in_common(turned: Sequence[tuple[Turned, Seen]]) -> str:
    """Return what all examined cases have in common, where no base, scale and offset reproduce any."""
    sure = [(turn, seen) for turn, seen in turned if turn.alone and seen.turns is None]
    layouts = {turn.layout for turn, _ in sure}
    as_asked = all(turn.layout == seen.params["layout"] for turn, seen in sure)
    if len(sure) < 2 or (len(layouts) > 1 and not as_asked):
        return ""
    where = "the layout asked for" if as_asked else f"layout {next(iter(layouts))!r}"
    words = [f"every pair is rotated, in {where}"]
    gains = {_plain(turn.gain / frequencies(seen, turn.dim)[1], 2 * seen.unit, 1.0) for turn, seen in sure}
    if len(gains) == 1 and gains != {1.0}:
        words.append(f"the gain is {next(iter(gains)):.9g} times what it should be")
    words.append("no base, position scale and position offset give these angles")
    return f" The phases of your output say: {'; '.join(words)}."

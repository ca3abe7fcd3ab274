r"""
Reads a rotation from its outputs: which channels, and which pairs of the table, make each output channel.

.. math:: y_j = \pm x_{A(j)} \cos_{P(j)} \pm x_{B(j)} \sin_{Q(j)}

For every channel of some small failing cases all pairs of such terms are tried, and those that give its values are kept. Then
formulas of j are looked for, one for each of A, P, B and Q, that hold in all of these cases: for all channels alike, for each
half, for channels of even and odd number, or for each quarter. They are judged on all cases, as every other explanation is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posref import apply_rope
from posref.core.composition import reaches

from ..evidence.shared.formulas import ROTATION
from ..evidence.shared.rotary import members, reads_writes
from ..evidence.tools.deviation import Deviation, Function, around
from .hypotheses import UNITS, Question, predict, quiet

WIDEST = 20  # channels of a case that is read
CASES = 4  # of each layout that are read, of different widths
ROWS = 16  # of a case that are compared
TURNS, TELLING, NARROW = 1e-2, 3, 2.0**-14  # a sine, rows, and a width relative to x, by which a channel is told alone
TOLD = 2  # wrong channels of a case that are told one by one
TRIED = 4  # formulas of each index that are tried together
SAMPLE = 12  # pairs for which a formula is put in words
CLOSE = 4.0  # tolerances within which two terms give a value: what is read is judged on all cases afterwards

Reals = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Key = tuple[str, bool]  # the layout and whether the rotation is inverse


class Term(NamedTuple):
    """A term of a channel: sign 1, -1 or 0, the channel of x, and the pair of the table; pair -1 has no cosine or sine."""

    sign: int
    channel: int
    pair: int


Reading = tuple[Term, Term]  # the term with the cosine, and the one with the sine
NONE = Term(0, 0, 0)


@dataclass(frozen=True)
class Rotation:
    """One rotation of rows by a table, and what came out: arrays of as many rows, the sine negated if it is inverse."""

    key: Key
    x: Reals
    cos: Reals
    sin: Reals
    out: Reals
    width: Reals
    where: Reals  # positions of the rows, a column

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return int(self.cos.shape[-1])

    @property
    def is_informative(self) -> bool:
        """Whether so many rows turn, and their values are so narrow, that no two terms give them by chance."""
        turning = np.any(np.abs(self.sin) > TURNS, axis=-1)
        return bool(np.sum(turning) >= TELLING and np.max(self.width) <= NARROW * np.max(np.abs(self.x)))

    def waves(self, count: int) -> tuple[Reals, tuple[Reals, Reals], tuple[Reals, Reals]]:
        """Return positions, and cosines and sines by which the rotation is right, at the nearest positions, with tolerances."""
        layout, inverse = self.key
        reads, writes = (members(self.pairs, halves) for halves in reads_writes(layout, inverse))
        rows = np.argsort(np.abs(self.where[:, 0]), kind="stable")
        rows = rows[self.where[rows, 0] != 0][:count]
        (a, b), (first, second) = (array[rows][:, which] for array, which in ((self.x, reads[0]), (self.x, reads[1]))), (
            self.out[rows][:, writes[0]], self.out[rows][:, writes[1]],
        )  # fmt: skip
        square = a * a + b * b
        with np.errstate(all="ignore"):
            cos, sin = (a * first + b * second) / square, (a * second - b * first) / square
            width = np.where(square > 0, 2 * np.max(self.width[rows], axis=-1, keepdims=True) / np.sqrt(square), np.inf)
        known = square > 0
        cos, sin = np.where(known, cos, 0.0), np.where(known, -sin if inverse else sin, 0.0)
        return self.where[rows, 0], (cos, sin), (width, width)


class Index(NamedTuple):
    """The index ``(slope m + parts size) // 2 + shift``, modulo what there is, of the m-th channel of a part of so many."""

    slope: int
    parts: int
    shift: int

    def of(self, m: Any, size: int, count: int) -> Any:
        """Return the index among `count` of channel m of a part of `size` channels."""
        return ((self.slope * m + self.parts * size) // 2 + self.shift) % count


class Rule(NamedTuple):
    """How the channels of one part are made: two signs, and the indices of channel and pair of each term."""

    signs: tuple[int, int]
    channels: tuple[Index, Index]
    pairs: tuple[Index | None, Index]


SPLITS: dict[str, tuple[str, ...]] = {  # the parts of the channels, and the channel of number m of each
    "all": ("j",),
    "halves": ("j", "n + j"),
    "parity": ("2j", "2j + 1"),
    "quarters": ("j", "n/2 + j", "n + j", "3n/2 + j"),
}
INDICES = sorted(
    (Index(*one) for one in product((2, 1, 4, -2, 0, -1, -4), range(8), (0, 1, -1, 2, -2))),
    key=lambda index: (abs(index.shift) > 1, index.parts > 3, abs(index.shift), index.slope != 2, index.parts, index.slope < 0),
)


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the rotation that small failing cases show, as a mistake; none if they show none."""
    op = questions[0].op
    if op != ROTATION and ROTATION not in reaches(op):
        return []
    groups: dict[Key, dict[int, Rotation]] = {}
    for question in (q for q in questions if q.failed):
        for rotation in recorded_rotations(question):
            by_width = groups.setdefault(rotation.key, {})
            if len(by_width) < CASES and 2 < 2 * rotation.pairs <= WIDEST and len(rotation.x) > 1:
                by_width.setdefault(rotation.pairs, rotation)
    rules = {key: _rules(list(by_width.values())) for key, by_width in groups.items() if by_width}
    read = {key: rules_of_split for key, rules_of_split in rules.items() if rules_of_split is not None}
    if not read:
        return []
    said = {key: _words(key[0], *rules_of_split) for key, rules_of_split in read.items()}
    if len({repr(rules_of_split) for rules_of_split in read.values()}) > 1:
        said = {key: f"with layout {key[0]!r}{', inverse,' * key[1]} {words}" for key, words in said.items()}
        text = "; ".join(said.values())
    else:
        text = next(iter(said.values()))
    return [Deviation("", text, {ROTATION: _wrap(read)})]


def remark(questions: Sequence[Question]) -> str:
    """Return what a wrong channel of a small failing case is made of, where every channel is read though no formula is."""
    op, unchanged = questions[0].op, ""
    for question in (q for q in questions if q.failed and (op == ROTATION or ROTATION in reaches(op))):
        for rotation in recorded_rotations(question):
            layout, inverse = rotation.key
            if inverse or not 2 < 2 * rotation.pairs <= WIDEST or not rotation.is_informative:
                continue
            if np.array_equal(rotation.out, rotation.x):
                unchanged = unchanged or f" In {question.id}, the result is x itself, as at position 0."
                continue
            function: Any = apply_rope
            right = replace(rotation, out=function(rotation.x, rotation.cos, rotation.sin, layout=layout))
            with quiet():
                both = list(zip(readings(rotation), readings(right), strict=True))
            wrong = [(j, read[0], due[0]) for j, (read, due) in enumerate(both) if read and due and not {*read} & {*due}]
            if wrong and all(len(read) == 1 for read, _ in both):
                said = "; ".join(f"channel {j} is {_as_read(read)}, not {_as_read(due)}" for j, read, due in wrong[:TOLD])
                return f" Some channels have wrong terms: in {question.id}, {said}."
    return unchanged


def _as_read(reading: Reading) -> str:
    """Return the two terms of a channel in words."""
    text = ""
    for term, wave in zip(reading, ("cos", "sin"), strict=True):
        factor = f" {wave}[{term.pair}]" if term.pair >= 0 else ""
        text += f" {'-+'[term.sign > 0]} x[{term.channel}]{factor}" if term.sign else ""
    text = text or " + 0"
    return text[3:] if text.startswith(" +") else f"-{text[3:]}"


# ---- the rotations of a case -------------------------------------------------------------------------------------------------
def recorded_rotations(question: Question, positions: Any = None) -> Iterator[Rotation]:
    """Yield the rotations whose results are the channels of a case's output, side by side; `positions` are those of rows."""
    made: list[tuple[Any, ...]] = []

    def recording(
        function: Function, x: Any, cos: Any, sin: Any, /, *, layout: str, inverse: bool = False, lanes: str = "leading"
    ) -> Any:
        out = function(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
        start = x.shape[-1] - 2 * cos.shape[-1] if lanes == "trailing" else 0
        made.append((x, cos, -sin if inverse else sin, start, (layout, inverse), np.asarray(out)))
        return out

    recorder = Deviation("", "", {ROTATION: around(recording)})
    for observation in question.observations:
        made.clear()
        outputs = predict(recorder, question.op, [question.calls[observation.call]])[0]
        begin = 0
        out = outputs.get(observation.name)
        for x, cos, sin, start, key, made_of_x in list(made):
            block = slice(begin, begin + made_of_x.shape[-1])
            begin = block.stop
            if out is None or out.shape[:-1] != made_of_x.shape[:-1] or not np.array_equal(out[..., block], made_of_x):
                break
            rotated = slice(block.start + start, block.start + start + 2 * cos.shape[-1])
            shape = made_of_x.shape[:-1]
            arrays = (x[..., start : start + 2 * cos.shape[-1]], cos, sin, observation.observed[..., rotated])
            width = observation.width[..., rotated] + UNITS[question.dtype] * np.abs(observation.expected[..., rotated])
            where = np.zeros((1,)) if positions is None else np.asarray(positions)[..., None]
            yield Rotation(key, *(_as_rows(a, shape) for a in (*arrays, width, where)))


def _as_rows(x: Any, shape: tuple[int, ...]) -> Reals:
    return np.broadcast_to(np.asarray(x, dtype=np.float64), (*shape, np.shape(x)[-1])).reshape(-1, np.shape(x)[-1])


# ---- the terms of every channel ----------------------------------------------------------------------------------------------
def readings(rotation: Rotation) -> list[list[Reading]]:
    """Return, for every channel, all pairs of terms that give its values."""
    telling = np.argsort(-np.sum(np.abs(rotation.sin), axis=-1), kind="stable")[:ROWS]  # a rotation by 0 says nothing
    x, out, width = (array[telling] for array in (rotation.x, rotation.out, rotation.width))
    n, d = rotation.pairs, 2 * rotation.pairs
    both = [(channel, pair) for channel in range(d) for pair in range(n)]
    firsts = [NONE, *(Term(s, c, p) for s in (1, -1) for c, p in [*both, *((c, -1) for c in range(d))])]
    seconds = [NONE, *(Term(s, c, p) for s in (1, -1) for c, p in both)]

    def values(terms: Sequence[Term], table: Reals) -> Reals:
        table = np.concatenate([table, np.ones_like(table[:, :1])], axis=-1)
        signs, channels, pairs = np.asarray(terms).T
        return np.asarray(signs * x[:, channels] * table[:, pairs])

    one, two = values(firsts, rotation.cos[telling]), values(seconds, rotation.sin[telling])
    readings_of_channels = []
    for j in range(d):
        left = out[:, j, None] - one
        close = np.ones((len(firsts), len(seconds)), dtype=bool)
        for row in range(len(x)):
            kept = np.flatnonzero(close.any(axis=1))
            allowed = CLOSE * width[row, j] + 2.0**-50 * np.abs(one[row, kept, None])
            close[kept] &= np.abs(left[row, kept, None] - two[row]) <= allowed
        readings_of_channels.append([(firsts[a], seconds[b]) for a, b in np.argwhere(close)])
    return readings_of_channels


# ---- formulas of the channel's number ----------------------------------------------------------------------------------------
def _rules(cases: Sequence[Rotation]) -> tuple[str, list[Rule]] | None:
    """Return a split of the channels and a rule for each of its parts that hold in all cases; None if there is none."""
    with quiet():
        read = [readings(case) for case in cases]
    if not all(options for case in read for options in case):
        return None
    for split, parts in SPLITS.items():
        if split == "quarters" and any(case.pairs % 2 for case in cases):
            continue
        rules_or_none = [_rule(split, part, [case.pairs for case in cases], read) for part in range(len(parts))]
        rules = [rule for rule in rules_or_none if rule is not None]
        if len(rules) == len(parts):
            return split, rules
    return None


def part_of(split: str, part: int, pairs: int) -> Places:
    """Return the channels of one part."""
    every = np.arange(2 * pairs)
    return every[part::2] if split == "parity" else every.reshape(len(SPLITS[split]), -1)[part]


def _rule(split: str, part: int, pairs: Sequence[int], read: Sequence[Sequence[Sequence[Reading]]]) -> Rule | None:
    """Return the rule of one part that holds in all cases."""
    samples = [
        (m, len(channels), n, case[channel])
        for n, case in zip(pairs, read, strict=True)
        for channels in (part_of(split, part, n),)
        for m, channel in enumerate(channels)
    ]
    for kinds in product((1, -1, 0), (1, -1, 0), (True, False)):
        first, second, turned = kinds
        left = [
            (m, size, n, [o for o in options if o[0].sign == first and o[1].sign == second and (o[0].pair >= 0) == turned])
            for m, size, n, options in samples
        ]
        if all(options for *_, options in left):
            indices = _indices(split, left, (first, second), turned=turned)
            if indices:
                return indices
    return None


def _indices(
    split: str, samples: Sequence[tuple[int, int, int, list[Reading]]], signs: tuple[int, int], *, turned: bool
) -> Rule | None:
    """Return the plainest indices that all channels of a part may have together."""

    def fitting(term: int, name: str) -> list[Index]:
        of_pair = name == "pair"
        if not signs[term] or (of_pair and term == 0 and not turned):
            return [Index(0, 0, 0)]
        sets = [
            (m, size, n if of_pair else 2 * n, {getattr(o[term], name) for o in options}) for m, size, n, options in samples
        ]
        fits = (index for index in plain if all(index.of(m, size, count) in values for m, size, count, values in sets))
        return list(islice(fits, TRIED))

    plain = INDICES if split in ("all", "quarters") else sorted(INDICES, key=lambda i: not i.slope % 2 and i.parts % 2 == 1)
    for a, p, b, q in product(*(fitting(term, name) for term in (0, 1) for name in ("channel", "pair"))):
        rule = Rule(signs, (a, b), (p if turned else None, q))
        if all(_terms(rule, m, size, n) in options for m, size, n, options in samples):
            return rule
    return None


def _terms(rule: Rule, m: int, size: int, n: int) -> Reading:
    """Return the terms of channel m of a part by its rule."""

    def term(k: int) -> Term:
        pair = rule.pairs[k]
        if not rule.signs[k]:
            return NONE
        return Term(rule.signs[k], rule.channels[k].of(m, size, 2 * n), -1 if pair is None else pair.of(m, size, n))

    return term(0), term(1)


def _wrap(read: dict[Key, tuple[str, list[Rule]]]) -> Any:
    """Return a wrap that rotates as posref read it, in each layout and direction."""

    def deviating(
        function: Function, x: Any, cos: Any, sin: Any, /, *, layout: str, inverse: bool = False, lanes: str = "leading"
    ) -> Any:
        if (layout, inverse) not in read:
            return function(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
        n = cos.shape[-1]
        start = x.shape[-1] - 2 * n if lanes == "trailing" else 0
        turned = rotated(x[..., start : start + 2 * n], cos, -sin if inverse else sin, *read[layout, inverse])
        kept = np.broadcast_to(x, (*turned.shape[:-1], x.shape[-1]))
        return np.concatenate([kept[..., :start], turned, kept[..., start + 2 * n :]], axis=-1)

    return around(deviating)


def rotated(x: Reals, cos: Reals, sin: Reals, split: str, rules: Sequence[Rule]) -> Reals:
    """Return channels made by the rules of each part."""
    n = cos.shape[-1]
    out = np.zeros((*np.broadcast_shapes(x.shape[:-1], cos.shape[:-1]), 2 * n))
    for part, rule in enumerate(rules):
        channels = part_of(split, part, n)
        for sign, channel, pair, table in zip(rule.signs, rule.channels, rule.pairs, (cos, sin), strict=True):
            m, size = np.arange(len(channels)), len(channels)
            factor = 1.0 if pair is None else table[..., pair.of(m, size, n)]
            out[..., channels] += sign * x[..., channel.of(m, size, 2 * n)] * factor
    return out


# ---- words -------------------------------------------------------------------------------------------------------------------
def _words(layout: str, split: str, rules: Sequence[Rule]) -> str:
    """Return rules in words: what is not as the layout has it, and the formula."""
    size = {"all": "2n", "quarters": "n/2"}.get(split, "n")
    said = [
        f"channel {left} is {_sum(rule, split, part)}"
        for part, (left, rule) in enumerate(zip(SPLITS[split], rules, strict=True))
    ]
    return f"{_lead(layout, split, rules)}: {', and '.join(said)}, for j < {size}, where n is the number of pairs"


def _lead(layout: str, split: str, rules: Sequence[Rule]) -> str:
    """Return in words what rules do otherwise than a layout."""
    every = [_terms(rule, m, 2 * SAMPLE // len(rules), SAMPLE) for rule in rules for m in range(2 * SAMPLE // len(rules))]
    order = np.concatenate([part_of(split, part, SAMPLE) for part in range(len(rules))])
    read = dict(zip(order.tolist(), every, strict=True))
    reads, writes = (members(SAMPLE, halves) for halves in reads_writes(layout, False))
    right: dict[int, Reading] = {}
    for pair, (a, b, first, second) in enumerate(zip(*reads, *writes, strict=True)):
        right[int(first)] = Term(1, int(a), pair), Term(-1, int(b), pair)
        right[int(second)] = Term(1, int(b), pair), Term(1, int(a), pair)

    def differ(name: str) -> bool:
        pairs = [(read[j], right[j]) for j in right if name == "sign" or all(term.sign for term in read[j])]
        return any([getattr(t, name) for t in a] != [getattr(t, name) for t in b] for a, b in pairs)

    parts = [words for words, name in LEADS.items() if differ(name)]
    return f"the rotation {' and '.join(parts)}" if parts else "the rotation is otherwise"


LEADS = {"pairs other channels": "channel", "takes other angles": "pair", "has other signs": "sign"}  # what differs of a term


def _sum(rule: Rule, split: str, part: int) -> str:
    """Return the terms of a channel as a sum."""
    terms = []
    for sign, channel, pair, table in zip(rule.signs, rule.channels, rule.pairs, ("cos", "sin"), strict=True):
        if sign:
            factor = "" if pair is None else f" {table}[{index_in_words(pair, split, pairs=True)}]"
            terms.append((sign, f"x[{index_in_words(channel, split)}]{factor}"))
    if not terms:
        return "0"
    text = "".join(f" {'-+'[sign > 0]} {words}" for sign, words in terms)
    return text[3:] if terms[0][0] > 0 else f"-{text[3:]}"


def index_in_words(index: Index, split: str, *, pairs: bool = False) -> str:
    """Return an index of a channel, or of a pair, as a formula of j and n."""
    size = 2 * SAMPLE // len(SPLITS[split])
    count = SAMPLE if pairs else 2 * SAMPLE
    halves = index.parts * size * 2 // SAMPLE  # ((slope j + halves n/2) // 2 + shift) mod count
    slope, whole = index.slope, not index.slope % 2 and not halves % 2
    plain = (slope * np.arange(size) + halves * SAMPLE // 2) // 2 + index.shift
    around = int(np.min(plain)) // count
    if whole and np.all(plain // count == around):
        halves -= 4 * around * count // SAMPLE
    wraps = "" if np.all(plain // count == around) and (whole or not around) else f" mod {'n' if pairs else '2n'}"
    if whole:
        text = _joined((_multiple(halves // 2, "n/2"), _multiple(slope // 2, "j")))
        text = text if split == "quarters" else text.replace("n/2", "n // 2")  # n may be odd
    else:
        text = f"({_joined((_multiple(halves, 'n/2'), _multiple(slope, 'j')))}) // 2".replace("(j)", "j")
    text = _joined((text, str(index.shift) if index.shift else "")) or "0"
    return f"({text}){wraps}" if wraps and " " in text else text + wraps


def _multiple(factor: int, name: str) -> str:
    """Return a multiple in words."""
    if name == "n/2" and not factor % 2:
        factor, name = factor // 2, "n"
    elif name == "n/2":
        name = "n/2" if abs(factor) == 1 else f"{abs(factor)}n/2"
        factor = 1 if factor > 0 else -1
    return "" if not factor else {1: name, -1: f"-{name}"}.get(factor, f"{factor}{name}")


def _joined(parts: Sequence[str]) -> str:
    """Return a sum in words: first the parts that are added."""
    text = " + ".join(part for part in parts if part)
    return text.replace("+ -", "- ")

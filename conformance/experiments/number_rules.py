"""Rules on one number that separate calls of one outcome from the others: limits, equality, multiples and remainders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

RANGE = range(-64, 4097)  # numbers on which rules are compared
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Rule:
    """
    A condition on one quantity: its kind, and the numbers that it speaks of.

    Kinds are "least", "most", "equal", "other", "multiple", "no multiple" (of a step; from a number on, if there are two),
    "remainders" (a step, then remainders) and "no power of two".
    """

    quantity: str
    kind: str
    numbers: tuple[float, ...] = ()

    def holds(self, quantities: Numbers) -> bool:
        """Return whether a call has the condition."""
        if self.quantity not in quantities:
            return False
        n, (first, *rest) = quantities[self.quantity], self.numbers or (0.0,)
        match self.kind:
            case "least":
                return n >= first
            case "most":
                return n <= first
            case "equal":
                return n == first
            case "other":
                return n != first
            case "multiple":
                return n % first == 0
            case "no multiple":
                return n % first != 0 and all(n >= least for least in rest)
            case "remainders":
                return n % first in rest
        return not is_power_of_two(n)

    @property
    def text(self) -> str:
        """The condition in words."""
        name, numbers = self.quantity, [f"{n:.12g}" for n in self.numbers]
        first, step = name.partition(" mod ")[::2]
        if step and self.kind in ("least", "other", "equal", "most"):
            some = {"least": self.numbers[0] == 1, "other": self.numbers[0] == 0}.get(self.kind, False)
            if some or self.numbers[0] == 0:
                return f"{first} {'not ' * some}a multiple of {step}"
            return f"{first} with remainder {_ends(self.kind, numbers[0])} modulo {step}"
        less, more = name.partition(" minus ")[::2]
        if more and (self.kind, self.numbers[0]) in ALIKE:
            return ALIKE[self.kind, self.numbers[0]].format(less, more)
        one, other = name.partition(" over ")[::2]
        if other and (self.kind, self.numbers[0]) in COMPARED:
            return COMPARED[self.kind, self.numbers[0]].format(one, other)
        one, other = name.partition(" per ")[::2]
        if other:
            return COMPARED[self.kind, 0.0].format(one, f"{numbers[0]} times {other}")
        if (name, self.kind, self.numbers) in SIGNS:
            return SIGNS[name, self.kind, self.numbers]
        match self.kind:
            case "multiple" | "no multiple" if self.numbers == (1,):
                return f"{name} {'not ' * (self.kind == 'no multiple')}whole"
            case "multiple":
                return f"{name} a multiple of {numbers[0]}"
            case "no multiple":
                least = f"of {numbers[1]} or more and " if len(numbers) > 1 else ""
                return f"{name} {least}not a multiple of {numbers[0]}"
            case "remainders":
                return f"{name} with remainder {', '.join(numbers[1:])} modulo {numbers[0]}"
            case "no power of two":
                return f"{name} not a power of two"
        if name in COUNTED and (self.kind, self.numbers) == ("least", (1,)):
            return name
        if name in COUNTED:
            return _ends(self.kind, f"{numbers[0]} {COUNTED[name] if self.numbers[0] == 1 else name}")
        return f"{name} {_ends(self.kind, numbers[0])}" if self.kind == "other" else f"{name} of {_ends(self.kind, numbers[0])}"

    @property
    def opposite(self) -> str:
        """What calls without the condition have, in words."""
        name, is_count = self.quantity, not is_relation(self.quantity)
        match self.kind:
            case "least" if is_count and self.numbers == (1,):
                return f"no {name}"
            case "most" | "equal" if is_count and self.numbers == (0,):
                return f"{name} of 1 or more"
            case "least" if " mod " in name and self.numbers == (1,):
                return f"only {replace(self, kind='equal', numbers=(0.0,)).text}"
            case "other":
                return f"only {replace(self, kind='equal').text}"
            case "no multiple" if len(self.numbers) == 1:
                return replace(self, kind="multiple").text
            case "multiple":
                return replace(self, kind="no multiple").text
            case "no power of two":
                return f"{name} a power of two"
            case "least" | "most" if is_count and (name, self.kind, self.numbers) not in SIGNS:
                limit = f"{self.numbers[0]:.12g}"
                if name in COUNTED:
                    return f"{'fewer' if self.kind == 'least' else 'more'} than {limit} {name}"
                return f"{name} {'below' if self.kind == 'least' else 'above'} {limit}"
        return f"no {self.text}" if self.kind in ("least", "most", "equal", "multiple") else f"not {self.text}"


COUNTED = {  # quantities that are counts, with the word for one
    "tokens": "token", "queries": "query", "keys": "key", "heads": "head", "rows": "row", "batch rows": "batch row",
    "leading axes": "leading axis", "pairs": "pair", "taps": "tap", "coordinates": "coordinate",
    "channels that do not rotate": "channel that does not rotate", "query heads": "query head",
}  # fmt: skip
SIGNS: Mapping[tuple[str, str, tuple[float, ...]], str] = {
    ("smallest position", "most", (-1.0,)): "negative positions",
    ("smallest position", "least", (0.0,)): "no negative positions",
}
ALIKE = {
    ("equal", 0.0): "as many {} as {}", ("other", 0.0): "not as many {} as {}", ("least", 1.0): "more {} than {}",
    ("most", -1.0): "fewer {} than {}", ("most", 0.0): "at most as many {} as {}", ("least", 0.0): "at least as many {} as {}",
}  # fmt: skip

COMPARED = {
    ("equal", 0.0): "{} equal to {}", ("other", 0.0): "{} not equal to {}", ("least", 1.0): "{} above {}",
    ("most", -1.0): "{} below {}", ("most", 0.0): "{} at most {}", ("least", 0.0): "{} at least {}",
    ("equal", -1.0): "{} one less than {}", ("equal", 1.0): "{} one more than {}",
}  # fmt: skip

RELATIONS = (" mod ", " minus ", " over ", " per ")  # of two numbers


def is_relation(quantity: str) -> bool:
    """Return whether a quantity follows from two numbers."""
    return any(word in quantity for word in RELATIONS)


def _ends(kind: str, number: str) -> str:
    """Return a limit or a number in words."""
    return {"least": f"{number} or more", "most": f"{number} or less", "other": f"other than {number}"}.get(kind, number)


def is_power_of_two(n: float) -> bool:
    """Return whether a number is a power of two."""
    return n >= 1 and float(n).is_integer() and int(n) & (int(n) - 1) == 0


def independent(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules without those that hold wherever the others of the same quantity do."""
    left = list(dict.fromkeys(rules))
    for rule in tuple(left):
        others = [one for one in left if one.quantity == rule.quantity and one is not rule]
        numbers = [{rule.quantity: n} for n in RANGE if all(one.holds({rule.quantity: n}) for one in others)]
        if others and all(rule.holds(one) for one in numbers):
            left.remove(rule)
    return left

"""
The rule of a tolerance: how rounding errors reach one value of an operation, derived by running its definition.

`Trace` is a number system in which every number knows from which numbers it was computed. Run on it, a definition gives the
steps that lead to a value. Each kind of step has a row in `RULES`: what it propagates of the bounds of its operands, and what
it introduces itself. `bound` computes a tolerance from these rows as they are printed, so a test can compare it with a stored
one. `posref.backends.bounds` is not used.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import stored

import posref
from posref.backends.bounds import growth
from posref.backends.numbers import (
    Array,
    Label,
    NumberSystem,
    Part,
    angles,
    boolean,
    float32,
    float64,
    frequencies,
    int64,
    matrices,
    storage,
)
from posref.backends.rounding import BITS, LARGEST, LEAST, SATURATING, saturated
from posref.backends.roundoffs import CLASSES, ROUNDOFFS, Accuracy
from posref.conformance.accuracy import BASE
from posref.conformance.calls import is_wide
from posref.conformance.model import Call
from posref.conformance.proof.evaluation import call_of

PACKAGE = str(Path(posref.__file__).parent)
MACHINERY = tuple(f"{PACKAGE}/{name}" for name in ("backends", "core/arrays.py", "spec.py"))
UNITS = {float64: "u64", float32: "u32", storage: "us", matrices: "um", frequencies: "uf", angles: "ua"}


class Rule(NamedTuple):
    """A kind of step: how it is written, what it propagates, and what it introduces. `a`, `b` are operands, `z` the result."""

    text: str
    propagated: str
    introduced: str


def _units(name: str) -> str:
    return f"{ROUNDOFFS[name].units:g}·"


ROUNDED = "u·(|z| + P)"
NARROW = {name.removeprefix("float8_"): (BITS[name], LEAST[name], LARGEST[name]) for name in SATURATING}  # formats of 8 bits
RULES = {
    "add": Rule("a + b", "E(a) + E(b)", ROUNDED),
    "multiply": Rule("a · b", "|a|·E(b) + |b|·E(a) + E(a)·E(b)", ROUNDED),
    "product": Rule("a · b", "|a|·E(b) + |b|·E(a) + E(a)·E(b)", ROUNDED),  # in a matrix product: rounded even if it is exact
    "divide": Rule("a / b", "(E(a) + |z|·E(b)) / (|b| - E(b))", ROUNDED),
    "pow": Rule(
        "a ** b",
        "z·grow(|b|·E(a) / (a - E(a)) + |log(a)|·E(b))",
        f"u·z·({ROUNDOFFS['pow'].units:g} + {_units('pow, times |y ln x|')}|b·log(a)|)",
    ),
    "sqrt": Rule("sqrt(a)", "E(a) / (z + sqrt(a - E(a)))", ROUNDED),
    "exp": Rule("exp(a)", "z·grow(E(a))", f"{_units('exp')}u·z"),
    "log": Rule("log(a)", "E(a) / (a - E(a))", f"{_units('log')}u·|z|"),
    "log1p": Rule("log1p(a)", "E(a) / (1 + a - E(a))", f"{_units('log1p')}u·|z|"),
    **{
        name: Rule(
            f"{name}(a)",
            "min(E(a), 2)",
            f"{_units(name)}u32·|z| + {_units('reduction, times min(|angle|, pi)')}[u < u32]·u32·min(|a|, pi)",
        )
        for name in ("sin", "cos")
    },
    "constant sin": Rule("sin(a)", "min(E(a), 2)", f"{_units('sin')}u·|z|"),
    "cast": Rule("a, rounded to v", "E(a)", "[v > u]·v·(|z| + P)"),
    "sum": Rule("sum of n numbers a", "sum(E(a))", "[n > 1]·n·u·(sum(|a|) + P)"),
    "max": Rule("max of a", "max(E(a))", "0"),
    "chosen": Rule("a, the larger or smaller of two", "E(a)", "0"),
    "either": Rule("a, or by another formula b", "max(E(a), E(b))", "0"),
    **{
        name: Rule(f"a, limited and rounded to {name}", "0", f"max({name}(a + E(a)) - z, z - {name}(a - E(a)))")
        for name in NARROW
    },
    "exponential": Rule(
        "exp of the matrix a",
        "min(norm(E(a)), 2)",
        f"grow(min({_units('skew exponential, times n^2 (1 + 2 |A|)')}u·m·(1 + 2·norm(a)), 4))",
    ),
    "transform": Rule(
        "Cayley transform of the matrix a",
        "min(2·norm(E(a)), 2)",
        f"min({_units('Cayley transform, times n^2 (1 + |S|^2)^(3/2)')}u·n·(1 + (norm(a) + norm(E(a)))**2 / 2)**1.5, 2)",
    ),
}


@dataclass(eq=False)
class Step:
    """One operation on arrays: for each number of its result the numbers that it was computed from, by their indices."""

    kind: str
    dtype: Label
    first: int  # index of the first number of the result
    value: Part
    operands: list[Part]  # of each operand the indices, (count,) or (count, terms); -1 is none
    name: str = ""
    place: str = ""


class Trace(NumberSystem):
    """The namespace of numbers that know where they come from. `steps` has everything that was computed."""

    __name__ = "trace"

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.count = 0

    def made(self, kind: str, value: Any, dtype: Label, *operands: Part, name: str = "") -> Array:
        """Return the result of a step. Operands are arrays of indices, with the axes of the value first."""
        value = np.asarray(value, dtype=np.float64)
        flat = [
            np.broadcast_to(o, value.shape + o.shape[value.ndim :]).reshape(value.size, *o.shape[value.ndim :])
            for o in operands
        ]
        self.steps.append(Step(kind, dtype, self.count, value.ravel(), flat, name, _place()))
        index = np.arange(self.count, self.count + value.size).reshape(value.shape)
        self.count += value.size
        return Array((value, index), dtype, self)

    def _of(self, kind: str, value: Any, dtype: Label, *operands: Array) -> Array:
        shape = np.shape(value)
        return self.made(kind, value, dtype, *(np.broadcast_to(o.parts[1], shape) for o in operands))

    @property
    def pi(self) -> Array:
        """Pi."""
        return self.made("pi", np.pi, float64, name="pi")

    def real(self, values: Part, dtype: Label) -> Array:
        """Return constants of the definition."""
        return self.made("constant", values, dtype)

    def leaf(self, values: Any, dtype: Label, name: str) -> Array:
        """Return an argument of the operation."""
        return self.made("argument", values, dtype, name=name)

    def astype(self, x: Array, dtype: Label) -> Array:
        """Return `x` in another dtype."""
        if x.dtype is dtype:
            return x
        real = x.dtype.kind == "real floating"
        if dtype.kind != "real floating":
            return Array((x.parts[0].astype(np.bool_ if dtype is boolean else np.int64),), dtype, self)
        if not real:
            return self.made("whole", x.parts[0].astype(np.float64), dtype, name="n")
        if all(bits_of(one, dtype) >= bits_of(one, x.dtype) for one in CLASSES.values()):
            return Array(x.parts, dtype, self)
        value = np.asarray(x.parts[0])
        return self.made("cast", value, dtype, x.parts[1], name=UNITS[x.dtype])

    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a + b."""
        return self._of("add", a.parts[0] + b.parts[0], dtype, a, b)

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a b."""
        return self._of("multiply", a.parts[0] * b.parts[0], dtype, a, b)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a/b."""
        return self._of("divide", a.parts[0] / b.parts[0], dtype, a, b)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return a to the b."""
        return self._of("pow", a.parts[0] ** b.parts[0], max(dtype, frequencies, key=_narrow), a, b)

    def real_minimum(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return the smaller of both."""
        return self._chosen(np.minimum, a, b, dtype)

    def real_maximum(self, a: Array, b: Array, dtype: Label) -> Array:
        """Return the larger of both."""
        return self._chosen(np.maximum, a, b, dtype)

    def _chosen(self, choose: Callable[..., Part], a: Array, b: Array, dtype: Label) -> Array:
        value = choose(a.parts[0], b.parts[0])
        index = np.where(value == a.parts[0], a.parts[1], b.parts[1])
        return self.made("chosen", value, dtype, index)

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        """Return a comparison of the values."""
        return np.asarray(getattr(np, name)(a.parts[0], b.parts[0]))

    def negative(self, x: Array) -> Array:
        """Return -x."""
        return self._of("negative", -x.parts[0], x.dtype, x) if len(x.parts) > 1 else super().negative(x)

    def abs(self, x: Array) -> Array:
        """Return the absolute value."""
        return self._of("abs", np.abs(x.parts[0]), x.dtype, x) if len(x.parts) > 1 else super().abs(x)

    def floor(self, x: Array) -> Array:
        """Return the largest integer not above x."""
        return self.made("whole", np.floor(x.parts[0]), x.dtype, name="n")

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below x."""
        return self.made("whole", np.ceil(x.parts[0]), x.dtype, name="n")

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        return self._of("sqrt", np.sqrt(x.parts[0]), x.dtype, x)

    def exp(self, x: Array) -> Array:
        """Return e to the x."""
        return self._of("exp", np.exp(x.parts[0]), x.dtype, x)

    def log(self, x: Array) -> Array:
        """Return the natural logarithm."""
        return self._of("log", np.log(x.parts[0]), x.dtype, x)

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x."""
        return self._of("log1p", np.log1p(x.parts[0]), x.dtype, x)

    def sin(self, x: Array) -> Array:
        """Return the sine."""
        return self._wave(np.sin, x)

    def cos(self, x: Array) -> Array:
        """Return the cosine."""
        return self._wave(np.cos, x)

    def _wave(self, function: Callable[..., Part], x: Array) -> Array:
        wave = self._of(function.__name__, function(x.parts[0]), float64 if x.dtype is angles else x.dtype, x)
        return Array(wave.parts, float32, self)

    def sin_pi(self, x: Array) -> Array:
        """Return the sine of pi x."""
        return self.sin(self.multiply(x, self.pi))

    def cos_pi(self, x: Array) -> Array:
        """Return the cosine of pi x."""
        return self.cos(self.multiply(x, self.pi))

    def constant_sin(self, x: Array) -> Array:
        """Return the sine of a constant."""
        return self._of("constant sin", np.sin(x.parts[0]), x.dtype, x)

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        """Return the first of two formulas."""
        return self._of("either", a.parts[0], a.dtype, a, b())

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        """Return the nearest number of a narrow format, in a dtype that has all of them."""
        name = next(name for name, known in NARROW.items() if known == (bits, least, largest))
        return self._of(name, saturated(x.parts[0], bits, least, largest), dtype, x)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return the matrix product."""
        p, q = a[..., :, :, None], b[..., None, :, :]
        if len(a.parts) < 2:
            return super().matmul(a, b)
        products = self._of("product", p.parts[0] * q.parts[0], self.result_type(a.dtype, b.dtype), p, q)
        return self.sum(products, axis=-2)

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the sum along `axis`."""
        return self._reduced("sum", np.sum, x, axis, keepdims)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the largest along `axis`."""
        return self._reduced("max", np.max, x, axis, keepdims)

    def _reduced(self, kind: str, reduce: Callable[..., Part], x: Array, axis: int, keepdims: bool) -> Array:
        if len(x.parts) < 2:
            return Array((reduce(x.parts[0], axis=axis, keepdims=keepdims),), int64, self)
        value = reduce(x.parts[0], axis=axis, keepdims=keepdims)
        terms = np.moveaxis(x.parts[1], axis, -1)
        return self.made(kind, value, x.dtype, np.expand_dims(terms, axis if axis >= 0 else axis - 1) if keepdims else terms)

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        """Return the sums up to and including each number."""
        value, index = np.cumsum(x.parts[0], axis=axis), np.moveaxis(x.parts[1], axis, -1)
        size = index.shape[-1]
        terms = np.where(np.tri(size, dtype=bool), index[..., None, :], -1)
        return self.made("sum", value, x.dtype, np.moveaxis(terms, -2, axis if axis >= 0 else axis - 1))

    def cayley(self, x: Array, found: Array) -> Array:
        """Return the Cayley transforms `found` of skew-symmetric matrices, as functions of the whole matrices."""
        return self._of_matrix("transform", found.parts[0], x)

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of skew-symmetric matrices."""
        values, vectors = np.linalg.eigh(-1j * x.parts[0])
        power = ((vectors * np.exp(1j * values)[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))).real
        return self.astype(self._of_matrix("exponential", power, x), float32)

    def _of_matrix(self, kind: str, value: Part, x: Array) -> Array:
        index = x.parts[1].reshape(*x.shape[:-2], 1, 1, -1)
        return self.made(kind, value, x.dtype, np.broadcast_to(index, (*x.shape, index.shape[-1])))


def _narrow(dtype: Label) -> int:
    """Order the dtypes by their unit roundoffs, wherever these differ."""
    return [angles, float64, frequencies, matrices, float32, storage].index(dtype)


def _place() -> str:
    """Return the name of the function of the definition that computes something now."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and not name.startswith(MACHINERY):
            function = str(frame.f_code.co_name)
            return function if function[0] not in "<" else str(frame.f_code.co_qualname.split(".")[0])
        frame = frame.f_back
    return ""


# ---- from the steps to lines ------------------------------------------------------------------------------------------------
INLINE = ("negative", "abs")
LEAVES = ("argument", "constant", "whole", "pi")
MATRICES = ("exponential", "transform")
REDUCED = ("sum", "max", *MATRICES)


@dataclass(eq=False)
class Line:
    """Steps of one form: its name, text, and what it propagates and introduces. `numbers` are their indices."""

    kind: str
    dtype: Label
    place: str
    parts: tuple[int, ...]  # the lines of the operands
    numbers: list[int]
    name: str = ""
    text: str = ""
    propagated: str = "0"
    introduced: str = "0"
    operands: tuple[str, ...] = ()  # the names that the formulas have for them


class Derivation:
    """The lines that lead to one number of a result, in the order of computation."""

    def __init__(self, trace: Trace, number: int) -> None:
        self.trace = trace
        self.value = np.concatenate([step.value for step in trace.steps])
        self._first = np.asarray([step.first for step in trace.steps])
        self.lines: list[Line] = []
        self._line_of: dict[int, int] = {}
        self._collect(number)
        self._write()

    def step(self, number: int) -> Step:
        """Return the step that computed a number."""
        return self.trace.steps[int(np.searchsorted(self._first, number, side="right")) - 1]

    def operands(self, number: int) -> list[npt.NDArray[Any]]:
        """Return the numbers that a number was computed from, for each operand."""
        step = self.step(number)
        return [np.atleast_1d(operand[number - step.first]) for operand in step.operands]

    def _collect(self, number: int) -> None:
        """Find all that a number depends on, and sort it into lines of one form."""
        reached, left = set(), [number]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                left += [int(i) for operand in self.operands(one) for i in operand if i >= 0]
        known: dict[Any, int] = {}
        for one in sorted(reached):
            step, operands = self.step(one), self.operands(one)
            if step.kind in REDUCED:
                parts = tuple(dict.fromkeys(self._line_of[int(i)] for i in operands[0] if i >= 0))
            else:
                parts = tuple(self._line_of[int(i)] for operand in operands for i in operand)
            twice = len(operands) == 2 and len(set(parts)) == 1 and operands[0][0] != operands[1][0]
            which = float(step.value[0]) if step.kind == "constant" and step.value.size == 1 else step.name
            key = (step.kind, step.dtype, which, step.place if step.kind not in LEAVES else "", parts, twice)
            if key not in known:
                known[key] = len(self.lines)
                self.lines.append(Line(step.kind, step.dtype, step.place, parts, []))
            self._line_of[one] = known[key]
            self.lines[known[key]].numbers.append(one)

    # ---- the text -----------------------------------------------------------------------------------------------------
    def _write(self) -> None:
        counts: dict[str, int] = {}

        def named(letter: str) -> str:
            counts[letter] = counts.get(letter, 0) + 1
            return f"{letter}{counts[letter]}"

        for line in self.lines:
            if line.kind in LEAVES:
                self._leaf(line, named)
            elif line.kind in INLINE:
                of = self.lines[line.parts[0]].name
                line.name = f"|{_base(of)}|" if line.kind == "abs" else f"-{of}" if of[0] not in "-|" else f"-({of})"
            else:
                line.name = named("z") if line is not self.lines[-1] else "result"
                self._step(line)

    def _leaf(self, line: Line, named: Callable[[str], str]) -> None:
        values = self.value[line.numbers]
        short = f"{values[0]:.6g}"
        if line.kind == "argument":
            line.name = self.step(line.numbers[0]).name
        elif line.kind == "whole":
            line.name = named("i")
        elif line.kind == "pi":
            line.name = "pi"
        elif np.all(values == values[0]) and float(short) == values[0] and self.exact(line):
            line.name = short
        else:
            line.name = named("c")
        if not self.exact(line):
            line.text = "pi" if line.kind == "pi" else "a constant of the definition" if line.kind == "constant" else "given"
            line.introduced = f"{UNITS[line.dtype]}·|{line.name}|"

    def exact(self, line: Line) -> bool:
        """Return whether a line has no bound in any class: numbers that are given, and representable."""
        fewest = min(bits_of(CLASSES[name], line.dtype) for name in BASE)
        return line.kind in LEAVES and bool(np.all(representable(self.value[line.numbers], fewest)))

    def _step(self, line: Line) -> None:
        rule = RULES[line.kind]
        several = line.kind in REDUCED and len(line.parts) > 1
        names = [self.lines[part].name for part in line.parts]
        free = [self._free(part) for part in line.parts]
        if several:
            text, shown = {"a": f"t: {', '.join(names)}"}, ["t"]
            free = [all(free)]
        else:
            shown = names[:]
            if len(names) == 2 and _base(names[0]) == _base(names[1]) and any(map(self._of_two, line.numbers)):
                shown[1] = f"{names[1]}'" if names[1][-1] != "|" else f"{names[1][:-1]}'|"
            text = dict(zip("ab", shown, strict=False))
        count = (
            len([i for i in self.operands(line.numbers[0])[0] if i >= 0 and self.value[i] != 0]) if line.kind == "sum" else 0
        )
        line.text = re.sub(r"\b[ab]\b(?!\s(?:matrix|constant))", lambda m: text.get(m[0], m[0]), rule.text)
        if line.kind == "sum":
            line.text = line.text.replace(" n ", f" n = {count} ", 1)
        if line.kind == "cast":
            line.text = line.text.replace(" v", f" {UNITS[line.dtype]}")
        line.text = line.text.replace("+ -", "- ")
        line.operands = tuple(map(_base, shown))
        unit = self.step(line.numbers[0]).name if line.kind == "cast" else UNITS[line.dtype]
        put = {"z": line.name, "u": unit, "v": UNITS[line.dtype]}
        for letter, name, gone in zip("ab", shown, free, strict=False):
            base = _base(name)
            put |= {f"E({letter})": "0" if gone else f"E({base})", f"|{letter}|": f"|{base}|"}
            put[letter] = f"({name})" if name[0] == "-" else name
        filled = [_simple(re.sub(TOKEN, lambda m: put[m[0]], f)) for f in (rule.propagated, rule.introduced)]
        line.propagated, line.introduced = filled
        if line.propagated == "0":
            line.introduced = _simple(re.sub(r"\bP\b", "0", line.introduced))

    def _of_two(self, number: int) -> bool:
        """Return whether both operands of a number are different numbers, apart from their signs."""
        a, b = (int(operand[0]) for operand in self.operands(number))
        while (step := self.step(a)).kind in INLINE:
            a = int(step.operands[0][a - step.first])
        while (step := self.step(b)).kind in INLINE:
            b = int(step.operands[0][b - step.first])
        return a != b

    def _free(self, part: int) -> bool:
        line = self.lines[part]
        return self._free(line.parts[0]) if line.kind in INLINE else self.exact(line)

    @property
    def shown(self) -> list[Line]:
        """The lines that a reader needs: all but numbers that are exact, and signs."""
        return [line for line in self.lines if line.text]


TOKEN = r"E\([ab]\)|\|[ab]\||\b[abzuv]\b"  # what stands for an operand, the result or a unit in a rule


def _base(name: str) -> str:
    return name.strip("-|()")


ZERO = r"(?<![.\w])0(?![.\w])"
OF = r"\|[^|]+\||E\([^()]*\)"
SIMPLER = (
    (rf"(?:{OF})·{ZERO}|{ZERO}·(?:{ZERO}|{OF})", "0"),
    (rf"{ZERO} \+ |(?<=\|) \+ {ZERO}| [+-] {ZERO}", ""),
    (rf"(?<!\w)\({ZERO}\)|{ZERO} / (?:\([^()]*(?:\([^()]*\)[^()]*)*\)|{OF})", "0"),
    (rf"\w+·grow\({ZERO}\)|(?:min|norm|sum|max)\({ZERO}(?:, [02])?\)|2·{ZERO}|grow\({ZERO}\)", "0"),
    (rf"(?<!\w)\(((?:{OF})(?:·(?:{OF}))*)\)(?!\*)", r"\1"),
)


def _simple(formula: str) -> str:
    """Return a formula without terms that are 0."""
    before = ""
    while before != formula:
        before = formula
        for pattern, put in SIMPLER:
            formula = re.sub(pattern, put, formula)
    return formula


# ---- a tolerance from the lines as they are printed -------------------------------------------------------------------------
def bits_of(accuracy: Accuracy, dtype: Label) -> int:
    """Return how many significand bits a dtype has in a class."""
    if dtype is matrices:
        return min(accuracy.float64, max(accuracy.float32, 24))
    if dtype is frequencies:
        return int(accuracy.power or accuracy.float64)
    if dtype is angles:
        return int(accuracy.angle or accuracy.float64)
    return int(getattr(accuracy, dtype.name))


def representable(values: Part, bits: int) -> Part:
    """Return which float64 numbers have at most so many significand bits."""
    significand = np.frexp(np.asarray(values, dtype=np.float64))[0] * 2.0**bits
    return np.asarray((significand == np.round(significand)) | ~np.isfinite(values))


def as_code(formula: str) -> str:
    """Return a printed formula in Python."""
    code = re.sub(r"E\(([\w.]+)('?)\)", lambda m: f"E['{m[1]}{'_' * len(m[2])}']", formula)
    code = re.sub(r"\|([^|]+)\|", r"abs(\1)", code.replace("·", "*"))
    code = re.sub(r"\[(\w+ [<>] \w+)\]", r"(\1)", code)
    return re.sub(r"(?<!['\w])([a-z]\w*)'(?!])", r"\1_", code)


def _functions() -> dict[str, Any]:
    def folded(of: Callable[..., Any], pairs: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: of(x[0], axis=-1) if len(x) == 1 else pairs(*x)

    return {
        "grow": growth,
        "abs": np.abs,
        "log": np.log,
        "sqrt": np.sqrt,
        "pi": np.pi,
        "sum": folded(np.sum, np.add),
        "max": folded(np.max, np.maximum),
        "min": folded(np.min, np.minimum),
        "norm": lambda x: np.sqrt(np.sum(np.square(x), axis=-1)),
        **{name: (lambda x, known=known: saturated(x, *known)) for name, known in NARROW.items()},
    }


def bound(derivation: Derivation, printed: dict[str, tuple[str, str]], name: str) -> float:
    """Return the tolerance of a result in a class, computed from the printed formulas: (propagated, introduced) by line."""
    accuracy, value = CLASSES[name], derivation.value
    error = np.zeros(len(value))
    units = {unit: 2.0 ** -bits_of(accuracy, dtype) for dtype, unit in UNITS.items()}
    functions = _functions()
    for line in derivation.lines:
        here = np.asarray(line.numbers)
        z = value[here]
        if line.kind in LEAVES:
            own = eval(as_code(printed[line.name][1]), {**functions, **units, line.name: z}) if line.name in printed else 0.0
            error[here] = np.where(representable(z, bits_of(accuracy, line.dtype)), 0.0, own)
            continue
        operands = [np.stack(parts) for parts in zip(*map(derivation.operands, line.numbers), strict=True)]
        if line.kind not in REDUCED:
            operands = [o[:, 0] for o in operands]
        given = [np.where(o >= 0, value[o], 0.0) for o in operands]
        errors = [np.where(o >= 0, error[o], 0.0) for o in operands]
        if line.kind in INLINE:
            error[here] = errors[0]
            continue
        n = np.count_nonzero((given[0] != 0) | (errors[0] != 0), axis=-1) if line.kind in REDUCED else 0
        if line.kind in MATRICES:
            n = given[0].shape[-1]  # a matrix of n numbers: its width squared
        width = round(float(np.max(n)) ** 0.5)
        wide = width * (width + 16) if units[UNITS[line.dtype]] == 2.0**-53 else width**2
        known = {**functions, **units, "n": n, "m": wide, line.name: z}
        known |= {op.replace("'", "_"): g for op, g in zip(line.operands, _signed(derivation, line, given), strict=False)}
        known["E"] = {op.replace("'", "_"): e for op, e in zip(line.operands, errors, strict=False)}
        propagated, introduced = printed[line.name]
        with np.errstate(all="ignore"):
            known["P"] = p = np.broadcast_to(eval(as_code(propagated), known), z.shape)
            own = np.broadcast_to(eval(as_code(introduced), known), z.shape)
        free = own == 0 if line.kind in NARROW else _free(line.kind, z, given, bits_of(accuracy, line.dtype))
        own = np.where((p == 0) & free, 0.0, own + accuracy.floor)
        error[here] = np.where(np.isfinite(z), p + own, 0.0)
    last = derivation.lines[-1].numbers[0]
    stored_value = 2.0**-53 * abs(value[last]) if error[last] else 0.0  # it is rounded once itself
    return float(error[last] + stored_value)


def _signed(derivation: Derivation, line: Line, given: list[Part]) -> list[Part]:
    """Return operands as the formulas name them: without the sign that is written before a name."""
    signs = [-1 if derivation.lines[part].name.startswith("-") else 1 for part in line.parts]
    return given if line.kind in REDUCED else [sign * g for sign, g in zip(signs, given, strict=True)]


def _free(kind: str, z: Part, given: list[Part], bits: int) -> Part:
    """Return where a step is exact: its operands have no bound, and its result is representable."""
    one = given[0]
    if kind in ("exp", "sin", "cos", "constant sin", "log1p"):
        return np.asarray(one == 0)
    if kind == "log":
        return np.asarray(one == 1)
    if kind == "pow":
        return np.asarray(given[1] == 0)
    if kind in ("sum", "product", *MATRICES):
        return np.asarray(z == 0 if kind == "product" else np.zeros(z.shape, dtype=bool))
    if kind in ("max", "chosen", "either"):
        return np.ones(z.shape, dtype=bool)
    exact = [_same(kind, float(y), [float(g[i]) for g in given]) for i, y in enumerate(z)]
    return np.asarray(exact) & representable(z, bits)


def _same(kind: str, z: float, operands: list[float]) -> bool:
    if not all(map(np.isfinite, (z, *operands))):
        return True
    y, (a, *rest) = Fraction(z), list(map(Fraction, operands))
    if kind == "add":
        return y == a + rest[0]
    if kind == "multiply":
        return y == a * rest[0]
    if kind == "divide":
        return y * rest[0] == a
    return y * y == a if kind == "sqrt" else y == a


# ---- an operation's rule ----------------------------------------------------------------------------------------------------
class Example(NamedTuple):
    """A value of a stored case: where it stands, how it is derived, and its stored tolerance in each class."""

    case: str
    call: Call
    output: str
    at: tuple[int, ...]
    derivation: Derivation
    stored: dict[str, float]


TRIED = 6  # values of a call, of which the one with most lines is shown


def examples(op: str) -> Iterator[Example]:
    """Yield an example of each call of an operation whose results have tolerances."""
    for case in stored.cases(op):
        for call in case.calls if case.kind == "value" else ():
            output = next((name for name in call.widths.get("angle32", {}) if call.widths["angle32"][name].any()), None)
            if output is not None:
                yield example(op, case.id, call, output)


@cache
def first(op: str) -> Example | None:
    """Return the example that the page of an operation shows."""
    return next(examples(op), None)


def example(op: str, case: str, call: Call, output: str) -> Example:
    """Return the example of one call."""
    trace = Trace()
    inputs = {name: _given(trace, op, name, value) for name, value in call.inputs.items()}
    result = call_of(trace, op, inputs, call.params)[output]
    numbers = np.broadcast_to(result.parts[1], call.expected[output].shape)
    width = call.widths["angle32"][output]
    places = np.argwhere((width > 0) & np.isfinite(call.expected[output]))
    chosen = [tuple(map(int, places[i])) for i in np.unique(np.linspace(0, len(places) - 1, TRIED).astype(int))]
    derivations = {at: Derivation(trace, int(numbers[at])) for at in chosen}
    at = max(derivations, key=lambda at: (len(derivations[at].shown), sum(len(line.numbers) for line in derivations[at].lines)))
    tolerances = {name: float(call.widths[name][output][at]) for name in BASE if name in call.widths}
    return Example(case, call, output, at, derivations[at], tolerances)


def _given(trace: Trace, op: str, name: str, value: Any) -> Array:
    host = np.asarray(value)
    if host.dtype.kind in "iub":
        return trace.asarray(host)
    return trace.leaf(host, float64 if is_wide(op, name) else storage, name)


# ---- the pages --------------------------------------------------------------------------------------------------------------
MOST_LINES = 14  # that are shown unfolded
FORMULAS = re.compile(r"^\| `(\S+) = .*?` \| `(.*?)` \| `(.*?)` \| .* \|$", re.MULTILINE)


def section(op: str) -> list[str]:
    """Return the section of an operation's page: the lines of one value, and what they give."""
    example = first(op)
    if example is None:
        return []
    lines = example.derivation.shown
    place = ", ".join(map(str, example.at))
    said = [
        "## Tolerance as a rule",
        "",
        f"The definition, run on numbers that know where they come from, gives these steps for `{example.output}[{place}]` of",
        f"case `{example.case}`. A step with operands a, b and result z has the bound E(z) = P + what it introduces. P is what",
        "it propagates from E(a) and E(b). See [how to read a rule](../tolerances.md).",
        "",
    ]
    rows = ["| step | P | introduced | in |", "|---|---|---|---|"]
    rows += [
        f"| `{line.name} = {cell(line.text)}` | `{cell(line.propagated)}` | `{cell(line.introduced)}` | {line.place} |"
        for line in lines
    ]
    folded = len(lines) > MOST_LINES
    said += [f":::{{dropdown}} {len(lines)} steps", "", *rows, "", ":::", ""] if folded else [*rows, ""]
    printed = {line.name: (line.propagated, line.introduced) for line in lines}
    said += ["| class | E(result) by these steps | stored tolerance |", "|---|---|---|"]
    said += [
        f"| {name} | {bound(example.derivation, printed, name):.3g} | {width:.3g} |" for name, width in example.stored.items()
    ]
    return [*said, ""]


def cell(text: str) -> str:
    """Return code for a cell of a Markdown table."""
    return text.replace("|", "\\|")


def printed(page: str) -> dict[str, tuple[str, str]]:
    """Return the formulas that a page shows: propagated and introduced, by the name of the step."""
    text = page.partition("## Tolerance as a rule")[2].replace("\\|", "\0")
    formulas = FORMULAS.findall(text)
    return {name: (p.replace("\0", "|"), i.replace("\0", "|")) for name, p, i in formulas}


def units() -> str:
    """Return the table of unit roundoffs by class."""
    rows = ["| class | " + " | ".join(UNITS.values()) + " |", "|---|" + "---|" * len(UNITS)]
    for name, accuracy in CLASSES.items():
        rows += [f"| {name} | " + " | ".join(f"2^-{bits_of(accuracy, dtype)}" for dtype in UNITS) + " |"]
    return "\n".join(rows)


def kinds() -> str:
    """Return the table of the errors that each kind of step propagates and introduces."""
    rows = ["| step z | P | introduced |", "|---|---|---|"]
    rows += [
        f"| {cell(r.text)} | `{cell(r.propagated)}` | `{cell(r.introduced)}` |"
        for k, r in RULES.items()
        if k not in ("product", "constant sin")
    ]
    return "\n".join(rows)

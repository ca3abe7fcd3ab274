r"""
Reads the formula of an implementation as the definition's with one expression changed: a sum where it has a difference.

Every expression of the definition, of its parts and of its helpers is changed in every way that its kind allows: another
operator, operands exchanged or left out, a number one larger, a function left out, one name or one value of an option in place
of another, a branch that is always taken. Helpers are followed by name and through modules (``ntk.raised``). Only lines that
the smallest failing case runs are changed. What gives the smallest failing cases is judged on all cases, as every other
explanation is.
"""

from __future__ import annotations

import ast
import dis
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache, partial
from inspect import getsource, unwrap
from itertools import islice
from pathlib import Path
from textwrap import dedent
from types import CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from posref.core.composition import formula, is_known, reaches

from ..evidence.tools.deviation import Deviation, Wrap
from .expressions import FUNCTIONS, Edit, edits_of, shown
from .hypotheses import Budget, Hypothesis, Question, plausible

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Function = Callable[..., Any]
WORK = 12_000_000  # values that edits may compute for an operation
COMPILED = 12_000  # values that take as long as it takes to compile an edit
AT_ALL, OF_OTHERS = 5, 2  # the highest rank of edits of an operation's own formula, and of those that it calls
ROOT = __name__.partition(".")[0]
LONGEST = 80  # characters of a line that a text has
MEMORY = 1 << 30  # bytes that edits may take
SECONDS = 15.0  # of CPU for the edits of an operation, which take a few: one may compute far more than the definition does
LOOKS = 16  # edits, after which the time is looked at
STATM = Path("/proc/self/statm")
KEPT = 2048  # edits that are kept compiled
PROBES = 3  # failing cases that an edit must give, before it is tried on all
PLAIN = ("posref.core.checks", "posref.core.arrays", "posref.core.angles", "posref.core.products", "posref.core.blocks")
FORMS = ("_form", "_is_plain", "rotate_pairs")  # choose the fastest of several forms that give the same bits


class Place(NamedTuple):
    """A function with an edit, and the known function that it is or is called by."""

    edit: Edit
    name: str
    function: Function


def candidates(questions: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return the first edit that all cases show, as a mistake; none if they show none."""
    probes = [q for q in questions if q.failed and q.size][:PROBES]
    every = _in_time(edits(probes[0]) if probes else ())
    some = budget.limited(min(WORK, budget.left)).within(every)
    fitting = (place for place in some if _shows(mistake(place), probes, COMPILED) and _shows(mistake(place), questions))
    with bounded():
        return list(islice((told(place) for place in fitting if _changes_more(place)), 1))


def _in_time(places: Iterable[Place]) -> Iterator[Place]:
    """Yield edits until their CPU time is over, as far as every 16th look at the clock tells: a look may take long."""
    begun = time.process_time()
    for n, place in enumerate(places):
        if n % LOOKS == 0 and time.process_time() - begun >= SECONDS:
            return
        yield place


def edits(*questions: Question) -> list[Place]:
    """Return the edits of an operation and of what it calls in lines that some cases run, the plainest first."""
    lines: dict[str, set[int]] = {}
    for question in questions:
        for file, numbers in _lines(question).items():
            lines.setdefault(file, set()).update(numbers)
    return _places(questions[0].op, lines)


def mistake(*places: Place) -> Deviation:
    """Return edits at once as a mistake without words."""
    names = dict.fromkeys(place.name for place in places)
    return Deviation("", "", {name: _wrap([place for place in places if place.name == name]) for name in names})


def told(*places: Place) -> Deviation:
    """Return edits at once as a mistake with its words."""
    texts, hints = [], []
    for edit, _, function in places:
        old, new, line = shown(edit.old), shown(edit.new), shown(edit.line)
        within = f" in `{line}`" if len(line) <= LONGEST and line != old else ""
        number, file = function.__code__.co_firstlineno + edit.old.lineno - 1, function.__module__.replace(".", "/")
        texts.append(f"`{new}` replaces `{old}`{within}")
        hints.append(f"line {number} of {file}.py")
    return replace(mistake(*places), text=", and ".join(texts), hint=f"Compare your code with {' and '.join(hints)}.")


def _changes_more(place: Place) -> bool:
    """Return whether an edit changes more than a dtype or an axis of length 1."""
    return shown(place.edit.old) != shown(place.edit.new)


@contextmanager
def bounded() -> Iterator[None]:
    """Let edits that make a size too large end in a `MemoryError`, where the system can limit memory."""
    if resource is None or not STATM.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(STATM.read_text().split()[0]) * resource.getpagesize() + MEMORY
    if before[0] in (resource.RLIM_INFINITY, -1) or before[0] > limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _shows(deviation: Deviation, questions: Sequence[Question], work: int = 0) -> bool:
    hypothesis = Hypothesis(deviation, questions)
    for question in questions[:1]:
        question.meter.done += work
    failing = [(n, q) for n, q in enumerate(questions) if q.failed][:PROBES]
    return bool(failing) and all(plausible(q, hypothesis.predicted(n)) for n, q in failing) and hypothesis.fits()


def _lines(question: Question) -> dict[str, set[int]]:
    """Return the lines of this package that a case runs, by file: no edit of another line gives its values."""
    lines: dict[str, set[int]] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_globals.get("__name__", "").partition(".")[0] != ROOT:
            return None
        lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return trace

    plain = Deviation("", "", dict.fromkeys((question.op, *reaches(question.op)), unwrap))  # without what remembers results
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        Hypothesis(plain, [question]).predicted(0)(0.0)
    finally:
        sys.settrace(before)
    return lines


def _places(op: str, lines: Mapping[str, Collection[int]]) -> list[Place]:
    """Return the edits of an operation and of what it calls in lines that are run, the plainest first."""
    seen: set[Function] = set()
    places: list[Place] = []
    for name in (op, *sorted(reaches(op))):
        for function in _reached(unwrap(formula(name))):
            if function in seen or not _has_formula(function) or function.__closure__:
                continue
            seen.add(function)
            ran, first = lines.get(function.__code__.co_filename, ()), function.__code__.co_firstlineno - 1
            with suppress(OSError):  # the source is not there
                for edit in _every_edit(function):
                    here = range(first + edit.line.lineno, first + (edit.line.end_lineno or 0) + 1)
                    if edit.rank <= (AT_ALL if name == op else OF_OTHERS) and any(number in ran for number in here):
                        places.append(Place(edit, name, function))
    return sorted(places, key=lambda place: (place.edit.rank, place.name != op))


def _reached(whole: Function) -> list[Function]:
    """Return a function and the helpers that it calls, directly or through others."""
    reached = [whole]
    for function in reached:
        reached += [other for _, _, other in _helpers(function) if other not in reached]
    return reached


def _helpers(function: Function) -> Iterator[tuple[str, str, Function]]:
    """Yield the functions of this package that a function calls, each with its name, or the name of its module and its own."""
    for name, attribute in _names(function.__code__):
        holder: Any = function.__globals__.get(name)
        other = unwrap(getattr(holder, attribute) if attribute and isinstance(holder, ModuleType) else holder)
        if isinstance(other, FunctionType) and _has_formula(other) and not is_known(other):
            yield name, attribute if isinstance(holder, ModuleType) else "", other


def _has_formula(function: Function) -> bool:
    """Return whether a function is one of this package that computes values of an encoding."""
    module = function.__module__
    plain = module in PLAIN or function.__name__ in FORMS or function.__name__.startswith("check")
    return module.partition(".")[0] == ROOT and not plain


@cache
def _names(code: CodeType) -> tuple[tuple[str, str], ...]:
    """Return the global names in a function's code, each with the attribute that is read of it, or ""."""
    names: list[tuple[str, str]] = []
    before = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append((instruction.argval, ""))
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and before == "LOAD_GLOBAL":
            names[-1] = names[-1][0], instruction.argval
        elif isinstance(instruction.argval, CodeType):
            names += _names(instruction.argval)
        before = instruction.opname
    return tuple(dict.fromkeys(names))


def _wrap(places: Sequence[Place]) -> Wrap:
    """Return a wrap that computes with edits, in the function of a name or in helpers that it calls."""
    whole = unwrap(formula(places[0].name))
    functions = dict.fromkeys(place.function for place in places)
    codes = cache(lambda: {f.__code__: _code(f, *(place.edit for place in places if place.function is f)) for f in functions})

    def wrap(function: Function) -> Function:
        if isinstance(function, partial):  # of roundings around it
            return partial(function.func, wrap(*function.args))
        plain = function if isinstance(function, FunctionType) and function.__code__ is whole.__code__ else whole
        return _edited(plain, codes(), {})

    return wrap


def _edited(function: Function, codes: Mapping[CodeType, CodeType], copies: dict[CodeType, Function]) -> Function:
    """Return a copy of a function in which those with some codes, itself or helpers, have others; each is copied once."""
    if function.__code__ not in copies:
        scope: dict[str, Any] = {**FUNCTIONS, **function.__globals__}
        copies[function.__code__] = _copy(function, codes.get(function.__code__, function.__code__), scope)
        for name, attribute, other in _helpers(function):
            if any(one.__code__ in codes for one in _reached(other)):
                copy = _edited(other, codes, copies)
                scope[name] = SimpleNamespace(**(vars(scope[name]) | {attribute: copy})) if attribute else copy
    return copies[function.__code__]


def _copy(function: Function, code: CodeType, scope: dict[str, Any]) -> Function:
    copy = FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


@lru_cache(maxsize=KEPT)
def _code(function: Function, edit: Edit, *others: Edit) -> CodeType:
    """Return the code of a function with edits; one edit is made in the tree and undone, which is faster than a copy."""
    tree, new = _tree(function), ast.fix_missing_locations(edit.new)
    if others:
        copies: dict[int, Any] = {}
        tree = deepcopy(tree, copies)
        for each in (edit, *others):
            tree = _Replaced(copies[id(each.old)], deepcopy(each.new, copies)).visit(tree)
        return _compiled(ast.fix_missing_locations(tree))
    put = _slots(function)[edit.old]
    put(new)
    try:
        return _compiled(tree)
    finally:
        put(edit.old)


def _compiled(tree: ast.FunctionDef) -> CodeType:
    module = compile(ast.Module([tree], []), "<edited>", "exec")
    return next(one for one in module.co_consts if isinstance(one, CodeType))


@cache
def _slots(function: Function) -> dict[ast.AST, Callable[[ast.AST], None]]:
    """Return for every node of a function's tree what puts another one in its place."""
    slots: dict[ast.AST, Callable[[ast.AST], None]] = {}
    for parent in ast.walk(_tree(function)):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, list):
                slots |= {one: partial(value.__setitem__, k) for k, one in enumerate(value) if isinstance(one, ast.AST)}
            elif isinstance(value, ast.AST):
                slots[value] = partial(setattr, parent, name)
    return slots


class _Replaced(ast.NodeTransformer):
    """Puts an expression in the place of another."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        """Return what stands in the place of a node."""
        return self.new if node is self.old or node is self.new else self.generic_visit(node)


@cache
def _tree(function: Function) -> ast.FunctionDef:
    """Return the tree of a function, without decorators, annotations and defaults."""
    tree = ast.parse(dedent(getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(function)
    tree.decorator_list, tree.returns = [], None
    tree.body = tree.body[1:] if ast.get_docstring(tree, clean=False) else tree.body
    tree.args.defaults, tree.args.kw_defaults = [], [None] * len(tree.args.kwonlyargs)
    for one in ast.walk(tree.args):
        if isinstance(one, ast.arg):
            one.annotation = None
    return tree


@cache
def _every_edit(function: Function) -> tuple[Edit, ...]:
    """Return the edits of a function; they are kept, so that each is compiled once."""
    return tuple(edits_of(_tree(function)))

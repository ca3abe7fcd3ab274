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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache, partial
from inspect import getsource, unwrap
from itertools import islice
from textwrap import dedent
from types import CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from posref.core.composition import formula, is_known, reaches
from posref.spec import REGISTRY, OneOf, Record

from ..calls import parameters_of
from ..evidence.tools.deviation import Deviation, Wrap
from .hypotheses import Budget, Hypothesis, Question, plausible

Function = Callable[..., Any]
Line = ast.stmt | ast.expr
WORK = 12_000_000  # values that edits may compute for an operation
COMPILED = 12_000  # values that take as long as it takes to compile an edit
AT_ALL, OF_OTHERS = 5, 2  # the highest rank of edits of an operation's own formula, and of those that it calls
ROOT = __name__.partition(".")[0]
LONGEST = 80  # characters of a line that a text has
KEPT = 2048  # edits that are kept compiled
PROBES = 3  # failing cases that an edit must give, before it is tried on all
PLAIN = ("posref.core.checks", "posref.core.arrays", "posref.core.angles", "posref.core.products")  # no formula of one encoding
PASSING = ("cast", "whole", "beside", "asarray", "spread", "times")  # functions of an array that change no value of it
SHAPING = (
    "check_", "library", "namespace", "wide", "isdtype", "common_shape", "index_dtype", "result_dtype", "placement", "len",
)  # fmt: skip
OPERATORS: Mapping[type[ast.operator], tuple[ast.operator, ...]] = {
    ast.Add: (ast.Sub(),), ast.Sub: (ast.Add(),), ast.Mult: (ast.Div(),), ast.Div: (ast.Mult(), ast.FloorDiv()),
    ast.FloorDiv: (ast.Div(), ast.Mod()), ast.Mod: (ast.FloorDiv(),), ast.Pow: (ast.Mult(),),
    ast.BitAnd: (ast.BitOr(),), ast.BitOr: (ast.BitAnd(),),
}  # fmt: skip
ARITHMETIC = (ast.Add(), ast.Sub(), ast.Mult(), ast.Div())
STEPS = ((ast.Add(), 1), (ast.Sub(), 1), (ast.Mult(), 2), (ast.Div(), 2))  # numbers that may be beside an expression
ORDERED: Mapping[type[ast.cmpop], tuple[ast.cmpop, ...]] = {
    ast.Lt: (ast.LtE(), ast.GtE(), ast.Gt()), ast.LtE: (ast.Lt(), ast.Gt(), ast.GtE()),
    ast.Gt: (ast.GtE(), ast.LtE(), ast.Lt()), ast.GtE: (ast.Gt(), ast.Lt(), ast.LtE()),
    ast.Eq: (ast.NotEq(),), ast.NotEq: (ast.Eq(),),
}  # fmt: skip
ALIKE = (
    ("floor", "ceil", "round", "trunc"), ("maximum", "minimum"), ("sin", "cos"), ("log", "log2", "log1p"), ("exp", "exp2"),
    ("any", "all"), ("sum", "mean", "max", "min"), ("tanh", "sigmoid"),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {  # of one array, each of which may stand in place of another
    "exp": np.exp, "abs": np.abs, "square": np.square, "sqrt": np.sqrt, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "softplus": lambda x: np.logaddexp(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
    "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
}  # fmt: skip


class Edit(NamedTuple):
    """An expression of a line of a definition and what stands in its place; `rank` is lower for plainer ones."""

    rank: int
    old: ast.expr
    new: ast.expr
    line: Line


class Place(NamedTuple):
    """A function with an edit, and the known function that it is or is called by."""

    edit: Edit
    name: str
    function: Function


def candidates(questions: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return the first edit that all cases show, as a mistake; none if they show none."""
    probes = [q for q in questions if q.failed and q.size][:PROBES]
    some = budget.limited(min(WORK, budget.left)).within(edits(probes[0]) if probes else ())
    fitting = (place for place in some if _shows(mistake(place), probes, COMPILED) and _shows(mistake(place), questions))
    return list(islice((told(place) for place in fitting if _changes_more(place)), 1))


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
        texts.append(f"`{new}` stands in place of `{old}`{within}")
        hints.append(f"line {number} of {file}.py")
    return replace(mistake(*places), text=", and ".join(texts), hint=f"Compare your code with {' and '.join(hints)}.")


def _changes_more(place: Place) -> bool:
    """Return whether an edit changes more than a dtype or an axis of length 1."""
    return shown(place.edit.old) != shown(place.edit.new)


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
    return module.partition(".")[0] == ROOT and module not in PLAIN and not function.__name__.startswith("check")


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
    _Replaced(edit.old, new).visit(tree)
    try:
        return _compiled(tree)
    finally:
        _Replaced(new, edit.old).visit(tree)


def _compiled(tree: ast.FunctionDef) -> CodeType:
    module = compile(ast.Module([tree], []), "<edited>", "exec")
    return next(one for one in module.co_consts if isinstance(one, CodeType))


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


# ---- expressions, and what may stand in their place --------------------------------------------------------------------------


@cache
def _every_edit(function: Function) -> tuple[Edit, ...]:
    """Return the edits of a function; they are kept, so that each is compiled once."""
    return tuple(_edits(_tree(function)))


def _edits(tree: ast.FunctionDef) -> Iterator[Edit]:
    """Yield the edits of a function."""
    names = dict.fromkeys(one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg))
    names |= dict.fromkeys(one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    fields = dict.fromkeys(one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute) and not _is_of_library(one))
    for line, node in _expressions(tree, cast("Line", tree)):
        for rank, new in _others(node):
            yield Edit(rank, node, new, line)
        if isinstance(node, ast.Attribute):
            yield from (Edit(3, node, ast.Attribute(node.value, name, node.ctx), line) for name in fields if name != node.attr)
        if isinstance(node, ast.Name) and node.id in names:
            yield from (Edit(1, node, ast.Constant(value), line) for value in _values().get(node.id, ()))
            for other in (ast.Name(name, ast.Load()) for name in names if name != node.id):
                yield Edit(4, node, other, line)
                for op in ARITHMETIC:
                    yield Edit(5, node, ast.BinOp(node, op, other), line)


@cache
def _values() -> dict[str, tuple[Any, ...]]:
    """Return what each option may be: its words, or the numbers that are its defaults."""
    by_word: dict[str, dict[Any, None]] = {}
    for record in REGISTRY.values():
        for word, domain in record.domains.items():
            default = parameters_of(record.function)[word].default
            values = domain.words if isinstance(domain, OneOf) else (default,) if isinstance(default, int | float) else ()
            by_word.setdefault(word, {}).update(dict.fromkeys(values))
    return {word: tuple(values) for word, values in by_word.items()}


def _expressions(node: ast.AST, line: Line) -> Iterator[tuple[Line, ast.expr]]:
    """Yield the expressions that make values, with their lines: none of errors, checks and loops whose end they decide."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign | ast.Return | ast.AugAssign) or (
            isinstance(node, ast.If | ast.For) and isinstance(child, ast.stmt | ast.expr)
        ):
            line = child
        if isinstance(child, ast.Raise | ast.While | ast.JoinedStr | ast.arguments | ast.pattern) or _refuses(child):
            continue
        if _is_of_library(child) or (isinstance(child, ast.Call) and _name(child.func).startswith(SHAPING)):
            continue  # functions of the namespace, shapes and dtypes: no values
        if isinstance(child, ast.expr) and isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
            yield line, child
        yield from _expressions(child, line)


def _is_of_library(node: ast.AST) -> bool:
    """Return whether a node is a function of the namespace, a shape or a dtype, not a field of a record of options."""
    return isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in _records())


@cache
def _records() -> frozenset[str]:
    """Return the names of options that are records."""
    return frozenset(w for one in REGISTRY.values() for w, domain in one.domains.items() if isinstance(domain, Record))


def _refuses(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)


def _others(node: ast.expr) -> Iterator[tuple[int, ast.expr]]:
    """Yield what may stand in the place of an expression, each with its rank."""
    match node:
        case ast.BinOp():
            yield from _operations(node)
        case ast.Compare(left, ops, rights):
            for n, op in enumerate(ops):
                yield from ((0, ast.Compare(left, [*ops[:n], o, *ops[n + 1 :]], rights)) for o in ORDERED.get(type(op), ()))
            if len(ops) == 1:
                beside = [ast.BinOp(right, step, ast.Constant(number)) for right in rights for step, number in STEPS]
                yield from ((4, ast.Compare(left, [o], [one])) for one in beside for o in ORDERED.get(type(ops[0]), ()))
        case ast.BoolOp(op, values):
            yield 0, ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
            yield from ((1, one) for one in values)
        case ast.Tuple([one, other], ast.Load()):
            yield 1, ast.Tuple([other, one], ast.Load())
            if isinstance(one, ast.Call) and isinstance(other, ast.Call):
                exchanged: list[ast.expr] = [ast.Call(other.func, one.args, []), ast.Call(one.func, other.args, [])]
                yield 1, ast.Tuple(exchanged, ast.Load())
        case ast.UnaryOp(_, operand):
            yield 0, operand
        case ast.IfExp(test, body, orelse):
            yield from ((0, one) for one in (body, orelse, ast.IfExp(test, orelse, body)))
        case ast.Constant(bool(value)):
            yield 0, ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            near = dict.fromkeys((value + 1, value - 1, 2 * value, value / 2, 0))
            yield from ((2, ast.Constant(one)) for one in near if one != value)
        case ast.Call():
            yield from _calls(node)
    if isinstance(node, ast.Name | ast.BinOp | ast.Call | ast.Attribute):
        yield 2, ast.UnaryOp(ast.USub(), node)
        yield from ((1 + number, ast.BinOp(node, op, ast.Constant(number))) for op, number in STEPS)


def _operations(node: ast.BinOp) -> Iterator[tuple[int, ast.expr]]:
    """Yield what may stand in the place of a sum, a product, a quotient or a power."""
    left, op, right = node.left, node.op, node.right
    yield from ((0, ast.BinOp(left, other, right)) for other in OPERATORS.get(type(op), ()))
    if isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow | ast.Mod):
        yield 0, ast.BinOp(right, op, left)
    for one in (left, *_within(left, 1)) if isinstance(op, ast.FloorDiv) else ():  # rounded up
        yield 0, ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), one), op, right))
    if isinstance(left, ast.BinOp):  # the other operation first: a (b + c) for a b + c
        yield 0, ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))
    if isinstance(right, ast.BinOp):
        yield 0, ast.BinOp(ast.BinOp(left, op, right.left), right.op, right.right)
    yield from ((1, one) for one in _within(node))
    yield from ((1, one) for one in _moved(node))


def _moved(node: ast.BinOp) -> Iterator[ast.expr]:
    """Yield an operation that comes before a function or a power of one operand, in place of after it."""

    def put(first: ast.expr, *, left: bool) -> ast.expr:
        return ast.BinOp(first, node.op, node.right) if left else ast.BinOp(node.left, node.op, first)

    for inner, left in ((node.left, True), (node.right, False)):
        match inner:
            case ast.Call(func, [first, *rest]) if _name(func) not in PASSING and not isinstance(first, ast.Starred):
                yield ast.Call(func, [put(first, left=left), *rest], inner.keywords)
            case ast.BinOp(first, ast.Pow() as op, exponent):
                yield ast.BinOp(put(first, left=left), op, exponent)


def _within(node: ast.expr, depth: int = 3) -> Iterator[ast.expr]:
    """Yield the operands of an expression, and theirs: what is left of it without some of its operations."""
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args if isinstance(node, ast.Call) else []
    for operand in operands if depth else ():
        if not isinstance(operand, ast.Constant | ast.Starred):
            yield operand
        yield from _within(operand, depth - 1)


def _name(func: ast.expr) -> str:
    """Return the name of a function that is called."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _calls(node: ast.Call) -> Iterator[tuple[int, ast.expr]]:
    """Yield what may stand in the place of a call: another function, one of its arguments, or branches exchanged."""
    func, args, name = node.func, node.args, _name(node.func)
    if name in PASSING or any(isinstance(one, ast.Starred) for one in args):
        return
    for other in (other for group in ALIKE if name in group for other in group if other != name):
        if isinstance(func, ast.Attribute):
            yield 0, ast.Call(ast.Attribute(func.value, other, ast.Load()), args, node.keywords)
    if len(args) == 1 and name in FUNCTIONS:
        yield from ((1, ast.Call(ast.Name(other, ast.Load()), args, [])) for other in FUNCTIONS if other != name)
    match args:
        case [ast.BinOp(left, op, right), *rest]:  # after the function, in place of before it
            yield 1, ast.BinOp(ast.Call(func, [left, *rest], node.keywords), op, right)
            yield 1, ast.BinOp(left, op, ast.Call(func, [right, *rest], node.keywords))
    if name == "where" and len(args) == 3:
        yield 0, ast.Call(func, [args[0], args[2], args[1]], node.keywords)
        yield from ((1, one) for one in args[1:])
    elif name in ("arange", "range") and len(args) > 1:  # one step earlier or later
        step = args[2] if len(args) > 2 else ast.Constant(1)
        for op in (ast.Sub(), ast.Add()):
            yield 1, ast.Call(func, [*(ast.BinOp(one, op, step) for one in args[:2]), *args[2:]], node.keywords)
        yield from ((2, one) for one in _within(node))
    elif name == "cumulative_sum":  # of what comes before
        yield 0, ast.BinOp(node, ast.Sub(), args[0])
        yield 1, args[0]
    else:
        yield from ((1, one) for one in _within(node))
        if len(args) == 2:
            yield 0, ast.Call(func, [args[1], args[0]], node.keywords)


# ---- words -------------------------------------------------------------------------------------------------------------------


def shown(node: ast.AST) -> str:
    """Return an expression in few words: without the namespace, dtypes, and axes of length 1."""
    return ast.unparse(_Plain().visit(deepcopy(node)))


class _Plain(ast.NodeTransformer):
    """Leaves out what changes no value."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the argument of a function that changes no value, or the call without keywords."""
        values = [one for one in node.args if not isinstance(getattr(one, "value", None), str)]
        if _name(node.func) in PASSING and values:
            return cast("ast.AST", self.visit(values[0]))
        return self.generic_visit(ast.Call(node.func, node.args, [one for one in node.keywords if one.arg == "axis"]))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return a function of the namespace by its name alone."""
        of_library = isinstance(node.value, ast.Call) or (isinstance(node.value, ast.Name) and node.value.id in ("xp", "c"))
        return ast.Name(node.attr, ast.Load()) if of_library else self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return an array without an index that only adds axes."""
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        adds = all(ast.unparse(one) in ("None", "...", ":") for one in index)
        return cast("ast.AST", self.visit(node.value)) if adds else self.generic_visit(node)

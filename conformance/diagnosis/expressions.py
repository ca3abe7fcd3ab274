"""
Expressions of a definition, and what may stand in their place: other operators, operands, numbers, functions, names and words.

Each edit has a rank, which is lower for plainer ones.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from posref.spec import REGISTRY, OneOf, Record

from ..calls import parameters_of

Function = Callable[..., Any]
Line = ast.stmt | ast.expr
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


def edits_of(tree: ast.FunctionDef) -> Iterator[Edit]:
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
    if isinstance(op, ast.FloorDiv):  # rounded to the nearest
        yield 0, ast.BinOp(ast.BinOp(left, ast.Add(), ast.BinOp(right, op, ast.Constant(2))), op, right)
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
    of_numbers = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "math"
    if len(args) == 1 and name in FUNCTIONS and not of_numbers:  # of sizes, an exponential is one that no memory holds
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

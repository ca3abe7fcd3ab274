"""Whether a call is one of those that the registry describes: ranks, sizes and kinds of its tensors."""

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.conformance.fuzzing import strategies
from posref.conformance.vocabulary.axes import alternatives, names_in, value_of
from posref.spec import REGISTRY

Sizes = dict[str, Any]
KINDS = {"real": "f", "wide": "f", "position": "if", "integer": "i", "mask": "b"}  # and those of NumPy's dtypes


def splits(tokens: list[str], shape: tuple[int, ...]) -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """Yield the ways to give the axes of a shape to the names that describe them; leading ones with a ~ may be missing."""
    if tokens and tokens[0].startswith("~"):
        yield from splits(tokens[1:], shape)
    stars = sum(is_star(token) for token in tokens)
    spare = len(shape) - len(tokens) + stars
    if spare < 0 or (spare and not stars):
        return
    found, at = [], 0
    for token in tokens:
        count = spare if is_star(token) else 1
        found.append((token, shape[at : at + count]))
        at += count
    yield found


def is_star(token: str) -> bool:
    return token.lstrip("~").startswith("*")


def consistent(op: str, given: list[tuple[str, tuple[int, ...]]], known: Sizes) -> bool:
    """Return whether all names have one size each, every expression its value, and the call what it requires."""
    sizes = dict(known)
    for token, axes in given:
        if not token.startswith("~") and not is_star(token) and token.isidentifier():
            sizes.setdefault(token, axes[0])
    for star in {token.lstrip("~") for token, _ in given if is_star(token)}:
        full = [axes for token, axes in given if token == star] or [axes for token, axes in given if token == f"~{star}"]
        try:
            sizes[star] = np.broadcast_shapes(*full) if star not in dict(given) else full[0]
        except ValueError:
            return False
    texts = {token.lstrip("~") for token, _ in given if not (is_star(token) or token.lstrip("~").isidentifier())}
    unknown = sorted({n for text in texts for n in names_in(text)} - set(sizes))
    top = max((axes[0] for token, axes in given if token.lstrip("~") in texts), default=0)
    for values in itertools.product(range(top + 1), repeat=len(unknown)):
        all_sizes = sizes | dict(zip(unknown, values, strict=True))
        if all(is_of(token, axes, all_sizes) for token, axes in given) and strategies.meets(REGISTRY[op], all_sizes):
            return True
    return False


def is_of(token: str, axes: tuple[int, ...], sizes: Sizes) -> bool:
    """Return whether axes have the sizes that a token stands for."""
    name = token.lstrip("~")
    full = sizes[name] if is_star(token) else (value_of(name, sizes),)
    return len(axes) == len(full) and all(n == m or (n == 1 and "~" in token) for n, m in zip(axes, full, strict=True))


def matches(
    op: str, params: dict[str, Any], inputs: dict[str, np.ndarray], results: dict[str, np.ndarray] | None = None
) -> bool:
    """Return whether a call is one of those that the registry describes; `results` are arrays by the axes they must have."""
    record = REGISTRY[op]
    arrays = {**inputs, **(results or {})}
    shapes = {n: record.arrays[n].shape for n in inputs} | {axes: axes for axes in results or {}}
    ways = {n: alternatives(shape) for n, shape in shapes.items()}
    known = {n: p.default for n, p in inspect.signature(record.function).parameters.items() if n in record.domains} | params
    for which in range(max((len(way) for way in ways.values()), default=1)):
        tokens = {n: way[min(which, len(way) - 1)] for n, way in ways.items()}
        alike = {n: tokens.pop(n)[0][1:] for n in list(tokens) if tokens[n][:1] and tokens[n][0].startswith("=")}
        if any(arrays[n].shape != arrays[other].shape for n, other in alike.items()):
            return False
        choices = itertools.product(*(splits(tokens[n], arrays[n].shape) for n in tokens))
        if any(consistent(op, [pair for part in choice for pair in part], known) for choice in choices):
            return True
    return False

"""A few lines that call an operation, in NumPy, PyTorch and JAX, from its smoke case and its signature."""

from textwrap import fill
from typing import Any

import numpy as np

from posref.conformance.calls import bind, parameters_of
from posref.plots.calls import first_case
from posref.spec import REGISTRY

LIBRARIES = {
    "NumPy": ("np", "import numpy as np"),
    "PyTorch": ("torch", "import torch"),
    "JAX": ("jnp", "import jax.numpy as jnp"),
}
WIDTH = 58  # columns that fit a phone


def tabs(op: str) -> list[str]:
    """Return the section of an operation's page."""
    lines = ["## Call it", "", "::::{tab-set}", ":sync-group: library", ""]
    for library in LIBRARIES:
        lines += [f":::{{tab-item}} {library}", f":sync: {library}", "", "```python", *code(op, library), "```", ":::", ""]
    return [*lines, "::::", ""]


def code(op: str, library: str) -> list[str]:
    """Return the lines of one call. The arrays have the sizes of the smoke case. Arrays of reals hold ones."""
    record, (xp, line) = REGISTRY[op], LIBRARIES[library]
    call = first_case(op)
    inputs = {name: value for name, value in call.inputs.items() if value is not None}
    lines = [line, "import posref", ""] if inputs or library != "NumPy" else ["import posref", ""]
    for name in parameters_of(record.function):
        lines += _array(name, inputs[name], xp) if name in inputs else []
    written = {name: f'"{value}"' if isinstance(value, str) else repr(value) for name, value in call.params.items()}
    positional, keywords = bind(op, {name: name for name in inputs}, written)
    words = [*positional, *(f"{name}={value}" for name, value in keywords.items())]
    if not inputs and library != "NumPy":
        words.append(f"xp={xp}")
    outputs = ", ".join(record.outputs)
    lines += _call(f"{outputs} = posref.{op}", words)
    return [*lines, f"{record.outputs[0]}.shape  # {shape(op)}"]


def shape(op: str) -> tuple[int, ...]:
    """Return the shape of the first result."""
    return first_case(op).expected[REGISTRY[op].outputs[0]].shape


def _call(head: str, words: list[str]) -> list[str]:
    """Return a call in one line, or in lines that fit."""
    line = f"{head}({', '.join(words)})"
    if len(line) <= WIDTH:
        return [line]
    kept = ", ".join(word.replace(" ", "\N{NO-BREAK SPACE}") for word in words)
    inside = fill(f"{kept},", WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return [f"{head}(", *inside.replace("\N{NO-BREAK SPACE}", " ").splitlines(), ")"]


def _array(name: str, value: Any, xp: str) -> list[str]:
    """Return an array in code: positions as they are, reals as ones."""
    if value.dtype.kind == "f":
        return [f"{name} = {xp}.ones({value.shape})"]
    if value.ndim == 1 and np.array_equal(value, np.arange(len(value))):
        return [f"{name} = {xp}.arange({len(value)})"]
    make = f"{name} = {xp}.{'tensor' if xp == 'torch' else 'asarray'}"
    if value.ndim < 2:
        return _call(make, [str(value.tolist())])
    return [f"{make}([", *(f"    {row.tolist()}," for row in value), "])"]

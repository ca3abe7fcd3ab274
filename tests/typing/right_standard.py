"""Correct code of a user of a library that keeps to the array API."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Generic, TypeVar

import posref
from posref.scaling import YaRN

A = TypeVar("A")


class Standard(Generic[A]):
    """What the standard asks of an array, as far as a type checker needs it."""

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        raise NotImplementedError

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        raise NotImplementedError

    def __lt__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __ge__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __add__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __sub__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __rsub__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __mul__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __rmul__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __floordiv__(self, other: A | float, /) -> A:
        raise NotImplementedError

    def __getitem__(self, key: Any, /) -> A:
        raise NotImplementedError

    def __invert__(self) -> A:
        raise NotImplementedError


class Array(Standard["Array"]):
    """An array of one library."""


def rotated(x: Array, positions: Array) -> Array:
    return posref.rope(x, positions, layout="interleaved", base=1e6, scaling=YaRN(4.0, 32768), lanes="trailing")


def stages(x: Array, positions: Array, inv_freq: Array) -> Array:
    cos, sin = posref.rope_table(positions, inv_freq, attention_factor=1.5)
    return posref.apply_rope(x, cos, sin, layout="half")


def attended(q: Array, k: Array, v: Array, positions: Array) -> Array:
    bias = posref.alibi(positions, positions, heads=8, form="distance")
    mask = posref.sliding_window(positions, positions, window=4, counting="with_query", sides="causal")
    return posref.attention(q, k, v, bias=bias, mask=~mask)

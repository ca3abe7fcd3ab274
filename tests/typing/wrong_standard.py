"""Mistakes of a user of libraries that keep to the array API, each with what mypy and what pyright call it."""

from right_standard import Array, Standard

import posref


class Other(Standard["Other"]):
    """An array of another library."""


def mixed(x: Array, positions: Other) -> Array:
    return posref.rope(x, positions, layout="half", base=10_000.0)  # misc, reportArgumentType


def a_number(x: Array, position: int) -> Array:
    return posref.rope(x, position, layout="half", base=10_000.0)  # arg-type, reportArgumentType


def wrong_word(x: Array, positions: Array) -> Array:
    return posref.rope(x, positions, layout="haf", base=10_000.0)  # arg-type, reportArgumentType


def wrong_return(x: Array, positions: Array) -> str:
    return posref.rope(x, positions, layout="half", base=10_000.0)  # return-value, reportReturnType


def one_of_two(positions: Array, inv_freq: Array) -> Array:
    return posref.rope_table(positions, inv_freq)  # return-value, reportReturnType


def a_name(x: Array) -> Array:
    return posref.rop(x)  # attr-defined, reportAttributeAccessIssue

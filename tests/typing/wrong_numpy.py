"""Mistakes of a NumPy user, each with what mypy and what pyright call it."""

import numpy as np
import numpy.typing as npt

import posref

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def wrong_word(x: Floats, positions: Integers) -> Floats:
    return posref.rope(x, positions, layout="haf", base=10_000.0)  # arg-type, reportArgumentType


def word_of_another(positions: Integers) -> Floats:
    return posref.sinusoidal(positions, 8, layout="half")  # arg-type, reportArgumentType


def wrong_return(x: Floats, positions: Integers) -> str:
    return posref.rope(x, positions, layout="half", base=10_000.0)  # return-value, reportReturnType


def one_of_two(positions: Integers, inv_freq: Floats) -> Floats:
    return posref.rope_table(positions, inv_freq)  # return-value, reportReturnType


def wrong_scaling(x: Floats, positions: Integers) -> Floats:
    return posref.rope(x, positions, layout="half", base=10_000.0, scaling="linear")  # arg-type, reportArgumentType


def scaling_of_a_file(x: Floats, positions: Integers) -> Floats:
    scaling = {"type": "linear", "factor": 2.0}
    return posref.rope(x, positions, layout="half", base=10_000.0, scaling=scaling)  # arg-type, reportArgumentType


def a_list(positions: list[int]) -> Floats:
    return posref.sinusoidal(positions, 8, layout="sin_cos")  # arg-type, reportArgumentType


def wrong_place(config: dict[str, object]) -> float:
    return posref.configs.factors(config)["logits"]  # typeddict-item, reportGeneralTypeIssues


def arguments_of_another(x: Floats, positions: Integers, config: dict[str, object]) -> Floats:
    return posref.mrope(x, positions, **posref.rope_from_config(config))  # misc, reportCallIssue


def wrong_mask(q: Floats) -> Floats:
    return posref.attention(q, q, q, mask=True)  # arg-type, reportArgumentType


def a_name(x: Floats) -> Floats:
    return posref.rop(x)  # attr-defined, reportAttributeAccessIssue

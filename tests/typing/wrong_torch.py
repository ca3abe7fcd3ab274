"""Mistakes of a PyTorch user, each with what mypy and what pyright call it."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import posref


def positions_of_numpy(x: Tensor, positions: npt.NDArray[np.int64]) -> None:
    posref.rope(x, positions, layout="half", base=10_000.0)  # misc, reportArgumentType


def x_of_numpy(x: npt.NDArray[np.float64], positions: Tensor) -> None:
    posref.rope(x, positions, layout="half", base=10_000.0)  # misc, reportArgumentType


def mask_of_numpy(q: Tensor, mask: npt.NDArray[np.bool_]) -> None:
    posref.attention(q, q, q, mask=mask)  # misc, reportArgumentType


def wrong_return(x: Tensor, positions: Tensor) -> npt.NDArray[np.float64]:
    return posref.rope(x, positions, layout="half", base=10_000.0)  # arg-type, reportReturnType


def slopes_of_the_host() -> Tensor:
    return posref.alibi_slopes(8)  # return-value, reportReturnType


def slopes_of_another() -> Tensor:
    return posref.alibi_slopes(8, xp=np)  # return-value, reportReturnType


def not_a_library() -> Tensor:
    return posref.alibi_slopes(8, xp=torch.nn)  # arg-type, reportArgumentType

"""Checks: `posref check`, in CPU seconds of all its processes, and `posref.testing.assert_conforms`."""

from functools import partial
from typing import Any

import numpy as np

from posref import rope
from posref.testing import assert_conforms

from .lines import Line, Work
from .rotation import OPTIONS
from .starting import python


def everything(small: bool) -> Work:
    """Check posref itself, in NumPy."""
    return Work(python("-m", "posref", "check", "posref", *(("--op", "rope_table") if small else ())))


def kernels(small: bool) -> Work:
    """Check posref's rope at the sizes where kernels often fail."""
    some = ("--case", "rope/kernel/half-tokens-65") if small else ("--tier", "kernel")
    return Work(python("-m", "posref", "check", "posref", "--op", "rope", *some))


def judging(small: bool, tokens: int, rows: Any) -> Work:
    """Judge a call of NumPy. The peer is the call. Up to 2^20 values are all judged; of more, some rows."""
    x = np.random.default_rng(0).standard_normal((1, 32, 4 if small else tokens, 128), dtype=np.float32)
    positions = np.arange(x.shape[-2])
    call = partial(rope, x, positions, **OPTIONS)
    return Work(partial(assert_conforms, "rope", call(), x, positions, rows=rows, **OPTIONS), call)


LINES = (
    Line("posref check posref, NumPy", "CPU seconds", 10.0, everything),
    Line("posref check posref --op rope --tier kernel", "CPU seconds", 6.0, kernels),
    Line("assert_conforms rope, 256 tokens", "the call", None, lambda s: judging(s, 256, "some")),
    Line("assert_conforms rope, 4096 tokens", "the call", None, lambda s: judging(s, 4096, "some")),
)

"""Log-n attention scaling: cases and known mistakes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .shared.factors import EDGES, TEXTS, factor_case, negative_positions
from .shared.masks import BEYOND
from .tools import Case, Deviation, Make, Wrap, always, deviations_of, option
from .tools.hints import BRANCH

USUAL: dict[str, Any] = {"original_length": 16, "offset": 1, "at_least_one": True}
WITH_OPTION: dict[str, dict[str, Any]] = {"original_length": {"T": 9}}
KERNEL: tuple[dict[str, Any], ...] = ({"original_length": 512, "offset": 0, "at_least_one": True},)


_case = partial(factor_case, "logn_scale")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("limited/small", (3, 20, 16, 90), original_length=16, offset=1, at_least_one=True, tier="smoke"),
        _case("limited/qwen-7b", EDGES, "seq_length 2048", original_length=2048, offset=1, at_least_one=True),
        _case("limited/rerope", (4094, 4095, 4096, 8191, 16383, 40000), "training_length 4096",
              original_length=4096, offset=1, at_least_one=True),
        _case("limited/grok-2", (1023, 1024, 1025, 2000, 131071), "xai_temperature_len 1024",
              original_length=1024, offset=0, at_least_one=True),
        _case("limited/rows", TEXTS, original_length=512, offset=1, at_least_one=True),
        _case("limited/decode", (5000,), original_length=100, offset=1, at_least_one=True),
        _case("limited/no-axis", 70, "one position", original_length=9, offset=0, at_least_one=True),
        _case("limited/more-axes", np.asarray(TEXTS)[:, None, :3], original_length=9, offset=0, at_least_one=True),
        _case("free/rows", TEXTS, original_length=3, offset=2, at_least_one=False),
        _case("free/beyond-float32", (BEYOND, BEYOND + 1, 2**30), original_length=1000, offset=1, at_least_one=False),
        _case("refused/length", (1, 2), "the logarithm of 1 is 0", original_length=1, offset=1, at_least_one=True,
              kind="reject"),
        _case("refused/fractions", (1.5, 2.0), "positions are integers", original_length=16, offset=1, at_least_one=True,
              kind="reject"),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a second call with negative positions."""
    yield negative_positions(make, USUAL)


QUOTIENT = "The factor is ln(n) / ln(L): a quotient of two logarithms."


def _of_logn(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes log-n's factors: `change` takes the number of keys and the length in training."""

    def deviating(p: Any, /, *, original_length: int, offset: int, at_least_one: bool, **rest: Any) -> Any:
        scale = change(np.maximum(p + offset, 1), original_length)
        return np.maximum(scale, 1.0) if at_least_one else scale

    return {"logn_scale": lambda _: deviating}


_deviation = deviations_of("logn_scale")

DEVIATIONS = (
    _deviation("logn-limited", "the factor is never below 1", option(at_least_one=always(True)), hint=BRANCH),
    _deviation("logn-free", "the factor may always fall below 1", option(at_least_one=always(False)), hint=BRANCH),
    Deviation("logn-not-divided", "the logarithm is not divided by the logarithm of the length",
              _of_logn(lambda n, original_length: np.log(n)), hint=QUOTIENT),
    Deviation("logn-log2", "the logarithm of the number of keys has base 2, and that of the length base e",
              _of_logn(lambda n, original_length: np.log2(n) / np.log(original_length)), hint=QUOTIENT),
    Deviation("logn-of-quotient", "the factor is 1 + ln(n / L) in place of ln(n) / ln(L)",
              _of_logn(lambda n, original_length: 1 + np.log(n / original_length)), hint=QUOTIENT),
    Deviation("logn-of-ratio", "the factor is ln(n / L) in place of ln(n) / ln(L)",
              _of_logn(lambda n, original_length: np.log(n / original_length)), hint=QUOTIENT),
)  # fmt: skip

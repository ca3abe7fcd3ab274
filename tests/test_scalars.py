"""Scalars of NumPy are numbers: as options, and in a configuration."""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import posref
from posref.conformance import check
from posref.spec import REGISTRY


def scalar(value: Any) -> Any:
    """Return a number as the narrowest scalar of NumPy that has it."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.min_scalar_type(value).type(value)
    if isinstance(value, float):
        return np.float32(value) if float(np.float32(value)) == value else np.float64(value)
    return tuple(scalar(v) for v in value) if isinstance(value, list | tuple) else value


def with_scalars(function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        given = (scalar(a) if isinstance(a, int | list | tuple) else a for a in arguments)
        return function(*given, **{name: scalar(value) for name, value in options.items()})

    return call


@pytest.mark.parametrize("tier", ["smoke", pytest.param("core", marks=pytest.mark.thorough(dear=True))])
@pytest.mark.filterwarnings("error")
def test_options_are_scalars(tier: str) -> None:
    """Of eight bits, where products and negatives of an unconverted one would wrap."""
    target = SimpleNamespace(**{op: with_scalars(record.function) for op, record in REGISTRY.items()})
    target.dtypes, target.claims = ("float64", "float32"), {"float32": "angle64"}
    report = check(target, tier=tier)
    assert [(c.id, c.dtype, c.message) for c in report.failures] == []
    assert not report.missing
    assert report.counts["pass"] > len(REGISTRY)


def test_a_configuration_has_scalars() -> None:
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0}
    wrapped = {name: scalar(value) for name, value in config.items()}
    assert posref.rope_from_config(wrapped) == posref.rope_from_config(config)
    assert type(posref.rope_from_config(wrapped)["base"]) is float

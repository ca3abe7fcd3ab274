"""A model's own code replaced by the definition: its output stays, and with distances of the wrong sign it does not."""

from collections.abc import Callable
from functools import partial, partialmethod
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
import torch
from replaced_models import TOLERANCE, wide
from torch import Tensor
from transformers import AutoConfig, AutoModel

import posref


def ready(model: Any, std: float = 0.3, **wider: float) -> Any:
    """Return a model in float64 with random weights; those whose names have a key of `wider` have that deviation."""
    model = model.eval().double()
    for name, parameter in model.named_parameters():
        wide = [size for key, size in wider.items() if key in name]
        torch.nn.init.normal_(parameter, std=wide[0] if wide else std)
    return model.requires_grad_(False)


def code(folder: str) -> Any:
    """Return the modeling file of transformers for a kind of model, by its folder."""
    return import_module(f"transformers.models.{folder}.modeling_{folder}")


def made(
    seed: int, kind: str, model: Any = AutoModel.from_config, /, wider: dict[str, float] | None = None, **fields: Any
) -> Any:
    """Return a small configuration of a kind, and its model with random weights, of which those in `wider` are larger."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, **fields)
    with wide():
        return config, ready(model(config), **wider or {})


def at(count: int, sign: int, first: int = 0) -> Tensor:
    """Return positions, or their negatives."""
    return sign * torch.arange(first, first + count)


def heads_of(x: Tensor, count: int, *layers: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
    """Return what layers make of `x`, in heads before tokens."""
    return tuple(layer(x).unflatten(-1, (count, -1)).transpose(1, 2) for layer in layers)


def options_of(config: Any, component: str) -> dict[str, Any]:
    """Return the options of a component, all layers of which are alike, as `from_config` tells them."""
    (entry,) = posref.from_config(config.to_dict())[component]
    return entry.options or {}


def hidden(model: Any, *inputs: Any, **options: Any) -> Callable[[], Tensor]:
    """Return what runs a model and returns its last hidden state."""
    return lambda: model(*inputs, **options).last_hidden_state


def assert_replaced(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], Tensor], *places: tuple[type | ModuleType, str, Callable[..., Any]]
) -> None:
    """
    Compare outputs in float64: with the definition in place of the model's code, and with distances of the wrong sign.

    A place is a class or module, the name of its function, and the function in its stead, which takes the sign as ``sign``.
    """
    with wide():
        expected, errors = run().detach(), []
    for sign in (1, -1):
        for kind, name, function in places:
            monkeypatch.setattr(kind, name, (partialmethod if isinstance(kind, type) else partial)(function, sign=sign))
        with wide():
            found = run().detach()
        assert found.dtype == expected.dtype == torch.float64
        errors.append(float((found - expected).abs().max() / expected.abs().max()))
    assert errors[0] < TOLERANCE < errors[1] / 100

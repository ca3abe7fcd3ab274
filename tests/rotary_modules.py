"""transformers' own rotary modules and apply functions, built from a config.json by its own configuration classes."""

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from transformers import AutoConfig
from transformers.utils import logging

logging.set_verbosity_error()  # it warns about configurations that are asked on purpose

OTHERS = ("Vision", "Audio", "DiT", "Talker", "Qwen3OmniMoeRotary", "AttentionRotary")  # parts of a model that are not its text


def built(config: dict[str, Any]) -> tuple[torch.nn.Module, ModuleType]:
    """Return the rotary module of the text model that a file describes, and the Python module that has it."""
    theirs = AutoConfig.for_model(**config).get_text_config()
    code = import_module(type(theirs).__module__.replace("configuration_", "modeling_"))
    found = [
        value
        for name, value in vars(code).items()
        if inspect.isclass(value) and name.endswith("RotaryEmbedding") and value.__module__ == code.__name__
        if not any(other in name for other in OTHERS)
    ]
    assert len(found) == 1, found
    return found[0](theirs), code


def frequencies(config: dict[str, Any], length: int, layer_type: str | None = None) -> tuple[Any, float]:
    """Return what the module uses in a sequence of `length` tokens: frequencies as float64, and the factor on cos and sin."""
    module, _ = built(config)
    options = {} if layer_type is None else {"layer_type": layer_type}
    module(torch.zeros(1), torch.tensor([[length - 1]]), **options)
    prefix = "" if layer_type is None else f"{layer_type}_"
    inv_freq = getattr(module, f"{prefix}inv_freq")
    return inv_freq.to(torch.float64).numpy(), float(getattr(module, f"{prefix}attention_scaling"))

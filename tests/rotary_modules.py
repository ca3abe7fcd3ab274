"""transformers' own rotary modules and apply functions, built from a config.json by its own configuration classes."""

import inspect
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, get_type_hints

import torch
import transformers
from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
from transformers.utils import logging

logging.set_verbosity_error()  # it warns about configurations that are asked on purpose

OTHERS = ("Vision", "Audio", "DiT", "Talker", "Qwen3OmniMoeRotary", "AttentionRotary")  # parts of a model that are not its text


def built(config: dict[str, Any]) -> tuple[torch.nn.Module, ModuleType]:
    """Return the rotary module of the text model that a file describes, and the Python module that has it."""
    theirs = AutoConfig.for_model(**config).get_text_config()
    code = code_of(theirs)
    found = [
        value
        for name, value in vars(code).items()
        if inspect.isclass(value) and name.endswith("RotaryEmbedding") and value.__module__ == code.__name__
    ]
    own = [kind for kind in found if get_type_hints(kind.__init__, vars(code)).get("config") is type(theirs)]
    texts = [kind for kind in found if not any(other in kind.__name__ for other in OTHERS)]
    kinds = next(kinds for kinds in (own, texts, found) if len(kinds) == 1)
    return kinds[0](theirs), code


def code_of(theirs: Any) -> ModuleType:
    """Return the modeling file of a configuration; two models have none of their own."""
    name = type(theirs).__module__.replace("configuration_", "modeling_")
    if find_spec(name) is None:
        name = getattr(transformers, MODEL_MAPPING_NAMES[theirs.model_type]).__module__
    return import_module(name)


def frequencies(config: dict[str, Any], length: int, layer_type: str | None = None) -> tuple[Any, float]:
    """Return what the module uses in a sequence of `length` tokens: frequencies as float64, and the factor on cos and sin."""
    module, _ = built(config)
    options = {} if layer_type is None else {"layer_type": layer_type}
    module(torch.zeros(1), torch.tensor([[length - 1]]), **options)
    prefix = "" if layer_type is None else f"{layer_type}_"
    inv_freq = getattr(module, f"{prefix}inv_freq")
    return inv_freq.to(torch.float64).numpy(), float(getattr(module, f"{prefix}attention_scaling"))

"""
Model types that the table lacks, but the installed transformers has.

transformers is imported only here, and only for a type that would else be refused.
"""

import importlib
from collections.abc import Container


def parent_of(model: str, known: Container[str]) -> str | None:
    """Return the known type whose configuration class that of `model` extends, or None."""
    try:
        kind = importlib.import_module("transformers").CONFIG_MAPPING[model]
    except (ImportError, AttributeError, KeyError, RuntimeError):
        return None
    types = [str(getattr(base, "model_type", "")) for base in kind.__mro__[1:]]
    return next((name for name in types if name != model and name in known), None)

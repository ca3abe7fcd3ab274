"""Read the rotary embedding of a model's config.json: the public names of `posref.models.config`."""

from typing import Any

from posref.models.config import factors, mrope_from_config, rope_from_config
from posref.models.model_types import layouts
from posref.types import Layout

__all__ = ["LAYOUTS", "factors", "mrope_from_config", "rope_from_config"]

LAYOUTS: dict[str, Layout]  # of every known model type; the table is read on first use


def __getattr__(name: str) -> Any:
    if name == "LAYOUTS":
        return layouts()
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

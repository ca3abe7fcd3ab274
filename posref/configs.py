"""Read the rotary embedding of a model's config.json: the public names of `posref.models.config`."""

from posref.models.config import LAYOUTS, factors, mrope_from_config, rope_from_config

__all__ = ["LAYOUTS", "factors", "mrope_from_config", "rope_from_config"]

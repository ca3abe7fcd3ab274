"""Parameters of released models by name: the public names of `posref.models.presets`, which is imported when one is used."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

__all__ = ["MARKS", "Preset", "Presets", "Sizes", "presets"]

if TYPE_CHECKING:
    from posref.models.presets import MARKS, Preset, Presets, Sizes, presets
else:

    def __getattr__(name: str):
        """Return a name of `posref.models.presets`."""
        return getattr(_import_module("posref.models.presets"), name)

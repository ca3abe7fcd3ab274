"""Parameters of released models by name: the public names of `posref.models.presets`."""

from posref.models.presets import MARKS, Preset, Presets, Sizes, presets

__all__ = ["MARKS", "Preset", "Presets", "Sizes", "presets"]

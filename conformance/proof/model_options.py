"""Options that a released model has: from a preset, a config.json or a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import posref
from posref.spec import REGISTRY

from ..errors import TargetError
from ..suite import gguf_file


@dataclass(frozen=True)
class Model:
    """Where the options of a model are: in at most one of three places."""

    preset: str | None = None
    config: Path | None = None
    gguf: Path | None = None
    layer_type: str | None = None

    def options(self, op: str, layout: Any = None) -> Mapping[str, Any]:
        """
        Return the options that the model gives to an operation; a `layout` is taken in place of the model's.

        Raises
        ------
        TargetError
            If there is more than one place, or the model has no options of this kind.
        """
        given = [f"--{n}" for n in ("preset", "config", "gguf") if getattr(self, n) is not None]
        if len(given) > 1:
            msg = f"golden: options come from one model; got {' and '.join(given)}. Give one of them."
            raise TargetError(msg)
        if self.layer_type is not None and given not in (["--config"], ["--gguf"]):
            msg = "golden: --layer-type says which layers of --config or --gguf are meant; got neither."
            raise TargetError(msg)
        several = "arrangement" in REGISTRY[op].domains  # several position axes
        if self.layer_type is not None and several:
            msg = f"golden: --layer-type must not be given for {op}: layers of models with several position axes are alike."
            raise TargetError(msg)
        if self.preset is not None:
            return self._of_preset(self.preset, op, several=several)
        if self.config is not None:
            return self._of_config(self.config, layout, several=several)
        return self._of_gguf(self.gguf, op, layout, several=several) if self.gguf is not None else {}

    def _of_preset(self, name: str, op: str, *, several: bool) -> Mapping[str, Any]:
        try:
            preset = posref.presets[name]
        except KeyError as error:
            raise TargetError(str(error.args[0])) from error
        if ("arrangement" in REGISTRY[preset.op].domains) != several:
            other = "one position axis" if several else "several position axes"
            msg = f"golden: preset {name} is of {other}; got {op}. Ask for {preset.op}."
            raise TargetError(msg)
        return preset.options

    def _of_config(self, path: Path, layout: Any, *, several: bool) -> Mapping[str, Any]:
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            if several:
                return dict(posref.mrope_from_config(config, layout=layout))
            return dict(posref.rope_from_config(config, layer_type=self.layer_type, layout=layout))
        except ValueError as error:  # also of text that is no JSON
            msg = f"{path}: {_worded(error)}"
            raise TargetError(msg) from error

    def _of_gguf(self, path: Path, op: str, layout: Any, *, several: bool) -> Mapping[str, Any]:
        if several:
            msg = f"golden: --gguf gives options of one position axis; got {op}. Give --config."
            raise TargetError(msg)
        metadata, factors = gguf_file.read(path)
        try:
            return dict(
                posref.rope_from_gguf(metadata, rope_factors=factors or None, layer_type=self.layer_type, layout=layout)
            )
        except ValueError as error:
            msg = f"{path}: {_worded(error)}"
            raise TargetError(msg) from error


def _worded(error: ValueError) -> str:
    """Return the text of an error of a reader, with the option of the command that it speaks of."""
    return str(error).replace("layer_type must", "--layer-type must").replace("Pass layout", "Give --option layout=")

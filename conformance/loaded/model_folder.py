"""A model's folder: its config.json is read, then the model is loaded and compared with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posref.models.fields import parsed

from ..errors import TargetError
from .model_report import ModelReport


def check_folder(folder: Path, *, remote_code: bool, dtype: str | None, device: str | None) -> ModelReport:
    """
    Load the model in a folder and compare it with the config.json there, as `posref.testing.assert_model` does.

    The file is read before the model is loaded. Nothing is downloaded. Python code in the folder runs only with `remote_code`.

    Raise TargetError if the folder has no config.json that can be read, needs code that may not run, or cannot be loaded.
    """
    config = _file(folder)
    if "auto_map" in config and not remote_code:
        msg = f"{folder}: config.json names Python code of its own (auto_map); --trust-remote-code lets it run."
        raise TargetError(msg)
    try:
        import torch
        import transformers
    except ImportError as error:
        msg = f"check --model needs torch and transformers: pip install 'posref[torch,adapters]' ({error})"
        raise TargetError(msg) from error
    from .inspection import inspect_model

    transformers.utils.logging.set_verbosity_error()
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": remote_code, "dtype": "auto"}
    if dtype is not None:
        options["dtype"] = getattr(torch, dtype)
    try:
        model = _class(transformers, config).from_pretrained(folder, **options).eval()
        model = model if device is None else model.to(device)
    except Exception as error:  # of a library that loads files of other people
        msg = f"{folder}: cannot be loaded: {type(error).__name__}: {str(error).strip()[:300]}"
        raise TargetError(msg) from error
    return inspect_model(model, config)


def _file(folder: Path) -> dict[str, Any]:
    try:
        return parsed(folder / "config.json")
    except ValueError as error:
        msg = f"{folder}: {error}"
        raise TargetError(msg) from error


def _class(transformers: Any, config: dict[str, Any]) -> Any:
    """Return the class named in the file, if transformers has it. Else transformers chooses."""
    names = config.get("architectures") or []
    named = getattr(transformers, str(names[0]), None) if names and "auto_map" not in config else None
    return named if hasattr(named, "from_pretrained") else transformers.AutoModelForCausalLM

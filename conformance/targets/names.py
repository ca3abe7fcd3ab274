"""A target by its name: a built-in adapter, a module, a module's object, or a file."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import TargetError
from .invocation import in_one_line

FOLDER = Path(__file__).parents[1] / "adapters"
ADAPTERS = tuple(sorted(file.stem for file in FOLDER.glob("[!_]*.py")))
PACKAGE = re.compile(r'^PACKAGE = "(.+)"$', re.MULTILINE)


def find(target: Any) -> tuple[str, Any]:
    """Return the target's name and its object."""
    if not isinstance(target, str):
        return getattr(target, "__name__", type(target).__name__), target
    if target in ADAPTERS:
        return target, _import(f"posref.conformance.adapters.{target}", target)
    if target.endswith(".py"):
        return target, _from_file(Path(target))
    module, _, attribute = target.partition(":")
    found = _import(module, target)
    for part in attribute.split(".") if attribute else ():
        if not hasattr(found, part):
            msg = f"{target}: {module} has no {attribute!r}."
            raise TargetError(msg)
        found = getattr(found, part)
    return target, found() if inspect.isclass(found) else found


def _import(module: str, target: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = f"pip install '{package_of(target)}'" if target in ADAPTERS else "is it installed?"
        kinds = f"an adapter ({', '.join(ADAPTERS)}), module, module:object or file.py"
        file = f" A file is given alone: {module}." if module.endswith(".py") else ""
        msg = f"{target}: cannot import {error.name!r} ({hint}). A target is {kinds}.{file}"
        raise TargetError(msg) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{target}: importing it raised {in_one_line(error)}"
        raise TargetError(msg) from error


def package_of(adapter: str) -> str:
    """Return what pip installs for an adapter, which states it in its source: the adapter itself may not be importable."""
    found = PACKAGE.search((FOLDER / f"{adapter}.py").read_text(encoding="utf-8"))
    assert found is not None, adapter
    return found[1]


def _where(error: BaseException) -> str:
    """Return the file and the line where an exception was raised, if that is known."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith("<") and Path(frame.filename) != Path(__file__)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        msg = f"{path}: no such file."
        raise TargetError(msg)
    spec = importlib.util.spec_from_file_location(f"posref_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        msg = f"{path}: cannot be loaded as Python."
        raise TargetError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script: it may import its neighbours, also later
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        msg = f"{path}: running it raised {in_one_line(error)}{_where(error)}"
        raise TargetError(msg) from error
    return module

"""Find the posref function that the user called. Error messages name it, though definitions call each other."""

import sys
from typing import Any


def called(function: str, *arguments: str) -> str:
    """Return the outermost definition on the stack with these arguments (`scaling` for a scaling's field), else `function`."""
    frame = sys._getframe(1)
    found, wanted = function, {"scaling" if "." in argument else argument for argument in arguments}
    while frame is not None and _is_definition(frame.f_globals.get("__name__", "")):
        code = frame.f_code
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not code.co_name.startswith(("_", "check_")) and frame.f_globals.get(code.co_name) and wanted <= {*own}:
            found = code.co_name
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return found


def names_of(values: tuple[Any, ...]) -> list[str]:
    """Return the names of the values in the outermost definition on the stack, or ["arguments"] if one has no name."""
    frame = sys._getframe(1)
    found: dict[str, Any] = {}
    while frame is not None and _is_definition(frame.f_globals.get("__name__", "")):
        code = frame.f_code
        if not code.co_name.startswith("_") and frame.f_globals.get(code.co_name):
            found = {name: frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    names = [next((name for name, own in found.items() if own is value), "") for value in values]
    return names if all(names) else ["arguments"]


def _is_definition(module: str) -> bool:
    return module.startswith("posref.") and not module.startswith(("posref.conformance", "posref.backends"))

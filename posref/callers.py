"""Which function of posref a caller has called, for its errors: definitions call each other."""

import sys


def called(function: str, *arguments: str) -> str:
    """Return the outermost definition on the stack that has the arguments, which may be `function` itself."""
    frame = sys._getframe(1)
    found = function
    while frame is not None and _is_definition(frame.f_globals.get("__name__", "")):
        code = frame.f_code
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not code.co_name.startswith(("_", "check_")) and frame.f_globals.get(code.co_name) and {*arguments} <= {*own}:
            found = code.co_name
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return found


def _is_definition(module: str) -> bool:
    return module.startswith("posref.") and not module.startswith(("posref.conformance", "posref.backends"))

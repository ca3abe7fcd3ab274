"""A function replaced where it is looked up: by a module, a class or an object, and put back."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ..errors import TargetError

MISSING = object()


class Place:
    """An attribute that holds a function: ``"module:attribute"``, ``"module:Class.method"``, or an object and a name."""

    def __init__(self, who: str, target: Any, name: str | None) -> None:
        self.who = who
        self.owner, self.name = _found(who, target, name)
        self.text = target if isinstance(target, str) else f"{getattr(target, '__name__', type(target).__name__)}.{name}"
        self.function = getattr(self.owner, self.name, MISSING)
        if not callable(self.function):
            what = "has nothing of that name" if self.function is MISSING else f"is {type(self.function).__name__}"
            msg = f"{who}: target must name a function; {self.text} {what}."
            raise TargetError(msg)
        self._raw: Any = MISSING

    def replace(self, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Put a wrapper of the function there; as a method it gets what the function gets, its object first."""
        self._raw = vars(self.owner).get(self.name, MISSING) if hasattr(self.owner, "__dict__") else MISSING
        function: Any = getattr(self.owner, self.name)  # which may be another by now
        if isinstance(self.owner, type):
            static = inspect.getattr_static(self.owner, self.name)
            if isinstance(static, staticmethod | classmethod):
                function = type(static)(wrapped(static.__func__))
            else:
                function = wrapped(static) if isinstance(static, FunctionType) else staticmethod(wrapped(function))
        else:
            function = wrapped(function)
        try:
            setattr(self.owner, self.name, function)
        except (AttributeError, TypeError) as error:
            msg = f"{self.who}: {self.text} cannot be replaced: {error}. Name the method or module where it is called."
            raise TargetError(msg) from error

    def put_back(self) -> None:
        """Leave the attribute as it was."""
        if self._raw is MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._raw)

    def elsewhere(self) -> list[str]:
        """Return other modules that hold the same function, as ``module:name``: they imported it before."""
        held = []
        for module, names in [(m, dict(vars(m))) for m in list(sys.modules.values()) if isinstance(m, ModuleType)]:
            held += [f"{module.__name__}:{n}" for n, x in names.items() if x is self.function and module is not self.owner]
        return sorted(set(held))


def _found(who: str, target: Any, name: str | None) -> tuple[Any, str]:
    """Return what holds an attribute, and the attribute's name."""
    if not isinstance(target, str):
        if name is None:
            msg = f'{who}: target must be "module:attribute", or an object and a name; got {target!r} alone.'
            raise TargetError(msg)
        return target, name
    module, _, path = target.partition(":")
    if name is not None or not (module and path):
        msg = f'{who}: target must be "module:attribute", or an object and a name; got {target!r}.'
        raise TargetError(msg)
    try:
        owner: Any = importlib.import_module(module)
        *parents, last = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
    except (ImportError, AttributeError) as error:
        msg = f"{who}: {target} cannot be found: {error}."
        raise TargetError(msg) from error
    return owner, last

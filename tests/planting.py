"""Implementations with a planted defect, several in one file: each is a function that returns the operations it has."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "defects"
Names = tuple[str, ...] | tuple[tuple[str, ...], ...]


class Defect:
    """An implementation with a planted defect, made anew by each call, so that no table is kept between two checks."""

    DEFECT: str
    NAMES: Names
    SAID: str

    def __init__(self) -> None:
        operations = self.made()
        self.__dict__ |= operations
        for function in operations.values():  # what a function says of its implementation: `scalings`, `dtypes`
            self.__dict__ |= vars(function)

    @staticmethod
    def made() -> dict[str, Callable[..., Any]]:
        raise NotImplementedError


def planted(
    defect: str, *, names: Names, op: str = "", said: str = "", backend: str | None = None
) -> Callable[[Callable[..., Any]], type[Defect]]:
    """
    Return a decorator that makes an implementation of a function, the operation `op`, or else of those that it returns.

    `names` are the deviations that the defect is: each a way to say it, or a tuple of those that it is together; none
    where the registry has no such deviation. `said` are then words that the diagnosis must have, such as a place.
    """

    def make(build: Callable[..., Any]) -> type[Defect]:
        def made() -> dict[str, Callable[..., Any]]:
            if op:
                return {op: build}
            operations = build()
            return {f.__name__: f for f in (operations if isinstance(operations, tuple) else (operations,))}

        facts = {"DEFECT": defect, "NAMES": names, "SAID": said, "made": staticmethod(made)}
        facts |= {"__doc__": build.__doc__, "__module__": build.__module__} | ({"backend": backend} if backend else {})
        return type(build.__name__, (Defect,), facts)

    return make


def only(word: str, known: str) -> None:
    """Raise `NotImplementedError` for another word of an option than the one that a defect is written for."""
    if word != known:
        raise NotImplementedError(word)


def defects(folder: str) -> list[type[Defect]]:
    """Return the defects in the files of a folder, `defects` or `defects.unseen`, by their names."""
    found: dict[str, type[Defect]] = {}
    for file in sorted((FOLDER.parent / folder.replace(".", "/")).glob("*.py")):
        module = import_module(f"{folder}.{file.stem}")
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Defect) and value is not Defect:
                assert name not in found, f"two defects are called {name}"
                found[name] = value
    return [found[name] for name in sorted(found)]


def written(defect: type[Defect], folder: Path) -> Path:
    """Write a file that has what a defect has, and return it: a target that is given by its file."""
    lines = [
        "import sys",
        f"sys.path.append({str(FOLDER.parent)!r})",
        f"from {defect.__module__} import {defect.__name__}",
        f"globals().update(vars({defect.__name__}()))",
        f"backend = {getattr(defect, 'backend', 'numpy')!r}",
    ]
    file = folder / f"{defect.__name__}.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file

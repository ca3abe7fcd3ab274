"""What the readers of configurations return, for type checkers: `posref.rope(x, positions, **rope_from_config(config))`."""

from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any, NamedTuple, NotRequired, Protocol, Self, TypeAlias, TypedDict

from posref.rotary.axial_table import Arrangement
from posref.scaling import Scaling
from posref.types import Lanes, Layout


class HasToDict(Protocol):
    """A configuration object, such as those of transformers."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return its fields by name."""


Config: TypeAlias = "Mapping[str, Any] | HasToDict | str | PathLike[str]"  # what the readers accept


class _Pair(NamedTuple):
    operation: str
    options: dict[str, Any] | None


class Entry(_Pair):
    """
    One encoding of a model: a pair. Its options are None if posref does not define it or the file does not decide them.

    `conventions` says what else changes values, by name: how the model makes an argument that the caller gives, or that the
    answer was not reviewed. It is no part of the pair.
    """

    conventions: Mapping[str, str] = MappingProxyType({})

    def __new__(cls, operation: str, options: dict[str, Any] | None, conventions: Mapping[str, str] | None = None) -> Self:
        """Return the pair, with its conventions beside it."""
        result = super().__new__(cls, operation, options)
        result.conventions = MappingProxyType(dict(conventions or {}))
        return result

    def _replace(self, **changes: Any) -> Self:
        """Return the pair with other fields and the same conventions."""
        return type(self)(**{"operation": self.operation, "options": self.options, "conventions": self.conventions, **changes})

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments that make a copy."""
        return (self.operation, self.options, dict(self.conventions))

    def __getstate__(self) -> None:
        """Return no state: `__getnewargs__` has all."""

    def __repr__(self) -> str:
        """Return the pair as text, with its conventions if it has any."""
        beside = f", conventions={dict(self.conventions)!r}" if self.conventions else ""
        return f"Entry(operation={self.operation!r}, options={self.options!r}{beside})"


class RopeArguments(TypedDict):
    """Keyword arguments of `posref.rope`."""

    layout: Layout
    base: float
    rotary_dim: int
    scaling: Scaling | None
    lanes: NotRequired[Lanes]
    inverse: NotRequired[bool]


class MRopeArguments(TypedDict):
    """Keyword arguments of `posref.mrope`."""

    sections: tuple[int, ...]
    arrangement: Arrangement
    layout: Layout
    base: float
    scaling: Scaling | None


class Factors(TypedDict):
    """The factors of a context extension, by the place where each is applied."""

    table: float
    input: float
    softmax: float

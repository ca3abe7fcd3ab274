"""What the readers of configurations return, for type checkers: `posref.rope(x, positions, **rope_from_config(config))`."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple, NotRequired, Protocol, TypeAlias, TypedDict

from posref.rotary.axial_table import Arrangement
from posref.scaling import Scaling
from posref.types import Lanes, Layout


class HasToDict(Protocol):
    """A configuration object, such as those of transformers."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return its fields by name."""


Config: TypeAlias = "Mapping[str, Any] | HasToDict | str | PathLike[str]"  # what the readers accept


class Entry(NamedTuple):
    """One encoding of a model. Its options are None if posref does not define it or the file does not decide them."""

    operation: str
    options: dict[str, Any] | None


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

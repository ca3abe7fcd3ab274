"""What the readers of configurations return, for type checkers: `posref.rope(x, positions, **rope_from_config(config))`."""

from typing import NotRequired, TypedDict

from posref.rotary.axial_table import Arrangement
from posref.scaling import Scaling
from posref.types import Lanes, Layout


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
    """The factors of a context extension, by where they go."""

    table: float
    input: float
    softmax: float

"""Charts as data: lines, maps and points, with the names and units of the axes. `drawing` draws them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Chart:
    """What every chart has: a title, the names of its axes with units, and a caption (`seen`)."""

    title: str
    x_label: str
    y_label: str
    seen: str

    def arrays(self) -> dict[str, Numbers]:
        """Return every number in the chart, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Name the chart, without its numbers."""
        return f"<{type(self).__name__}: {self.title}>"

    def _repr_png_(self) -> bytes:
        """Draw the chart where a notebook shows it."""
        from .drawing import png  # loads matplotlib

        return png([self])


@dataclass(frozen=True, repr=False)
class Lines(Chart):
    """Curves, each with its x values. `marks` are vertical lines by name, `ranges` are bands around curves."""

    series: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    steps: bool = False
    points: bool = False

    def arrays(self) -> dict[str, Numbers]:
        """Return x and y of every curve, and the bands."""
        found: dict[str, Numbers] = {}
        for name, (x, y) in self.series.items():
            found |= {f"{name}/x": x, f"{name}/y": y}
        for name, (low, high) in self.ranges.items():
            found |= {f"{name}/low": low, f"{name}/high": high}
        return found


@dataclass(frozen=True, repr=False)
class Map(Chart):
    """A heat map with row 0 at the top. NaN in `values` is left blank."""

    values: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    unit: str = ""
    first: tuple[float, float] = (0.0, 0.0)  # the x of column 0 and the y of row 0
    square: bool = False

    def arrays(self) -> dict[str, Numbers]:
        """Return the values."""
        return {"values": self.values}


@dataclass(frozen=True, repr=False)
class Points(Chart):
    """One dot for each pair of numbers. `colour` holds a number for each dot, in `unit`."""

    x: Numbers = field(default_factory=lambda: np.zeros(0))
    y: Numbers = field(default_factory=lambda: np.zeros(0))
    colour: Numbers = field(default_factory=lambda: np.zeros(0))
    unit: str = ""

    def arrays(self) -> dict[str, Numbers]:
        """Return the coordinates and the colours."""
        return {"x": self.x, "y": self.y, "colour": self.colour}

"""
The picture of each operation: what the encoding is for, drawn with inputs that were chosen to show it.

A function draws the picture of the operation of its name. Its docstring states the property that the picture must show, in
one line, and `picture` is given a test of that property, which reads the drawn numbers. If the picture is a chart of a kind, as
of positions, the function of this name is the test (`of_kind`). To add the picture of a new operation, write such a function in
the module of its family.
"""

from . import absolute, attention, bias, extension, positions, relative, rotary  # noqa: F401
from .made import MAKERS, OWN, PICTURES, Picture

__all__ = ["MAKERS", "OWN", "PICTURES", "Picture"]

"""Makers of cases and mistakes."""

from ...model import Case as Case
from .case import cases_of as cases_of
from .cotangents import gradient as gradient
from .deviation import after as after
from .deviation import argument as argument
from .deviation import before as before
from .deviation import deviations_of as deviations_of
from .deviation import narrowed as narrowed
from .deviation import option as option
from .forms import pairs as pairs
from .forms import places as places
from .numbers import floats as floats

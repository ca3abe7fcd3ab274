"""
What the evidence of an operation says of its generated calls. Each name may be missing.

=================  ==========================================================================================================
``USUAL``          options of a generated call
``SIZES``          sizes of axes by letter, where `every.made_calls.SIZES` does not fit
``WAY``            the alternative of the axes in a generated call; by default the first one with tokens
``AXES``           further numbers of position axes: a generated case for each
``SATURATES``      True: large numbers give the same results as others in whatever dtype, so that none are asked
``GAPS``           names of mistakes that fewer than two cases of the operation catch
``UNSTORED``       names of calls of the four rules that no mistake fails, or that are large: the kernel tier alone asks them
``KERNEL``         options of calls in the kernel tier: one call for each, at every size; none: no such calls
``KERNEL_SIZES``   sizes by letter of these calls, where they do not follow from what a kernel of the kind has: real widths
``WITH_OPTION``    by option, what calls that differ in it alone have besides (options, sizes by letter): without it the option
                   does not act, or has no second value; ``""`` is for all options, ``option=word`` for one word
``OTHER_VALUES``   the second value of an option in these calls, where a near one does not act
``EVERY_SIZE``     True: all sizes of the kernel tier, since many kernels compute the operation; else few
``cases()``        the operation's own cases
``more(make)``     cases that are made from the axes too, but that do not follow from them: `tools.case.Make`
``DEVIATIONS``     the known mistakes of the operation alone
=================  ==========================================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..index import evidence_of

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """The names above, in small letters, with what holds if one is missing."""

    usual: Options
    sizes: Mapping[str, Any]
    way: int | None
    axes: tuple[int, ...]
    saturates: bool
    gaps: tuple[str, ...]
    unstored: tuple[str, ...]
    kernel: tuple[Options, ...]
    every_size: bool
    kernel_sizes: Mapping[str, Any] | None
    with_option: Mapping[str, Options]
    other_values: Options

    @property
    def options(self) -> dict[str, Any]:
        """The options of a generated call, to add others to."""
        return dict(self.usual)


@cache
def facts_of(op: str) -> Facts:
    """Return the facts of an operation."""
    stated = evidence_of(op)
    return Facts(
        usual=getattr(stated, "USUAL", {}),
        sizes=getattr(stated, "SIZES", {}),
        way=getattr(stated, "WAY", None),
        axes=getattr(stated, "AXES", ()),
        saturates=getattr(stated, "SATURATES", False),
        gaps=getattr(stated, "GAPS", ()),
        unstored=getattr(stated, "UNSTORED", ()),
        kernel=getattr(stated, "KERNEL", ()),
        every_size=getattr(stated, "EVERY_SIZE", False),
        kernel_sizes=getattr(stated, "KERNEL_SIZES", None),
        with_option=getattr(stated, "WITH_OPTION", {}),
        other_values=getattr(stated, "OTHER_VALUES", {}),
    )

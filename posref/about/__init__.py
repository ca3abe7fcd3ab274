"""
What every operation is, in words: title, idea, and the meaning of each word that its options take.

A file for each family, as for definitions; words that several operations share are in `options.py`. Terminal and pages read
it here. Definitions do not, so that a changed sentence needs no new proof.
"""

from . import absolute, attention, bias, extension, positions, relative, rotary
from .record import About, Word, Words

FAMILIES = {
    "absolute": absolute, "rotary": rotary, "bias": bias, "relative": relative, "attention": attention, "extension": extension,
    "positions": positions,
}  # fmt: skip
ABOUT: dict[str, About] = {name: said for family in FAMILIES.values() for name, said in family.ABOUT.items()}

__all__ = ["ABOUT", "FAMILIES", "About", "Word", "Words"]

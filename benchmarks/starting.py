"""What an import costs, in a process of its own."""

import subprocess
import sys

from .lines import Call, Line, Work


def python(*arguments: str) -> Call:
    """Return a call that runs Python in a process of its own, and fails if that does."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def importing(small: bool) -> Work:
    """Import posref."""
    del small
    return Work(python("-c", "import posref"), python("-c", "pass"))


def first_call(small: bool) -> Work:
    """Import posref and rotate once, in NumPy. The peer imports NumPy."""
    del small
    code = "import numpy as np, posref; posref.rope(np.ones((4, 8)), np.arange(4), layout='half', base=10000.0)"
    return Work(python("-c", code), python("-c", "import numpy"))


LINES = (
    Line("import posref", "a bare interpreter", 3.0, importing),
    Line("import posref and NumPy, first call", "import numpy", None, first_call),
)

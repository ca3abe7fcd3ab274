"""Golden data: values that both witnesses prove, in a second of CPU."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from .lines import Line, Work
from .starting import python

TOKENS, RATE = 1024, "values a CPU second"


def proving(small: bool, op: str, *arguments: str) -> Work:
    """Write golden data, 128 values for each token."""
    tokens = 2 if small else TOKENS
    shape = ("--shape", f"{tokens},128") if op == "rope" else ()

    def ours() -> None:
        with TemporaryDirectory() as folder:
            call = (op, *arguments, *shape, "--positions", f"0:{tokens}")
            python("-m", "posref", "golden", *call, "-o", str(Path(folder) / "golden.npz"))()

    return Work(ours, items=128 * tokens)


def of(op: str, *options: str) -> Callable[[bool], Work]:
    """Return the builder of a line."""
    return lambda small: proving(small, op, *(word for option in options for word in ("--option", option)))


LINES = (
    Line("golden rope, 131072 values", RATE, 10_000.0, of("rope", "layout=half", "base=10000.0")),
    Line("golden sinusoidal, 131072 values", RATE, 10_000.0, of("sinusoidal", "layout=interleaved", "dim=128")),
)

"""
Count the files of posref that a walk through the code crosses: those in which a function is called.

    python tests/walk.py check    # a check of one wrong stage
    python tests/walk.py golden   # golden data of a preset

What modules do while they are imported does not count, nor does what runs in other processes.
"""

import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from posref import backends, conformance, spec
from posref.cli import main
from posref.conformance import check

BROKEN = Path(__file__).parents[1] / "examples" / "broken_rope.py"
FOLDERS = {
    f"{Path(str(module.__file__)).parent}/": name  # of a checkout, or as it is installed
    for name, module in (("conformance", conformance), ("backends", backends), ("posref", spec))
}


@cache
def name_of(file: str) -> str:
    """Return the path of a file in the repository; nothing if it is not posref's."""
    return next((f"{name}/{file.removeprefix(folder)}" for folder, name in FOLDERS.items() if file.startswith(folder)), "")


class Walk:
    """Counts the calls of functions by file, by `sys.setprofile`."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.imports = 0  # modules that are being imported

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call of a function."""
        if frame.f_code.co_name == "<module>":
            self.imports += (event == "call") - (event == "return")
        elif event == "call" and not self.imports and (name := name_of(frame.f_code.co_filename)):
            self.calls[name] += 1

    def __enter__(self) -> Counter[str]:
        sys.setprofile(self)
        return self.calls

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


def walk_of_check() -> Counter[str]:
    """Check the example with a wrong stage."""
    with Walk() as calls:
        report = check(str(BROKEN), op="rope_table")
    assert report.operations[0].diagnosis["names"] == ["positions-float16"]
    return calls


def walk_of_golden() -> Counter[str]:
    """Write golden data of a preset."""
    with TemporaryDirectory() as folder:
        options = ["--preset", "llama-3-8b", "--positions", "0:64", "--shape", "1,64,128", "-o", f"{folder}/rope.npz"]
        sys.argv = ["posref", "golden", "rope", *options]
        with Walk() as calls, suppress(SystemExit):
            main()
        assert Path(folder, "rope.npz").exists()
    return calls


if __name__ == "__main__":
    walks = {"check": walk_of_check, "golden": walk_of_golden}
    if len(sys.argv) != 2 or sys.argv[1] not in walks:
        sys.exit(f"usage: python tests/walk.py {' | '.join(walks)}")
    found = walks[sys.argv[1]]()
    for name in sorted(found):
        print(f"{found[name]:8} {name}")
    print(f"{len(found)} files")

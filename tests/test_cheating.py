"""By the command line no wrong target reaches exit code 0, however it tries, and the right ones do, however odd they are."""

import re
from pathlib import Path

from cheating import RIGHT, WRONG, run
from sampling import few


@few(1, "name", WRONG, dear=True)
def test_a_wrong_target_never_passes(name: str, tmp_path: Path) -> None:
    done = run(WRONG[name], tmp_path)
    assert done.returncode in (1, 2), done.stdout[-1000:] + done.stderr[-1000:]
    assert "Traceback" not in done.stdout + done.stderr
    assert "\nCONFORMANT" not in done.stdout


IGNORED = re.compile(r"Exception ignored in.*\nTraceback.*\n(?: .*\n)*.+\n")  # Python says so of a target's own objects


@few(1, "name", RIGHT)
def test_a_right_target_passes(name: str, tmp_path: Path) -> None:
    done = run(RIGHT[name], tmp_path)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    assert "CONFORMANT" in done.stdout
    assert "Traceback" not in IGNORED.sub("", done.stderr), done.stderr

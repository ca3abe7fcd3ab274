"""The command line: measure the lines, print the table, write it and compare it with a previous one."""

import argparse
import gc
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .lines import Line, Missing

THEMES = ("rotation", "tables", "biases", "attention", "gradients", "starting", "checking", "golden", "gpu")
ABOUT = (
    "Measure posref's speed and memory beside its peers', and print a table. A ratio is posref's time to its peer's: the "
    "median over rounds, with its quartiles. The second ratio is of CPU time, of all threads and processes, which other "
    "programs disturb less. Goals are for a quiet machine with two cores."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write it as JSON if asked."""
    asked = _parsed(arguments)
    if asked.threads:
        os.environ["OMP_NUM_THREADS"] = str(asked.threads)  # before a library starts its threads
    import torch

    from . import report
    from .machine import machine

    if asked.threads:
        torch.set_num_threads(asked.threads)
    previous = json.loads(asked.against.read_text(encoding="utf-8"))["lines"] if asked.against else []
    before = {_key(line): line for line in previous}
    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items() if value is not None))
    print(report.HEAD)
    lines = []
    for theme in asked.themes or THEMES:
        print(f"-- {theme}", flush=True)
        for line in importlib.import_module(f"benchmarks.{theme}").LINES:
            if asked.line and asked.line not in line.name:
                continue
            lines.append(figures(theme, line, small=asked.small, seconds=0.0 if asked.small else asked.seconds))
            print(report.row(lines[-1], before.get(_key(lines[-1]))), flush=True)
    if asked.output:
        text = json.dumps({"machine": about, "small": asked.small, "lines": lines}, indent=1)
        asked.output.write_text(text + "\n", encoding="utf-8")
    return 0


def figures(theme: str, line: Line, *, small: bool, seconds: float) -> dict[str, Any]:
    """Return the figures of a line, or why there are none."""
    import torch

    from .measure import measured

    gc.collect()  # arrays of other lines would crowd the memory
    torch.manual_seed(0)
    head: dict[str, Any] = {"theme": theme, "name": line.name, "peer": line.peer, "goal": None, "memory_goal": None}
    if not small:
        head |= {"goal": line.goal, "memory_goal": line.memory} | ({"cost": line.cost} if line.cost else {})
    try:
        return head | measured(line, line.build(small), seconds=seconds)
    except Missing as reason:
        return head | {"missing": str(reason)}


def _key(line: Mapping[str, Any]) -> tuple[str, ...]:
    return (line["theme"], line["name"], line["peer"])


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=ABOUT)
    parser.add_argument("themes", nargs="*", metavar="THEME", help=f"some of {', '.join(THEMES)}; all by default")
    parser.add_argument("--line", metavar="TEXT", help="only lines with this text in their names")
    parser.add_argument("--small", action="store_true", help="tiny sizes and three rounds, to see that everything runs")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each line with a peer (default 4, or seven rounds)")
    parser.add_argument("--threads", type=int, help="threads of PyTorch (by default as many as it takes itself)")
    parser.add_argument("--against", type=Path, metavar="FILE", help="a table written before, to compare with")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the table as JSON")
    options = parser.parse_args(arguments)
    if wrong := [theme for theme in options.themes if theme not in THEMES]:
        parser.error(f"no theme {', '.join(wrong)}: choose from {', '.join(THEMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())

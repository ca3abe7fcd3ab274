"""The page of speed: the last tables that `python -m benchmarks -o benchmarks/last.json` and `nox -s gpu` wrote."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TABLES = ("last.json", "gpu.json")
COLUMNS, RULE = "| work | beside | goal | time | CPU time | memory |", "|---|---|---|---|---|---|"
HEAD = """\
# Speed

How long posref takes, beside what you would call instead. A ratio of 0.4 means that posref takes 0.4 of the other's time: the
median over rounds in which both run in turn, in one process, with the quartiles in brackets. The second ratio is of CPU time,
of all threads. Memory is the ratio of the peaks in one call. A goal that was missed is marked.

`python -m benchmarks` measures this on your machine. `--against FILE` compares it with a table that `-o FILE` wrote.
"""


def page() -> str:
    """Return the page, with the tables that were measured."""
    return "\n".join([HEAD, *(line for name in TABLES if (FOLDER / name).exists() for line in _table(FOLDER / name))])


def _table(file: Path) -> list[str]:
    measured = json.loads(file.read_text(encoding="utf-8"))
    machine = ", ".join(f"{name} {value}" for name, value in measured["machine"].items() if value is not None)
    lines = [f"Measured with: {machine}.", ""]
    for theme, members in groupby(measured["lines"], key=lambda line: line["theme"]):
        rows = {_row(line): line for line in members}
        lines += [f"## {theme.capitalize()}", "", COLUMNS, RULE, *rows, ""]
        costs = [f"- {line['name']}: {line['cost']}" for row, line in rows.items() if "missed" in row and line.get("cost")]
        lines += ["What it would take to reach a goal that was missed:", "", *costs, ""] if costs else []
    return lines


def _row(line: dict[str, Any]) -> str:
    """Return a row of the table; goals of time and of memory stand in one column."""
    of_memory = f"(memory {_number(line['memory_goal'])})" if line["memory_goal"] is not None else ""
    goal = " ".join(goal for goal in (_number(line["goal"]), of_memory) if goal) or "-"
    head = f"| {line['name']} | {line['peer']} | {goal} |"
    if "missing" in line:
        return f"{head} {line['missing']} | | |"
    memory = (line.get("memory") or {}).get("ratio")
    if "cpu" in line:
        figure = line.get("a_second", line["cpu"])
        missed = line["goal"] is not None and (figure < line["goal"] if "a_second" in line else figure > line["goal"])
        return f"{head} {line['ours']:.1f} s | {_number(figure)}{_mark(missed)} | |"
    ratio = line.get("ratio")
    missed = ratio is not None and line["goal"] is not None and ratio[1] > line["goal"]
    too_much = memory is not None and line["memory_goal"] is not None and memory > line["memory_goal"]
    return f"{head} {_spread(ratio)}{_mark(missed)} | {_spread(line.get('cpu_ratio'))} | {_number(memory)}{_mark(too_much)} |"


def _mark(missed: bool) -> str:
    return " (missed)" if missed else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _spread(ratio: list[float] | None) -> str:
    return f"{_number(ratio[1])} ({_number(ratio[0])} to {_number(ratio[2])})" if ratio else ""

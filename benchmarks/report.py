"""The table as text: a line's figures, whether its goal is met, and what they were before."""

from collections.abc import Mapping
from typing import Any

HEAD = f"{'':50} {'goal':>6}  {'ratio':21} {'of CPU time':21} {'posref':>9} {'peer':>9}  {'memory':12}"


def row(line: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """Return a line as text, with the figure of a previous table if there is one."""
    name = f"{line['name'][:50]:50}"
    if "missing" in line:
        return f"{name}   {line['missing']}"
    text = f"{name} {_number(line['goal']) or '-':>6}  {_ratio(line.get('ratio')):21} {_ratio(line.get('cpu_ratio')):21}"
    text += f" {_seconds(line.get('ours')):>9} {_seconds(line.get('theirs')):>9}  {_memory(line):12}"
    text += {True: "", False: "  missed", None: ""}[met(line)]
    text = f"{text.rstrip()}  {line['cpu']:.2f} s of CPU" if "cpu" in line else text.rstrip()
    text += f", {line['a_second']:,.0f} a second" if "a_second" in line else ""
    cost = f"\n      to reach it: {line['cost']}" if met(line) is False and line.get("cost") else ""
    return text + _change(line, before) + f"  ({line['peer']})" + cost


def met(line: Mapping[str, Any]) -> bool | None:
    """Return whether a line meets its goals, None if it has none. Of a ratio the better one counts of elapsed and CPU time."""
    goals = []
    figure = value(line)
    if line["goal"] is not None and figure is not None:
        goals.append(figure >= line["goal"] if "a_second" in line else figure <= line["goal"])
    if line["memory_goal"] is not None and (line.get("memory") or {}).get("ratio") is not None:
        goals.append(line["memory"]["ratio"] <= line["memory_goal"])
    return all(goals) if goals else None


def value(line: Mapping[str, Any]) -> float | None:
    """Return the figure that a goal is for: items a second, CPU seconds, or the ratio of elapsed time."""
    if "a_second" in line:
        return float(line["a_second"])
    if "cpu" in line:
        return float(line["cpu"])
    return float(line["ratio"][1]) if "ratio" in line else None


def _change(line: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return the previous figure, and a word where the spreads of both do not meet."""
    old = None if before is None or "missing" in before else value(before)
    if old is None or before is None or value(line) is None:
        return ""
    word = ""
    if "ratio" in line and "ratio" in before:
        (low, _, high), (old_low, _, old_high) = line["ratio"], before["ratio"]
        word = ", slower" if low > old_high else ", faster" if high < old_low else ""
    return f"  before {_number(old)}{word}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(spread: Any) -> str:
    """Return a median with its quartiles."""
    return f"{_number(spread[1])} ({_number(spread[0])} to {_number(spread[2])})" if spread else ""


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _memory(line: Mapping[str, Any]) -> str:
    memory = line.get("memory")
    if not memory or memory["ratio"] is None:
        return ""
    goal = f" of {_number(line['memory_goal'])}" if line["memory_goal"] is not None else ""
    return f"{_number(memory['ratio'])}{goal}"

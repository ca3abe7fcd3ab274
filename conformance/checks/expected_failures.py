"""Reads a file of expected failures: one case a line, with its reason. A listed case that passes fails the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import TargetError, VectorError, shown
from ..suite.safe_files import read_named

LINE = re.compile(r"(?P<pattern>\S+)(?:\s+=(?P<count>\d+))?(?:\s+(?P<reason>.*))?$")


@dataclass(frozen=True)
class Expected:
    """The cases that a file names, with reasons."""

    path: Path | None
    reasons: Mapping[str, str]

    def reason(self, name: str) -> str | None:
        """Return why a case (``id[dtype]``) is expected to fail, or None if it is not."""
        return self.reasons.get(name)

    def contradiction(self, name: str, *, failed: bool) -> str | None:
        """Return what is wrong with the file if it names a case that does not fail."""
        if failed or name not in self.reasons:
            return None
        return f"passes, but {self.path} expects it to fail: remove it from that file"


def load(path: Path | None, names: Sequence[str]) -> Expected:
    """
    Return the expected failures among `names`, each ``id[dtype]``.

    A line is ``op/group/case reason``, for every dtype asked, or ``op/group/case[dtype] reason``. A pattern with ``*`` says
    how many it stands for, ``rope/half/* =12 reason``, so that it cannot cover what is added later. ``#`` begins a comment.

    Raises
    ------
    TargetError
        If the file cannot be read, a line is malformed or stands for no case, or a count is not right.
    """
    if path is None:
        return Expected(None, {})
    try:
        lines = read_named(path).decode("utf-8").splitlines()
    except (VectorError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as a list of expected failures: {error}."
        raise TargetError(msg) from error
    reasons: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            reasons |= _entry(f"{path}, line {number}", text, names)
    return Expected(path, reasons)


def _entry(where: str, text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the cases of one line, with its reason."""
    parts = LINE.match(text)
    assert parts is not None  # any text has a first word
    pattern, count = parts["pattern"], parts["count"]
    many = "*" in pattern
    matching = [n for n in names if _matches(n, pattern)]
    if not matching:
        msg = f"{where}: {pattern!r} is not a case of this check; posref list --cases OP lists them."
        raise TargetError(msg)
    if many and (count is None or count.lstrip("0") != str(len(matching))):
        stated = "no count" if count is None else f"={shown(count, 20)}"
        msg = f"{where}: a pattern must say how many cases it matches; {pattern!r} matches {len(matching)}, got {stated}."
        raise TargetError(msg)
    return dict.fromkeys(matching, parts["reason"] or "")


def _matches(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a name, or its id without the dtype. Brackets are not wildcards here."""
    literal = pattern.replace("[", "[[]")
    return fnmatchcase(name, literal) or fnmatchcase(name.partition("[")[0], literal)

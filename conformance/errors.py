"""Named errors, and how their messages quote text of third parties."""

from collections.abc import Iterable
from typing import Any

from posref.core.checks import quoted
from posref.spec import REGISTRY

from .model import NOT_JUDGED


def meant(word: Any, known: Iterable[str], most: int = 1) -> str:
    """Return the known words that are spelled nearly as a word, in capitals or not, as a sentence, or nothing."""
    from difflib import get_close_matches

    spelled = {name.lower(): name for name in known}
    near = [spelled[name] for name in get_close_matches(str(word).lower(), list(spelled), n=most)]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def no_operation(argument: str, name: Any, known: Iterable[str] = REGISTRY, *, hint: str = "") -> str:
    """Return the error for an unknown operation, with near names, or a hint, or where to find all names."""
    near = meant(name if isinstance(name, str) else getattr(name, "__name__", ""), known, most=3)
    remedy = near or ("" if hint else " posref list prints them all.")
    return f"{argument} must be the name of an operation; got {quoted(name)}.{remedy}{hint}"


class PosrefError(Exception):
    """A bad file, target or option, so that nothing could run. The message says what, where and what to do."""


class VectorError(PosrefError):
    """A vector file that is missing, malformed, altered or untrue."""


class TargetError(PosrefError):
    """A target that cannot be loaded."""


class BuildError(PosrefError):
    """A case that cannot become a vector: the witnesses disagree, or a decision lies within its tolerance."""


class Disagreement(BuildError):
    """A value on which the two witnesses differ: one of them is wrong."""


class Unsupported(Exception):
    """Raised by an implementation for what it does not support. The case then lies outside its scope; it is not a failure."""


class Stopped(Exception):
    """A call that ended without a result: `verdict` is error, crash, timeout, protocol or not-run."""

    def __init__(self, verdict: str, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class NotJudged(Exception):
    """
    A call without a verdict, and why.

    `verdict` is "not-judged", or "not-run" where something is missing; `doubt` says more where that is a fault of posref.
    """

    def __init__(self, reason: str, verdict: str = NOT_JUDGED, doubt: str = "") -> None:
        super().__init__(reason)
        self.verdict, self.doubt = verdict, doubt


class Failure(Exception):
    """A result that is wrong in shape, dtype, finiteness or conduct."""


def shown(text: str | bytes, limit: int = 300) -> str:
    """Return text on one line, its middle left out beyond `limit` characters, with what is not printable escaped."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if len(text) > limit:
        text = f"{text[: limit * 2 // 3]} ... {text[-limit // 3 :]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable(text: str) -> str:
    """Return third-party text on one line and without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.replace("\n", " "))

"""Golden vectors for positional encodings, and the check of an implementation against them."""

from typing import Any

from .errors import PosrefError, Unsupported

__all__ = ["PosrefError", "Report", "Unsupported", "check", "check_call", "golden", "golden_suite"]


def __getattr__(name: str) -> Any:
    """Load the checker and the prover when they are first asked for."""
    if name in ("check", "check_call"):
        from .checks import check

        return getattr(check, name)
    if name == "Report":
        from .reports.report import Report

        return Report
    if name == "golden":
        from .proof.evaluation import golden

        return golden
    if name == "golden_suite":
        from .proof.build import golden_suite

        return golden_suite
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)

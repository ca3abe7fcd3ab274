"""What torch.compile does not say in a result: that it has given up compiling a function."""

from __future__ import annotations

import sys


def given_up() -> int:
    """Return how often torch.compile has reached its limit of variants of one function in this process."""
    utilities = sys.modules.get("torch._dynamo.utils")  # a target that compiles nothing does not pay for the import
    reasons = getattr(utilities, "counters", {}).get("unimplemented", {})
    return sum(times for reason, times in reasons.items() if "recompile limit exceeded" in str(reason))


def remarks(before: int) -> tuple[str, ...]:
    """Return a note for a report if torch.compile has given up since there were `before`."""
    if given_up() <= before:
        return ()
    limit = getattr(sys.modules.get("torch._dynamo.config"), "recompile_limit", 8)
    return (
        f"torch.compile reached its limit of {limit} variants of one function: other calls ran uncompiled, or raised. For "
        "compiled code to be checked, set torch._dynamo.config.recompile_limit = 1000 in the target.",
    )

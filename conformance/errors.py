"""Named errors of the conformance suite."""


class PosrefError(Exception):
    """Something that could not run: a bad file, target or option. The message says what, where and what to do."""


class VectorError(PosrefError):
    """A vector file that is missing, malformed, altered or untrue."""


class TargetError(PosrefError):
    """A target that cannot be loaded."""


class BuildError(PosrefError):
    """A case that cannot become a vector: the witnesses disagree, or a decision lies within its tolerance."""


class Disagreement(BuildError):
    """A value on which the two witnesses differ: one of them is wrong."""


class Unsupported(Exception):
    """Raised by an implementation for what it does not do; never a failure."""


class Stopped(Exception):
    """A call that ended without a result: `verdict` is error, crash, timeout, protocol or not-run."""

    def __init__(self, verdict: str, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class Failure(Exception):
    """A result that is wrong in shape, dtype, finiteness or conduct."""

"""Text of third parties, fit for a line of a report: short, and without control characters."""


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

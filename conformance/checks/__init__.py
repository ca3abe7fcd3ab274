"""The check: asking a target, judging its answers, and what they say together."""

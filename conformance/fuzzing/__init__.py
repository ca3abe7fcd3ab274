"""Fuzzing: random calls, compared with proved values."""

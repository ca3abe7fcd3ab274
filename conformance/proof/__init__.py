"""Golden values and tolerances: proved by two witnesses and built into files."""

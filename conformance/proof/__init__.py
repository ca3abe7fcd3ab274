"""Golden values and tolerances: proved by two witnesses, built into files, proved again."""

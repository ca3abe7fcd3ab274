"""``python -m posref``."""

from posref.cli import main

main()

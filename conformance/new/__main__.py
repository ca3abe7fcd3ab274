"""Runs the script: ``python -m posref.conformance.new NAME --like alibi``."""

from . import new

new(prog_name="python -m posref.conformance.new")

"""Runs the script: ``python -m posref.conformance.new NAME --like alibi``."""

from .skeleton import new

new(prog_name="python -m posref.conformance.new")

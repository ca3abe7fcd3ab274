"""Begins a new encoding: ``python -m posref.conformance.new NAME --like alibi``."""

"""Targets of a check: Python objects, processes that compute, programs in any language, and files."""

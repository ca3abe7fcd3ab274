"""Targets of a check: Python objects, Python modules in a process of their own, programs in any language, and files."""

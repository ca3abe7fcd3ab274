"""Experiments with an implementation: which change of a call changes its outcome."""

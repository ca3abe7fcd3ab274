"""Diagnosis: the mistake that explains why an implementation differs, and the strength of the suite."""

"""Explains why an implementation differs, and measures how well the suite tells mistakes apart."""

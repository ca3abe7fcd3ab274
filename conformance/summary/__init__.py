"""Summaries of the answers of an operation, for reports: classes, figures, meaning, systematic error and coverage."""

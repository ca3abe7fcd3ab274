"""What the answers of an operation come to: classes, figures, meaning, systematic error and coverage, as in reports."""

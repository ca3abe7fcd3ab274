"""The check: runs cases on a target, judges the answers, and draws conclusions."""

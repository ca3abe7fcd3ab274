"""One table of what every encoding does, with facts that are computed from the definitions."""

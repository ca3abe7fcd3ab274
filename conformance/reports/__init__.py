"""Reports in a terminal, as a page, and as summaries for machines."""

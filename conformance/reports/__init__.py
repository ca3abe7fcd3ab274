"""Forms of a report: in a terminal, as a page, and as summaries for machines."""

"""What a report looks like: in a terminal, as a page, and as summaries for machines."""

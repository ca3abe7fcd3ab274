"""Why an implementation differs, and how well the suite tells mistakes apart."""

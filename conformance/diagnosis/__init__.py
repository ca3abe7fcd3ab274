"""Why an implementation differs, and how strong the suite is at telling."""

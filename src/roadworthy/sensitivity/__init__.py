"""Which factors decide an outcome: surfaces with bands, importance, checks and what to run next, from records."""

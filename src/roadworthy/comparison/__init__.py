"""Compare runs: which episodes they share, how figures differ, and what the difference allows to conclude."""

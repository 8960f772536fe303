"""Tables of maps and scenarios, and the stores that load them from a pack."""

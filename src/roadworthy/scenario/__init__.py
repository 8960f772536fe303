"""Scenarios: what they are, where they are kept, how they are made and checked."""

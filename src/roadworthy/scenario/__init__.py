"""Scenarios: their schema, their files (packs), generation, import and validation."""

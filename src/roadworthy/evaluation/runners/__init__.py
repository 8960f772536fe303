"""Runners: how episodes run in driving worlds, and in Gymnasium environments."""

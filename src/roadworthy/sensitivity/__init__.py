"""Sensitivity analysis: which factors decide an outcome, with bands, checks, and suggestions for further episodes."""

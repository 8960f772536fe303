"""Roadworthy: train driving policies in a vectorised simulator and find out how good they are."""

__version__ = "0.1.0"

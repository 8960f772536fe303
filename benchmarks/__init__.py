"""Benchmarks: declared as data in `catalog`, run by `runner`, started with `python -m benchmarks [NAMES]`."""

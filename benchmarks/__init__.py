"""Benchmarks: declared as data in `catalog`, carried out by `runner`, started with `python -m benchmarks [NAMES]`."""

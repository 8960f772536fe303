"""Run episodes in worlds of the driving simulator."""

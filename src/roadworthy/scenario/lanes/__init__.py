"""Lanes of a map as a graph, and where a car is among them. Pure NumPy: nothing here is compiled."""

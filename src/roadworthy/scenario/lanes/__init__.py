"""The lanes of a map as a graph, and the location of a car among them. Pure NumPy, without kernels."""

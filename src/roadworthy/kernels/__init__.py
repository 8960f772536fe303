"""Compile functions for CPU and GPU: everything that touches the internals of Numba, LLVM and numba-cuda."""

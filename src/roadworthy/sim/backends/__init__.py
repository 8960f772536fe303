"""The order of the rules in a step: on the cores of a CPU, and as kernels of a GPU."""

"""Compile functions for CPU and GPU. No other package touches the internals of Numba, LLVM and numba-cuda.

`kernel` compiles a function that Python calls, `rule` a part of the simulator, `entry` a function of rules that Python
calls, and `cuda_kernel` a function that a GPU runs.
"""

from roadworthy.kernels.cache import cache_folder
from roadworthy.kernels.decorators import cuda_kernel, entry, kernel, rule

__all__ = ["cache_folder", "cuda_kernel", "entry", "kernel", "rule"]

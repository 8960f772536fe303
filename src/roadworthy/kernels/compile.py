"""Numba's compiler with the project's settings, and a cache that notices every change.

Numba's own cache looks only at the file of the function that is compiled, not at the files of the functions it calls.
So the kernels of each part of the package (scenario, render, sim, policy) are cached in a folder named by a hash of the
sources of that part and of the parts that it calls, and of rules in files of their own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from roadworthy.kernels import linking

Function = TypeVar("Function", bound=Callable[..., Any])

# What rules may do with float32: fuse a*b+c, reorder sums, turn a division into a multiplication. NaN and infinity keep
# their meaning. It speeds up the simulator by a half; results stay the same from run to run and from slot to slot.
RULE_ARITHMETIC = {"contract", "reassoc", "nsz", "arcp"}

# The parts that each part's kernels call.
_CALLED: dict[str, tuple[str, ...]] = {"policy": ("scenario", "sim")}

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_RULE: dict[str, Any] = {"fastmath": RULE_ARITHMETIC, "_nrt": False}


@cache
def cache_folder(part: str) -> Path:
    """Where compiled kernels of a part are kept: below ROADWORTHY_CACHE, else below the user's cache folder."""
    base = os.environ.get("ROADWORTHY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "roadworthy"
    )
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    # How all of it is compiled, and the rules that metrics share.
    for name in ("kernels/compile.py", "kernels/linking.py", "kernels/gpu.py", "at_fault.py"):
        digest.update((root / name).read_bytes())
    for folder in sorted({*_CALLED.get(part, ("scenario",)), part}):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    checked = "-checked" if numba.config.BOUNDSCHECK else ""  # Numba's own index does not tell these apart
    return Path(base) / "numba" / f"{part}-{digest.hexdigest()[:16]}{checked}"


def kernel(function: Function) -> Function:
    """Compile for one core on first call: IEEE arithmetic (the same bytes everywhere), no GIL, cached on disk."""
    return _compiled(function)


def rule(function: Function) -> Function:
    """Compile a rule of the simulator: a function of one agent or world that other compiled functions call.

    Rules allocate nothing, so the arrays that they pass on need no counting of references, which would cost more than
    they do. Python can't call them: the code for that takes three quarters of the time to compile. See `entry`.
    """
    return _for_compiled_callers(function)


def inlined(function: Function) -> Function:
    """Compile a rule into each of its callers: for what every agent does in every step, where a call would cost."""
    return _for_compiled_callers(function, forceinline=True)


def on_gpu(scalar: Function) -> Callable[[Function], Function]:
    """Say what a GPU runs in the place of a rule that is made of a CPU's vector instructions: `@on_gpu(scalar)`."""

    def told(compiled: Function) -> Function:
        cast(Any, compiled).py_func = scalar
        return compiled

    return told


def entry(function: Function) -> Function:
    """Compile a rule that Python calls too."""
    compiled: Any = _compiled(function, **_RULE, pipeline_class=linking.EntryCompiler)
    if numba.config.ENABLE_CUDASIM:
        _never_compile(compiled, lambda *_, **__: compiled.py_func)
    compiled.targetoptions = {}
    return compiled


def parallel(function: Function) -> Function:
    """Compile a loop over worlds (`numba.prange`) that all cores share."""
    return _compiled(function, fastmath=RULE_ARITHMETIC, parallel=True, pipeline_class=linking.ParallelCompiler)


def gpu_kernel(function: Function) -> Function:
    """Compile a kernel that a GPU runs, cached on disk like everything else."""
    return _for_gpu(function, cache=True)


def gpu_kernel_with(registers: int | None = None, is_small: bool = False) -> Callable[[Function], Function]:
    """Compile a kernel that gets few registers per thread, so that more threads run at once, or for size.

    is_small: loops are not unrolled, for a kernel that is too long to stay in a GPU's cache of instructions.
    """

    def compiled(function: Function) -> Function:
        from roadworthy.kernels.gpu import IS_SIMULATED, make_small

        if is_small:
            make_small(function.__name__)
        limit = {} if registers is None or IS_SIMULATED else {"max_registers": registers}
        return _for_gpu(function, cache=True, **limit)

    return compiled


def gpu_part(function: Function) -> Function:
    """Compile a part of a kernel that needs to know which thread runs it."""
    return _for_gpu(function, device=True)


def _for_gpu(function: Function, **options: Any) -> Function:
    numba.config.CACHE_DIR = str(cache_folder(function.__module__.split(".")[1]))
    from roadworthy.kernels.gpu import cuda

    return cuda.jit(**options)(function)


def _for_compiled_callers(function: Function, **options: Any) -> Function:
    compiled: Any = numba.njit(
        **_ALWAYS,
        **_RULE,
        **options,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        pipeline_class=linking.RuleCompiler,
    )(function)  # not cached: it is part of whatever is

    def refuse(*_: Any, **__: Any) -> Any:
        if numba.config.ENABLE_CUDASIM:  # Python plays the GPU, and runs kernels and rules line by line
            return compiled.py_func
        raise TypeError(f"{function.__qualname__} is a rule; call it from a function that is decorated with @entry")

    _never_compile(compiled, refuse)
    compiled.targetoptions = options  # what a GPU gets: arithmetic that knows NaN, and accurate functions
    return compiled


def _never_compile(compiled: Any, what_to_call: Callable[..., Any]) -> None:
    """Let calls from Python ask for what to call, every time."""
    compiled._insert = lambda *_, **__: None
    compiled._compile_for_args = what_to_call


def _compiled(function: Function, **options: Any) -> Function:
    part = function.__module__.split(".")[1]
    numba.config.CACHE_DIR = str(cache_folder(part))  # read when the function is decorated
    return numba.njit(**_ALWAYS, **options, cache=True)(function)

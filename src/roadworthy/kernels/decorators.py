"""The four decorators that compile functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast, overload

from roadworthy.errors import MissingExtraError
from roadworthy.kernels.cache import caching
from roadworthy.kernels.installed import has_numba, load_linking, load_numba

Function = TypeVar("Function", bound=Callable[..., Any])

# What the compiler may do with float32 in rules: fuse a*b+c, reorder sums, multiply by a reciprocal. NaN and infinity
# keep their meaning. It makes the simulator 1.5 times as fast; results do not depend on the run or the slot.
RULE_ARITHMETIC = {"contract", "reassoc", "nsz", "arcp"}

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Rules allocate nothing, so the arrays that they pass on need no counting of references, which would cost more than
# they do.
_RULE: dict[str, Any] = {"fastmath": RULE_ARITHMETIC, "_nrt": False}


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, plain: bool | Callable[..., Any]) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, *, plain: Any = None) -> Any:
    """Compile for one core at the first call: IEEE arithmetic (the same bytes everywhere), no GIL, cached on disk.

    Args:
        plain: what runs where Numba is not installed: this function itself (True), or one that returns the same.
    """
    return _LazyKernel(function) if function else lambda function: _LazyKernel(function, plain)


@overload
def rule(function: Function) -> Function: ...


@overload
def rule(*, inline: bool = False, cuda: Callable[..., Any] | None = None) -> Callable[[Function], Function]: ...


def rule(function: Any = None, *, inline: bool = False, cuda: Any = None) -> Any:
    """Compile a rule of the simulator: a function of one agent or world that other compiled functions call.

    Rules allocate nothing. Python can't call them: the code for that takes three quarters of the time to compile. See
    `entry`.

    Args:
        inline: compile it into each of its callers, for what every agent does in every step, where a call would cost.
        cuda: the function that a GPU runs instead of a rule that is made of a CPU's vector instructions.
    """

    def compiled(function: Function) -> Function:
        made = _compiled_rule(function, inline)
        if cuda is not None:
            use_on_cuda(made, cuda)
        return made

    return compiled(function) if function else compiled


@overload
def entry(function: Function) -> Function: ...


@overload
def entry(*, parallel: bool) -> Callable[[Function], Function]: ...


def entry(function: Any = None, *, parallel: bool = False) -> Any:
    """Compile a function that Python calls and that calls rules, cached on disk.

    Args:
        parallel: share its loop over worlds (`threads.prange`) among all cores.
    """

    def compiled(function: Function) -> Function:
        if parallel:
            return _compiled(function, **_parallel())
        made: Any = _compiled(function, **_RULE, **_pipeline("EntryCompiler"))
        if load_numba().config.ENABLE_CUDASIM:
            _never_compile(made, lambda *_, **__: made.py_func)
        made.targetoptions = {}
        return cast(Function, made)

    return compiled(function) if function else compiled


def parallel_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as `entry(parallel=True)` does, without a cache on disk."""
    made: Callable[..., Any] = load_numba().njit(**_ALWAYS, **_parallel())(function)
    return made


@overload
def cuda_kernel(function: Function) -> Function: ...


@overload
def cuda_kernel(
    *, registers: int | None = None, small: bool = False, device: bool = False
) -> Callable[[Function], Function]: ...


def cuda_kernel(
    function: Any = None, *, registers: int | None = None, small: bool = False, device: bool = False
) -> Any:
    """Compile a kernel that a GPU runs, cached on disk.

    Args:
        registers: the most registers of a thread; with fewer, more threads run at once.
        small: do not unroll loops, for a kernel that is too long to stay in a GPU's cache of instructions.
        device: compile a part of a kernel that needs to know which thread runs it.
    """

    def compiled(function: Function) -> Function:
        from roadworthy.kernels.cuda import compile_kernel

        _replace_lazy_kernels(function)
        with caching(function):
            return cast(Function, compile_kernel(function, registers, small, device))

    return compiled(function) if function else compiled


def use_on_cuda(compiled: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Let a GPU run this function instead of a rule."""
    cast(Any, compiled).py_func = function


class _LazyKernel:
    """A function that is compiled at its first call, or when a function that calls it is compiled."""

    def __init__(self, function: Callable[..., Any], plain: bool | Callable[..., Any] = False) -> None:
        update_wrapper(self, function)
        self.py_func, self._plain = function, function if plain is True else plain

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.compiled(*arguments, **named)

    @cached_property
    def compiled(self) -> Any:
        """The function as Numba's dispatcher."""
        if not has_numba():
            if not self._plain:
                raise MissingExtraError(f"{self.py_func.__qualname__} needs Numba", "drive")
            return self._plain
        return _compiled(self.py_func)

    @property
    def _numba_type_(self) -> Any:  # Numba asks for it where a compiled function names this one
        return self.compiled._numba_type_


def _compiled_rule(function: Function, inline: bool) -> Function:
    _replace_lazy_kernels(function)
    numba = load_numba()
    linking = load_linking()
    options: dict[str, Any] = {"forceinline": True} if inline else {}
    if linking:
        # Neither called from Python nor emitted alone. Not cached: it is part of each entry that calls it.
        wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        compiled: Any = numba.njit(**_ALWAYS, **_RULE, **options, **wrappers, pipeline_class=linking.RuleCompiler)(
            function
        )
    else:
        compiled = numba.njit(**_ALWAYS, **_RULE, **options)(function)

    def refuse(*_: Any, **__: Any) -> Any:
        if numba.config.ENABLE_CUDASIM:  # Python runs kernels and rules line by line
            return compiled.py_func
        raise TypeError(f"{function.__qualname__} is a rule; call it from a function that is decorated with @entry")

    _never_compile(compiled, refuse)
    compiled.targetoptions = options  # what a GPU gets: arithmetic that knows NaN, and accurate functions
    return cast(Function, compiled)


def _compiled(function: Function, **options: Any) -> Function:
    numba = load_numba()
    with caching(function):
        return cast(Function, numba.njit(**_ALWAYS, **options, cache=True)(function))


def _parallel() -> dict[str, Any]:
    return {"fastmath": RULE_ARITHMETIC, "parallel": True, **_pipeline("ParallelCompiler")}


def _pipeline(name: str) -> dict[str, Any]:
    linking = load_linking()
    return {"pipeline_class": getattr(linking, name)} if linking else {}


def _never_compile(compiled: Any, what_to_call: Callable[..., Any]) -> None:
    """Let calls from Python ask for what to call, every time."""
    compiled._insert = lambda *_, **__: None
    compiled._compile_for_args = what_to_call


def _replace_lazy_kernels(function: Callable[..., Any]) -> None:
    """Compile the kernels that a function names: numba-cuda knows a function of the CPU by its dispatcher only."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, _LazyKernel):
            function.__globals__[name] = value.compiled

"""Compile functions of users, in memory only: a cache on disk could not see every change of what they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from roadworthy.errors import ConfigError
from roadworthy.kernels.decorators import parallel_entry
from roadworthy.kernels.installed import load_numba

Function = TypeVar("Function", bound=Callable[..., Any])


def user_entry(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function that Python calls and that calls rules of users, with its loop shared among all cores.

    Args:
        what: What is compiled, for errors, as "reward terms my_module:headway".
    """

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel = parallel_entry(function)
        failures = load_numba().core.errors.NumbaError

        def call(*arguments: Any) -> Any:
            try:
                return kernel(*arguments)
            except failures as error:
                reason = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
                raise ConfigError(
                    f"can't compile {what}: {reason}. These functions read arrays and compute numbers, and allocate "
                    "nothing"
                ) from error

        return call

    return compiled

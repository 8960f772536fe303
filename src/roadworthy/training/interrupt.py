"""Ctrl-C in training: stop at once where nothing can be lost, otherwise after the update, with a checkpoint."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """Handles SIGINT within its context, in the main thread.

    While scenarios are generated, kernels are compiled and evaluations run, Ctrl-C raises KeyboardInterrupt at once.
    Between the first update and the end, it sets `is_requested`; a second Ctrl-C raises.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.is_requested = False
        self.is_deferred = False
        self._say = say
        self._previous: Any = None

    def requested(self) -> bool:
        """Return whether training should stop after the current update."""
        return self.is_requested

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise at once within the block."""
        before, self.is_deferred = self.is_deferred, False
        try:
            yield
        finally:
            self.is_deferred = before

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, *_: Any) -> None:
        if self.is_requested or not self.is_deferred:
            raise KeyboardInterrupt
        self.is_requested = True
        self._say("finishing this update and saving a checkpoint; Ctrl-C again stops at once")

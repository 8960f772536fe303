"""Repeated: work that is done over and over on the same tensors, on a GPU as a captured graph."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Repeated:
    """A function that reads and writes tensors which stay where they are, and neither takes nor returns anything.

    On a GPU its operations, hundreds of small ones, are captured in a CUDA graph once it is warm (networks are compiled
    by then) and launched together from there on: launching them one by one takes longer than computing them.
    """

    def __init__(self, work: Callable[[], None], device: torch.device, warm_up: int) -> None:
        """warm_up: how often it is done as it stands before it is captured."""
        self._work, self._warm_up, self._left = work, warm_up, warm_up
        self._captures = device.type == "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream(device) if self._captures else None

    def __call__(self) -> None:
        """Do it once more."""
        if not self._captures:
            self._work()
        elif self._left > 0:
            self._left -= 1
            self._beside()
        else:
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=self._stream):
                    self._work()
            self._graph.replay()

    def forget(self) -> None:
        """Warm up and capture it anew: its tensors are others now, or what it calls."""
        self._graph, self._left = None, self._warm_up

    def _beside(self) -> None:
        """Do it on the stream that it will be captured on, as gradients have to be before they are captured."""
        assert self._stream is not None
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            self._work()
        current.wait_stream(self._stream)

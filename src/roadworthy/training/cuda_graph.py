"""CUDA graphs for work that is repeated on the same tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch


class CudaGraphRunner:
    """A function without arguments and results whose tensors stay in place; on a GPU it is replayed as a CUDA graph.

    Hundreds of small operations take longer to launch than to compute. They are captured once the function is warm,
    since networks are compiled by then, and launched together from then on.
    """

    def __init__(self, work: Callable[[], None], device: torch.device, warm_up: int) -> None:
        """Wrap a function; `warm_up` is the number of calls before the capture."""
        self._work, self._warm_up, self._warm_up_left = work, warm_up, warm_up
        self._captures = device.type == "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream(device) if self._captures else None

    def __call__(self) -> None:
        """Run the function."""
        if not self._captures:
            self._work()
        elif self._warm_up_left > 0:
            self._warm_up_left -= 1
            self._run_on_side_stream()
        else:
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=self._stream):
                    self._work()
            self._graph.replay()

    def reset(self) -> None:
        """Warm up and capture again, since the tensors or what the function calls have changed."""
        self._graph, self._warm_up_left = None, self._warm_up

    def _run_on_side_stream(self) -> None:
        """Run on the stream of the capture; gradients have to be allocated there before they are captured."""
        assert self._stream is not None
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            self._work()
        current.wait_stream(self._stream)

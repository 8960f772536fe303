"""Processes: sums over all that train together (torchrun), or nothing where there is one."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from roadworthy.errors import ConfigError


def is_first_process() -> bool:
    """Whether this is the first of the processes that torchrun started, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """This process among those that train together."""

    def __init__(self, device: str = "cpu") -> None:
        """Join the others, if torchrun started any; of several, each has a GPU of its own."""
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.count > 1 and device.startswith("cuda:"):
            raise ConfigError(
                f"device is {device!r} with {self.count} processes, of which each has a GPU of its own; set device to "
                '"cuda"'
            )
        is_shared = self.count > 1 and device == "cuda"
        self.device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if is_shared else device
        if is_shared:
            torch.cuda.set_device(self.device)
        if self.count > 1 and not dist.is_initialized():
            dist.init_process_group("gloo" if device == "cpu" else "nccl")

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, x: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            x = x.clone()
            dist.all_reduce(x)
        return x

    def any(self, wish: bool) -> bool:
        """Whether any process wishes it: then all do, and none waits for one that has left."""
        return bool(self.sum(torch.tensor(int(wish), device=self.device)) > 0) if self.count > 1 else wish

    def sum_gradients(self, module: nn.Module) -> None:
        """Add up all processes' gradients, in one message."""
        if self.count == 1:
            return
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def close(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()

"""Distributed training with torchrun: sums over all processes."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

from roadworthy.errors import ConfigError


def is_first_process() -> bool:
    """Return whether this is the first of the processes that torchrun started, or the only one."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """This process among those of a training run."""

    def __init__(self, device: str = "cpu") -> None:
        """Join the other processes, if torchrun started any; each of several processes has its own GPU."""
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.count > 1 and device.startswith("cuda:"):
            raise ConfigError(
                f'device is {device!r}, but each of the {self.count} processes has its own GPU; set device to "cuda"'
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
        """Return the sum over all processes."""
        if self.count > 1:
            x = x.clone()
            dist.all_reduce(x)
        return x

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process, so that all processes stop together."""
        return bool(self.sum(torch.tensor(int(flag), device=self.device)) > 0) if self.count > 1 else flag

    def sum_gradients(self, module: nn.Module) -> None:
        """Sum the gradients of all processes in one message."""
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

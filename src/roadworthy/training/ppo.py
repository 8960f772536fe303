"""PPO with correct masking of inactive agents.

Every mean runs over the steps that count (`Segment.loss_mask`) and is divided by their number, over all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.cores import Memory
from roadworthy.policy.network import PolicyNetwork
from roadworthy.training.advantage import estimate_advantages
from roadworthy.training.config import PpoConfig, Precision
from roadworthy.training.cuda_graph import CudaGraphRunner
from roadworthy.training.processes import Processes
from roadworthy.training.segment import RolloutBatch, Segment


class Losses(NamedTuple):
    """Means over the steps that count."""

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor  # an estimate of the KL divergence from the policy that acted
    clipfrac: Tensor  # share of steps whose probability ratio is beyond the clipping coefficient
    grad_norm: Tensor  # before gradients are scaled down


_WARM_UP = 3  # gradient steps before a CUDA graph is captured


class Learner:
    """Updates the weights of a policy."""

    def __init__(
        self, policy: PolicyNetwork, config: PpoConfig, seed: int, processes: Processes, shards: int = 1
    ) -> None:
        """Make the optimizer.

        shards: Number of equal parts of the rows of which minibatches take equal shares, so that one process with two
            shards learns the same as two processes with one each.
        """
        self.policy, self._config, self._seed = policy, config, seed
        self._processes, self._shards = processes, shards
        device = policy.value.weight.device
        is_cuda = device.type == "cuda"
        # A captured CUDA graph reads the learning rate from a tensor.
        rate = torch.tensor(config.learning_rate, device=device) if is_cuda else config.learning_rate
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=rate, eps=1e-5, fused=is_cuda, capturable=is_cuda)
        self._buffers: _Buffers | None = None
        # The trainer may replace these functions by their compiled forms.
        self.loss: Callable[..., tuple[Tensor, tuple[Tensor, ...], Tensor, Tensor]] = self._loss
        self.estimate: Callable[..., Tensor] = estimate_advantages

    def update(self, batch: RolloutBatch, number: int, learning_rate: float) -> dict[str, Tensor]:
        """Take the gradient steps of update `number`; return the losses. Nothing here waits for a GPU."""
        self._set_learning_rate(learning_rate)
        buffers, segment = self._buffers_for(batch), batch.segment
        buffers.loss_sums.zero_()
        explained_variance = self._explained_variance(segment)
        gradient_steps = 0
        for epoch in range(self._config.update_epochs):
            # Gradient steps write current ratios and values into the segment. Advantages of a row depend on these, and
            # a row that is drawn twice in an epoch must not see half of them, so they are estimated once per epoch.
            buffers.advantages.copy_(self._advantages(segment))
            torch.add(buffers.advantages, segment.values, out=buffers.returns)
            for rows in self._minibatches(segment, buffers.advantages, number * self._config.update_epochs + epoch):
                buffers.gradient_step(rows)
                gradient_steps += 1
        losses = Losses._make((buffers.loss_sums / gradient_steps).unbind())
        return losses._asdict() | {"explained_variance": explained_variance}

    def _gradient_step(self, buffers: _Buffers, rows: Tensor) -> None:
        """Update the weights once, from a minibatch of rows."""
        segment = buffers.batch.segment
        part = Segment(*(tensor.index_select(0, rows) for tensor in segment))
        memory = type(buffers.batch.memory)(*(tensor.index_select(0, rows) for tensor in buffers.batch.memory))
        advantages, returns = buffers.advantages.index_select(0, rows), buffers.returns.index_select(0, rows)
        count = self._processes.sum(part.loss_mask.sum()).clamp(min=1)
        mean = self._processes.sum(_sum(advantages, part.loss_mask)) / count
        variance = self._processes.sum(_sum((advantages - mean) ** 2, part.loss_mask)) / count
        normalized = (advantages - mean) / (variance.sqrt() + 1e-8)
        loss, losses, ratios, values = self.loss(part, memory, normalized, returns, count)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._processes.sum_gradients(self.policy)
        grad_norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self._config.max_grad_norm)
        self.optimizer.step()
        segment.ratios[rows] = torch.where(part.loss_mask, ratios.detach(), part.ratios)
        segment.values[rows] = torch.where(part.loss_mask, values.detach(), part.values)
        buffers.loss_sums.add_(torch.stack([*map(self._processes.sum, losses), grad_norm]))

    def _loss(
        self, part: Segment, memory: Memory, advantages: Tensor, returns: Tensor, count: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor, Tensor]:
        """Return the loss, its parts (see Losses), and the ratios and values of the current policy, (B, T)."""
        config, head = self._config, self.policy.head
        with torch.autocast(part.values.device.type, torch.bfloat16, enabled=config.precision is Precision.BFLOAT16):
            conditioning = part.conditioning if part.conditioning.shape[-1] else None
            logits, values = self.policy.sequence(part.observations, part.active, part.ended, memory, conditioning)
        log_ratio = head.log_prob(logits, part.actions) - part.log_probs
        # Masked before exp(): infinity times zero would be NaN in the gradients.
        log_ratio = torch.where(part.loss_mask, log_ratio, 0.0)
        ratios = log_ratio.exp()
        clipped_ratios = ratios.clamp(1.0 - config.clip_coef, 1.0 + config.clip_coef)
        policy_loss = -torch.minimum(ratios * advantages, clipped_ratios * advantages)
        clipped_values = part.values + (values - part.values).clamp(-config.vf_clip_coef, config.vf_clip_coef)
        value_loss = 0.5 * torch.maximum((values - returns) ** 2, (clipped_values - returns) ** 2)
        entropy = head.entropy(logits)

        def mean(x: Tensor) -> Tensor:
            return _sum(x, part.loss_mask) / count

        ent_coef = self._coefficient(part, "ent_coef", config.ent_coef)
        loss = mean(policy_loss + config.vf_coef * value_loss - ent_coef * entropy)
        with torch.no_grad():
            approx_kl = mean(ratios - 1.0 - log_ratio)
            clipfrac = mean(((ratios - 1.0).abs() > config.clip_coef).float())
        parts = (mean(policy_loss).detach(), mean(value_loss).detach(), mean(entropy).detach(), approx_kl, clipfrac)
        return loss, parts, ratios, values

    @torch.no_grad()
    def _advantages(self, part: Segment) -> Tensor:
        return self.estimate(
            part.rewards,
            part.values,
            part.last_values,
            part.final_values,
            part.not_done,
            part.ratios,
            self._coefficient(part, "gamma", self._config.gamma),
            self._config,
        )

    def _coefficient(self, part: Segment, name: str, default: float) -> Tensor | float:
        """Return (B, T) the values of a coefficient that the policy is conditioned on, or the default."""
        ranges = self.policy.config.conditioning
        if name not in ranges.names:
            return default
        low, high = getattr(ranges, name)
        return low + (high - low) * part.conditioning[..., ranges.names.index(name)]

    def _minibatches(self, segment: Segment, advantages: Tensor, number: int) -> list[Tensor]:
        """Return the rows of each minibatch of an epoch: every row once, or prioritized by advantages."""
        count = len(segment.rewards) // self._shards
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + number) % (1 << 63))
        if self._config.prio_alpha > 0.0:
            sizes = torch.where(segment.loss_mask, advantages.abs(), 0.0).sum(1)
            return self._prioritized_minibatches(sizes, count, generator)
        order = torch.randperm(count, generator=generator).to(segment.rewards.device)
        starts = [shard * count for shard in range(self._shards)]
        return [
            torch.cat([part + start for start in starts]) for part in order.tensor_split(self._config.num_minibatches)
        ]

    def _prioritized_minibatches(self, sizes: Tensor, count: int, generator: torch.Generator) -> list[Tensor]:
        """Draw rows by the sizes of their advantages, (R,); each shard has `count` rows."""
        weights = (sizes**self._config.prio_alpha + 1e-6).unflatten(0, (self._shards, count))
        summed = weights.double().cumsum(1)
        minibatches = []
        for _ in range(self._config.num_minibatches):
            # All shards, and all processes, use the same random numbers.
            drawn = torch.rand(count // self._config.num_minibatches, generator=generator, dtype=torch.float64)
            rows = torch.searchsorted(summed, drawn.to(summed.device) * summed[:, -1:]).clamp(max=count - 1)
            minibatches.append((rows + count * torch.arange(self._shards, device=rows.device)[:, None]).flatten())
        return minibatches

    @torch.no_grad()
    def _explained_variance(self, segment: Segment) -> Tensor:
        """Return the share of the variance of returns that values explain, over the steps that count."""
        errors = self._advantages(segment)
        returns = errors + segment.values
        count = self._processes.sum(segment.loss_mask.sum()).clamp(min=1)
        mean = self._processes.sum(_sum(returns, segment.loss_mask)) / count
        total = self._processes.sum(_sum((returns - mean) ** 2, segment.loss_mask))
        bias = self._processes.sum(_sum(errors, segment.loss_mask)) / count
        unexplained = self._processes.sum(_sum((errors - bias) ** 2, segment.loss_mask))
        return 1.0 - unexplained / total.clamp(min=1e-8)

    def _set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _buffers_for(self, batch: RolloutBatch) -> _Buffers:
        """Return the buffers of a batch, which are reused as long as batches have the same tensors."""
        if self._buffers is None or not self._buffers.belong_to(batch):
            self._buffers = _Buffers(batch, self._gradient_step, self._processes.count == 1)
        return self._buffers


class _Buffers:
    """The tensors that gradient steps read and write; they stay in place, so that CUDA graphs can use them."""

    def __init__(
        self, batch: RolloutBatch, gradient_step: Callable[[_Buffers, Tensor], None], may_capture: bool
    ) -> None:
        """Allocate; `may_capture`: gradient steps may be captured as CUDA graphs."""
        self.batch, self._gradient_step, self._may_capture = batch, gradient_step, may_capture
        self.advantages = torch.empty_like(batch.segment.rewards)  # (R, T)
        self.returns = torch.empty_like(batch.segment.rewards)  # (R, T)
        self.loss_sums = torch.zeros(len(Losses._fields), device=self.advantages.device)  # over gradient steps
        self._graphs: dict[int, tuple[Tensor, CudaGraphRunner]] = {}

    def belong_to(self, batch: RolloutBatch) -> bool:
        """Return whether a batch has the tensors that these buffers were made for."""
        return batch.segment is self.batch.segment and batch.memory is self.batch.memory

    def gradient_step(self, rows: Tensor) -> None:
        """Take a gradient step from a minibatch; minibatches of each size have a CUDA graph."""
        if not (rows.is_cuda and self._may_capture):
            self._gradient_step(self, rows)
            return
        if len(rows) not in self._graphs:
            place = rows.clone()
            runner = CudaGraphRunner(lambda: self._gradient_step(self, place), rows.device, _WARM_UP)
            self._graphs[len(rows)] = place, runner
        place, runner = self._graphs[len(rows)]
        place.copy_(rows)
        runner()


def _sum(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x, 0.0).sum()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimizer as tensors by name, for a file."""
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, values in state.items()
        for name, value in values.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put the tensors of `optimizer_tensors` back."""
    state: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})

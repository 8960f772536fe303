"""Learner: proximal policy optimisation on segments, fooled by no step in which an agent was away.

Every sum runs over steps that count (`Segment.learns`) and is divided by how many those are, in all processes together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.policy.cores import Memory
from roadworthy.policy.network import Policy
from roadworthy.training.advantage import advantages
from roadworthy.training.config import PpoConfig, Precision
from roadworthy.training.processes import Processes
from roadworthy.training.repeated import Repeated
from roadworthy.training.segment import Cut, Segment


class Losses(NamedTuple):
    """What an update comes to: means over the steps that count."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    divergence: Tensor  # an estimate of the KL divergence from the policy that acted
    clipped: Tensor  # share of steps whose ratio was beyond the clip
    gradient: Tensor  # norm, before it was shortened


_WARM_UP = 3  # updates that are made before one is captured on a GPU


class Learner:
    """Updates a policy's weights."""

    def __init__(self, policy: Policy, config: PpoConfig, seed: int, processes: Processes, shards: int = 1) -> None:
        """Get ready to learn.

        shards: minibatches take equal parts of so many equal parts of the rows, so that one process with two shards
            learns the same as two processes with one each.
        """
        self.policy, self._config, self._seed = policy, config, seed
        self._processes, self._shards = processes, shards
        is_cuda = policy.value.weight.is_cuda
        # What an update reads is a tensor on a GPU: it may be part of a captured graph.
        rate = (
            torch.tensor(config.learning_rate, device=policy.value.weight.device) if is_cuda else config.learning_rate
        )
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=rate, eps=1e-5, fused=is_cuda, capturable=is_cuda)
        self._work: _Work | None = None
        # May be replaced by their compiled forms.
        self.loss: Callable[..., tuple[Tensor, tuple[Tensor, ...], Tensor, Tensor]] = self._loss
        self.estimate: Callable[..., Tensor] = advantages

    def update(self, cut: Cut, epoch: int, rate: float) -> dict[str, Tensor]:
        """Learn from a segment, with a learning rate; `epoch` is the number of the update. Nothing waits for a GPU."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        work = self._work_on(cut)
        work.sums.zero_()
        explained = self._explained_variance(cut.segment)
        count = 0
        for k in range(self._config.passes):
            # A row's advantages depend on its own ratios and values alone. Those are written anew as it is learned
            # from, which a row that is drawn twice in a pass must not see half of.
            work.gained.copy_(self._advantages(cut.segment))
            torch.add(work.gained, cut.segment.values, out=work.returns)
            for rows in self._deal(cut.segment, work.gained, epoch * self._config.passes + k):
                work.learn(rows)
                count += 1
        losses = Losses._make((work.sums / count).unbind())
        return losses._asdict() | {"explained_variance": explained}

    def _work_on(self, cut: Cut) -> _Work:
        """What updates from a segment read and write; the same as long as segments lie in the same place."""
        if self._work is None or not self._work.is_on(cut):
            self._work = _Work(cut, self._learn, self._processes.count == 1)
        return self._work

    def _learn(self, work: _Work, rows: Tensor) -> None:
        """One update of the weights, from some rows."""
        part = Segment(*(tensor.index_select(0, rows) for tensor in work.cut.segment))
        memory = type(work.cut.memory)(*(tensor.index_select(0, rows) for tensor in work.cut.memory))
        gained, returns = work.gained.index_select(0, rows), work.returns.index_select(0, rows)
        counted = part.learns.sum()
        total = self._processes.sum(counted).clamp(min=1)
        mean = self._processes.sum(_sum(gained, part.learns)) / total
        spread = self._processes.sum(_sum((gained - mean) ** 2, part.learns)) / total
        normal = (gained - mean) / (spread.sqrt() + 1e-8)
        loss, losses, ratios, values = self.loss(part, memory, normal, returns, total)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._processes.sum_gradients(self.policy)
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self._config.max_gradient)
        self.optimizer.step()
        # What a step that does not count has stored stays as it is.
        work.cut.segment.ratios[rows] = torch.where(part.learns, ratios.detach(), part.ratios)
        work.cut.segment.values[rows] = torch.where(part.learns, values.detach(), part.values)
        work.sums.add_(torch.stack([*map(self._processes.sum, losses), norm]))

    def _loss(
        self, part: Segment, memory: Memory, normal: Tensor, returns: Tensor, total: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor, Tensor]:
        """The loss, its parts (see Losses), and the ratios and values of the policy as it is, (B, T)."""
        config, head = self._config, self.policy.head
        with torch.autocast(part.values.device.type, torch.bfloat16, enabled=config.precision is Precision.BFLOAT16):
            traits = part.traits if part.traits.shape[-1] else None
            scores, values = self.policy.sequence(part.observations, part.active, part.ended, memory, traits)
        apart = head.log_prob(scores, part.actions) - part.log_probs
        # Where nothing counts, nothing may flow: not even infinity times zero.
        apart = torch.where(part.learns, apart, 0.0)
        ratios = apart.exp()
        clipped = ratios.clamp(1.0 - config.clip, 1.0 + config.clip)
        policy_loss = -torch.minimum(ratios * normal, clipped * normal)
        near = part.values + (values - part.values).clamp(-config.value_clip, config.value_clip)
        value_loss = 0.5 * torch.maximum((values - returns) ** 2, (near - returns) ** 2)
        entropy = head.entropy(scores)

        def mean(x: Tensor) -> Tensor:
            return _sum(x, part.learns) / total

        loss = mean(policy_loss + config.value_weight * value_loss - self._entropy_weight(part) * entropy)
        with torch.no_grad():
            divergence = mean(ratios - 1.0 - apart)
            is_beyond = mean(((ratios - 1.0).abs() > config.clip).float())
        parts = (mean(policy_loss).detach(), mean(value_loss).detach(), mean(entropy).detach(), divergence, is_beyond)
        return loss, parts, ratios, values

    @torch.no_grad()
    def _advantages(self, part: Segment) -> Tensor:
        return self.estimate(
            part.rewards,
            part.values,
            part.last_values,
            part.final_values,
            part.goes_on,
            part.ratios,
            self._trait(part, "discount", self._config.discount),
            self._config,
        )

    def _entropy_weight(self, part: Segment) -> Tensor | float:
        return self._trait(part, "entropy", self._config.entropy)

    def _trait(self, part: Segment, name: str, default: float) -> Tensor | float:
        """(B, T) a trait's value, or the one that is the same for all."""
        traits = self.policy.config.traits
        if name not in traits.names:
            return default
        low, high = getattr(traits, name)
        return low + (high - low) * part.traits[..., traits.names.index(name)]

    def _deal(self, segment: Segment, gained: Tensor, number: int) -> list[Tensor]:
        """The rows of each minibatch of a pass: every row once, or drawn by how much there is to learn from it."""
        count = len(segment.rewards) // self._shards
        generator = torch.Generator().manual_seed((self._seed * 1_000_003 + number) % (1 << 63))
        if self._config.priority > 0.0:
            return self._deal_by_priority(torch.where(segment.learns, gained.abs(), 0.0).sum(1), count, generator)
        order = torch.randperm(count, generator=generator).to(segment.rewards.device)
        starts = [shard * count for shard in range(self._shards)]
        parts = order.tensor_split(self._config.minibatches)
        return [torch.cat([part + start for start in starts]) for part in parts]

    def _deal_by_priority(self, sizes: Tensor, count: int, generator: torch.Generator) -> list[Tensor]:
        """Rows drawn by the sizes of their advantages, (R,); `count` of them are in each shard."""
        weights = (sizes**self._config.priority + 1e-6).unflatten(0, (self._shards, count))
        summed = weights.double().cumsum(1)
        dealt = []
        for _ in range(self._config.minibatches):
            # Every shard draws with the same numbers, as every process does.
            drawn = torch.rand(count // self._config.minibatches, generator=generator, dtype=torch.float64)
            rows = torch.searchsorted(summed, drawn.to(summed.device) * summed[:, -1:]).clamp(max=count - 1)
            dealt.append((rows + count * torch.arange(self._shards, device=rows.device)[:, None]).flatten())
        return dealt

    @torch.no_grad()
    def _explained_variance(self, segment: Segment) -> Tensor:
        """How much of the returns' variance the values explain, over the steps that count."""
        gained = self._advantages(segment)
        returns = gained + segment.values
        total = self._processes.sum(segment.learns.sum()).clamp(min=1)
        mean = self._processes.sum(_sum(returns, segment.learns)) / total
        spread = self._processes.sum(_sum((returns - mean) ** 2, segment.learns))
        bias = self._processes.sum(_sum(gained, segment.learns)) / total
        missed = self._processes.sum(_sum((gained - bias) ** 2, segment.learns))
        return 1.0 - missed / spread.clamp(min=1e-8)


class _Work:
    """A segment that is learned from, and what is kept meanwhile; all of it stays where it is until the next."""

    def __init__(self, cut: Cut, learn: Callable[[_Work, Tensor], None], may_capture: bool) -> None:
        """learn: one update from some rows of the work; may_capture: it may be captured on a GPU."""
        self.cut, self._update, self._may_capture = cut, learn, may_capture
        self.gained = torch.empty_like(cut.segment.rewards)  # (R, T) advantages
        self.returns = torch.empty_like(cut.segment.rewards)  # (R, T)
        self.sums = torch.zeros(len(Losses._fields), device=self.gained.device)  # of the losses of all updates
        self._repeated: dict[int, tuple[Tensor, Repeated]] = {}

    def is_on(self, cut: Cut) -> bool:
        """Whether this cut lies where that of the work does."""
        return cut.segment is self.cut.segment and cut.memory is self.cut.memory

    def learn(self, rows: Tensor) -> None:
        """One update from some rows; minibatches of each size have a graph of their own."""
        if not (rows.is_cuda and self._may_capture):
            self._update(self, rows)
            return
        if len(rows) not in self._repeated:
            place = rows.clone()
            self._repeated[len(rows)] = place, Repeated(lambda: self._update(self, place), rows.device, _WARM_UP)
        place, repeated = self._repeated[len(rows)]
        place.copy_(rows)
        repeated()


def _sum(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x, 0.0).sum()


def state_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's tensors by name, for a file."""
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, values in state.items()
        for name, value in values.items()
    }


def put_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put what `state_of` wrote back."""
    whole = optimizer.state_dict()
    state: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": whole["param_groups"]})

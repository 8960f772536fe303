"""Small networks for tests, with weights large enough for every input to show in the outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from roadworthy.policy.config import PolicyConfig, TransformerConfig
from roadworthy.policy.network import PolicyNetwork
from roadworthy.sim.config import ObserveConfig, SimConfig
from roadworthy.sim.layout import COUNTED, ObservationLayout, layout

OBSERVE = ObserveConfig(partners=3, lanes=5, edges=4, lights=1)
CONTEXT = 5
CORES = ("mlp", "lstm", "transformer")


def small_layout(observe: ObserveConfig = OBSERVE) -> ObservationLayout:
    """The layout of an env that shows little."""
    return layout(SimConfig(observe=observe))


def small_policy(
    core: str = "transformer",
    *,
    layers: int = 2,
    context: int = CONTEXT,
    choices: tuple[int, int] | None = (7, 13),
    observe: ObserveConfig = OBSERVE,
    **settings: Any,
) -> PolicyNetwork:
    """A policy with memory of few steps."""
    shape = TransformerConfig(layers=layers, heads=2, context=context)
    config = PolicyConfig(core=core, transformer=shape, **({"encoder": 8, "hidden": 16} | settings))
    return strengthened(PolicyNetwork(config, small_layout(observe), choices))


def strengthened(policy: PolicyNetwork) -> PolicyNetwork:
    """Return the policy with larger weights, since a new one is close to uniform."""
    generator = torch.Generator().manual_seed(3)
    for parameter in policy.parameters():
        fan_in = parameter.shape[-1] if parameter.dim() > 1 else 100
        with torch.no_grad():
            parameter += nn.init.normal_(torch.empty_like(parameter), std=fan_in**-0.5, generator=generator)
    return policy.eval()


def random_observations(policy: PolicyNetwork, *shape: int, seed: int = 0) -> Tensor:
    """(*shape, size) rows with as many valid entries as their counts say."""
    generator = torch.Generator().manual_seed(seed)
    observations = torch.randn(*shape, policy.layout.size, generator=generator)
    for name in COUNTED:
        block = policy.layout[name]
        count = torch.randint(0, block.entries + 1, shape, generator=generator)
        entries = observations[..., block.slice].unflatten(-1, (len(block.features), block.entries))
        entries[torch.arange(block.entries).expand_as(entries) >= count[..., None, None]] = 0.0
        observations[..., policy.layout["counts"].column(name)] = count / max(block.entries, 1)
    return observations


def flat(output: Any) -> Tensor:
    """Return (..., numbers) all outputs of a policy."""
    return torch.cat([output.logits, output.values[..., None]], -1)

"""The step compiles as one graph, once: no break, and no recompilation from step to step."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

from tests.policy.networks import CORES, flat, random_observations, small_policy

ROWS, STEPS = 4, 12


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


# Finding graphs needs no C++ compiler; making machine code of them does, and takes long.
BACKENDS = [
    "aot_eager",
    pytest.param(
        "inductor",
        marks=[pytest.mark.long, pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")],
    ),
]


@pytest.mark.row("POLICY-4")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("core", CORES)
def test_the_step_compiles_once_for_all_steps(core: str, backend: str) -> None:
    policy = small_policy(core)
    observations = random_observations(policy, ROWS, STEPS)
    generator = torch.Generator().manual_seed(0)
    active = torch.rand(ROWS, STEPS, generator=generator) < 0.7
    ended = torch.rand(ROWS, STEPS, generator=generator) < 0.2
    step = torch.compile(policy.step, backend=backend, fullgraph=True)
    memory, plain_memory = policy.memory(ROWS), policy.memory(ROWS)
    with torch.no_grad():
        for t in range(STEPS):
            compiled = flat(step(observations[:, t], active[:, t], memory))
            plain = flat(policy.step(observations[:, t], active[:, t], plain_memory))
            torch.testing.assert_close(compiled, plain, rtol=1e-5, atol=1e-5)
            policy.reset(memory, ended[:, t])
            policy.reset(plain_memory, ended[:, t])
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


@pytest.mark.row("PPO-3")
@pytest.mark.parametrize("core", CORES)
def test_policies_of_one_shape_share_a_graph(core: str) -> None:
    """So partners are compiled once, however many there are."""
    active = torch.ones(ROWS, dtype=torch.bool)
    for number in range(3):
        policy = small_policy(core)
        with torch.no_grad():
            policy.value.bias.add_(number)
            step = torch.compile(policy.step, backend="eager", fullgraph=True, dynamic=False)
            observations = random_observations(policy, ROWS)
            compiled = step(observations, active, policy.memory(ROWS)).values
            torch.testing.assert_close(compiled, policy.step(observations, active, policy.memory(ROWS)).values)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.row("POLICY-4")
@pytest.mark.parametrize("core", CORES)
def test_the_sequence_compiles_once_for_all_segments(core: str) -> None:
    policy, steps = small_policy(core), 3
    sequence = torch.compile(policy.sequence, backend="eager", fullgraph=True)
    for seed in range(3):
        observations = random_observations(policy, ROWS, steps, seed=seed)
        active = torch.rand(ROWS, steps, generator=torch.Generator().manual_seed(seed)) < 0.7
        flat(sequence(observations, active, ~active, policy.memory(ROWS))).sum().backward()
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]

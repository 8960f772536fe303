"""The encoder: valid entries count in any order; invalid entries have no effect."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from roadworthy.policy.config import ConditioningConfig
from roadworthy.policy.encoder import Encoder
from roadworthy.policy.network import PolicyNetwork
from roadworthy.sim.config import ObserveConfig
from roadworthy.sim.layout import COUNTED, Block
from tests.policy.networks import flat, random_observations, small_policy

POLICY = small_policy("mlp")
SHALLOW = small_policy("mlp", encoder_layers=1)
ENCODERS = pytest.mark.parametrize("encoder", [POLICY.encoder, SHALLOW.encoder], ids=["deep", "shallow"])


def encoded(encoder: Encoder, observations: Tensor) -> Tensor:
    """What the encoder makes of rows that are all active."""
    made: Tensor = encoder(observations, torch.ones(observations.shape[:-1], dtype=torch.bool))
    return made


def full(rows: int, policy: PolicyNetwork = POLICY) -> Tensor:
    """Observations in which every entry of every block is valid."""
    observations = torch.randn(rows, policy.layout.size, generator=torch.Generator().manual_seed(5))
    observations[:, policy.layout["counts"].slice] = 1.0
    return observations


def entries_of(block: Block, observations: Tensor) -> Tensor:
    """(rows, features, entries) a view of a block."""
    return observations[:, block.slice].unflatten(-1, (len(block.features), block.entries))


@pytest.mark.row("POLICY-1")
@ENCODERS
@pytest.mark.parametrize("name", COUNTED)
def test_entries_beyond_the_count_are_not_seen(name: str, encoder: Encoder) -> None:
    block, observations = POLICY.layout[name], full(4)
    column = POLICY.layout["counts"].column(name)
    for count in range(block.entries):
        observations[:, column] = count / block.entries
        poisoned = observations.clone()
        entries_of(block, poisoned)[:, :, count:] = 100.0
        assert torch.equal(encoded(encoder, observations), encoded(encoder, poisoned))


@pytest.mark.row("POLICY-1")
@ENCODERS
@pytest.mark.parametrize("name", COUNTED)
def test_every_entry_within_the_count_is_seen(name: str, encoder: Encoder) -> None:
    block, observations = POLICY.layout[name], full(64)
    for entry in range(block.entries):
        moved = observations.clone()
        entries_of(block, moved)[:, :, entry] *= -3.0
        assert (encoded(encoder, observations) != encoded(encoder, moved)).any()


@pytest.mark.row("POLICY-1")
@ENCODERS
def test_the_order_of_entries_does_not_matter(encoder: Encoder) -> None:
    observations = full(8)
    turned = observations.clone()
    for name in COUNTED:
        block = POLICY.layout[name]
        entries_of(block, turned)[:] = entries_of(block, observations).flip(-1)
    torch.testing.assert_close(encoded(encoder, observations), encoded(encoder, turned))


@pytest.mark.row("POLICY-1")
@ENCODERS
@pytest.mark.parametrize("name", ["ego", "goal", "conditioning", "counts"])
def test_every_number_of_an_agents_own_blocks_is_seen(name: str, encoder: Encoder) -> None:
    observations = full(64)
    for column in range(POLICY.layout[name].start, POLICY.layout[name].stop):
        moved = observations.clone()
        moved[:, column] -= 0.5
        assert (encoded(encoder, observations) != encoded(encoder, moved)).any()


@pytest.mark.row("POLICY-1")
def test_one_layer_over_entries_is_computed_in_one_pass_with_the_same_gradients() -> None:
    observations, encoder = random_observations(SHALLOW, 33, 2), SHALLOW.encoder
    weights = torch.randn(33, 2, SHALLOW.config.hidden, generator=torch.Generator().manual_seed(1))
    results = []
    for seen in (observations, observations.clone().requires_grad_()):  # the kernels leave gradients of these to torch
        encoder.zero_grad()
        made = encoded(encoder, seen)
        (made * weights).sum().backward()
        results.append([made.detach(), *(parameter.grad.clone() for parameter in encoder.parameters())])
    assert seen.grad is not None
    assert seen.grad[..., SHALLOW.layout["lanes"].slice].any(), "what is asked for a gradient gets one"
    for kernel, plain in zip(*results, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-4, atol=1e-5)
        assert plain.any()


@pytest.mark.row("POLICY-1")
@pytest.mark.parametrize("count", [-1.0, 4.0, 1e9, float("nan")])
def test_a_count_that_is_not_a_number_reads_no_entries(count: float) -> None:
    observations = full(4)
    observations[:, SHALLOW.layout["counts"].column("lanes")] = count
    most = observations.clone()
    most[:, SHALLOW.layout["counts"].column("lanes")] = 1.0 if count > 1.0 else 0.0
    block, made = SHALLOW.layout["lanes"], []
    for seen in (observations, most):
        told = torch.round(seen[:, SHALLOW.layout["counts"].column("lanes")] * block.entries)
        made.append(SHALLOW.encoder._block_max(block, seen, told))
    assert torch.equal(*made)


@pytest.mark.row("POLICY-1")
def test_a_block_that_is_not_observed_has_no_weights() -> None:
    policy = small_policy("mlp", observe=ObserveConfig(partners=0, lanes=5, edges=4, lights=0))
    assert set(policy.encoder.entries) == {"lanes", "edges"}
    observations = random_observations(policy, 3)
    assert flat(policy.step(observations, torch.ones(3, dtype=torch.bool), policy.memory(3))).isfinite().all()


@pytest.mark.row("POLICY-1")
def test_only_conditioning_that_varies_is_observed() -> None:
    policy = small_policy("mlp", conditioning=ConditioningConfig(ent_coef=(0.0, 0.1), gamma=(0.98, 0.98)))
    assert policy.config.conditioning.names == ("ent_coef",)
    observations, active = random_observations(policy, 8), torch.ones(8, dtype=torch.bool)
    said = [flat(policy.step(observations, active, policy.memory(8), torch.full((8, 1), t))) for t in (0.0, 1.0)]
    assert (said[0] != said[1]).any(-1).all()


def test_the_first_weights_depend_on_the_seed_only() -> None:
    def weights(seed: int) -> Tensor:
        policy = PolicyNetwork(POLICY.config, POLICY.layout, POLICY.choices, seed)
        return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])

    before = torch.random.get_rng_state()
    first = weights(1)
    torch.rand(3)
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))
    torch.random.set_rng_state(before)
    weights(1)
    assert torch.equal(torch.random.get_rng_state(), before), "making a policy moved the global generator"

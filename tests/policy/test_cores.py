"""Memory cores: steps equal sequences, and inactive steps have no effect."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from roadworthy.errors import CheckpointError, ConfigError
from roadworthy.policy.checkpoint import load_checkpoint, save_policy
from roadworthy.policy.cores import Memory
from roadworthy.policy.cores.transformer import places
from roadworthy.policy.network import PolicyNetwork
from tests.policy.networks import CONTEXT, CORES, flat, random_observations, small_policy

ROWS, STEPS = 3, 17
POLICIES = {core: small_policy(core, encoder_layers=1 if core == "mlp" else 2) for core in CORES}
EVERY_CORE = pytest.mark.parametrize("core", CORES)
# Every example is driven step by step.
FEWER = settings(max_examples=settings.default.max_examples // 4)
REMEMBERING = pytest.mark.parametrize("core", ["lstm", "transformer"])


class Pattern(NamedTuple):
    """When rows were active, and when their episodes ended, (ROWS, STEPS) each."""

    active: Tensor
    ended: Tensor


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Few episodes, so that some are longer than the context, with inactive stretches and single steps."""
    active, ended = torch.ones(ROWS, STEPS, dtype=torch.bool), torch.zeros(ROWS, STEPS, dtype=torch.bool)
    steps = st.integers(0, STEPS - 1)
    for row in range(ROWS):
        for first, length in draw(st.lists(st.tuples(steps, st.integers(1, 8)), max_size=3)):
            active[row, first : first + length] = False
        ended[row, list(draw(st.sets(steps, max_size=4)))] = True
    return Pattern(active, ended)


def copied(memory: Memory) -> Memory:
    return type(memory)(*(tensor.clone() for tensor in memory))


@torch.no_grad()
def step_by_step(policy: PolicyNetwork, observations: Tensor, pattern: Pattern, memory: Memory) -> Tensor:
    """(R, T, numbers) outputs of steps one after another, as in rollout: memory is cleared after an episode's last."""
    outputs = []
    for t in range(observations.shape[1]):
        outputs.append(flat(policy.step(observations[:, t], pattern.active[:, t], memory)))
        policy.reset(memory, pattern.ended[:, t])
    return torch.stack(outputs, 1)


@torch.no_grad()
def at_once(policy: PolicyNetwork, observations: Tensor, pattern: Pattern, memory: Memory) -> Tensor:
    return flat(policy.sequence(observations, pattern.active, pattern.ended, memory))


def always(rows: int, steps: int) -> Pattern:
    """One episode without a break."""
    return Pattern(torch.ones(rows, steps, dtype=torch.bool), torch.zeros(rows, steps, dtype=torch.bool))


@pytest.mark.row("POLICY-2")
@EVERY_CORE
@FEWER
@given(pattern=patterns(), cut=st.integers(0, STEPS - 1))
def test_steps_with_memory_equal_the_sequence_from_any_cut_on(core: str, pattern: Pattern, cut: int) -> None:
    policy = POLICIES[core]
    observations, memory = random_observations(policy, ROWS, STEPS), policy.memory(ROWS)
    before, after = Pattern(*(x[:, :cut] for x in pattern)), Pattern(*(x[:, cut:] for x in pattern))
    if cut:
        step_by_step(policy, observations[:, :cut], before, memory)
    at_the_cut = copied(memory)
    stepped = step_by_step(policy, observations[:, cut:], after, memory)
    whole = at_once(policy, observations[:, cut:], after, at_the_cut)
    torch.testing.assert_close(stepped, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.row("POLICY-2")
@EVERY_CORE
def test_a_sequence_leaves_its_memory_as_it_was(core: str) -> None:
    policy = POLICIES[core]
    observations, pattern, memory = random_observations(policy, ROWS, STEPS), always(ROWS, STEPS), policy.memory(ROWS)
    step_by_step(policy, observations, pattern, memory)
    before = copied(memory)
    at_once(policy, observations, pattern, memory)
    assert all(torch.equal(one, other) for one, other in zip(memory, before, strict=True))


def counted(pattern: Pattern, length: int, row: int) -> list[int]:
    """Positions of one row, counted one by one."""
    positions, is_begun = [], length > 0
    for t in range(STEPS):
        is_begun |= bool(pattern.active[row, t])
        positions.append(length if is_begun else 0)
        length = 0 if pattern.ended[row, t] or not is_begun else length + 1
        is_begun &= not pattern.ended[row, t]
    return positions


@pytest.mark.row("POLICY-2")
@given(pattern=patterns(), lengths=st.lists(st.integers(0, 9), min_size=ROWS, max_size=ROWS))
def test_positions_restart_after_the_step_with_which_an_episode_ends(pattern: Pattern, lengths: list[int]) -> None:
    position, _ = places(pattern.active, pattern.ended, torch.tensor(lengths))
    assert position.tolist() == [counted(pattern, length, row) for row, length in enumerate(lengths)]


@pytest.mark.row("POLICY-2")
def test_the_last_step_of_an_episode_has_memory_and_the_next_does_not() -> None:
    policy = POLICIES["transformer"]
    observations, pattern = random_observations(policy, 1, 4), always(1, 4)
    pattern.ended[0, 1] = True
    changed = observations.clone()
    changed[0, 0] += 1.0
    moved = (
        at_once(policy, observations, pattern, policy.memory(1)) != at_once(policy, changed, pattern, policy.memory(1))
    ).any(-1)
    assert moved[0].tolist() == [True, True, False, False]


@pytest.mark.row("POLICY-2")
@REMEMBERING
def test_the_time_a_row_was_empty_has_no_effect(core: str) -> None:
    policy, empty = POLICIES[core], 4
    observations, pattern = random_observations(policy, 1, STEPS), always(1, STEPS)
    pattern.active[0, :empty] = False
    late = observations[:, empty:]
    at_first = always(1, STEPS - empty)
    for outputs in (step_by_step, at_once):
        waited = outputs(policy, observations, pattern, policy.memory(1))[:, empty:]
        at_once_there = outputs(policy, late, at_first, policy.memory(1))
        torch.testing.assert_close(waited, at_once_there, rtol=1e-5, atol=1e-5)


@pytest.mark.row("POLICY-2")
def test_long_episodes_attend_to_the_last_steps_with_growing_positions() -> None:
    policy = small_policy(layers=1)
    observations, pattern = random_observations(policy, 1, STEPS), always(1, STEPS)
    changed = observations.clone()
    changed[0, 0] += 1.0
    for outputs in (step_by_step, at_once):
        before, after = (outputs(policy, x, pattern, policy.memory(1)) for x in (observations, changed))
        assert (before != after).any(-1)[0].tolist() == [t < CONTEXT for t in range(STEPS)]
    same = random_observations(policy, 1, 1).expand(1, STEPS, -1)
    said = step_by_step(policy, same, pattern, policy.memory(1))[0, CONTEXT:]
    assert (said[1:] != said[:-1]).any(-1).all(), "positions stand still beyond the context"


@pytest.mark.row("POLICY-2")
@EVERY_CORE
@FEWER
@given(pattern=patterns())
def test_observations_of_inactive_steps_change_nothing(core: str, pattern: Pattern) -> None:
    policy = POLICIES[core]
    observations = random_observations(policy, ROWS, STEPS)
    poisoned = torch.where(pattern.active[..., None], observations, torch.nan)
    for outputs in (step_by_step, at_once):
        clean, other = (outputs(policy, x, pattern, policy.memory(ROWS)) for x in (observations, poisoned))
        assert torch.equal(clean, other)


@pytest.mark.row("POLICY-2")
@EVERY_CORE
def test_gradients_at_inactive_steps_are_exactly_zero(core: str) -> None:
    policy, pattern = POLICIES[core], always(ROWS, STEPS)
    pattern.active[0, 3:6], pattern.active[1] = False, False
    pattern.ended[2, 7] = True
    observations = random_observations(policy, ROWS, STEPS)
    gradients = []
    for unseen in (0.5, torch.nan):
        seen = torch.where(pattern.active[..., None], observations, unseen).requires_grad_()
        policy.zero_grad()
        # Even of a loss that, wrongly, counts the steps in which nobody was there.
        (flat(policy.sequence(seen, pattern.active, pattern.ended, policy.memory(ROWS))) ** 2).sum().backward()
        assert seen.grad is not None
        assert (seen.grad[~pattern.active] == 0.0).all()
        assert (seen.grad[pattern.active] != 0.0).any(-1).all()
        gradients.append([parameter.grad.clone() for parameter in policy.parameters() if parameter.grad is not None])
    for one, other in zip(*gradients, strict=True):
        assert one.isfinite().all()
        assert torch.equal(one, other)


@pytest.mark.row("POLICY-2")
@EVERY_CORE
def test_rows_that_are_never_active_give_no_nan(core: str) -> None:
    policy, nobody = POLICIES[core], Pattern(*(torch.zeros(ROWS, STEPS, dtype=torch.bool) for _ in range(2)))
    observations = torch.full((ROWS, STEPS, policy.layout.size), torch.nan, requires_grad=True)
    policy.zero_grad()
    output = flat(policy.sequence(observations, nobody.active, nobody.ended, policy.memory(ROWS)))
    output.sum().backward()
    assert observations.grad is not None
    assert output.isfinite().all()
    assert (observations.grad == 0.0).all()
    assert all(p.grad.isfinite().all() for p in policy.parameters() if p.grad is not None)
    assert step_by_step(policy, observations.detach(), nobody, policy.memory(ROWS)).isfinite().all()


@pytest.mark.row("POLICY-2")
def test_a_slot_written_while_inactive_is_seen_by_no_other_step() -> None:
    policy, pattern = POLICIES["transformer"], always(ROWS, CONTEXT - 1)
    pattern.active[:, 1:3] = False
    observations, memory = random_observations(policy, ROWS, CONTEXT), policy.memory(ROWS)
    step_by_step(policy, observations[:, :-1], pattern, memory)
    other = copied(memory)
    other.keys[:, :, :, 1:3], other.values[:, :, :, 1:3] = 100.0, 100.0
    said = [step_by_step(policy, observations[:, -1:], always(ROWS, 1), m) for m in (memory, other)]
    assert torch.equal(*said)


@pytest.mark.row("POLICY-3")
@EVERY_CORE
def test_reset_clears_exactly_those_rows(core: str) -> None:
    policy = POLICIES[core]
    observations, pattern, memory = random_observations(policy, ROWS, STEPS), always(ROWS, STEPS), policy.memory(ROWS)
    step_by_step(policy, observations, pattern, memory)
    before, mask = copied(memory), torch.tensor([True, False, True])
    policy.reset(memory, mask)
    for now, then in zip(memory, before, strict=True):
        assert torch.equal(now[~mask], then[~mask])
    assert memory.length[mask].tolist() == [0, 0]
    for outputs in (at_once, step_by_step):
        cleared = outputs(policy, observations, pattern, memory)
        assert torch.equal(cleared[mask], outputs(policy, observations, pattern, policy.memory(ROWS))[mask])


@pytest.mark.row("POLICY-3")
@REMEMBERING
def test_memory_makes_a_difference(core: str) -> None:
    """What the tests of clearing rest on."""
    policy = POLICIES[core]
    observations, memory = random_observations(policy, ROWS, 2), policy.memory(ROWS)
    second = step_by_step(policy, observations, always(ROWS, 2), memory)[:, 1]
    alone = step_by_step(policy, observations[:, 1:], always(ROWS, 1), policy.memory(ROWS))[:, 0]
    assert (second != alone).any(-1).all()


SUM_CORE = """
import torch
from typing import NamedTuple

class Memory(NamedTuple):
    length: torch.Tensor

class ScaledCore(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.scale = config.core_config["scale"]

    def start(self, rows, like):
        return Memory(torch.zeros(rows, dtype=torch.int32, device=like.device))

    def step(self, x, active, memory):
        memory.length.add_(active)
        return self.scale * x

    def sequence(self, x, active, ended, memory):
        return self.scale * x

    def reset(self, memory, mask):
        memory.length.masked_fill_(mask, 0)
"""


def test_a_core_is_a_class_in_a_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SUM_CORE)
    core = f"{tmp_path / 'mine.py'}:ScaledCore"
    policy = small_policy(core, core_config={"scale": 2.0})
    observations, active = random_observations(policy, ROWS), torch.ones(ROWS, dtype=torch.bool)
    stepped = flat(policy.step(observations, active, policy.memory(ROWS)))
    features = policy.encoder(observations, active)
    torch.testing.assert_close(stepped[..., -1], policy.value(2.0 * features).squeeze(-1))
    saved = save_policy(tmp_path / "saved", policy)
    with pytest.raises(CheckpointError, match="is code that loading would run; install it as an entry point"):
        load_checkpoint(saved)
    assert load_checkpoint(saved, trusts_code=True).policy.config == policy.config


def test_an_unknown_core_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown core 'lsmt'; did you mean lstm\? known: lstm, mlp, transformer"):
        small_policy("lsmt")

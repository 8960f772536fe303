"""Policies can be asked, in an evaluation's config, to drive in another way: the shipped baseline more carefully."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

from roadworthy.config import parse
from roadworthy.errors import UsageError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.policy_ref import policy_maker, policy_ref
from roadworthy.evaluation.sections import chosen, read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.policy import draws, protocol
from roadworthy.policy.checkpoint import load_checkpoint, save_policy
from roadworthy.policy.config import ConditioningConfig
from roadworthy.policy.load import load_policy
from roadworthy.policy.network import PolicyNetwork
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.policy.spec import BASELINES
from roadworthy.record import Run
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.dynamics import BICYCLE_ALONG
from roadworthy.sources import CLASSES
from roadworthy.statistics.clusters import Array, Clusters
from roadworthy.statistics.paired import paired_rate
from tests.policy.networks import small_policy
from tests.sim.scenes import pack_of

BASELINE = str(BASELINES / "town")
HELD_OUT = 900_001  # a seed that no training takes
# Equal but for what a collision costs: the ends of the range that the baseline was trained with. `clean` takes the
# middle of all others.
SECTIONS = """
[eval.asked]
clean = true
scenarios = "{pack}"
actions = "greedy"
episode.trial_steps = {steps}
env.mode = "open"
env.control.rows = {agents}
env.open.agents = {agents}
env.goal.at_goal = "leave"
env.infraction.collision = "remove"
env.infraction.off_road = "remove"

[eval.careful]
type = "multi_scenario"
inherits = "asked"
env.reward.collision = -6.0

[eval.careless]
type = "multi_scenario"
inherits = "asked"
env.reward.collision = -0.5
"""


def held_out(folder: Path, towns: int) -> Pack:
    """Generated towns that the baseline has not seen."""
    kinds = CLASSES["town"]
    scenarios = [generate_scenario(HELD_OUT, kinds[k % len(kinds)], k // len(kinds), 91) for k in range(towns)]
    return pack_of(folder / "towns.pack", *scenarios)


def figures(folder: Path, figure: str, *, towns: int, agents: int, steps: int) -> tuple[Array, Array, Clusters]:
    """A figure of every ego asked to be careful, and careless: the same agents, starts and seeds; and their towns."""
    pack = held_out(folder, towns)
    file = folder / "asked.toml"
    file.write_text(SECTIONS.format(pack=pack.path, steps=steps, agents=agents))
    rows = []
    sections = chosen(read_sections(file, training=training_of(BASELINE)))
    for outcome in evaluate_sections(sections, BASELINE, folder / "runs"):
        assert isinstance(outcome.run, Run), outcome.error
        told = outcome.run.agents().to_pylist()
        rows.append({(row["episode_id"], row["agent"]): row for row in told})
    careful, careless = rows
    assert careful.keys() == careless.keys()
    assert len(careful) == towns * agents
    columns = [np.array([told[key][f"figures.{figure}"] for key in careful], np.float64) for told in rows]
    return columns[0], columns[1], Clusters.of([row["scenario_id"] for row in careful.values()])


@pytest.mark.row("PPO-3")
def test_where_a_collision_costs_more_the_baseline_asks_for_less_acceleration(tmp_path: Path) -> None:
    """In situations that are the same to the bit but for the weight; a sign test over agents."""
    pack = held_out(tmp_path, towns=6)
    trained = load_checkpoint(BASELINE)
    config = parse(trained.about["train"]["env"], SimConfig)
    config = replace(config, control=replace(config.control, rows=8), open=replace(config.open, agents=8))
    env = DriveEnv(pack, 6, config, seed=1, threads=1)
    driver = load_policy(BASELINE, is_greedy=True)
    env.reset()
    protocol.start(driver, PolicyInfo.of_drive_env(env))
    seen, active = [], []
    for step in range(40):
        seen.append(torch.tensor(env.observations))
        active.append(torch.tensor(env.signals.active))
        seeds = np.zeros(env.row_count, np.uint64)
        env.step(driver.act(drive_batch(env, seeds, np.full(env.row_count, step))))
    careful, careless = (asked_acceleration(trained.policy, torch.stack(seen[::4]), weight) for weight in (-6.0, -0.5))
    is_active = torch.stack(active[::4])
    less = torch.where(is_active, careful - careless, 0.0).sum(0)[is_active.any(0)] < 0.0
    assert len(less) == env.row_count
    assert binomtest(int(less.sum()), len(less), alternative="greater").pvalue < 0.001


@torch.no_grad()
def asked_acceleration(policy: PolicyNetwork, seen: Tensor, collision_weight: float) -> Tensor:
    """(steps, rows) the mean acceleration of the actions that a policy would draw, m/s2, with this weight instead."""
    told = seen.clone()
    told[..., policy.layout["conditioning"].column("collision_weight")] = collision_weight
    rows = told.flatten(0, 1)
    logits = policy.step(rows, torch.ones(len(rows), dtype=torch.bool), policy.memory(len(rows))).logits
    asked = torch.tensor(BICYCLE_ALONG[AgentType.VEHICLE])
    return (logits[:, : len(asked)].softmax(-1) @ asked).unflatten(0, seen.shape[:2])


@pytest.mark.row("PPO-3")
def test_an_evaluator_s_section_can_fix_a_trait(tmp_path: Path) -> None:
    """One that is not given is drawn for each agent; one that the policy does not have is refused."""
    conditioning = ConditioningConfig(ent_coef=(0.0, 0.1), gamma=(0.9, 1.0))
    ref = policy_ref(str(save_policy(tmp_path / "policy", small_policy("mlp", conditioning=conditioning))))

    def told(values: str) -> list[list[float]]:
        """The conditioning of four agents, as places in their ranges."""
        file = tmp_path / "asked.toml"
        file.write_text(f'[eval.x]\ntype = "multi_scenario"\nscenarios = "a.pack"\nconditioning = {{ {values} }}')
        (section,) = read_sections(file)
        driver = policy_maker(ref, section.config)()
        assert isinstance(driver, NeuralPolicy)
        places = driver._told(draws.keys_of(5, torch.arange(4)))
        assert places is not None
        return places.tolist()

    drawn, asked = told(""), told("gamma = 0.95")
    assert len({discount for _, discount in drawn}) == 4
    assert [entropy for entropy, _ in asked] == [entropy for entropy, _ in drawn]
    assert [discount for _, discount in asked] == pytest.approx([0.5] * 4)
    with pytest.raises(UsageError, match="conditioning 'haste' is unknown to this policy; known: ent_coef, gamma"):
        told("haste = 1.0")


@pytest.mark.long
@pytest.mark.row("PPO-3")
def test_asked_to_be_careful_the_baseline_collides_less(tmp_path: Path) -> None:
    careful, careless, towns = figures(tmp_path, "collision_rate", towns=36, agents=16, steps=250)
    difference = paired_rate(careful, careless, towns)
    assert difference.high is not None
    assert difference.high < 0.0

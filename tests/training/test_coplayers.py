"""Co-players: which policies control them, with which memory, and that they do not count in losses."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from roadworthy.errors import CheckpointError, ConfigError, UsageError
from roadworthy.policy import draws
from roadworthy.policy.checkpoint import load_checkpoint, save_policy
from roadworthy.policy.checkpoint_files import WEIGHTS
from roadworthy.policy.config import ConditioningConfig
from roadworthy.policy.coplayer_networks import CoplayerNetworks
from roadworthy.policy.fit import Fitting
from roadworthy.policy.network import PolicyNetwork
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import ObserveConfig
from roadworthy.sim.state import EGO
from roadworthy.training.config import Compile, CoplayerConfig
from roadworthy.training.loop import Trainer
from tests.policy.networks import small_policy
from tests.training.journal import Journal
from tests.training.small import config, sim, trainer

LITTLE = ObserveConfig(partners=2, lanes=3, edges=2, lights=1)


@pytest.fixture
def partners(tmp_path: Path) -> tuple[Path, Path, Path]:
    """An LSTM that sees less than the env shows, a transformer, and a copy of the former under another name."""
    lstm = save_policy(tmp_path / "lstm", small_policy("lstm", observe=LITTLE))
    conditioning = ConditioningConfig(ent_coef=(0.0, 0.1))
    transformer = save_policy(tmp_path / "transformer", small_policy(observe=sim().observe, conditioning=conditioning))
    shutil.copytree(lstm, tmp_path / "copy")
    return lstm, transformer, tmp_path / "copy"


def with_partners(*paths: Path, trials: int = 3, **keys: Any) -> Any:
    return config(env=sim(trials, ego_share=0.4), coplayers=CoplayerConfig(paths, reread_interval=1), **keys)


def driven_alone(path: Path, numbers: list[int], made: Trainer, journal: Journal) -> list[tuple[Tensor, Tensor]]:
    """Which rows a partner drove in each step, and the actions that it chooses when it is asked by itself."""
    policy = load_checkpoint(path).policy
    fit = Fitting(made.env.observation_layout, policy.layout)
    rows = made.env.row_count
    memory, keys = policy.memory(rows), draws.keys_of(made.config.seed, torch.arange(rows))
    episodes = torch.zeros(rows, dtype=torch.int64)
    out = []
    for t, step in enumerate(journal.steps):
        if t in journal.begun_before:
            policy.reset(memory, journal.begun_before[t])
            episodes += journal.begun_before[t]
        mine = step.active & ~step.is_ego & torch.isin(step.partner, torch.tensor(numbers))
        count = len(policy.config.conditioning.names)
        conditioning = draws.uniform(keys, episodes, draws.CONDITIONING)[:, :count] if count else None
        with torch.no_grad():
            logits = policy.step(fit(step.observations), mine, memory, conditioning).logits
        out.append((mine, policy.head.to_env(policy.head.sample(logits, draws.uniform(keys, t, draws.ACTION)))))
        policy.reset(memory, step.episode_ended)
        episodes += step.episode_ended
    return out


@pytest.mark.row("PPO-3")
@pytest.mark.parametrize("drivers", [{0: [0]}, {0: [0, 2], 1: [1]}])
def test_each_partner_acts_as_it_would_alone_with_its_own_memory_and_layout(
    drivers: dict[int, list[int]], partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path
) -> None:
    """Memory is kept between trials and cleared with episodes, or else some action would be another."""
    count = sum(map(len, drivers.values()))
    made = trainer(with_partners(*partners[:count]), pack, tmp_path)
    journal = Journal(made)
    for _ in range(6):
        made.collector.collect()
    assert any((step.episode_ended & ~step.is_ego & step.active).any() for step in journal.steps[:-1])
    assert journal.begun_before
    for number, numbers in drivers.items():
        alone = driven_alone(partners[number], numbers, made, journal)
        assert sum(int(mine.sum()) for mine, _ in alone) > 50
        for (mine, actions), step in zip(alone, journal.steps, strict=True):
            assert torch.equal(step.actions[mine], actions[mine])


@pytest.mark.row("PPO-3")
def test_there_is_one_forward_pass_per_distinct_checkpoint(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(
        "roadworthy.policy.coplayer_networks.load_checkpoint",
        lambda path: (read.append(path), load_checkpoint(path))[1],
    )
    calls: Counter[tuple[int, int]] = Counter()
    step = PolicyNetwork.step

    def counted(policy: PolicyNetwork, observations: Tensor, *rest: Any) -> Any:
        calls[id(policy), len(observations)] += 1
        return step(policy, observations, *rest)

    monkeypatch.setattr(PolicyNetwork, "step", counted)
    made = trainer(with_partners(*partners), pack, tmp_path)
    assert made.coplayers.distinct == len(read) == 2
    assert len(made.coplayers) == 3
    made.collector.collect()
    assert list(calls.values()) == [made.config.ppo.horizon] * 3
    assert {rows for _, rows in calls} == {made.env.row_count}


@pytest.mark.row("PPO-3")
def test_partners_are_compiled_if_the_policy_is(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(torch, "compile", lambda function, **_: (compiled.append(function), function)[1])
    made = trainer(with_partners(*partners, compile=Compile.ON), pack, tmp_path)
    steps = [function.__self__ for function in compiled if getattr(function, "__name__", "") == "step"]
    assert len(steps) == 3
    assert made.policy in steps


@pytest.mark.row("PPO-3")
def test_steps_of_co_players_do_not_count_in_the_loss(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path
) -> None:
    results = []
    for is_spoiled in (False, True):
        made = trainer(with_partners(*partners[:2], update_epochs=2), pack, tmp_path)
        batch = made.collector.collect()
        others = ~batch.segment.loss_mask & batch.segment.active
        assert others.any()
        if is_spoiled:
            numbers = {name: getattr(batch.segment, name).clone() for name in ("rewards", "values", "log_probs")}
            for tensor in numbers.values():
                tensor[others] = 1e3
            batch = batch._replace(segment=batch.segment._replace(**numbers))
        losses = made.learner.update(batch, 0, 3e-3)
        told = {name: float(value) for name, value in losses.items()}
        results.append((told, [p.detach().numpy().tobytes() for p in made.policy.parameters()]))
    assert results[0] == results[1]


@pytest.mark.row("PPO-3")
def test_figures_and_steps_are_of_egos_only(partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path) -> None:
    made = trainer(with_partners(partners[0], trials=1), pack, tmp_path)
    egos = 0
    for _ in range(4):
        segment = made.collector.collect().segment
        egos = max(egos, int(segment.loss_mask.any(1).sum()))
        assert segment.loss_mask.sum() < segment.active.sum()
    assert 0 < made.env.figures()["n"] <= egos < made.env.row_count


@pytest.mark.row("PPO-3")
def test_a_replaced_file_is_read_again_and_other_partners_keep_their_memory(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path
) -> None:
    lstm, transformer, _ = partners
    made = trainer(with_partners(lstm, transformer, steps=800), pack, tmp_path / "run")
    remembered: list[Tensor] = []
    exchanges: list[int] = []

    def replace_one(progress: Any) -> None:
        """As soon as the other partner has something to remember."""
        lengths = [memory.length for memory in made.coplayers.memories.values()]
        if not remembered and lengths[1].any():
            remembered.append(lengths[1].clone())
            save_policy(lstm, small_policy("mlp", observe=LITTLE))

    exchange = made.collector.exchange_coplayers

    def watched() -> None:
        exchange()
        exchanges.append(made.updates)
        lengths = [memory.length for memory in made.coplayers.memories.values()]
        assert not lengths[0].any()
        assert torch.equal(lengths[1], remembered[0])

    made.collector.exchange_coplayers = watched  # type: ignore[method-assign]
    made.run(replace_one)
    assert len(exchanges) == 1
    assert exchanges[0] < made.updates
    drivers = list(made.coplayers._drivers.values())
    assert [driver.policy.config.core for driver in drivers] == ["mlp", "transformer"]


@pytest.mark.row("PPO-3")
def test_a_partner_stays_while_its_file_is_missing_or_damaged(partners: tuple[Path, Path, Path]) -> None:
    coplayers = CoplayerNetworks(partners[:2])
    weights = (partners[0] / WEIGHTS).read_bytes()
    (partners[0] / WEIGHTS).unlink()
    assert not coplayers.reread()
    (partners[0] / WEIGHTS).write_bytes(weights[:-1])
    assert not coplayers.reread()
    assert coplayers.distinct == 2
    with pytest.raises(CheckpointError, match="is damaged"):
        CoplayerNetworks(partners[:1])
    (partners[0] / WEIGHTS).unlink()
    with pytest.raises(UsageError, match="can't be read"):
        CoplayerNetworks(partners[:1])


@pytest.mark.row("PPO-3")
def test_a_partner_with_different_actions_is_an_error_that_names_it(pack: Pack, tmp_path: Path) -> None:
    path = save_policy(tmp_path / "jerky", small_policy("mlp", choices=(4, 3), observe=LITTLE))
    with pytest.raises(UsageError, match=r"jerky has the action choices \(4, 3\), but the env has \(7, 13\)"):
        trainer(with_partners(path), pack, tmp_path)


@pytest.mark.row("PPO-3")
def test_a_partner_stays_if_its_file_is_replaced_by_one_that_does_not_fit(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path
) -> None:
    told: list[str] = []
    made = Trainer(with_partners(partners[0], steps=800), pack, tmp_path / "run", warn=told.append)
    before = list(made.coplayers._drivers.values())
    files = {path: path.read_bytes() for path in partners[0].iterdir()}

    def replace_it(progress: Any) -> None:
        if progress.update == 1:
            save_policy(partners[0], small_policy("mlp", choices=(4, 3), observe=LITTLE))

    made.run(replace_it)
    assert made.updates > 3
    assert len(told) == 1, "told once, not every time that the file is looked at"
    assert "has the action choices (4, 3), but the env has (7, 13)" in told[0]
    assert "continues with the previous co-players" in told[0]
    assert list(made.coplayers._drivers.values()) == before
    for path, data in files.items():
        path.write_bytes(data)
    assert not made.coplayers.reread(), "it is the one that drives"
    save_policy(partners[0], small_policy("mlp", observe=LITTLE))
    assert made.coplayers.reread()
    made.collector.exchange_coplayers()
    assert list(made.coplayers._drivers.values()) != before


def test_a_partner_may_be_a_baseline() -> None:
    assert CoplayerNetworks(["baseline:town"]).distinct == 1


def test_partners_without_co_players_are_an_error() -> None:
    with pytest.raises(ConfigError, match="ego_share is 1, so there are no co-players"):
        config(coplayers=CoplayerConfig(("some",)))


@pytest.mark.row("PPO-3")
@pytest.mark.row("LOG-1")
def test_averages_of_a_row_are_over_the_episodes_in_which_it_was_an_ego(
    partners: tuple[Path, Path, Path], pack: Pack, tmp_path: Path
) -> None:
    """Roles are drawn again for each episode: what a co-player did in a row does not count for the ego that follows."""
    made = trainer(with_partners(partners[0], trials=1), pack, tmp_path)
    for _ in range(6):
        made.collector.collect()
    env, alpha = made.env, made.env.config.log.ema_alpha
    ended = env.ended_episodes()
    column = env.figure_names.index("return")
    averages: dict[int, float] = {}
    for row, is_ego, figures in zip(ended.rows.tolist(), ended.is_ego, ended.figures, strict=True):
        if is_ego:
            value = float(figures[column])
            averages[row] = alpha * averages[row] + (1.0 - alpha) * value if row in averages else value
    counted = [averages[row] for row in range(env.row_count) if env.roles[row] == EGO and row in averages]
    both = set(ended.rows[ended.is_ego]) & set(ended.rows[~ended.is_ego])
    assert both
    figures = env.figures()
    assert figures["n"] == len(counted)
    assert figures["return"] == pytest.approx(sum(counted) / len(counted), rel=1e-4)

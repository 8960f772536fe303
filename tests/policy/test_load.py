"""Loading policies: the built-in ones, checkpoints and classes of users, in the simulator and in Gymnasium."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadworthy.errors import UsageError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.sections import read_sections
from roadworthy.jobs.record import Status
from roadworthy.policy.blind import RandomPolicy, ZeroPolicy
from roadworthy.policy.checkpoint import save_policy
from roadworthy.policy.experts.policy import ExpertPolicy
from roadworthy.policy.load import load_policy
from roadworthy.policy.neural import NeuralPolicy
from roadworthy.policy.protocol import PolicyInfo, drive_batch
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Actions, ControlConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from tests.evaluation.built_in import declare
from tests.jobs.running import run_job
from tests.policy.networks import OBSERVE, small_policy
from tests.sim.scenes import Actor, pack_of, scene

CONFIG = SimConfig(observe=OBSERVE, control=ControlConfig(rows=3))
FILE = """
import numpy as np

class Mine:
    def __init__(self, gain=1):
        self.gain = gain

    def act(self, batch):
        mixed = (batch.seeds % 1000).astype(int) + self.gain * batch.steps
        return np.stack([3 + mixed % 3, 5 + mixed % 2], axis=1).astype(int)
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Four roads, each with one car."""
    scenes = [scene(Actor(5.0 + k, speed=10.0), id=f"s{k}", steps=31) for k in range(4)]
    return pack_of(tmp_path_factory.mktemp("roads") / "roads.pack", *scenes)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a policy in a file and the built-in evaluators."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_policy.py").write_text(FILE)
    declare(tmp_path / "site", monkeypatch)
    return tmp_path


@pytest.mark.parametrize("actions", Actions)
def test_zero_and_random_do_what_their_names_say(pack: Pack, actions: Actions) -> None:
    config = SimConfig(actions=actions, observe=OBSERVE, control=CONFIG.control)
    env = DriveEnv(pack, 2, config, sampling=False, threads=1)
    taken = []
    for policy in (ZeroPolicy(), RandomPolicy()):
        policy.start(PolicyInfo.of_drive_env(env))
        for step in range(200):
            taken.append(policy.act(drive_batch(env, np.arange(6, dtype=np.uint64), np.full(6, step))))
    zero, random = np.stack(taken[:200]), np.stack(taken[200:])
    choices = env.action_choices
    assert (zero == env.idle_action).all()
    if choices is None:
        assert random.min() < -0.95
        assert random.max() > 0.95
        assert np.abs(random).max() <= 1.0
    else:
        assert [sorted(set(random[..., k].ravel().tolist())) for k in range(2)] == [list(range(n)) for n in choices]


def test_policies_are_found_by_spec(here: Path) -> None:
    folder = save_policy(here / "mine", small_policy())
    assert isinstance(load_policy("random"), RandomPolicy)
    assert isinstance(load_policy("zero"), ZeroPolicy)
    assert isinstance(load_policy("expert:drive"), ExpertPolicy)
    assert isinstance(load_policy(folder), NeuralPolicy)
    assert isinstance(load_policy("baseline:town"), NeuralPolicy)
    for spec in ("my_policy:Mine", "my_policy.Mine", "my_policy.py:Mine", f"{here}/my_policy.py:Mine"):
        assert load_policy(spec, {"gain": 3}).gain == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", "unknown policy 'nowhere'; known: random, zero, expert:drive"),
        ("randm", "unknown policy 'randm'; did you mean random"),
        ("expert:drve", "unknown policy 'expert:drve'; did you mean expert:drive"),
        ("baseline:twon", "unknown policy 'baseline:twon'; did you mean baseline:town"),
        ("no_such_module:Class", "No module named 'no_such_module'"),
        ("math:Class", "module 'math' has no attribute 'Class'"),
        ("no_such_file.py:Class", "there is no file"),
    ],
)
def test_a_spec_that_names_nothing_is_an_error_that_says_what_would(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_policy(spec)


@pytest.mark.parametrize(
    ("spec", "key", "message"),
    [
        ("random", "seed", "policy 'random' does not accept 'seed' in policy_config; known: none"),
        ("zero", "action", "policy 'zero' does not accept 'action'"),
        ("expert:drive", "setling_s", "did you mean settling_s"),
        ("expert:log", "env", "policy 'expert:log' does not accept 'env'"),
        ("baseline:town", "greedy", "did you mean is_greedy"),
        ("ws://localhost:1", "timeout", "did you mean timeout_s"),
    ],
)
def test_built_in_policies_refuse_settings_that_they_do_not_know(spec: str, key: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_policy(spec, {key: 1})


def test_evaluating_a_scripted_policy_does_not_wait_for_torch() -> None:
    code = """
import sys
import roadworthy.evaluation.engines.process, roadworthy.evaluation.finish, roadworthy.evaluation.evaluate
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.policy.load import load_policy
for spec in ("expert:drive", "expert:log", "zero", "random"):
    load_policy(policy_ref(spec).spec)
sys.exit("torch" in sys.modules)
"""
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == 0


SECTION = """
[eval.short]
type = "multi_scenario"
scenarios = "{pack}"
worlds = {worlds}
policy = "{policy}"
policy_config = {config}
env.control.who = "sdc"
episode.trial_steps = 20
"""


def driven(pack: Pack, folder: Path, policy: str, worlds: int, config: str = "{}") -> Run:
    """Evaluate a policy in the simulator."""
    folder.mkdir(parents=True)
    text = SECTION.format(pack=pack.path, policy=policy, worlds=worlds, config=config)
    (folder / "suite.toml").write_text(text)
    (outcome,) = evaluate_sections(read_sections(folder / "suite.toml"), None, folder, has_references=False)
    assert outcome.is_complete, outcome.error
    assert outcome.run is not None
    return outcome.run


def in_gymnasium(pack: Pack, folder: Path, policy: str, envs: int, **config: Any) -> Run:
    """Run the same policy in Gymnasium environments."""
    settings = {"episode.trial_steps": 20}
    job = Job(
        name="j",
        environment=f"drive:{pack.path}",
        arguments=settings,
        policy=policy,
        policy_config=config,
        episodes=6,
        envs=envs,
    )
    record = run_job(job, folder)
    assert record.status is Status.COMPLETED, record.traceback
    return Run(record.folder)


ROWS = ["episode_id", "seed", "steps", "outcomes.score", "outcomes.distance_m"]


def test_a_class_that_subclasses_nothing_and_only_acts_works_in_both(pack: Pack, here: Path) -> None:
    spec = "my_policy.py:Mine"
    one, four = (driven(pack, here / str(worlds), spec, worlds) for worlds in (1, 4))
    assert one.episodes(ROWS).sort_by("episode_id").equals(four.episodes(ROWS).sort_by("episode_id"))
    one, three = (in_gymnasium(pack, here / f"gym{envs}", spec, envs) for envs in (1, 3))
    columns = ["episode_id", "seed", "steps", "outcomes.return", "outcomes.score"]
    assert one.episodes(columns).equals(three.episodes(columns))


def test_a_configuration_reaches_the_class_and_the_record(pack: Pack, here: Path) -> None:
    default, other = (driven(pack, here / f"r{k}", "my_policy.py:Mine", 2, f"{{ gain = {k} }}") for k in (1, 2))
    assert default.header["policy_config"] == {"gain": 1}
    assert default.header["policy_spec"] == f"{here}/my_policy.py:Mine"
    assert "my_policy-Mine-gain=2" in other.folder.name
    columns = ["outcomes.distance_m"]
    assert not default.episodes(columns).equals(other.episodes(columns))
    assert len(Ledger.from_table(default.ledger)) == 4


def test_a_checkpoint_drives_in_the_simulator_and_in_drive_environments(pack: Pack, here: Path) -> None:
    driven(pack, here / "driven", "baseline:town", 2)
    one, three = (in_gymnasium(pack, here / f"gym{envs}", "baseline:town", envs, is_greedy=True) for envs in (1, 3))
    columns = ["episode_id", "seed", "steps", "outcomes.return", "outcomes.score"]
    assert one.episodes(columns).equals(three.episodes(columns))


def test_a_policy_server_drives_in_the_simulator(pack: Pack, here: Path) -> None:
    from roadworthy.policy.remote.server import PolicyServer

    local = driven(pack, here / "local", "my_policy.py:Mine", 2)
    with PolicyServer(lambda: load_policy("my_policy.py:Mine")) as server:
        remote = driven(pack, here / "remote", server.address, 2)
    assert remote.episodes(ROWS).sort_by("episode_id").equals(local.episodes(ROWS).sort_by("episode_id"))

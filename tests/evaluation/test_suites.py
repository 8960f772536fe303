"""The suites that come with Roadworthy: they resolve, and mean the same whatever a policy was trained with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roadworthy.config import Layer, plain
from roadworthy.evaluation.config import EvaluatorConfig, Memory
from roadworthy.evaluation.files import suite_names
from roadworthy.evaluation.references import reference_policies
from roadworthy.evaluation.sections import chosen, read_sections
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    DisturbConfig,
    EpisodeConfig,
    GoalConfig,
    HiddenConfig,
    InfractionConfig,
    Mode,
    Model,
    ObserveConfig,
    OnInfraction,
    OpenConfig,
    Others,
    RewardConfig,
    ScoreConfig,
    SimConfig,
)
from tests.plugin_package import install_own

SUITES = ("adaptation", "behaviors", "closed_loop", "human_replay", "realism", "town")

# Nothing in it is as it is by default.
STRANGE = SimConfig(
    mode=Mode.OPEN,
    init_steps=3,
    model=Model.JERK,
    actions=Actions.CONTINUOUS,
    episode=EpisodeConfig(trials=7, trial_steps=33),
    control=ControlConfig(Control.AGENTS, Others.IDM, rows=200, ego_share=0.3),
    open=OpenConfig(agents=100, traffic=3, goals=9, goal_spacing_m=11.0, spawn_gap_m=1.0),
    goal=GoalConfig(AtGoal.STOP, radius_m=9.0, speed_mps=1.0),
    infraction=InfractionConfig(OnInfraction.STOP, OnInfraction.STOP, OnInfraction.STOP),
    reward=RewardConfig(goal=(0.0, 4.0), collision=-7.0),
    score=ScoreConfig(((1, 0.1),)),
    observe=ObserveConfig(partners=5, lanes=7),
    disturb=DisturbConfig(blind_rate=0.1, phantom_brake_rate=0.2, dropout=0.3, action_noise=0.4),
    hidden=HiddenConfig((0.5, 0.6), (0.5, 0.6), (0.5, 0.6), (0.5, 0.6)),
)
STRANGE = replace(STRANGE, log=replace(STRANGE.log, report_interval=5))


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path, monkeypatch)


def configs(suite: str, *overrides: str, training: Layer | None = None) -> dict[str, EvaluatorConfig]:
    """What a suite runs."""
    return {s.name: s.config for s in chosen(read_sections(suite, training=training, overrides=overrides))}


def test_all_suites_are_found_by_name() -> None:
    assert suite_names() == SUITES


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.row("EVAL-1")
def test_every_section_of_a_suite_is_sound_and_clean(suite: str) -> None:
    found = configs(suite)
    assert found
    for config in found.values():
        assert config.clean
        assert config.source.recipe is not None


@pytest.mark.row("EVAL-2")
def test_there_is_an_evaluator_for_each_behavior_class() -> None:
    found = configs("behaviors")
    assert tuple(found) == BEHAVIORS
    assert {name: config.source.tag for name, config in found.items()} == {name: name for name in BEHAVIORS}
    assert {config.type for config in found.values()} == {"behavior_class"}


@pytest.mark.row("CL-2")
def test_the_closed_loop_suite_drives_15_s_to_the_end_in_both_kinds_of_traffic() -> None:
    found = configs("closed_loop")
    others = {name: config.env.control.others for name, config in found.items()}
    assert others == {"closed_loop_nonreactive": Others.REPLAY, "closed_loop_reactive": Others.IDM}
    for config in found.values():
        assert (config.env.mode, config.env.control.who) == (Mode.REPLAY, Control.SDC)
        assert (config.episode.trials, config.episode.trial_steps) == (1, 150)
        assert config.env.goal.at_goal is AtGoal.CONTINUE
        recipe = config.source.recipe
        assert recipe is not None
        assert recipe.steps >= config.env.init_steps + 151
        assert config.summary.figure == "closed_loop_score"


@pytest.mark.row("CL-3")
def test_behavior_classes_are_exams_that_are_driven_to_their_end() -> None:
    for name, config in configs("behaviors").items():
        recipe = config.source.recipe
        assert recipe is not None
        assert recipe.steps == EXAM_STEPS
        assert config.env.init_steps + config.episode.trial_steps == EXAM_STEPS - 1, name
        assert config.env.goal.at_goal is AtGoal.CONTINUE
        assert config.summary.figure == "passed"
        floors = {policy for role, policy in reference_policies(config) if role == "floor"}
        must_fail = "expert:lane_keeper" if name == "lane_change" else "expert:lane_follower"
        is_for_the_blind = name in ("highway_straight", "roundabout", "protected_left")
        assert floors == {"zero", "random"} | (set() if is_for_the_blind else {must_fail})


@pytest.mark.parametrize("suite", SUITES)
def test_a_pack_of_the_user_goes_in_by_one_key(suite: str) -> None:
    before, after = configs(suite), configs(suite, "scenarios=my.pack")
    for name, config in after.items():
        assert config.source.path == Path("my.pack")
        assert config.source.tag == before[name].source.tag


@pytest.mark.parametrize("suite", SUITES)
def test_the_worlds_of_a_suite_do_not_depend_on_what_a_policy_was_trained_with(suite: str) -> None:
    """Only what belongs to the policy does: what it sees, what its actions mean, what it was rewarded for."""
    usual, strange = configs(suite), configs(suite, training=Layer("policy.json", {"env": plain(STRANGE)}))
    for name in usual:
        expected, env = usual[name].env, strange[name].env
        if usual[name].policy is not None:  # a baseline
            assert strange[name] == usual[name]
            continue
        seen = replace(STRANGE.observe, partner_range_m=12.0) if "fog" in name else STRANGE.observe  # the world's
        assert (env.model, env.actions, env.observe) == (STRANGE.model, STRANGE.actions, seen)
        of_policy = {"model": env.model, "actions": env.actions, "observe": env.observe, "reward": env.reward}
        unused = {"log": env.log, "open": env.open, "init_steps": env.init_steps}
        if expected.mode is Mode.OPEN:  # recordings play no part
            del unused["open"]
            unused["control"] = replace(expected.control, who=env.control.who, others=env.control.others)
        else:
            del unused["init_steps"]
        assert replace(env, control=unused.get("control", env.control)) == replace(expected, **of_policy, **unused)


@pytest.mark.row("TRIAL-9")
def test_adaptation_has_something_to_adapt_to() -> None:
    found = configs("adaptation", "eval.adaptation_fog_forgets.enabled=true")
    for config in found.values():
        assert config.episode.trials > 1
        assert config.summary.figure == f"ada_delta_trial_{config.episode.trials - 1}_minus_0"
    control = found.pop("adaptation_fog_forgets")
    assert replace(control, memory=Memory.EPISODE) == found["adaptation_fog"]
    ranges = {name: plain(config.env.hidden) for name, config in found.items()}
    assert len({str(hidden) for hidden in ranges.values()}) == len(found)
    assert found["adaptation_partners"].env.hidden.partners > 1
    assert found["adaptation_partners"].env.control.ego_share < 1.0


@pytest.mark.row("EVAL-2")
def test_realism_has_its_baselines_beside_the_policy_in_the_same_worlds() -> None:
    found = configs("realism")
    own, baselines = found.pop("realism"), found.values()
    assert own.policy is None
    assert [config.policy for config in baselines] == ["expert:log", "expert:drive", "zero", "random"]
    for config in baselines:
        assert (config.source, config.replicates, config.seed) == (own.source, own.replicates, own.seed)
        assert (config.env.control, config.env.goal, config.episode) == (own.env.control, own.env.goal, own.episode)
        assert config.env.actions is Actions.CONTINUOUS, "of choices, none keeps the speed exactly in all models"
        assert config.summary.weight == 0.0
    assert (own.replicates, own.summary.weight, own.summary.figure) == (32, 1.0, "realism")

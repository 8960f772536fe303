"""`realism`: the policy drives all agents of a recorded scene, many times. Do they drive like the recorded ones?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from roadworthy.config import parse
from roadworthy.errors import ConfigError, UsageError
from roadworthy.evaluation.config import EvaluatorConfig, SummaryConfig
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.metrics.realism.scene import task_agents
from roadworthy.metrics.trace_figures import TraceFigures
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import EpisodeConfig, SimConfig
from roadworthy.sim.maps.scenario_store import MOST_AGENTS

# The world of the challenge: agents that are present at the current step are driven to the end, and no others appear.
# A goal is the end of a recording: an agent that stands exactly there has reached it and stays. No other agent is
# stopped, and none leaves.
FIXED: Mapping[str, Any] = {
    "episode": {"trials": 1},
    "env": {
        "mode": "replay",
        "control": {"who": "agents", "others": "static", "ego_share": 1.0, "min_distance_m": 0.0},
        "goal": {"at_goal": "stop", "radius_m": 0.001, "speed_mps": 0.0},
        "infraction": {"collision": "ignore", "off_road": "ignore", "red_light": "ignore"},
    },
}
# Driving figures that mean nothing where no goal can be reached and all agents drive to the end.
_OF_GOALS = frozenset(("score", "completion_rate", "timed_out_rate", "goal_rate", "length", "return"))


@dataclass(frozen=True, kw_only=True)
class RealismConfig(EvaluatorConfig):
    """`replicates` is the number of rollouts of each scenario: 32 in the challenge."""

    fixed: ClassVar[Mapping[str, Any]] = FIXED
    has_references: ClassVar[bool] = False  # its suite has baselines of its own

    challenge: Literal["2025", "2024", "2025_scenario_gen"] = "2025"
    # The challenge whose configuration turns features into the realism.
    env: SimConfig = field(default_factory=lambda: parse(FIXED["env"], SimConfig))
    episode: EpisodeConfig = field(default_factory=lambda: parse(FIXED["episode"], EpisodeConfig))
    summary: SummaryConfig = field(default_factory=lambda: SummaryConfig(figure="realism"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coplayers:
            raise ConfigError(
                f"coplayers is {list(self.coplayers)}, but in realism the policy drives all agents; leave it out"
            )


class Realism(DrivingEvaluator):
    """Rollouts from the current step on, each with its own seed, scored by the Sim Agents challenge's metrics."""

    config_type: ClassVar[type[EvaluatorConfig]] = RealismConfig

    def choose(self, pack: Pack, name: str, config: EvaluatorConfig) -> list[int]:
        """Return the scenarios, the same for all sections, so that baselines are compared on the same ones."""
        numbers, rows = super().choose(pack, config.type, config), config.env.control.rows
        counts = {number: _agents_at(pack, number, config.env.init_steps) for number in numbers}
        fullest = max(counts, key=lambda number: counts[number])
        if counts[fullest] > MOST_AGENTS:
            raise UsageError(
                f"scenario {pack.ids[fullest]!r} has {counts[fullest]} agents at step {config.env.init_steps}, at most "
                f"{MOST_AGENTS} can be driven; leave it out of the pack"
            )
        if counts[fullest] > rows:
            more = sum(count > rows for count in counts.values()) - 1
            raise UsageError(
                f"env.control.rows is {rows}, but scenario {pack.ids[fullest]!r}"
                f"{f' (and {more} more)' if more else ''} has {counts[fullest]} agents at step "
                f"{config.env.init_steps}, and the policy has to drive all of them; set env.control.rows to "
                f"{counts[fullest]}"
            )
        return numbers

    def trace_figures(self, config: EvaluatorConfig) -> tuple[TraceFigures, ...]:
        """Return none: rollouts of all agents are samples, not a car that drives in traffic."""
        return ()

    def metrics(self, run: Run, traced: Run | None = None) -> Mapping[str, Any]:
        """Return the realism figures, then the driving figures that have a meaning without goals."""
        from roadworthy.metrics.realism.run_figures import realism_metrics

        config = run.header["config"]
        found = realism_metrics(traced or run, config["challenge"], config["env"]["init_steps"])
        driving = dict(super().metrics(run))
        driving["figures"] = [*found["figures"], *_without_goals(driving["figures"])]
        driving["by_class"] = {
            name: {**part, "figures": [*found["by_class"].get(name, ()), *_without_goals(part["figures"])]}
            for name, part in driving["by_class"].items()
        }
        driving["by_scenario"] = _joined(driving["by_scenario"], found["by_scenario"])
        kept = driving["by_cluster"]
        if found["by_cluster"]["cluster"] == kept["cluster"]:  # else a cluster has no scored scenario
            kept = {**kept, "figures": {**kept["figures"], **found["by_cluster"]["figures"]}}
        driving["by_cluster"] = kept
        return {**driving, "num_free_successes": None, "realism": found["realism"]}

    def followed(self, run: Run, episode_id: str) -> int | None:
        """Return the first evaluated agent: among all others, the one with the worst result is often off the map."""
        trace = run.trace(episode_id)
        with Pack(run.pack) as pack:
            agents, _ = task_agents(pack.scenario(trace.scenario_id))
        return int(np.flatnonzero(trace.sources == agents[0])[0])


def _agents_at(pack: Pack, number: int, step: int) -> int:
    valid = pack[number].valid
    return int(valid[:, step].sum()) if step < valid.shape[1] else 0


def _without_goals(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [figure for figure in figures if figure["name"].removesuffix("_per_scenario") not in _OF_GOALS]


def _joined(driving: Mapping[str, Any], realism: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of all scenarios with an episode; the realism of those that can't be scored is null."""
    places = {name: place for place, name in enumerate(realism["scenario_id"])}
    order = [places.get(name) for name in driving["scenario_id"]]
    columns = {
        name: [None if place is None else values[place] for place in order]
        for name, values in realism["figures"].items()
    }
    kept = {name: values for name, values in driving["figures"].items() if name not in _OF_GOALS}
    return {**driving, "figures": {**columns, **kept}}

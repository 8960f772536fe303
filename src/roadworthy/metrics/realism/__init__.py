"""Realism of simulated agents: the metrics of the Waymo Open Sim Agents challenge, 2025 and 2024.

    figures = score_rollouts(scenario, Rollouts.of(agent_ids, x, y, z, heading))
    figures.metametric, figures.collision_indication_likelihood

`docs/realism.md` has the rules. One file per feature; `features` calls them, `likelihood` turns them into
probabilities, `score` adds these up.
"""

from roadworthy.metrics.realism.config import (
    CHALLENGE_2024,
    CHALLENGE_2025,
    CHALLENGES,
    SCENARIO_GENERATION_2025,
    RealismConfig,
)
from roadworthy.metrics.realism.features import Features, compute_features
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.scene import task_agents
from roadworthy.metrics.realism.score import (
    FIGURES,
    RealismFigures,
    buckets,
    mean_figures,
    score_features,
    score_rollouts,
)

__all__ = [
    "CHALLENGES",
    "CHALLENGE_2024",
    "CHALLENGE_2025",
    "FIGURES",
    "SCENARIO_GENERATION_2025",
    "Features",
    "RealismConfig",
    "RealismFigures",
    "Rollouts",
    "buckets",
    "compute_features",
    "mean_figures",
    "score_features",
    "score_rollouts",
    "task_agents",
]

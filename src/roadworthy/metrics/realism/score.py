"""The realism of a scenario's rollouts: one likelihood per feature, and their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.metrics.realism.config import BUCKETS, CHALLENGE_2025, Event, RealismConfig
from roadworthy.metrics.realism.displacement import displacement_errors
from roadworthy.metrics.realism.features import Features, compute_features
from roadworthy.metrics.realism.likelihood import event_likelihood, histogram_likelihood
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.scenario.schema import Bools, Scenario


@dataclass(frozen=True)
class RealismFigures:
    """Figures under the names of the challenge. NaN if no recorded step is valid."""

    metametric: float
    """The realism score: the weighted sum of all likelihoods."""
    average_displacement_error: float
    """m from the recording, mean over rollouts and agents."""
    min_average_displacement_error: float
    """m, of the rollout with the smallest mean over agents."""
    linear_speed_likelihood: float
    linear_acceleration_likelihood: float
    angular_speed_likelihood: float
    angular_acceleration_likelihood: float
    distance_to_nearest_object_likelihood: float
    collision_indication_likelihood: float
    time_to_collision_likelihood: float
    distance_to_road_edge_likelihood: float
    offroad_indication_likelihood: float
    traffic_light_violation_likelihood: float
    simulated_collision_rate: float
    """Share of evaluated agents in rollouts."""
    simulated_offroad_rate: float
    simulated_traffic_light_violation_rate: float

    def plain(self) -> dict[str, float | None]:
        """Return plain values for JSON, with None for NaN."""
        return {name: None if np.isnan(value) else value for name, value in asdict(self).items()}


FIGURES = tuple(field.name for field in fields(RealismFigures))


def score_rollouts(scenario: Scenario, rollouts: Rollouts, config: RealismConfig = CHALLENGE_2025) -> RealismFigures:
    """Return the realism of the rollouts of a scenario."""
    return score_features(compute_features(scenario, rollouts), config)


def score_features(features: Features, config: RealismConfig = CHALLENGE_2025) -> RealismFigures:
    """Return the realism from features, which several configs can share."""
    likelihoods: dict[str, float] = {}
    rates: dict[str, float] = {}
    for name, part in config.parts.items():
        log, simulated = getattr(features.log, name), getattr(features.simulated, name)
        counted = features.counted(name)
        if isinstance(part, Event):
            likelihoods[name] = event_likelihood(part, _at_all(log, counted)[0], _at_all(simulated, counted))
            rates[name] = float(_at_all(simulated, features.scene.log_valid).mean())
        else:
            likelihoods[name] = histogram_likelihood(part.histogram, log[0], simulated, counted, part.pooled)
    errors = displacement_errors(features.scene)
    return RealismFigures(
        metametric=sum(part.weight * likelihoods[name] for name, part in config.parts.items()),
        average_displacement_error=float(errors.mean()),
        min_average_displacement_error=float(errors.mean(axis=1).min()),
        simulated_collision_rate=rates["collision_indication"],
        simulated_offroad_rate=rates["offroad_indication"],
        simulated_traffic_light_violation_rate=rates["traffic_light_violation"],
        **{f"{name}_likelihood": value for name, value in likelihoods.items()},
    )


def buckets(figures: RealismFigures, config: RealismConfig = CHALLENGE_2025) -> dict[str, float]:
    """Return the fields of the challenge's leaderboard: the score, weighted likelihoods by group, and rates."""
    groups = {}
    for group, names in BUCKETS.items():
        weights = {name: config.parts[name].weight for name in names}
        total = sum(weight * getattr(figures, f"{name}_likelihood") for name, weight in weights.items())
        groups[f"{group}_metrics"] = total / sum(weights.values())
    return {
        "realism_meta_metric": figures.metametric,
        **groups,
        "min_ade": figures.min_average_displacement_error,
        "simulated_collision_rate": figures.simulated_collision_rate,
        "simulated_offroad_rate": figures.simulated_offroad_rate,
        "simulated_traffic_light_violation_rate": figures.simulated_traffic_light_violation_rate,
    }


def mean_figures(scores: Sequence[RealismFigures]) -> RealismFigures:
    """Return the figures of a data set: plain means over scenarios, NaN if one of them has none."""
    if not scores:
        raise UsageError("no scenario was scored, so there are no figures to average")
    return RealismFigures(**{name: float(np.mean([getattr(score, name) for score in scores])) for name in FIGURES})


def _at_all(happens: Bools, counted: Bools) -> Bools:
    """Return whether an event (R, E, S) happens at a valid step, (R, E)."""
    return np.logical_or.reduce(happens & counted, axis=2)

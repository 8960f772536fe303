"""Score the realism of rollouts with the metrics of the Waymo Open Sim Agents challenge."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.metrics.realism.config import CHALLENGES, RealismConfig
from roadworthy.metrics.realism.read import Part, Selection, find_parts
from roadworthy.metrics.realism.score import RealismFigures, buckets, mean_figures, score_rollouts
from roadworthy.plugins import nearest
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.processes import available_cores, map_in_order

FIRST_SCENARIOS = 2  # scored before processes start, because a process starts slower than a scenario is scored
BUCKETS = ("kinematic_metrics", "interactive_metrics", "map_based_metrics")


@dataclass(frozen=True)
class RealismScores:
    """The realism of rollouts: the figures of each scenario, and their mean."""

    config: RealismConfig
    scenarios: Mapping[str, RealismFigures]
    # The figures of each scenario, by its id.
    missing: int
    # The number of scenarios of the pack that were not scored.

    @property
    def figures(self) -> RealismFigures:
        """The mean over all scenarios; `metametric` is the realism score."""
        return mean_figures(list(self.scenarios.values()))

    def buckets(self) -> dict[str, float | None]:
        """Return the weighted likelihoods of the groups of features; None where there is no data."""
        return _buckets(self.figures, self.config)

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures of each scenario as plain values."""
        rows = []
        for name, figures in self.scenarios.items():
            groups = {key: value for key, value in _buckets(figures, self.config).items() if key in BUCKETS}
            rows.append({"scenario_id": name, **figures.plain(), **groups})
        return rows

    def write(self, path: str | Path) -> None:
        """Write the figures of each scenario to a .csv or .json file."""
        path, rows = Path(path), self.rows()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".json":
            path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            return
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _buckets(figures: RealismFigures, config: RealismConfig) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in buckets(figures, config).items()}


def score_realism(
    pack: str | Path,
    rollouts: str | Path | Iterable[str | Path],
    *,
    challenge: str = "2025",
    only: Iterable[str] = (),
    skip_unknown: bool = False,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RealismScores:
    """Score how much simulated agents drive like recorded ones, wherever the rollouts come from.

    Args:
        pack: The pack with the recordings.
        rollouts: One or several of: SCENARIO_ID.npz with `object_id` (agents,), and `x`, `y`, `z`, `heading` (rollouts,
            agents, steps); a submission of the Waymo Open Sim Agents challenge (a file, shards, .tar.gz); folders.
        challenge: The version of the metrics: "2025", "2024" or "2025_scenario_gen".
        only: The ids of the scenarios to score; if empty, all that have rollouts.
        skip_unknown: Ignore rollouts of scenarios that are not in the pack.
        processes: The number of processes; if None, one per core.
        progress: Called with the number of scored scenarios, and the total.

    Returns:
        The figures of each scenario and their mean.

    Raises:
        UsageError: The challenge, a scenario or a rollout is unknown or does not fit.

    Example:
        >>> import roadworthy as rw
        >>> scores = rw.score_realism("town.pack", "rollouts")
        >>> 0.0 < scores.figures.metametric <= 1.0
        True
    """
    if challenge not in CHALLENGES:
        raise UsageError(f"unknown challenge {challenge!r}; {nearest(challenge, CHALLENGES)}")
    paths = [rollouts] if isinstance(rollouts, str | Path) else list(rollouts)
    config = CHALLENGES[challenge]
    with Pack(pack) as opened:
        ids, wanted = opened.ids, frozenset(only)
        for name in sorted(wanted):
            opened.number(name)  # an unknown one is an error that names the nearest
    total = len(wanted or ids)
    parts = find_parts(map(Path, paths), Selection(frozenset(ids), wanted, skip_unknown))
    scores: dict[str, RealismFigures] = {}
    processes = processes or min(available_cores(), max(total - FIRST_SCENARIOS, 1))
    work = map_in_order(partial(_score, Path(pack).absolute(), config), parts, processes, FIRST_SCENARIOS)
    with closing(work):
        for name, figures in work:
            if name in scores:
                raise UsageError(f"the scenario {name!r} has rollouts twice; expected the rollouts of each once")
            scores[name] = figures
            progress(len(scores), total)
    absent = sorted(wanted - set(scores))
    if absent:
        raise UsageError(f"there are no rollouts of {len(absent)} of the scenarios asked for, such as {absent[0]!r}")
    if not scores:
        raise UsageError("there are no rollouts of any scenario of the pack")
    return RealismScores(config, scores, len(ids) - len(scores))


def _score(pack: Path, config: RealismConfig, part: Part) -> tuple[str, RealismFigures]:
    rollouts = part.read()
    try:
        return part.scenario_id, score_rollouts(_opened(pack).scenario(part.scenario_id), rollouts, config)
    except RoadworthyError as error:
        raise type(error)(f"{part.origin}: {error}") from None


@lru_cache(maxsize=1)
def _opened(pack: Path) -> Pack:
    return Pack(pack)

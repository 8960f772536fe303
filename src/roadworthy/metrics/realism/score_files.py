"""Score rollouts in files against the scenarios of a pack, with several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.metrics.realism.config import CHALLENGE_2025, RealismConfig
from roadworthy.metrics.realism.read import Part, Selection, find_parts
from roadworthy.metrics.realism.score import RealismFigures, score_rollouts
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.processes import available_cores, map_in_order

FIRST_SCENARIOS = 2  # scored before processes start, because a process starts slower than a scenario is scored


def score_files(
    pack: Path,
    paths: Iterable[Path],
    config: RealismConfig = CHALLENGE_2025,
    *,
    only: Iterable[str] = (),
    skip_unknown: bool = False,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, RealismFigures]:
    """Score every scenario of a pack that has rollouts in the files; figures do not depend on the number of processes.

    Args:
        pack: The pack with the recordings.
        paths: Files and folders as `read.find_parts` takes them.
        config: How features are turned into likelihoods.
        only: Ids of the scenarios to score; all of them must have rollouts. Empty: all that have.
        skip_unknown: Leave out rollouts of scenarios that are not in the pack.
        processes: How many; one for each core by default.
        progress: Called with the number of scored scenarios and of all that may come.

    Returns:
        The figures of each scenario by its id, in the order of the files.
    """
    with Pack(pack) as opened:
        ids, wanted = opened.ids, frozenset(only)
        for name in sorted(wanted):
            opened.number(name)  # an unknown one is an error that names the nearest
    total = len(wanted or ids)
    parts = find_parts(paths, Selection(frozenset(ids), wanted, skip_unknown))
    scores: dict[str, RealismFigures] = {}
    processes = processes or min(available_cores(), max(total - FIRST_SCENARIOS, 1))
    work = map_in_order(partial(_score, Path(pack).absolute(), config), parts, processes, FIRST_SCENARIOS)
    with closing(work):
        for name, figures in work:
            if name in scores:
                raise UsageError(f"the scenario {name!r} has rollouts twice; expected the rollouts of each once")
            scores[name] = figures
            progress(len(scores), total)
    missing = sorted(wanted - set(scores))
    if missing:
        raise UsageError(f"there are no rollouts of {len(missing)} of the scenarios asked for, such as {missing[0]!r}")
    if not scores:
        raise UsageError("there are no rollouts of any scenario of the pack")
    return scores


def _score(pack: Path, config: RealismConfig, part: Part) -> tuple[str, RealismFigures]:
    rollouts = part.read()
    try:
        return part.scenario_id, score_rollouts(_opened(pack).scenario(part.scenario_id), rollouts, config)
    except RoadworthyError as error:
        raise type(error)(f"{part.origin}: {error}") from None


@lru_cache(maxsize=1)
def _opened(pack: Path) -> Pack:
    return Pack(pack)

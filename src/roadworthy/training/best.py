"""Which checkpoint of a training run is the best, and the pointer files checkpoints/last and checkpoints/best.

The best checkpoint has the highest `score` in the run's own evaluations; of several evaluators, the one with the most
evaluated checkpoints decides. Without evaluations that report a score, the score of the egos in training decides, over
the report interval before the checkpoint. Of equal scores, the later checkpoint is the best.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from roadworthy.errors import RoadworthyError
from roadworthy.policy.checkpoint_files import BEST, CHECKPOINTS, LAST, by_steps
from roadworthy.record.files import write_whole
from roadworthy.record.run import Run

EVALUATIONS, POLICIES = "evaluations", "policies"  # folders of evaluation inside training
TRAINER = "trainer.json"  # a checkpoint's file with counters and the last report
SCORE = "score"


def point_at_checkpoints(folder: Path) -> Path | None:
    """Write the pointer files of a training folder; return the best checkpoint, None if there is none.

    Pointers are text files with a path relative to `checkpoints`, so that they survive any kind of copy.
    """
    checkpoints = folder / CHECKPOINTS
    found = dict(by_steps(checkpoints))
    if not found:
        return None
    best = _best(folder, found)
    write_whole(checkpoints / LAST, f"{found[max(found)].name}\n".encode())
    place = best.name if best.parent == checkpoints else f"../{best.relative_to(folder).as_posix()}"
    write_whole(checkpoints / BEST, f"{place}\n".encode())
    return best


def _best(folder: Path, found: dict[int, Path]) -> Path:
    """Return the best checkpoint, or the copy of it that was evaluated if the checkpoint itself is gone."""
    evaluated = found | {step: path for step, path in by_steps(folder / EVALUATIONS / POLICIES) if step not in found}
    scores = {step: score for step, score in _evaluation_scores(folder).items() if step in evaluated}
    if scores:
        return evaluated[max(scores, key=lambda step: (scores[step], step))]
    trained = {step: score for step, path in found.items() if (score := _training_score(path)) is not None}
    return found[max(trained, key=lambda step: (trained[step], step)) if trained else max(found)]


def _evaluation_scores(folder: Path) -> dict[int, float]:
    """Return the scores by step of the evaluator that has evaluated the most checkpoints."""
    by_evaluator: dict[str, dict[int, float]] = {}
    for path in sorted((folder / EVALUATIONS).glob("*/*/run.json")):
        with suppress(RoadworthyError):  # an unreadable run has no score
            run = Run(path.parent)
            figures = (run.metrics or {}).get("figures", ()) if run.is_sealed else ()
            values = [figure["value"] for figure in figures if figure["name"] == SCORE]
            if values and values[0] is not None and run.header.get("step") is not None:
                by_evaluator.setdefault(path.parts[-3], {})[int(run.header["step"])] = float(values[0])
    return max(by_evaluator.values(), key=len, default={})


def _training_score(checkpoint: Path) -> float | None:
    """Return the score in training before a checkpoint."""
    try:
        score: float | None = json.loads((checkpoint / TRAINER).read_bytes())["report"].get(SCORE)
    except (OSError, ValueError, KeyError):
        return None
    return score

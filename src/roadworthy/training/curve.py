"""The learning curve of a training run as a picture, from its progress.jsonl. Needs matplotlib, unlike training."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadworthy.training.progress import read_progress

PICTURE = "curve.png"  # in the training folder
Lines = Sequence[dict[str, Any]]
Panel = tuple[str, tuple[str, ...]]  # title, and names of figures

# From left to right; panels of trials follow if there are any.
_TOP: tuple[Panel, ...] = (
    ("figures of egos", ("score", "goal_rate", "completion_rate")),
    (
        "infractions, share of episodes",
        ("at_fault_collision_rate", "collision_rate", "off_road_rate", "red_light_rate"),
    ),
)
_BELOW: tuple[Panel, ...] = (
    ("the learner", ("entropy", "explained_variance", "value_loss")),
    ("throughput", ("steps_per_s",)),
)
_NAMES = {"steps_per_s": "agent-steps per second"}
_MOST_POINTS = 1000  # more than the picture has pixels for


def draw_curve(progress: Path, out: Path, title: str = "") -> Path:
    """Draw a progress.jsonl: one panel per kind of figure, over agent-steps. The file is written atomically."""
    from matplotlib.figure import Figure

    lines = _read(progress)
    scores, deltas = _of_trials(lines)
    rows = ([*_TOP, *scores], [*_BELOW, *deltas])
    picture = Figure(figsize=(5.0 * len(rows[0]), 6.0), layout="constrained")
    places = picture.subplots(2, len(rows[0]), sharex=True)
    for place, (heading, names) in zip(places.ravel(), [*rows[0], *rows[1]], strict=True):
        _draw(place, heading, names, lines)
    for place in places[1]:
        place.set_xlabel("million agent-steps learned from")
    if title:
        picture.suptitle(title, x=0.01, ha="left", fontsize=12)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    picture.savefig(partial, dpi=110, format="png")
    os.replace(partial, out)
    return out


def _draw(place: Any, heading: str, names: Sequence[str], lines: Lines) -> None:
    """Draw one panel with a curve for each figure that has data."""
    from matplotlib.ticker import EngFormatter

    shown: list[float] = []
    for name in names:
        points = [(line["step"] / 1e6, value) for line in lines if (value := _value(line, name)) is not None]
        if points:
            label = _NAMES.get(name, name.replace("_", " "))
            place.plot(*zip(*points, strict=True), label=label, linewidth=1.4, marker="." if len(points) < 3 else None)
            shown += [value for _, value in points]
    place.set_title(heading, loc="left", fontsize=10)
    place.grid(alpha=0.25)
    place.spines[["top", "right"]].set_visible(False)
    if not shown:
        place.text(0.5, 0.5, "no data yet", ha="center", va="center", transform=place.transAxes, color="0.5")
        return
    if min(shown) < 0.0:
        place.axhline(0.0, color="0.6", linewidth=0.8)
    else:
        place.set_ylim(0.0, None if max(shown) > 0.0 else 1.0)
    if max(shown) >= 10_000.0:
        place.yaxis.set_major_formatter(EngFormatter(sep=""))  # 250k, 1.2M
    place.legend(frameon=False, fontsize=9)


def _of_trials(lines: Lines) -> tuple[tuple[Panel, ...], tuple[Panel, ...]]:
    """Return panels with the scores of trials and with their differences, if episodes have several trials."""
    names = {name for line in lines for name in line["figures"]}
    scores = sorted((n for n in names if re.fullmatch(r"trial_\d+_score", n)), key=_number)
    deltas = sorted((n for n in names if re.fullmatch(r"ada_delta_trial_\d+_minus_0", n)), key=_number)
    if not deltas:
        return (), ()
    return (("score by trial", tuple(scores)),), (("score minus that of trial 0", tuple(deltas)),)


def _number(name: str) -> int:
    return int(re.findall(r"\d+", name)[0])


def _read(progress: Path) -> Lines:
    """Return the lines of a log; of a long one as many as a picture can show, including the last."""
    lines = read_progress(progress)
    every = -(-len(lines) // _MOST_POINTS) or 1
    return lines[::-1][::every][::-1]


def _value(line: dict[str, Any], name: str) -> float | None:
    for place in (line, line["losses"], line["figures"]):
        if name in place:
            return place[name]
    return None

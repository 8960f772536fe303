"""The learning curve of a run as a picture, from its progress.jsonl. It needs matplotlib, which training does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("figures of egos", ("score", "goal_rate", "completion_rate")),
    ("infractions, share of episodes", ("collision_rate", "off_road_rate", "red_light_rate")),
    ("the learner", ("entropy", "explained_variance")),
    ("agent-steps per second", ("steps_per_s",)),
)


def draw_curve(progress: Path, out: Path, title: str = "") -> Path:
    """Draw what progress.jsonl has: one panel per kind of figure, over agent-steps."""
    from matplotlib.figure import Figure

    lines = [json.loads(line) for line in progress.read_text(encoding="utf-8").splitlines()]
    picture = Figure(figsize=(10, 6), layout="constrained")
    panels = picture.subplots(2, 2, sharex=True).ravel()
    for panel, (heading, names) in zip(panels, PANELS, strict=True):
        for name in names:
            points = [(line["step"] / 1e6, value) for line in lines if (value := _value(line, name)) is not None]
            if points:
                panel.plot(*zip(*points, strict=True), label=name.replace("_", " "), linewidth=1.4)
        panel.set_title(heading, loc="left", fontsize=10)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylim(bottom=0)
        if len(names) > 1:
            panel.legend(frameon=False, fontsize=9)
    for panel in panels[2:]:
        panel.set_xlabel("million agent-steps learned from")
    if title:
        picture.suptitle(title, x=0.01, ha="left", fontsize=12)
    out.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(out, dpi=110)
    return out


def _value(line: dict[str, Any], name: str) -> float | None:
    for place in (line, line["losses"], line["figures"]):
        if name in place:
            return place[name]
    return None

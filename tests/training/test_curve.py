"""The learning curve of complete, short and empty logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest

from roadworthy.training.curve import draw_curve


def write_log(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def update(k: int, **figures: float | None) -> dict[str, Any]:
    losses = {"entropy": 3.0 - 0.01 * k, "explained_variance": -0.5 + 0.01 * k, "value_loss": 1.0 / (1 + k)}
    return {"step": 1000 * k, "steps_per_s": 5e4, "losses": losses, "figures": figures}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[matplotlib.figure.Figure]:
    """The pictures as they are when they are saved."""
    pictures: list[matplotlib.figure.Figure] = []
    save = matplotlib.figure.Figure.savefig

    def keep(self: matplotlib.figure.Figure, *arguments: Any, **keys: Any) -> None:
        pictures.append(self)
        save(self, *arguments, **keys)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", keep)
    return pictures


def curves(picture: matplotlib.figure.Figure) -> dict[str, list[float]]:
    """The values of each curve that has a name, by that name."""
    lines = {str(line.get_label()): line for panel in picture.axes for line in panel.get_lines()}
    return {name: list(line.get_ydata()) for name, line in lines.items() if not name.startswith("_")}


def test_every_figure_of_the_log_is_a_curve_over_its_steps(
    drawn: list[matplotlib.figure.Figure], tmp_path: Path
) -> None:
    log = write_log(tmp_path / "progress.jsonl", [update(k, score=0.1 * k, goal_rate=None) for k in range(5)])
    out = draw_curve(log, tmp_path / "a" / "curve.png", "mine")
    assert out.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in out.parent.iterdir()] == ["curve.png"]
    told = curves(drawn[0])
    assert told["score"] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert told["value loss"][0] == 1.0
    assert "goal rate" not in told
    assert len(drawn[0].axes) == 4
    learner = next(panel for panel in drawn[0].axes if "entropy" in [str(x.get_label()) for x in panel.get_lines()])
    assert learner.get_ylim()[0] < -0.5  # explained variance may be negative, and is seen


@pytest.mark.row("TRIAL-8")
def test_runs_with_several_trials_have_curves_of_each_in_their_order(
    drawn: list[matplotlib.figure.Figure], tmp_path: Path
) -> None:
    names = [f"trial_{k}_score" for k in range(11)] + [f"ada_delta_trial_{k}_minus_0" for k in range(1, 11)]
    draw_curve(
        write_log(tmp_path / "p", [update(k, **dict.fromkeys(names, 0.5)) for k in range(3)]), tmp_path / "c.png"
    )
    assert len(drawn[0].axes) == 6
    told = [name for name in curves(drawn[0]) if "trial" in name]
    assert told == [name.replace("_", " ") for name in names]


def test_an_empty_log_gives_a_picture_that_says_so(drawn: list[matplotlib.figure.Figure], tmp_path: Path) -> None:
    draw_curve(write_log(tmp_path / "p", []), tmp_path / "c.png")
    assert {panel.texts[0].get_text() for panel in drawn[0].axes} == {"no data yet"}


def test_a_long_log_is_thinned_and_keeps_its_last_line(drawn: list[matplotlib.figure.Figure], tmp_path: Path) -> None:
    draw_curve(write_log(tmp_path / "p", [update(k, score=k / 5000) for k in range(5001)]), tmp_path / "c.png")
    scores = curves(drawn[0])["score"]
    assert len(scores) <= 1000
    assert scores[-1] == 1.0

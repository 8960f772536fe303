"""Sinks with the real clients: published data can be read back, and no sink can end a run."""

from __future__ import annotations

import io
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from roadworthy.config import Layer
from roadworthy.errors import ConfigError
from roadworthy.render.video import write_mp4
from roadworthy.sinks import Publication, Sinks, figures_of, read_sinks
from tests.plugin_package import install
from tests.sinks.event_files import tensorboard_events, wandb_history
from tools.settings import EVALUATION

USER_SINK = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    prefix: str = ""


class LineSink:
    config_type = Config

    def __init__(self, config, folder):
        self.config, self.path = config, folder / "figures.txt"

    @classmethod
    def check(cls, config, folder):
        return "fine"

    def write(self, publication):
        lines = [f"{self.config.prefix}{name} {value}" for name, value in publication.named_figures().items()]
        self.path.write_text("\\n".join(lines))

    def close(self):
        pass
"""
METRICS = {
    "figures": [
        {"name": "score", "value": 0.75, "low": 0.5, "high": 0.9, "n": 12, "per": "agent"},
        {"name": "distance_per_infraction_m", "value": None, "low": None, "high": None, "n": 0, "per": "kilometre"},
    ],
    "by_class": {},
    "num_episodes": 12,
    "eval_seconds": 3.5,
}


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """Twenty frames that get brighter."""
    frames = (np.full((48, 64, 3), 10 * k, np.uint8) for k in range(20))
    write_mp4(tmp_path / "film.mp4", frames, fps=10)
    return tmp_path / "film.mp4"


def published(film: Path, step: int = 4000, epoch: int = 8) -> Publication:
    return Publication("town", step, epoch, figures_of(METRICS), {"bev": [film, film], "ego": [film]})


@pytest.mark.row("UI-3")
def test_tensorboard_shows_figures_and_animations(tmp_path: Path, film: Path) -> None:
    tensorboard = pytest.importorskip("roadworthy.sinks.tensorboard")
    config = tensorboard.TensorBoardConfig(gif_width_px=32, gif_frames=5)
    with Sinks({"tensorboard": (tensorboard.TensorBoardSink, config)}, tmp_path) as sinks:
        assert sinks.publish(published(film)) == {}
        assert sinks.publish(published(film, step=2000, epoch=4)) == {}  # it ended late
    events = tensorboard_events(tmp_path / "tensorboard")
    assert set(events.Tags()["scalars"]) == {"town/score", "town/num_episodes", "town/eval_seconds", "town/epoch"}
    assert {(event.step, event.value) for event in events.Scalars("town/epoch")} == {(4000, 8.0), (2000, 4.0)}
    assert set(events.Tags()["images"]) == {"town/render/bev", "town/render/bev/1", "town/render/ego"}
    picture = Image.open(io.BytesIO(events.Images("town/render/ego")[0].encoded_image_string))
    assert (picture.format, picture.size, getattr(picture, "n_frames", 1)) == ("GIF", (32, 24), 5)


@pytest.mark.row("UI-3")
def test_wandb_gets_figures_and_videos_over_the_steps_of_training(
    tmp_path: Path, film: Path, no_wandb_run: Any
) -> None:
    sink = pytest.importorskip("roadworthy.sinks.wandb")
    with Sinks({"wandb": (sink.WandbSink, sink.WandbConfig(mode="offline"))}, tmp_path) as sinks:
        assert sinks.publish(published(film)) == {}
        assert sinks.publish(published(film, step=2000, epoch=4)) == {}
    no_wandb_run.teardown()
    first, second = wandb_history(tmp_path)
    assert (first["step"], first["epoch"], first["town/score"], first["town/num_episodes"]) == (4000, 8, 0.75, 12)
    assert (second["step"], second["town/score"]) == (2000, 0.75)
    assert "town/distance_per_infraction_m" not in first
    (run,) = tmp_path.glob("wandb/offline-run-*")
    for name in ("town/render/bev", "town/render/bev/1", "town/render/ego"):
        assert first[name]["_type"] == "video-file"
        assert (run / "files" / first[name]["path"]).read_bytes() == film.read_bytes()


@pytest.mark.row("REC-4")
def test_wandb_without_a_key_is_an_error_instead_of_a_prompt(tmp_path: Path, film: Path, no_wandb_run: Any) -> None:
    sink = pytest.importorskip("roadworthy.sinks.wandb")
    with Sinks({"wandb": (sink.WandbSink, sink.WandbConfig(timeout_s=5))}, tmp_path) as sinks:
        (error,) = sinks.publish(published(film)).values()
    assert "run `wandb login`" in error


@pytest.mark.row("REC-4")
def test_a_failing_sink_is_named_and_the_others_continue(tmp_path: Path) -> None:
    class Broken:
        config_type = dict
        opened = 0

        def __init__(self, config: Any, folder: Path) -> None:
            Broken.opened += 1
            if Broken.opened == 1:
                raise ConnectionError("no route to host")

        def write(self, publication: Publication) -> None:
            if publication.step == 2:
                raise OSError(28, "No space left on device")

        def close(self) -> None:
            raise RuntimeError("still busy")

    class Good:
        config_type = dict
        taken: list[int] = []  # noqa: RUF012

        def __init__(self, config: Any, folder: Path) -> None: ...
        def write(self, publication: Publication) -> None:
            self.taken.append(publication.step)

        def close(self) -> None: ...

    sinks = Sinks({"broken": (Broken, {}), "good": (Good, {})}, tmp_path)
    errors = [sinks.publish(Publication("town", step, 0, {"score": 1.0})) for step in (1, 2, 3)]
    assert errors == [
        {"broken": "ConnectionError: no route to host"},
        {"broken": "OSError: [Errno 28] No space left on device"},
        {},
    ]
    assert Good.taken == [1, 2, 3]
    assert sinks.close() == {"broken": "RuntimeError: still busy"}


@pytest.mark.row("REC-4")
def test_a_missing_video_does_not_stop_figures(tmp_path: Path, film: Path, no_wandb_run: Any) -> None:
    tensorboard = pytest.importorskip("roadworthy.sinks.tensorboard")
    wandb_sink = pytest.importorskip("roadworthy.sinks.wandb")
    settings = {
        "tensorboard": (tensorboard.TensorBoardSink, tensorboard.TensorBoardConfig()),
        "wandb": (wandb_sink.WandbSink, wandb_sink.WandbConfig(mode="offline")),
    }
    with Sinks(settings, tmp_path) as sinks:
        errors = sinks.publish(Publication("town", 1, 0, {"score": 0.5}, {"bev": [tmp_path / "gone.mp4"]}))
    assert set(errors) == {"tensorboard", "wandb"}
    assert all("gone.mp4" in error for error in errors.values())
    no_wandb_run.teardown()
    assert tensorboard_events(tmp_path / "tensorboard").Scalars("town/score")[0].value == 0.5
    assert wandb_history(tmp_path)[0]["town/score"] == 0.5


def test_figures_without_data_are_left_out_and_intervals_are_a_choice() -> None:
    assert figures_of(METRICS)["distance_per_infraction_m"] is None
    publication = Publication("town", 0, 0, {**figures_of(METRICS, intervals=True), "odd": float("nan")})
    names = set(publication.named_figures())
    assert names == {f"town/{name}" for name in ("score", "score_low", "score_high", "num_episodes", "eval_seconds")}


SINK = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    channel: str = "eval"

class Chat:
    config_type = Config
"""


@pytest.mark.row("UI-3")
def test_sinks_are_found_as_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "chatter", raising=False)
    install(tmp_path, monkeypatch, "roadworthy.sinks", {"chat": "chatter:Chat"}, SINK, "chatter")
    ((name, (sink, config)),) = read_sinks(Layer("a.toml", {"sinks": {"chat": {"channel": "x"}}})).items()
    assert (name, sink.__name__, config.channel) == ("chat", "Chat", "x")
    with pytest.raises(ConfigError) as caught:
        read_sinks(Layer("a.toml", {"sinks": {"chat": {"chanel": "x"}, "chta": {}, "odd": 3}}))
    told = str(caught.value)
    assert "a.toml [sinks.chat]: chanel is unknown; did you mean channel?" in told
    assert "unknown sink 'chta'; did you mean chat?" in told
    assert "sinks.odd is 3, expected a table" in told
    assert read_sinks(Layer("a.toml", {})) == {}
    with pytest.raises(ConfigError, match="expected tables"):
        read_sinks(Layer("a.toml", {"sinks": 3}))


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_every_setting_of_a_sink_is_documented(name: str) -> None:
    module = pytest.importorskip(f"roadworthy.sinks.{name}")
    sink = {"tensorboard": "TensorBoardSink", "wandb": "WandbSink"}[name]
    document = EVALUATION.path.read_text()
    for field in fields(getattr(module, sink).config_type):
        assert f"| `sinks.{name}.{field.name}` | {'none' if field.default is None else field.default} |" in document


def test_a_user_names_a_sink_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "my_sink.py"
    file.write_text(USER_SINK)
    name = f"{file}:LineSink"
    settings = read_sinks(Layer("suite.toml", {"sinks": {name: {"prefix": "> "}}}))
    with Sinks(settings, tmp_path) as sinks:
        assert sinks.publish(Publication("town", 4000, 8, figures_of(METRICS))) == {}
    assert (tmp_path / "figures.txt").read_text().splitlines()[0] == "> town/score 0.75"
    with pytest.raises(ConfigError, match="did you mean prefix"):
        read_sinks(Layer("suite.toml", {"sinks": {name: {"prefx": ""}}}))

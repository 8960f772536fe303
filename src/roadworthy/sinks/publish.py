"""Handing figures and videos to every configured sink; one that fails is named, and the others get theirs.

Each table `[sinks.NAME]` of a config file switches a sink on. An evaluation's figures are named `{evaluator}/{metric}`
and its videos `{evaluator}/render/{view}`; the scalars of a training have the names of train/telemetry.py.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from roadworthy.config import Layer, resolve
from roadworthy.errors import ConfigError
from roadworthy.plugins import load

GROUP = "roadworthy.sinks"
COUNTS = ("num_agents_evaluated", "num_scenarios", "num_episodes", "eval_seconds")


@dataclass(frozen=True)
class Publication:
    """What a run hands to sinks."""

    evaluator: str
    step: int
    # Agent-steps that the policy was trained for.
    epoch: int
    figures: Mapping[str, float | None]
    # What has no data is None, and is left out.
    videos: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    # Files by view.

    @property
    def groups(self) -> tuple[str, ...]:
        """What the names of figures begin with, before the slash."""
        return (self.evaluator,)

    @property
    def epoch_name(self) -> str:
        """The name under which the epoch is a figure."""
        return f"{self.evaluator}/epoch"

    def named_figures(self) -> dict[str, float]:
        """Figures that have data, by the names that sinks show."""
        return _with_data({f"{self.evaluator}/{name}": value for name, value in self.figures.items()})

    def named_videos(self) -> dict[str, Path]:
        """Videos by the names that sinks show; of several of one view, the second is `.../1`."""
        return {
            f"{self.evaluator}/render/{view}" + (f"/{number}" if number else ""): path
            for view, paths in self.videos.items()
            for number, path in enumerate(paths)
        }


@dataclass(frozen=True)
class TrainingScalars:
    """What an update of a training hands to sinks; it has the form of a publication without videos."""

    step: int
    # Agent-steps that the policy was trained for.
    epoch: int
    scalars: Mapping[str, float | None]
    # By the names that sinks show; what has no data is None, and is left out.
    evaluator: ClassVar[str] = "training"
    groups: ClassVar[tuple[str, ...]] = ("charts", "losses", "environment")
    epoch_name: ClassVar[str] = "charts/epoch"

    def named_figures(self) -> dict[str, float]:
        """Scalars that have data, by the names that sinks show."""
        return _with_data(self.scalars)

    def named_videos(self) -> dict[str, Path]:
        """No videos: an evaluation makes those."""
        return {}


@dataclass(frozen=True)
class Training:
    """The training that a sink gets scalars of."""

    id: str
    # The same whenever it is resumed.
    name: str
    # Its folder's.
    config: Mapping[str, Any]
    # Every setting, as plain values.
    is_resumed: bool


class Sink(Protocol):
    """Takes publications. A class with this shape, declared as an entry point of `roadworthy.sinks`, is one.

    A sink that also has `describe(training: Training)` is called with the training before it gets its first scalars.
    `write` may be called from two threads: evaluations beside training publish from one of their own.
    """

    config_type: ClassVar[type]
    # A frozen dataclass: the keys of its table.

    def __init__(self, config: Any, folder: Path) -> None:
        """Get ready; folder is where the runs go, for sinks that write files."""

    @classmethod
    def check(cls, config: Any, folder: Path) -> str:
        """Whether it could be opened, without leaving anything behind: what was found, or an error."""

    def write(self, publication: Publication | TrainingScalars) -> None:
        """Take a publication; it is safe when this returns."""

    def close(self) -> None:
        """Finish."""


def read_sinks(layer: Layer) -> dict[str, tuple[type[Sink], Any]]:
    """The sinks that a config file switches on, by name, each with its settings; all faults are told at once."""
    tables = layer.values.get("sinks", {})
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{layer.source}: sinks is {tables!r}, expected tables [sinks.<name>]")
    found: dict[str, tuple[type[Sink], Any]] = {}
    faults: list[str] = []
    for name, values in tables.items():
        source = f"{layer.source} [sinks.{name}]"
        try:
            if not isinstance(values, Mapping):
                raise ConfigError(f"{source}: sinks.{name} is {values!r}, expected a table")
            sink = load(GROUP, name, "sink")
            found[name] = sink, resolve(sink.config_type, [Layer(source, values)]).config
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return found


class Sinks:
    """All sinks of a run. They are opened when there is something to publish; what fails is tried again next time."""

    def __init__(self, settings: Mapping[str, tuple[type[Sink], Any]], folder: Path) -> None:
        self._settings, self._folder = dict(settings), folder
        self._open: dict[str, Sink] = {}
        self._lock = threading.Lock()  # for opening
        self._training: Training | None = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._settings)

    def describe(self, training: Training) -> None:
        """Let sinks know of the training that they get scalars of, once they are opened."""
        self._training = training

    def publish(self, publication: Publication | TrainingScalars, but: Collection[str] = ()) -> dict[str, str]:
        """Hand it to every sink, but some; what went wrong comes back by sink, for the run's artifact errors."""
        errors: dict[str, str] = {}
        for name in self._settings:
            if name in but:
                continue
            try:
                self._opened(name).write(publication)
            except Exception as error:  # a sink is somebody else's code and network: nothing of it may end a run
                errors[name] = f"{type(error).__name__}: {error}"
        return errors

    def _opened(self, name: str) -> Sink:
        with self._lock:
            if name not in self._open:
                sink, config = self._settings[name]
                opened = sink(config, self._folder)
                if self._training is not None and hasattr(opened, "describe"):
                    opened.describe(self._training)
                self._open[name] = opened
            return self._open[name]

    def close(self) -> dict[str, str]:
        """Finish all sinks; errors by sink."""
        errors: dict[str, str] = {}
        for name, sink in self._open.items():
            try:
                sink.close()
            except Exception as error:  # as above
                errors[name] = f"{type(error).__name__}: {error}"
        self._open.clear()
        return errors

    def __enter__(self) -> Sinks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_data(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if value is not None and math.isfinite(value)}


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted keys; lists stay whole."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def figures_of(metrics: Mapping[str, Any], *, intervals: bool = False) -> dict[str, float | None]:
    """The figures of `metrics.json` by name, and how much they rest on; with intervals, NAME_low and NAME_high too."""
    figures: dict[str, float | None] = {}
    for figure in metrics.get("figures", ()):
        figures[figure["name"]] = figure["value"]
        if intervals:
            figures |= {f"{figure['name']}_low": figure.get("low"), f"{figure['name']}_high": figure.get("high")}
    return figures | {name: metrics[name] for name in COUNTS if name in metrics}

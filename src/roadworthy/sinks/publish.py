"""Publish figures and videos to every configured sink; a failure of one does not affect the others.

Each table `[sinks.NAME]` of a config file enables a sink. NAME is an entry point of `roadworthy.sinks`, or
`"module:Name"` or `"file.py:Name"` in quotes. An evaluation's figures are named `{evaluator}/{metric}` and its videos
`{evaluator}/render/{view}`; the scalars of a training have the names of training/telemetry.py.
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
    """The figures and videos of a run, for sinks."""

    evaluator: str
    step: int
    # The number of agent-steps that the policy was trained for.
    epoch: int
    # The epoch of training.
    figures: Mapping[str, float | None]
    # The figures by name; None means no data, and such figures are left out.
    videos: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    # The video files by view.

    @property
    def groups(self) -> tuple[str, ...]:
        """The prefixes of figure names, before the slash."""
        return (self.evaluator,)

    @property
    def epoch_name(self) -> str:
        """The name under which the epoch is a figure."""
        return f"{self.evaluator}/epoch"

    def named_figures(self) -> dict[str, float]:
        """Return figures that have data, by their names in sinks."""
        return _with_data({f"{self.evaluator}/{name}": value for name, value in self.figures.items()})

    def named_videos(self) -> dict[str, Path]:
        """Return videos by their names in sinks; the second video of a view is `.../1`."""
        return {
            f"{self.evaluator}/render/{view}" + (f"/{number}" if number else ""): path
            for view, paths in self.videos.items()
            for number, path in enumerate(paths)
        }


@dataclass(frozen=True)
class TrainingScalars:
    """The scalars of an update of a training, for sinks; it has the interface of a publication without videos."""

    step: int
    # The number of agent-steps that the policy was trained for.
    epoch: int
    # The epoch of training.
    scalars: Mapping[str, float | None]
    # The scalars by their names in sinks; None means no data, and such scalars are left out.
    evaluator: ClassVar[str] = "training"
    groups: ClassVar[tuple[str, ...]] = ("charts", "losses", "environment")
    epoch_name: ClassVar[str] = "charts/epoch"

    def named_figures(self) -> dict[str, float]:
        """Return scalars that have data, by their names in sinks."""
        return _with_data(self.scalars)

    def named_videos(self) -> dict[str, Path]:
        """Return no videos, because only evaluations make videos."""
        return {}


@dataclass(frozen=True)
class Training:
    """The training whose scalars a sink receives."""

    id: str
    # An id that stays the same when the training is resumed.
    name: str
    # The name of its folder.
    config: Mapping[str, Any]
    # All settings, as plain values.
    is_resumed: bool
    # Whether it was resumed.


class Sink(Protocol):
    """Receives publications. Any class with these members is a sink.

    If a sink also has `describe(training: Training)`, it is called with the training before the first scalars. `write`
    may be called from two threads, because evaluations during training publish from their own thread.
    """

    config_type: ClassVar[type]
    # A frozen dataclass with the keys of its table.

    def __init__(self, config: Any, folder: Path) -> None:
        """Set up the sink; `folder` holds the runs, for sinks that write files."""

    @classmethod
    def check(cls, config: Any, folder: Path) -> str:
        """Check whether the sink can be opened, without side effects: return what was found, or raise an error."""

    def write(self, publication: Publication | TrainingScalars) -> None:
        """Write a publication; it must be stored safely on return."""

    def close(self) -> None:
        """Close the sink."""


def read_sinks(layer: Layer) -> dict[str, tuple[type[Sink], Any]]:
    """Return the sinks that a config file enables, by name, with their settings; one error reports all faults."""
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
    """All sinks of a run. A sink is opened at its first publication; after a failure it is tried again next time."""

    def __init__(self, settings: Mapping[str, tuple[type[Sink], Any]], folder: Path) -> None:
        self._settings, self._folder = dict(settings), folder
        self._open: dict[str, Sink] = {}
        self._lock = threading.Lock()  # guards opening
        self._training: Training | None = None

    def __bool__(self) -> bool:
        """Return whether there are any sinks."""
        return bool(self._settings)

    def describe(self, training: Training) -> None:
        """Set the training that is passed to sinks when they are opened."""
        self._training = training

    def publish(self, publication: Publication | TrainingScalars, but: Collection[str] = ()) -> dict[str, str]:
        """Publish to every sink except some; return errors by sink, for the run's artifact errors."""
        errors: dict[str, str] = {}
        for name in self._settings:
            if name in but:
                continue
            try:
                self._opened(name).write(publication)
            except Exception as error:  # a sink may raise anything, and must not end a run
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
        """Close all sinks and return errors by sink."""
        errors: dict[str, str] = {}
        for name, sink in self._open.items():
            try:
                sink.close()
            except Exception as error:  # a sink may raise anything
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
    """Return nested settings by dotted key; lists are kept."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def figures_of(metrics: Mapping[str, Any], *, intervals: bool = False) -> dict[str, float | None]:
    """Return the figures and counts of `metrics.json` by name; with intervals, NAME_low and NAME_high too."""
    figures: dict[str, float | None] = {}
    for figure in metrics.get("figures", ()):
        figures[figure["name"]] = figure["value"]
        if intervals:
            figures |= {f"{figure['name']}_low": figure.get("low"), f"{figure['name']}_high": figure.get("high")}
    return figures | {name: metrics[name] for name in COUNTS if name in metrics}

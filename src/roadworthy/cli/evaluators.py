"""The evaluators of a training config: `[eval.NAME]` and `[sinks.NAME]`, beside what training itself reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roadworthy.config import Layer, plain, read
from roadworthy.errors import ConfigError
from roadworthy.train.config import TrainConfig
from roadworthy.train.run import Evaluate

TABLES = ("eval", "sinks")
FOLDER = "evaluations"  # of a training run


def without_evaluators(layer: Layer) -> Layer:
    """What training reads of a file."""
    return Layer(layer.source, {key: value for key, value in layer.values.items() if key not in TABLES})


def split_overrides(overrides: Iterable[str]) -> tuple[list[str], list[str]]:
    """`--set` of training, and those of evaluators: `eval.NAME.KEY=VALUE`."""
    given = list(overrides)
    theirs = [override for override in given if override.lstrip().startswith("eval.")]
    return [override for override in given if override not in theirs], theirs


@dataclass(frozen=True)
class Evaluators:
    """The evaluators of a training config's file."""

    file: Path
    overrides: tuple[str, ...]

    def require_sound(self) -> None:
        """Raise an error if a sink or a key of it is unknown, or if a setting is for an evaluator that is not there.

        Called before a training creates any file: a sink that was misspelled would be missed hours later.
        """
        from roadworthy.sinks import read_sinks

        read_sinks(read(self.file))
        if self.overrides and "eval" not in read(self.file).values:
            raise ConfigError(
                f"--set {self.overrides[0]} is for an evaluator, but {self.file} has none; add a section "
                "[eval.NAME] to a file of your own"
            )

    @contextmanager
    def scheduled(self, settings: TrainConfig, folder: Path, say: Callable[[str], None]) -> Iterator[Evaluate | None]:
        """What runs the evaluations that are due in a training run; None where the file has no evaluators.

        At the end it waits for what still runs beside training.
        """
        layer = read(self.file)
        if "eval" not in layer.values:
            yield None
            return
        from roadworthy.evaluate.schedule import Schedule
        from roadworthy.evaluate.sections import read_sections
        from roadworthy.sinks import Sinks, read_sinks

        training = Layer(str(self.file), plain(settings))
        sections = read_sections(self.file, training=training, overrides=self.overrides)
        out = folder / FOLDER
        with Sinks(read_sinks(layer), out) as sinks, Schedule(sections, out, sinks, say) as schedule:
            yield schedule.run

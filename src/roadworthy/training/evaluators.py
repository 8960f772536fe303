"""The evaluators and sinks of a training run: `[eval.NAME]` and `[sinks.NAME]` of its config, with overrides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadworthy.config import Layer, parse_overrides, plain, read
from roadworthy.errors import ConfigError
from roadworthy.training.best import EVALUATIONS
from roadworthy.training.config import TrainConfig

if TYPE_CHECKING:
    from roadworthy.sinks import Sink, Sinks
    from roadworthy.training.run import Evaluate

Overrides = Mapping[str, Any] | Iterable[str]
EVAL, SINKS = "eval", "sinks"


@dataclass(frozen=True)
class Evaluators:
    """The evaluators and sinks of one training run."""

    file: Path
    # The config of the training run.
    suite: str | None
    # A suite file or the name of a shipped suite, whose evaluators replace those of the config.
    overrides: Overrides
    sink_names: tuple[str, ...]

    def training_layers(self) -> list[Layer]:
        """Return what training itself reads: the config and the overrides without evaluators and sinks."""
        layer = read(self.file)
        own = {key: value for key, value in layer.values.items() if key not in (EVAL, SINKS)}
        return [Layer(layer.source, own), parse_overrides(self._overrides_of(""))]

    def check(self) -> None:
        """Raise an error for an unknown sink, a wrong suite, or a setting of an evaluator that does not exist.

        Called before a training run creates any file; a misspelled sink would only be missed hours later.
        """
        self.sinks()
        if self.suite is not None:
            self._sections(None)
        elif (given := self._overrides_of("eval.")) and EVAL not in read(self.file).values:
            raise ConfigError(
                f"--set {next(iter(given))} is for an evaluator, but {self.file} has none; give --eval SUITE, or add a "
                "section [eval.NAME] to a config file of your own"
            )

    def sinks(self) -> dict[str, tuple[type[Sink], Any]]:
        """Return the sinks of the config, of --sink and of --set, each with its settings."""
        from roadworthy.sinks import read_sinks

        layer = read(self.file)
        tables = layer.values.get(SINKS, {})
        added = parse_overrides(self._overrides_of("sinks.")).values.get(SINKS, {})
        if not isinstance(tables, Mapping):
            return read_sinks(layer)
        names = dict.fromkeys([*tables, *self.sink_names, *added])
        merged = {name: _merged(tables.get(name, {}), added.get(name, {})) for name in names}
        return read_sinks(Layer(layer.source if tables else "the command line", {SINKS: merged}))

    @contextmanager
    def scheduled(
        self, settings: TrainConfig, folder: Path, say: Callable[[str], None]
    ) -> Iterator[tuple[Evaluate | None, Sinks]]:
        """Give the function that runs due evaluations, None without evaluators, and the opened sinks.

        The end of the block waits for evaluations that are still running; an exception stops them.
        """
        from roadworthy.sinks import Sinks

        with Sinks(self.sinks(), folder) as sinks:
            if self.suite is None and EVAL not in read(self.file).values:
                yield None, sinks
            else:
                from roadworthy.evaluation.schedule import Schedule

                with Schedule(self._sections(settings), folder / EVALUATIONS, sinks, say) as schedule:
                    yield schedule.run, sinks
                    schedule.wait()
            for name, error in sinks.close().items():
                say(f"sink {name} was not closed: {error}")

    def _sections(self, settings: TrainConfig | None) -> Any:
        from roadworthy.evaluation.sections import read_sections

        training = None if settings is None else Layer(str(self.file), plain(settings))
        return read_sections(self.suite or self.file, training=training, overrides=self._overrides_of("eval."))

    def _overrides_of(self, prefix: str) -> Any:
        """Return the overrides with a prefix, or those of training for an empty prefix."""

        def belongs(key: str) -> bool:
            key = key.lstrip()
            return key.startswith(prefix) if prefix else not key.startswith(("eval.", "sinks."))

        if isinstance(self.overrides, Mapping):
            return {key: value for key, value in self.overrides.items() if belongs(key)}
        return [override for override in self.overrides if belongs(override)]


def _merged(table: Any, added: Any) -> Any:
    """Return a sink's table with overrides; a value that is not a table is refused later."""
    return {**table, **added} if isinstance(table, Mapping) and isinstance(added, Mapping) else table or added

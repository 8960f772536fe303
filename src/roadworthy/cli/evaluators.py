"""The evaluators and sinks of a training config, `[eval.NAME]` and `[sinks.NAME]`, which training does not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadworthy.config import Layer, plain, read
from roadworthy.errors import ConfigError
from roadworthy.training.config import TrainConfig
from roadworthy.training.run import Evaluate

if TYPE_CHECKING:
    from roadworthy.sinks import Sink, Sinks

TABLES = ("eval", "sinks")
FOLDER = "evaluations"  # of a training run


def without_evaluators(layer: Layer) -> Layer:
    """What training reads of a file."""
    return Layer(layer.source, {key: value for key, value in layer.values.items() if key not in TABLES})


def split_overrides(overrides: Iterable[str]) -> tuple[list[str], list[str]]:
    """`--set` of training, and those of evaluators and sinks: `eval.NAME.KEY=VALUE`, `sinks.NAME.KEY=VALUE`."""
    given = list(overrides)
    theirs = [override for override in given if override.lstrip().startswith(("eval.", "sinks."))]
    return [override for override in given if override not in theirs], theirs


@dataclass(frozen=True)
class Evaluators:
    """The evaluators and sinks of a training config's file, and what the command line adds to them."""

    file: Path
    overrides: tuple[str, ...]
    sink_names: tuple[str, ...] = ()

    def require_sound(self) -> None:
        """Raise an error if a sink or a key of it is unknown, or if a setting is for an evaluator that is not there.

        Called before a training creates any file: a sink that was misspelled would be missed hours later.
        """
        self.sinks()
        of_sections = self._of("eval.")
        if of_sections and "eval" not in read(self.file).values:
            raise ConfigError(
                f"--set {of_sections[0]} is for an evaluator, but {self.file} has none; add a section "
                "[eval.NAME] to a file of your own"
            )

    def sinks(self) -> dict[str, tuple[type[Sink], Any]]:
        """Return the sinks of the file, of --sink and of --set, each with its settings."""
        from roadworthy.config import parse_overrides
        from roadworthy.sinks import read_sinks

        layer = read(self.file)
        tables, added = layer.values.get("sinks", {}), parse_overrides(self._of("sinks.")).values.get("sinks", {})
        if not isinstance(tables, Mapping):
            return read_sinks(layer)
        names = dict.fromkeys([*tables, *self.sink_names, *added])
        merged = {name: _laid_over(tables.get(name, {}), added.get(name, {})) for name in names}
        return read_sinks(Layer(layer.source if tables else "the command line", {"sinks": merged}))

    def _of(self, prefix: str) -> list[str]:
        return [override for override in self.overrides if override.lstrip().startswith(prefix)]

    @contextmanager
    def scheduled(
        self, settings: TrainConfig, folder: Path, say: Callable[[str], None]
    ) -> Iterator[tuple[Evaluate | None, Sinks]]:
        """What runs the evaluations that are due in a training run, None where the file has no evaluators; the sinks.

        At the end it waits for what still runs beside training.
        """
        from roadworthy.sinks import Sinks

        layer = read(self.file)
        with Sinks(self.sinks(), folder) as sinks:
            if "eval" not in layer.values:
                yield None, sinks
            else:
                from roadworthy.evaluation.schedule import Schedule
                from roadworthy.evaluation.sections import read_sections

                training = Layer(str(self.file), plain(settings))
                sections = read_sections(self.file, training=training, overrides=self._of("eval."))
                with Schedule(sections, folder / FOLDER, sinks, say) as schedule:
                    yield schedule.run, sinks
            for name, error in sinks.close().items():
                say(f"sink {name} was not closed: {error}")


def _laid_over(table: Any, added: Any) -> Any:
    """A sink's table with what the command line says on top; what is not a table is refused later."""
    return {**table, **added} if isinstance(table, Mapping) and isinstance(added, Mapping) else table or added

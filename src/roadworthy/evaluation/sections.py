"""Read the sections `[eval.<name>]` of a file, and resolve each with what it inherits to settings of an evaluator.

Layers of a section, lowest first: the training config, `clean`, the fixed values of the evaluator, the chain of
sections from the root down, the command line. An error belongs to its section: the others stay usable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roadworthy.config import Layer, Resolved, parse_overrides, plain, resolve
from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import EvaluatorConfig, Memory
from roadworthy.evaluation.files import read_file
from roadworthy.evaluation.trust import require_own_code
from roadworthy.plugins import load, nearest
from roadworthy.sim.config import DisturbConfig

GROUP = "roadworthy.evaluators"
_ARROW = " -> "


@dataclass(frozen=True)
class Section:
    """A section `[eval.<name>]`."""

    name: str
    chain: tuple[str, ...]
    # The ancestors and the section itself, from the root down.
    type: str | None
    # The name of the evaluator; None for a template.
    layers: tuple[Layer, ...]
    # All values of the section, lowest first.
    resolved: Resolved[EvaluatorConfig] | None
    # The settings; None for a template and for a section with an error.
    error: ConfigError | None
    # What is wrong with the section.
    ledger_name: str | None = None
    # The section whose scenarios a control runs: scenarios are drawn by its name. None for other sections.

    @property
    def is_template(self) -> bool:
        return self.type is None and self.error is None

    @property
    def config(self) -> EvaluatorConfig:
        """The settings. Raises the error of a section that has one."""
        if self.error is not None:
            raise self.error
        if self.resolved is None:
            raise ConfigError(
                f"eval.{self.name} has no type: it is a template for other sections; choose a section with a type"
            )
        return self.resolved.config


def evaluator_class(type_name: str) -> Any:
    """Return the evaluator class with this name. Its `config_type` is EvaluatorConfig or a subclass of it."""
    evaluator = load(GROUP, type_name, "evaluator")
    config_type = getattr(evaluator, "config_type", None)
    if not (isinstance(config_type, type) and issubclass(config_type, EvaluatorConfig)):
        raise ConfigError(f"evaluator {type_name!r} ({evaluator!r}) has no config_type that extends EvaluatorConfig")
    return evaluator


def read_sections(
    source: str | Path, *, training: Layer | None = None, overrides: Mapping[str, Any] | Iterable[str] = ()
) -> tuple[Section, ...]:
    """Read all sections of a file or of a shipped suite, in its order.

    Args:
        source: A file, or the name of a suite.
        training: The training config of a checkpoint, `env` and `episode`; [env] and [episode] of the file override it.
        overrides: `key=value` for every section; `eval.<name>.key=value` for one and those that inherit from it.
    """
    tables: dict[str, list[Layer]] = {}
    lowest: list[Layer] = []
    for layer in _with_included(source, ()):
        lowest += [_training_layer(layer)]
        for name, values in _eval_of(layer).items():
            tables.setdefault(name, []).append(Layer(f"{layer.source} [eval.{name}]", values))
    if not tables:
        raise ConfigError(f"{source}: there is no section [eval.<name>], so there is nothing to evaluate")
    common, own = _split(parse_overrides(overrides), tables)
    trained = [_training_layer(training)] if training is not None else []
    sections = {name: _section(name, tables, trained, lowest, common, own) for name in tables}
    return tuple(replace(section, ledger_name=_original_of(section, sections)) for section in sections.values())


def chosen(sections: Sequence[Section], names: Sequence[str] = ()) -> tuple[Section, ...]:
    """Return the sections with these names; without names all that are enabled, including those with errors."""
    if not names:
        return tuple(s for s in sections if s.error is not None or (s.resolved is not None and s.config.enabled))
    by_name = {section.name: section for section in sections}
    picked = []
    for name in (name.removeprefix("eval.") for name in names):
        if name not in by_name:
            raise ConfigError(f"there is no section [eval.{name}]; {nearest(name, by_name)}")
        if by_name[name].is_template:
            raise ConfigError(
                f"eval.{name} has no type: it is a template for other sections; choose a section with a type"
            )
        picked.append(by_name[name])
    return tuple(picked)


def _with_included(source: str | Path, above: tuple[str, ...]) -> Iterator[Layer]:
    """Yield a file after the files that it includes, so that its own values override theirs."""
    if str(source) in above:
        raise ConfigError(f"a file includes itself: {_ARROW.join([*above, str(source)])}")
    layer = read_file(source)
    included = _eval_of(layer).pop("include", [])
    if not (isinstance(included, list) and all(isinstance(name, str) for name in included)):
        raise ConfigError(f"{layer.source}: eval.include is {included!r}, expected a list of suites or files")
    for name in included:
        yield from _with_included(_beside(name, source), (*above, str(source)))
    kept = {key: value for key, value in _eval_of(layer).items() if key != "include"}
    yield Layer(layer.source, {**layer.values, "eval": kept})


def _beside(name: str, source: str | Path) -> str | Path:
    """Return an included file, relative to the folder of the including one, or the name of a suite."""
    path = Path(name).expanduser()
    return Path(source).parent / path if path.suffix else name


def _eval_of(layer: Layer) -> dict[str, Any]:
    tables = layer.values.get("eval", {})
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{layer.source}: eval is {tables!r}, expected sections [eval.<name>]")
    return dict(tables)


def _training_layer(layer: Layer) -> Layer:
    """Return the simulator settings of a training config with the keys of sections: `episode` beside `env`."""
    values = {key: layer.values[key] for key in ("env", "episode") if key in layer.values}
    env = values.get("env")
    if isinstance(env, Mapping) and "episode" in env:
        values["env"] = _without(env, "episode")
        values["episode"] = {**_table(env, "episode"), **_table(values, "episode")}
    return Layer(f"{layer.source} (training)", values, layer.is_record)


def _split(layer: Layer, names: Iterable[str]) -> tuple[Layer, dict[str, Layer]]:
    """Return the overrides for all sections, and those for single ones."""
    common = {key: value for key, value in layer.values.items() if key != "eval"}
    single = layer.values.get("eval", {})
    if not (isinstance(single, Mapping) and all(isinstance(values, Mapping) for values in single.values())):
        raise ConfigError(f"{layer.source} eval = {single!r} is not of the form eval.<name>.key=value")
    for name in single:
        if name not in names:
            raise ConfigError(f"{layer.source} eval.{name}: there is no such section; {nearest(name, names)}")
    for key in ("type", "inherits"):
        if any(key in values for values in (common, *single.values())):
            raise ConfigError(f"{layer.source}: {key} can't be overridden; change it in the file")
    return Layer(layer.source, common), {name: Layer(f"{layer.source} eval.{name}", v) for name, v in single.items()}


def _section(
    name: str,
    tables: Mapping[str, list[Layer]],
    trained: list[Layer],
    lowest: list[Layer],
    common: Layer,
    own: Mapping[str, Layer],
) -> Section:
    """Build a section; an error is kept in it."""
    chain: tuple[str, ...] = (name,)
    type_name, layers = None, _with_values(*trained, *lowest)
    try:
        chain = _chain(name, tables)
        above = [layer for ancestor in chain for layer in tables[ancestor]]
        above += [common, *(own[ancestor] for ancestor in chain if ancestor in own)]
        _refuse_env_episode(above)
        type_name = _last(tables[name], "type")
        above = [Layer(layer.source, _without(layer.values, "inherits", "type")) for layer in above]
        below = [*trained, *lowest]
        if _last(above, "policy") not in (None, "none"):
            below = list(lowest)  # a baseline does not depend on the evaluated checkpoint
        if _last(above, "clean") is True:
            below.append(_clean(below))
        layers = _with_values(*below, *above)
        if type_name is None:
            return Section(name, chain, None, tuple(layers), None, None)
        if not isinstance(type_name, str):
            raise ConfigError(f"{_where(tables[name], 'type')}: type is {type_name!r}, expected an evaluator's name")
        config_type = evaluator_class(type_name).config_type
        above.append(Layer(_where(tables[name], "type"), {"type": type_name}))
        layers = _with_values(*below, Layer(f"evaluator {type_name}", config_type.fixed), *above)
        resolved = resolve(config_type, layers)
        for record in (layer for layer in trained if layer.is_record):
            require_own_code(resolved.config.env, record.source, [layer.values.get("env") for layer in lowest + above])
        return Section(name, chain, type_name, tuple(layers), resolved, None)
    except ConfigError as error:
        return Section(name, chain, str(type_name) if type_name else None, tuple(layers), None, error)
    except Exception as error:  # a config class of another package may raise any error
        fault = ConfigError(f"eval.{name}: evaluator {type_name!r} rejects its settings: {error!r}")
        return Section(name, chain, str(type_name), tuple(layers), None, fault)


def _original_of(section: Section, sections: Mapping[str, Section]) -> str | None:
    """Return the name of the section that a section is a control of; None if it is not a control.

    A control clears memory after each trial. The other section has the same settings otherwise; if there is none, it is
    the nearest ancestor that runs and keeps its memory.
    """
    if section.resolved is None or section.config.memory is not Memory.TRIAL:
        return None
    originals = {
        name: other.config
        for name, other in sections.items()
        if other.resolved is not None and other.config.memory is Memory.EPISODE
    }
    mine = replace(section.config, memory=Memory.EPISODE).digest
    ancestors = [name for name in reversed(section.chain) if name in originals]
    return next((name for name in [*ancestors, *originals] if originals[name].digest == mine), (*ancestors, None)[0])


def _with_values(*layers: Layer) -> list[Layer]:
    return [layer for layer in layers if layer.values]


def _chain(name: str, tables: Mapping[str, list[Layer]]) -> tuple[str, ...]:
    """Return the section and its ancestors, from the root down."""
    chain = [name]
    while True:
        for layer in tables[chain[-1]]:
            if not isinstance(layer.values, Mapping):
                raise ConfigError(f"{layer.source}: eval.{chain[-1]} is {layer.values!r}, expected a section")
        parent = _last(tables[chain[-1]], "inherits")
        if parent is None:
            return tuple(reversed(chain))
        where = _where(tables[chain[-1]], "inherits")
        if not isinstance(parent, str):
            raise ConfigError(f"{where}: inherits is {parent!r}, expected the name of one section")
        parent = parent.removeprefix("eval.")
        shown = _ARROW.join([*chain, parent])
        if parent in chain:
            raise ConfigError(f"{where}: sections inherit from each other in a cycle: {shown}")
        if parent not in tables:
            raise ConfigError(
                f"{where}: inherits from {parent!r}, which is not a section ({shown}); {nearest(parent, tables)}"
            )
        chain.append(parent)


def _clean(training: Sequence[Layer]) -> Layer:
    """Return a layer that turns disturbances of training off and fixes random reward weights at their middle."""
    disturb: dict[str, Any] = {}
    reward: dict[str, Any] = {}
    terms: dict[str, float] = {}
    off = plain(DisturbConfig())
    for layer in training:
        env = layer.values.get("env", {})
        for key, value in _table(env, "disturb").items():
            if key in off and value != off[key]:
                disturb[key] = off[key]
        weights = _table(env, "reward")
        for key, value in {**weights, **_table(weights, "terms")}.items():
            at = reward if key in weights else terms
            at.pop(key, None)
            if isinstance(value, list | tuple) and [type(end) in (int, float) for end in value] == [True, True]:
                at[key] = sum(value) / 2
    if terms:
        reward["terms"] = terms
    env = {key: values for key, values in (("disturb", disturb), ("reward", reward)) if values}
    return Layer("clean", {"env": env} if env else {})


def _table(values: Any, key: str) -> Mapping[str, Any]:
    table = values.get(key, {}) if isinstance(values, Mapping) else {}
    return table if isinstance(table, Mapping) else {}


def _refuse_env_episode(layers: Sequence[Layer]) -> None:
    """Raise an error for `env.episode`: the key is named `episode` here, and two names could get two values."""
    for layer in layers:
        if "episode" in _table(layer.values, "env"):
            raise ConfigError(f"{layer.source}: env.episode is unknown; write episode.trials and episode.trial_steps")


def _last(layers: Iterable[Layer], key: str) -> Any:
    return next((layer.values[key] for layer in reversed(list(layers)) if key in layer.values), None)


def _where(layers: Iterable[Layer], key: str) -> str:
    return next(layer.source for layer in reversed(list(layers)) if key in layer.values)


def _without(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}

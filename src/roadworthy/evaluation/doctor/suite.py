"""Check what the sections of a file need: packs, policies, sinks, and one step of each kind of world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy.config import Layer
from roadworthy.errors import ConfigError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.doctor.estimate import estimate, kind_of
from roadworthy.evaluation.doctor.findings import Finding, State, run_check
from roadworthy.evaluation.files import read_file
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.evaluation.sections import Section, chosen, read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.scenario.pack import Pack
from roadworthy.sinks import Sink, read_sinks
from roadworthy.sources import ScenarioSource


def examine_suite(
    source: str | Path, out: Path, *, policy: str | None = None, overrides: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yield findings about everything that the sections of a file name; worlds that are alike are tried once."""
    training = training_of(policy) if policy is not None else None
    sections = chosen(read_sections(source, training=training, overrides=overrides))
    sound = [section for section in sections if section.error is None]
    yield _sections(sections)
    for section in sections:
        if section.error is not None:
            yield Finding(f"eval.{section.name}", State.FAULT, str(section.error))
    yield from _packs([section.config for section in sound])
    yield from _policies([section.config for section in sound], policy)
    yield from _sinks(read_file(source), out)
    kinds: dict[object, list[Section]] = {}
    for section in sound:
        kinds.setdefault(kind_of(section.config), []).append(section)
    for alike in kinds.values():
        what = f"eval.{alike[0].name}" + (f" and {len(alike) - 1} alike" if len(alike) > 1 else "")
        yield run_check(what, partial(estimate, what, [section.config for section in alike], policy))


def _sections(sections: Sequence[Section]) -> Finding:
    names = ", ".join(section.name for section in sections)
    if not sections:
        return Finding("sections", State.WARNING, "none would run: all are templates or disabled")
    return Finding("sections", State.OK, f"{len(sections)} would run: {names}")


def _packs(configs: Sequence[EvaluatorConfig]) -> Iterator[Finding]:
    sources = {config.source: None for config in configs if config.scenarios is not None}
    for path in dict.fromkeys(source.path for source in sources):
        alike = [source for source in sources if source.path == path]
        yield run_check(f"pack {path.name}", partial(_pack, path, alike))


def _pack(path: Path, sources: Sequence[ScenarioSource]) -> Finding:
    what, recipe = f"pack {path.name}", sources[0].recipe
    if recipe is not None and not sources[0].is_there:
        message = (
            f"{recipe.count} scenarios of seed {recipe.seed} are generated at first use, and kept in {path.parent}"
        )
        return Finding(what, State.OK, message, {"is_generated": False, "scenarios": recipe.count})
    with Pack(path) as pack:
        tags = sorted({source.tag for source in sources if source.tag is not None})
        counts = {tag: len(pack.select(tag)) for tag in tags}
        message = f"{len(pack)} scenarios on {pack.map_count} maps, {pack.size / 1e6:.1f} MB"
        message += "".join(f", {tag}: {count}" for tag, count in counts.items())
        return Finding(what, State.OK, message, {"scenarios": len(pack), "tags": counts})


def _policies(configs: Sequence[EvaluatorConfig], policy: str | None) -> Iterator[Finding]:
    named = [(config.policy_for(policy), config.policy_config) for config in configs]
    if any(spec is None for spec, _ in named):
        message = "no policy is named: give one with --policy, or in the sections; the steps below use random actions"
        yield Finding("policy", State.WARNING, message)
    partners: list[tuple[str | None, dict[str, Any]]] = [(spec, {}) for config in configs for spec in config.coplayers]
    found: list[tuple[str, dict[str, Any]]] = []
    for spec, policy_config in (*named, *partners):
        if spec is not None and (spec, policy_config) not in found:
            found.append((spec, policy_config))
            yield run_check(f"policy {spec}", partial(_policy, spec, policy_config))


def _policy(spec: str, policy_config: Mapping[str, Any]) -> Finding:
    ref = policy_ref(spec, policy_config)
    if ref.checkpoint is None:
        return Finding(f"policy {spec}", State.OK, "needs no file")
    message = f"{ref.name}, step {ref.step:,}, epoch {ref.epoch:,}"
    return Finding(f"policy {spec}", State.OK, message, {"step": ref.step, "sha256": ref.checkpoint["sha256"]})


def _sinks(layer: Layer, out: Path) -> Iterator[Finding]:
    try:
        settings = read_sinks(layer)
    except ConfigError as error:
        yield Finding("sinks", State.FAULT, str(error))
        return
    for name, (sink, config) in settings.items():
        yield run_check(f"sink {name}", partial(_sink, name, sink, config, out))


def _sink(name: str, sink: type[Sink], config: Any, out: Path) -> Finding:
    return Finding(f"sink {name}", State.OK, sink.check(config, out))

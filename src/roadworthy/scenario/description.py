"""Describe packs and scenarios: what they contain, in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, FeatureKind, Scenario


def describe_pack(pack: Pack, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Return counts of scenarios, maps, sources, lengths, tags and agents."""
    sources: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    lengths: Counter[float] = Counter()
    for number, scenario in enumerate(pack):
        sources[scenario.source] += 1
        agents.update(_agents_by_type(scenario))
        lengths[round(scenario.steps * scenario.dt, 3)] += 1
        if progress is not None:
            progress(number + 1, len(pack))
    return {
        "scenarios": len(pack),
        "maps": pack.map_count,
        "sources": dict(sources),
        "seconds": {f"{length:g}": count for length, count in sorted(lengths.items())},
        "tags": dict(sorted(pack.tag_counts.items())),
        "agents": dict(agents),
    }


def describe_scenario(scenario: Scenario) -> dict[str, Any]:
    """Return the properties of a scenario, and counts of its agents, lights and map features."""
    features = {kind.name.lower(): len(scenario.map.features(kind)) for kind in FeatureKind}
    return {
        "id": scenario.id,
        "source": scenario.source,
        "tags": list(scenario.tags),
        "steps": scenario.steps,
        "dt": scenario.dt,
        "current_step": scenario.current_step,
        "self_driving_car": scenario.sdc if scenario.sdc >= 0 else None,
        "lights": len(scenario.light_lanes),
        "agents": _agents_by_type(scenario),
        "map": {kind: count for kind, count in features.items() if count},
    }


def _agents_by_type(scenario: Scenario) -> dict[str, int]:
    counts = Counter(scenario.agent_types.tolist())
    return {kind.name.lower(): counts[kind] for kind in AgentType if counts[kind]}

"""`roadworthy scenarios info`: what is in a pack, or in one of its scenarios."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.files import PackPath, chosen_scenario
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roadworthy.scenario.pack import Pack
    from roadworthy.scenario.schema import Scenario

EXAMPLES = examples(
    "roadworthy scenarios info town.pack",
    "roadworthy scenarios info town.pack 0",
    "roadworthy scenarios info town.pack --json",
)


def info(
    pack: PackPath,
    scenario: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One scenario: its id, or its number.", show_default=False)
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Tell what is in a pack, or in one of its scenarios."""
    from roadworthy.scenario.pack import Pack

    with Pack(pack) as opened:
        facts = _pack_facts(opened) if scenario is None else _scenario_facts(chosen_scenario(opened, scenario))
    if json:
        tell_json({"pack": str(pack), **facts})
    else:
        title = str(pack) if scenario is None else facts["id"]
        tell(*_tables(title, facts))


def _pack_facts(pack: Pack) -> dict[str, Any]:
    sources: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    lengths: Counter[float] = Counter()
    with progress("reading") as report:
        for number, scenario in enumerate(pack):
            sources[scenario.source] += 1
            agents.update(_agents_by_type(scenario))
            lengths[round(scenario.steps * scenario.dt, 3)] += 1
            report(number + 1, len(pack))
    return {
        "scenarios": len(pack),
        "maps": pack.map_count,
        "sources": dict(sources),
        "seconds": {f"{length:g}": count for length, count in sorted(lengths.items())},
        "tags": dict(sorted(pack.tag_counts.items())),
        "agents": dict(agents),
    }


def _scenario_facts(scenario: Scenario) -> dict[str, Any]:
    from roadworthy.scenario.schema import FeatureKind

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
    from roadworthy.scenario.schema import AgentType

    counts = Counter(scenario.agent_types.tolist())
    return {kind.name.lower(): counts[kind] for kind in AgentType if counts[kind]}


def _tables(title: str, facts: dict[str, Any]) -> list[RenderableType]:
    """The single facts under a title, then a table of each group of counts, side by side where they fit."""
    from rich.box import SIMPLE_HEAD
    from rich.columns import Columns
    from rich.table import Table
    from rich.text import Text

    single = Table(show_header=False, box=None, pad_edge=False)
    groups: list[RenderableType] = []
    for name, value in facts.items():
        words = name.replace("_", " ")
        if isinstance(value, dict) and len(value) > 1:
            group = Table(words, "count", box=SIMPLE_HEAD, pad_edge=False)
            group.columns[1].justify = "right"
            for key, count in value.items():
                group.add_row(key, str(count))
            groups.append(group)
        elif isinstance(value, dict):
            single.add_row(words, ", ".join(f"{key}: {count}" for key, count in value.items()) or "none")
        elif isinstance(value, list):
            single.add_row(words, ", ".join(value) or "none")
        else:
            single.add_row(words, "none" if value is None else str(value))
    return [Text(title, style="bold"), single, Columns(groups, padding=(0, 4))]

"""`roadworthy scenarios validate`: find every fault of a pack, in the file and in the motion, by severity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import PackError, ScenarioError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.scenario.validate import Tally

EXAMPLES = examples(
    "roadworthy scenarios validate town.pack",
    "roadworthy scenarios validate womd.pack --all",
    "roadworthy scenarios validate womd.pack --profile generated --json",
)

ProfileName = Literal["source", "generated", "recorded"]


def validate(
    pack: PackPath,
    profile: Annotated[
        ProfileName,
        typer.Option(
            help="How severe faults are: for generated scenarios each is an error, for recorded ones tracker noise, "
            "gaps and crowding are notes. `source` takes the profile of each scenario's source."
        ),
    ] = "source",
    list_all: Annotated[bool, typer.Option("--all", help="List every fault, not only counts and examples.")] = False,
    json: JsonFlag = False,
    max_shown: Annotated[
        int | None, typer.Option(hidden=True, metavar="N", min=0, help="Deprecated, without effect: see --all.")
    ] = None,
) -> None:
    """Find every fault of a pack: damaged bytes, arrays that don't fit, overlaps, motion no human would drive.

    Ends with exit code 3 when there are errors; warnings and notes do not count.
    """
    from roadworthy.scenario.validate import Severity, Tally

    if max_shown is not None:
        note("--max-shown is deprecated and has no effect; --all lists every fault")
    tally, used, listed = Tally(), Counter[str](), []
    for fault in _faults(pack, profile, used):
        tally.add(fault["where"], Severity(fault["severity"]), fault["rule"], fault["message"])
        if json:
            listed.append(fault)
        elif list_all:
            tell(f"{fault['where']}: {fault['severity']}: {fault['rule']}: {fault['message']}")
    if json:
        counts = {severity.value: tally.severities[severity] for severity in Severity}
        kinds = [
            {"severity": kind.severity.value, "rule": kind.rule, "count": kind.count, "places": kind.places}
            for kind in tally.kinds
        ]
        facts = {"pack": str(pack), "profiles": dict(used), "counts": counts, "kinds": kinds}
        tell_json({**facts, "fault_count": tally.total, "faults": listed})
    else:
        _show(pack, tally, used)
    if tally.severities[Severity.ERROR]:
        raise typer.Exit(ScenarioError.exit_code)


def _faults(path: Path, profile_name: ProfileName, used: Counter[str]) -> Iterator[dict[str, Any]]:
    """Faults of the file first, then of every scenario that can be read; counts in `used` how often a profile was."""
    from roadworthy.scenario.pack import Pack, inspect
    from roadworthy.scenario.validate import faults, profile_named, profile_of

    if not path.exists():
        raise PackError(f"{path}: there is no such file")
    with progress("reading") as report:
        damage = inspect(path, report)
    for found in damage:
        yield {"where": found.where, "severity": "error", "rule": "integrity", "message": found.what}
    damaged = {found.where for found in damage}
    if damaged & {"file", "index"}:
        return
    with Pack(path) as pack, progress("validating") as report:
        for number, name in enumerate(pack.ids):
            where = f"scenario {name!r}"
            if where not in damaged:
                scenario = pack[number]
                profile = profile_of(scenario) if profile_name == "source" else profile_named(profile_name)
                used[profile.name] += 1
                for fault in faults(scenario, profile):
                    found_there = {"where": where, "severity": fault.severity.value, "rule": fault.rule}
                    yield {**found_there, "message": fault.message, "agent": fault.agent, "step": fault.step}
            report(number + 1, len(pack))


def _show(pack: Path, tally: Tally, used: Counter[str]) -> None:
    profiles = ", ".join(f"{name} ({count})" if len(used) > 1 else name for name, count in used.items())
    checked = f"{used.total()} scenario{'' if used.total() == 1 else 's'}"
    about = f" ({checked}, profile: {profiles})" if used else ""
    tell(f"{pack}: {tally.describe() if tally.total else 'no faults'}{about}")
    for kind in tally.kinds:
        places = f" in {kind.places} places" if kind.places > 1 else ""
        tell(f"{kind.severity.value:8}{kind.rule}: {kind.count}{places}, such as", f"        {kind.example}")
    if tally.total:
        tell("--all lists every fault")

"""`roadworthy scenarios validate`: find the faults of a pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import ScenarioError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from roadworthy.scenario.validate import FaultCounts, PackFault

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
            help="How faults are rated. `generated`: each is an error; `recorded`: tracker noise, gaps and crowding "
            "are notes; `source`: the profile of each scenario's source."
        ),
    ] = "source",
    list_all: Annotated[bool, typer.Option("--all", help="List every fault instead of counts and examples.")] = False,
    json: JsonFlag = False,
    max_shown: Annotated[
        int | None, typer.Option(hidden=True, metavar="N", min=0, help="Deprecated, without effect: see --all.")
    ] = None,
) -> None:
    """Find the faults of a pack: damaged bytes, arrays that do not fit together, overlaps, impossible motion.

    The exit code is 3 if there are errors; warnings and notes do not change it.
    """
    from roadworthy.scenario.validate import Severity, validate_pack

    if max_shown is not None:
        note("--max-shown is deprecated and has no effect; --all lists every fault")
    listed: list[dict[str, Any]] = []

    def list_fault(fault: PackFault) -> None:
        if json:
            listed.append({name: value for name, value in fault._asdict().items() if value is not None})
        elif list_all:
            tell(f"{fault.where}: {fault.severity}: {fault.rule}: {fault.message}")

    with progress("validating") as report:
        counts = validate_pack(pack, None if profile == "source" else profile, on_fault=list_fault, progress=report)
    if json:
        kinds = [
            {"severity": kind.severity, "rule": kind.rule, "count": kind.count, "places": kind.places}
            for kind in counts.kinds
        ]
        by_severity = {severity: counts.severities[severity] for severity in Severity}
        facts = {"pack": str(pack), "profiles": dict(counts.profiles), "counts": by_severity, "kinds": kinds}
        tell_json({**facts, "fault_count": counts.total, "faults": listed})
    else:
        _show(pack, counts)
    if counts.severities[Severity.ERROR]:
        raise typer.Exit(ScenarioError.exit_code)


def _show(pack: Path, counts: FaultCounts) -> None:
    used = counts.profiles
    profiles = ", ".join(f"{name} ({count})" if len(used) > 1 else name for name, count in used.items())
    checked = f"{used.total()} scenario{'' if used.total() == 1 else 's'}"
    about = f" ({checked}, profile: {profiles})" if used else ""
    tell(f"{pack}: {counts.describe() if counts.total else 'no faults'}{about}")
    for kind in counts.kinds:
        places = f" in {kind.places} places" if kind.places > 1 else ""
        tell(f"{kind.severity:8}{kind.rule}: {kind.count}{places}, such as", f"        {kind.example}")
    if counts.total:
        tell("--all lists every fault")

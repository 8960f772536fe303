"""`roadworthy doctor`: check everything that an evaluation needs, and estimate its time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.options import PolicyOption, SetOption
from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import RoadworthyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadworthy.evaluation.doctor import Finding

EXAMPLES = examples(
    "roadworthy doctor town --policy runs/best",
    "roadworthy doctor",
    "roadworthy doctor suite.toml --policy expert:drive --set worlds=64 --json",
    "",
    "Exit codes: 0 no faults, 1 an evaluation would fail, 2 the file can't be read",
)


def doctor(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="A file with sections \\[eval.NAME], or the name of a suite.")
    ] = None,
    policy: PolicyOption = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for run folders.")] = Path("runs"),
    overrides: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """Check the machine and everything that a config names: packs, policies, sinks; run a step and estimate costs."""
    findings = []
    for finding in _examine(config, policy, out, overrides or []):
        findings.append(finding)
        if not json:
            _show(finding)
    faults = sum(finding.state.value == "fault" for finding in findings)
    if json:
        rows = [{"what": f.what, "state": f.state.value, "message": f.message, **f.figures} for f in findings]
        tell_json({"findings": rows, "faults": faults})
    if faults:
        raise RoadworthyError(f"{faults} of {len(findings)} findings are faults: an evaluation would fail")


def _examine(config: str | None, policy: str | None, out: Path, overrides: list[str]) -> Iterator[Finding]:
    from roadworthy.evaluation.doctor import State, examine_machine, examine_suite

    for finding in examine_machine(out):
        if finding.what == "kernels" and finding.state is State.WARNING and config is not None:
            note("compiling the simulator to try a step")
        yield finding
    if config is not None:
        yield from examine_suite(config, out, policy=policy, overrides=overrides)


def _show(finding: Finding) -> None:
    """Print a finding at once, because the next one may take long."""
    from rich.text import Text

    style = {"ok": "green", "warning": "yellow", "fault": "red"}[finding.state.value]
    first, *more = finding.message.splitlines()
    tell(Text.assemble((f"{finding.state.value:<8}", style), (f"{finding.what}: ", "bold"), first))
    for line in more:
        tell(Text(f"{'':<8}{line}"))

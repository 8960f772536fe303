"""`roadworthy bench`: measure the speed of the simulator on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roadworthy.cli.files import PackPath
from roadworthy.cli.output import JsonFlag, examples, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.sim.speed import Speed

app = typer.Typer(no_args_is_help=True, help="Measure the speed of this machine.")

EXAMPLES = examples(
    "roadworthy bench sim town.pack",
    "roadworthy bench sim town.pack --device cuda --worlds 4096",
    "roadworthy bench sim town.pack --mode replay --agents 64 --json",
)


@app.callback()
def _group() -> None:
    """Measure the speed of this machine."""


@app.command(epilog=EXAMPLES)
def sim(
    pack: PackPath,
    device: Annotated[str, typer.Option(help="The device: cpu, or cuda for a GPU.")] = "cpu",
    worlds: Annotated[int, typer.Option(min=1, help="The number of worlds that are stepped together.")] = 64,
    agents: Annotated[int, typer.Option(min=1, max=256, help="The number of agents with a policy in each world.")] = 32,
    traffic: Annotated[int, typer.Option(min=0, max=255, help="The number of reactive agents in each open world.")] = 0,
    mode: Annotated[
        Literal["open", "replay"], typer.Option(help="Open driving, or replay of recorded scenarios.")
    ] = "open",
    steps: Annotated[int, typer.Option(min=10, help="The number of steps to measure.")] = 200,
    json: JsonFlag = False,
) -> None:
    """Step worlds with random actions; print agent-steps per second, the time of each stage, and the memory."""
    from roadworthy.sim.config import ControlConfig, Mode, OpenConfig, SimConfig
    from roadworthy.sim.env import DriveEnv
    from roadworthy.sim.speed import measure

    config = SimConfig(
        mode=Mode(mode), control=ControlConfig(rows=agents), open=OpenConfig(agents=agents, traffic=traffic)
    )
    env = DriveEnv(pack, worlds, config, device=device)
    with progress("stepping") as report:
        speed = measure(env, steps, report)
    if json:
        tell_json({"pack": str(pack), **asdict(speed), "agent_steps_s": speed.agent_steps_s})
    else:
        tell(*_tables(speed))


def _tables(speed: Speed) -> tuple[Table, Table]:
    from rich.table import Table

    stages = Table(title=f"a step of {speed.worlds} worlds on {speed.device}", title_justify="left")
    stages.add_column("stage")
    stages.add_column("µs", justify="right")
    stages.add_column("ns per row", justify="right")
    for name, seconds in [*speed.stages_s.items(), ("the whole step", speed.step_s)]:
        stages.add_row(name, f"{seconds * 1e6:,.1f}", f"{seconds * 1e9 / speed.rows:,.1f}")
    facts = Table(show_header=False)
    facts.add_column()
    facts.add_column(justify="right")
    facts.add_row("agent-steps per second", f"{speed.agent_steps_s:,.0f}")
    facts.add_row("rows, and the share that is active", f"{speed.rows:,} · {speed.active_share:.0%}")
    facts.add_row("observations written", f"{speed.written_bytes_s / 1e9:,.2f} GB/s")
    facts.add_row("copy speed of the device (read and written)", f"{speed.copy_bytes_s / 1e9:,.2f} GB/s")
    for part, size in speed.memory.items():
        facts.add_row(f"memory: {part}, per world", f"{size / speed.worlds / 1024:,.1f} KiB")
    return stages, facts

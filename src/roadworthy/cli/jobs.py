"""`roadworthy jobs`: run lists of (environment, policy) pairs, and show their status."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import roadworthy
from roadworthy.cli.output import JsonFlag, examples, new_table, note, tell, tell_json
from roadworthy.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from roadworthy.jobs.run_jobs import JobRuns
    from roadworthy.jobs.scheduler import Listener
    from roadworthy.jobs.table import Entry

SOME_FAILED = 1

app = typer.Typer(no_args_is_help=True, help="Run policies in any Gymnasium environment.")

JobsPath = Annotated[Path, typer.Argument(metavar="FILE", help="A jobs file: .toml, .json or .yaml.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="The folder for results (runs/FILE).")]
New = Annotated[bool, typer.Option("--new", help="Run all jobs again, including finished ones.")]
ChunkSize = Annotated[
    int | None, typer.Option("--chunk-size", metavar="N", help="Start a fresh process after every N jobs.", min=1)
]
OnError = Annotated[
    bool, typer.Option("--continue-on-error/--stop-on-error", help="Whether the other jobs run after a job has failed.")
]
Summary = Annotated[
    Path | None, typer.Option("--episode-summary", metavar="JSONL", help="Append every episode to this file.")
]
CameraVideo = Annotated[
    bool,
    typer.Option(
        "--camera-video", help="Record all cameras in every episode of jobs without video settings of their own."
    ),
]
MetricsFile = Annotated[
    Path | None, typer.Option("--metrics", metavar="JSON", help="Write the figures of the jobs to this file.")
]


@app.command(
    epilog=examples(
        "roadworthy jobs run examples/jobs.toml",
        "roadworthy jobs run sweep.json --out runs/sweep --chunk-size 8 --episode-summary episodes.jsonl",
        "roadworthy jobs run examples/jobs.toml --only bright --only dim --new",
        "roadworthy jobs run sweep.json --camera-video",
    )
)
def run(
    file: JobsPath,
    out: Out = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Run only this job; repeatable.")] = None,
    new: New = False,
    chunk_size: ChunkSize = None,
    camera_video: CameraVideo = False,
    continue_on_error: OnError = True,
    episode_summary: Summary = None,
    metrics: MetricsFile = None,
    json: JsonFlag = False,
) -> None:
    """Run the jobs of a file. Finished jobs are not run again, and interrupted jobs resume."""
    jobs = roadworthy.run_jobs(
        file,
        out,
        only=only or (),
        new=new,
        chunk_size=chunk_size,
        continue_on_error=continue_on_error,
        camera_video=camera_video,
        episode_summary=episode_summary,
        listener=listener(),
    )
    report(jobs, metrics, json)
    if jobs.errors:
        raise typer.Exit(SOME_FAILED)


@app.command(epilog=examples("roadworthy jobs status runs/jobs"))
def status(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The output folder of jobs.")], json: JsonFlag = False
) -> None:
    """Show the status of the jobs of an output folder."""
    from roadworthy.errors import UsageError
    from roadworthy.jobs.run_jobs import JobRuns
    from roadworthy.jobs.table import read_entries

    entries = read_entries(out)
    if not entries:
        raise UsageError(f"{out}: there are no jobs here; name the folder that `jobs run` wrote to")
    report(JobRuns(entries, out), None, json)


@app.command(
    epilog=examples(
        "roadworthy jobs serve scripted_picker --port 8765",
        "roadworthy jobs serve my_package.models:Arm --config device=cuda --host 0.0.0.0",
    )
)
def serve(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The policy, named as in a jobs file.")],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all addresses.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 selects a free one.", min=0, max=65535)] = 8765,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of the policy; repeatable.")
    ] = None,
    forgetful: Annotated[
        bool,
        typer.Option("--forgetful", help="Declare that the policy has no memory, so that episodes survive a restart."),
    ] = False,
) -> None:
    """Serve a policy to jobs on other machines: their `policy` is ws://HOST:PORT."""
    from roadworthy.config import parse_overrides
    from roadworthy.errors import UsageError
    from roadworthy.policy.load import load_policy
    from roadworthy.policy.remote.server import PolicyServer

    settings = dict(parse_overrides(config or (), "--config").values)
    if getattr(load_policy(policy, settings), "needs_drive_env", False):  # fail here, not at the first client
        raise UsageError(
            f"policy {policy!r} needs the simulator, so a server can't run it; "
            "use it in an environment such as drive:town"
        )
    with PolicyServer(lambda: load_policy(policy, settings), host, port, has_memory=not forgetful) as server:
        note(f"{policy} is served at {server.address}; stop with Ctrl-C")
        server.wait()


def listener() -> Listener:
    """Return a listener that prints the progress of jobs on stderr."""
    from roadworthy.evaluation.runners.gym.job import Job
    from roadworthy.jobs.scheduler import Listener

    class Narrator(Listener):
        def started(self, job: Job, number: int, total: int) -> None:
            self._shown = ExitStack()
            self._report = self._shown.enter_context(progress(f"{job.name} ({number} of {total} jobs)"))

        def progress(self, job: Job, done: int, total: int) -> None:
            self._report(done, total)

        def ended(self, job: Job, entry: Entry) -> None:
            self._shown.close()
            words = f": {entry.error}" if entry.error else ""
            note(f"{job.name} {entry.status.value}{words}")

        def not_summarized(self, job: Job, error: str) -> None:
            note(f"{job.name}: its episodes are not in the episode summary: {error}; rerun the command to add them")

    return Narrator()


def report(jobs: JobRuns, metrics: Path | None, json: bool) -> None:
    """Print the status of jobs, and write their figures to a file if one is given."""
    from roadworthy.record.files import write_json

    for line in jobs.notes:
        note(line)
    figures = {entry.name: jobs.metrics(entry.name) for entry in jobs}
    if metrics is not None:
        metrics.parent.mkdir(parents=True, exist_ok=True)
        write_json(metrics.absolute(), {"jobs": figures})
    if json:
        rows = [vars(entry) | {"status": entry.status.value, "metrics": figures[entry.name]} for entry in jobs]
        tell_json({"out": str(jobs.out), "jobs": rows})
    else:
        tell(_table(jobs), *(f"{entry.name}: {entry.error}" for entry in jobs if entry.error))
        tell(f"results: {jobs.out}")


def _table(jobs: JobRuns) -> Table:
    table = new_table("job", "status", right=("ended", "failed", "success", "95%", "return", "seconds"))
    for entry in jobs:
        found = jobs.metrics(entry.name) or {}
        by_name = {figure["name"]: figure for figure in found.get("figures", [])}
        table.add_row(
            entry.name,
            entry.status.value,
            f"{found['ended']}/{found['owed']}" if found else "",
            str(found["failed"]) if found else "",
            *_shown(by_name.get("success")),
            _shown(by_name.get("return"))[0],
            f"{entry.wall_s:.1f}" if entry.wall_s is not None else "",
        )
    return table


def _shown(figure: dict[str, float | None] | None) -> tuple[str, str]:
    """Return a figure and its interval."""
    if figure is None or figure["value"] is None:
        return "", ""
    low, high = figure.get("low"), figure.get("high")
    return f"{figure['value']:.2f}", f"{low:.2f}–{high:.2f}" if low is not None and high is not None else "few data"

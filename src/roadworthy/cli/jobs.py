"""`roadworthy jobs`: run lists of (environment, policy) and see where they stand."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from roadworthy.jobs.chunks import Listener
    from roadworthy.jobs.table import Entry

app = typer.Typer(no_args_is_help=True, help="Run policies in any Gymnasium environment, job by job.")

JobsPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A jobs file: .toml, .json or .yaml.", show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Where results go; runs/FILE if not given.")]
New = Annotated[bool, typer.Option("--new", help="Run everything anew, finished jobs too.")]
ChunkSize = Annotated[
    int | None,
    typer.Option("--chunk-size", metavar="N", help="A fresh process for every N jobs.", min=1, show_default=False),
]
OnError = Annotated[
    bool, typer.Option("--continue-on-error/--stop-on-error", help="What happens to the rest when a job fails.")
]
Summary = Annotated[
    Path | None,
    typer.Option("--episode-summary", metavar="JSONL", help="Append every episode here.", show_default=False),
]
CameraVideo = Annotated[
    bool,
    typer.Option(
        "--camera-video",
        help="Record what every camera sees in every episode, in jobs that ask for no videos themselves.",
    ),
]
MetricsFile = Annotated[
    Path | None, typer.Option("--metrics", metavar="JSON", help="Write the jobs' figures here.", show_default=False)
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
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Just this job; may be repeated.")
    ] = None,
    new: New = False,
    chunk_size: ChunkSize = None,
    camera_video: CameraVideo = False,
    continue_on_error: OnError = True,
    episode_summary: Summary = None,
    metrics: MetricsFile = None,
    json: JsonFlag = False,
) -> None:
    """Run the jobs of a file. Finished ones are not run again, interrupted ones go on."""
    from roadworthy.jobs.chunks import Settings, run_jobs
    from roadworthy.jobs.files import read_jobs
    from roadworthy.jobs.job import Status, with_camera_videos

    found = read_jobs(file)
    for line in found.notes:
        note(line)
    out = out or Path("runs") / file.stem
    settings = Settings(new, chunk_size, not continue_on_error, episode_summary)
    jobs = [with_camera_videos(job) for job in found.jobs] if camera_video else found.jobs
    entries = run_jobs(jobs, out, settings, only or (), listener())
    report(entries, out, metrics, json)
    if any(entry.status is Status.FAILED for entry in entries if not only or entry.name in only):
        raise typer.Exit(1)


@app.command(epilog=examples("roadworthy jobs status runs/jobs"))
def status(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The output folder of jobs.", show_default=False)],
    json: JsonFlag = False,
) -> None:
    """Show where the jobs of an output folder stand."""
    from roadworthy.errors import UsageError
    from roadworthy.jobs.table import read_entries

    entries = read_entries(out)
    if not entries:
        raise UsageError(f"{out}: there are no jobs here; name the folder that `jobs run` wrote to")
    report(entries, out, None, json)


@app.command(
    epilog=examples(
        "roadworthy jobs serve scripted_picker --port 8765",
        "roadworthy jobs serve my_package.models:Arm --config device=cuda --host 0.0.0.0",
    )
)
def serve(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="As a job names it.", show_default=False)],
    host: Annotated[str, typer.Option("--host", help="Whom to listen to; 0.0.0.0 is everybody.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes any that is free.", min=0, max=65535)] = 8765,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="KEY=VALUE", help="A setting of the policy's class.")
    ] = None,
    forgetful: Annotated[
        bool, typer.Option("--forgetful", help="The policy remembers nothing: a restart fails no episode.")
    ] = False,
) -> None:
    """Serve a policy to jobs elsewhere: their `policy` is ws://HOST:PORT."""
    from roadworthy.config import parse_overrides
    from roadworthy.errors import UsageError
    from roadworthy.policy.load import load_policy
    from roadworthy.policy.remote.server import PolicyServer

    settings = dict(parse_overrides(config or (), "--config").values)
    if getattr(load_policy(policy, settings), "needs_drive_env", False):  # fail here, not at the first client
        raise UsageError(f"policy {policy!r} needs the simulator, so it can't be served; name it where it drives")
    with PolicyServer(lambda: load_policy(policy, settings), host, port, has_memory=not forgetful) as server:
        note(f"{policy} is served at {server.address}; Ctrl-C ends it")
        server.wait()


def listener() -> Listener:
    """Says on stderr how jobs go on."""
    from roadworthy.jobs.chunks import Listener
    from roadworthy.jobs.job import Job

    class Narrator(Listener):
        def begun(self, job: Job, number: int, total: int) -> None:
            self._shown = ExitStack()
            self._report = self._shown.enter_context(progress(f"{job.name} ({number} of {total} jobs)"))

        def progress(self, job: Job, done: int, owed: int) -> None:
            self._report(done, owed)

        def over(self, job: Job, entry: Entry) -> None:
            self._shown.close()
            words = f": {entry.error}" if entry.error else ""
            note(f"{job.name} {entry.status.value}{words}")

        def not_summarized(self, job: Job, error: str) -> None:
            note(f"{job.name}: its episodes are not in the episode summary: {error}; the same command adds them")

    return Narrator()


def report(entries: Sequence[Entry], out: Path, metrics: Path | None, json: bool) -> None:
    """Print where jobs stand, and write their figures where that is asked for."""
    from roadworthy.record.files import write_json

    figures = {entry.name: _metrics(entry, out) for entry in entries}
    if metrics is not None:
        metrics.parent.mkdir(parents=True, exist_ok=True)
        write_json(metrics.absolute(), {"jobs": figures})
    if json:
        told = [vars(entry) | {"status": entry.status.value, "metrics": figures[entry.name]} for entry in entries]
        tell_json({"out": str(out), "jobs": told})
    else:
        tell(_table(entries, out), *(f"{entry.name}: {entry.error}" for entry in entries if entry.error))
        tell(f"results: {out}")


def _metrics(entry: Entry, out: Path) -> dict[str, object] | None:
    from roadworthy.jobs.record import read_record
    from roadworthy.record.files import file_inside

    if entry.run is None or file_inside(out, entry.run) is None or not (out / entry.run / "job.json").is_file():
        return None
    record = read_record(out / entry.run)
    return {"owed": record.owed, "ended": record.ended, "failed": record.failed, **(record.metrics or {})}


def _table(entries: Sequence[Entry], out: Path) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("job", "status"):
        table.add_column(name)
    for name in ("ended", "failed", "success", "95%", "return", "seconds"):
        table.add_column(name, justify="right")
    for entry in entries:
        found = _metrics(entry, out) or {}
        by_name = {figure["name"]: figure for figure in found.get("figures", [])}  # type: ignore[attr-defined]
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
    """A figure and its interval."""
    if figure is None or figure["value"] is None:
        return "", ""
    low, high = figure.get("low"), figure.get("high")
    return f"{figure['value']:.2f}", f"{low:.2f}–{high:.2f}" if low is not None and high is not None else "few data"

"""The `roadworthy` command: its verbs, and the one place that turns an error into a line and an exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roadworthy import __version__
from roadworthy.cli import (
    audit,
    bench,
    compare,
    config,
    doctor,
    evaluate,
    export,
    gate,
    inspect,
    jobs,
    realism,
    render,
    replay,
    report,
    rescore,
    results,
    scenarios,
    sensitivity,
    sweep,
    train,
    view,
)
from roadworthy.cli.output import note, say_error
from roadworthy.errors import DeprecatedNameWarning, RoadworthyError, missing_extra

INTERRUPTED = 130
RESUMABLE = ("evaluate", "jobs", "sweep")  # after Ctrl-C; `train` says so itself, with its checkpoint
TERMINATED = 143
ABOUT = "Train driving policies in a simulator, and measure how good they really are."
EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 usage, 3 bad data, 4 nothing found, 5 device or library missing, "
    "130 Ctrl-C; gate: 0 pass, 10 regression, 11 undecided"
)

# Verbs in groups, in the order of a user's work, each with a few words about it.
GROUPS: dict[str, dict[ModuleType, str]] = {
    "Scenarios": {scenarios: "generate, import, list, draw and check packs of scenarios"},
    "Train and evaluate": {
        train: "train a policy; the same command resumes",
        evaluate: "evaluate a policy: runs with figures and a report",
        jobs: "run policies in any Gymnasium environment",
        sweep: "run a job with factors that vary between episodes",
        gate: "decide whether a policy may replace another one",
    },
    "Read runs": {
        view: "look at runs, figures and episodes in a browser",
        compare: "compare runs in pairs: is B better than A?",
        results: "import logs of other tools as runs; check results for bias",
        report: "write the report of one or several runs",
        render: "make videos of the episodes of a run",
        export: "write episodes for other tools, such as the Rerun viewer",
        sensitivity: "analyze which factors decide an outcome",
        realism: "measure how much agents drive like recorded ones",
    },
    "Check runs": {
        rescore: "recompute the figures of a run from its recorded motion",
        replay: "run an episode again and compare the motion",
        audit: "run episodes again in other batches; count flipped outcomes",
    },
    "Inspect": {
        config: "check evaluators, and explain where each setting comes from",
        doctor: "check the machine, and everything that a config names",
        inspect: "record what a policy observes, chooses and attends to",
        bench: "measure the speed of the simulator on this machine",
    },
}
VERBS = {verb: words for group in GROUPS.values() for verb, words in group.items()}


class Verbs(TyperGroup):
    """The verbs, with a help that fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write one line per verb, in groups; each verb has its own help."""
        lines: list[str] = []
        for title, verbs in GROUPS.items():
            lines += [f"{title}:", *(f"  {_name(verb):<13}{words}" for verb, words in verbs.items())]
        codes = textwrap.wrap(EXIT_CODES, 78)
        after = ["roadworthy VERB --help has examples; also: --version, --debug (shows tracebacks)"]
        text = [f"Usage: {ctx.command_path} VERB [OPTIONS]", ABOUT, "", *lines, "", *after, *codes]
        formatter.write("\n".join(text) + "\n")


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


# Other names of options: an earlier one, and those of Isaac Lab Arena.
ALIASES = {"checkpoint": "policy", "record-camera-video": "camera-video", "factors-yaml": "factors"}


def canonical_name(name: str) -> str:
    """Return the name of an option as it is declared: underscores are accepted too, as in --chunk_size."""
    dashed = name.replace("_", "-")
    return ALIASES.get(dashed, dashed)


_SHOW_WARNING = warnings.showwarning

app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": canonical_name},
)
for verb in VERBS:
    if hasattr(verb, "app"):
        app.add_typer(verb.app, name=_name(verb))
    else:
        app.command(epilog=verb.EXAMPLES)(getattr(verb, _name(verb)))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roadworthy {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; also accepted after the verb.")] = False,
) -> None:
    """Train driving policies in a vectorized simulator, and measure how good they are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; only --debug shows tracebacks."""
    debug, given = _take_debug(list(sys.argv[1:] if arguments is None else arguments))
    _clean_up_when_terminated()
    # Threads of OpenMP spin while they wait for each other, which slows training down on a machine with other work.
    # The limit must be set before torch is imported: see docs/LOG.md.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", DeprecatedNameWarning)
            warnings.showwarning = _show_warning
            code: int = app(given, prog_name="roadworthy", standalone_mode=False) or 0
    except SystemExit as stop:  # typer exits so when a pipe is closed, and some versions of it at Ctrl-C
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc(file=sys.stderr)
        if isinstance(error, ModuleNotFoundError):
            error = missing_extra(error, next((word for word in given if word[:1] != "-"), "roadworthy")) or error
        message = _describe(error, given)
        if message:
            say_error(message)
        code = error.exit_code if isinstance(error, RoadworthyError | typer.TyperException) else 1
    if code == INTERRUPTED:
        verb = next((word for word in given if word[:1] != "-"), "")
        note("interrupted; the same command resumes" if verb in RESUMABLE else "interrupted")
    return code


def _clean_up_when_terminated() -> None:
    """Make SIGTERM end the command like Ctrl-C: without partial files and without processes left behind."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a deprecated name as one line without the place in the source."""
    if issubclass(category, DeprecatedNameWarning):
        note(f"warning: {message}")
    else:
        _SHOW_WARNING(message, category, *where, **more)


def _describe(error: Exception, given: list[str]) -> str:
    """Return one line for the user: what is wrong, and for an internal error how to get the traceback."""
    if isinstance(error, typer.TyperException):
        message = error.format_message()
        context = getattr(error, "ctx", None)
        # The message is empty if typer has printed the help of a group that was called without a verb.
        return f"{message.rstrip('.')}; see {context.command_path} --help" if message and context else message
    if isinstance(error, RoadworthyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    retry = shlex.join(["roadworthy", "--debug", *given])
    return f"internal error in Roadworthy: {type(error).__name__}: {error}; for the traceback run {retry}"


def _take_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Return whether --debug is among the arguments, before or after the verb, and the other arguments."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, options + arguments[end:]

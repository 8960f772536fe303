"""The `roadworthy` command: its verbs, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roadworthy import __version__
from roadworthy.cli import (
    audit,
    bench,
    config,
    doctor,
    evaluate,
    inspect,
    jobs,
    realism,
    render,
    replay,
    report,
    rescore,
    scenarios,
    sensitivity,
    sweep,
    train,
)
from roadworthy.cli.output import note, say_error
from roadworthy.errors import RoadworthyError

INTERRUPTED = 130
TERMINATED = 143
EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 usage, 3 bad data, 4 nothing found, 5 no device, 130 Ctrl-C"

# Verbs in the order of a user's work, and what each is for in a few words.
VERBS = {
    scenarios: "make, list, draw and check packs of scenarios",
    train: "train a policy; goes on where it stopped",
    evaluate: "find out how good a policy is: runs with figures and a report",
    report: "write the report of runs again, or of several together",
    render: "make videos of a run's episodes",
    rescore: "judge a run's recorded motion anew",
    replay: "run an episode again and compare the motion",
    audit: "run episodes again in other batches; count flipped outcomes",
    inspect: "record what a policy sees, chooses and attends to",
    config: "check evaluators, and explain where each setting comes from",
    realism: "do simulated agents drive like recorded ones?",
    jobs: "run policies in any Gymnasium environment",
    sweep: "run a job with factors that vary between episodes",
    sensitivity: "which factors decide an outcome?",
    bench: "measure how fast the simulator is here",
    doctor: "check the machine, and all that a config names",
}


class Verbs(TyperGroup):
    """The verbs, with a help that fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One line per verb; each has its own help."""
        lines = [f"  {_name(module):<13}{words}" for module, words in VERBS.items()]
        codes = textwrap.wrap(EXIT_CODES, 78)
        after = ["roadworthy VERB --help has examples; also: --version, --debug (shows tracebacks)"]
        about = "Train driving policies in a simulator and find out, honestly, how good they are."
        text = [f"Usage: {ctx.command_path} VERB [OPTIONS]", about, "", *lines, "", *after, *codes]
        formatter.write("\n".join(text) + "\n")


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


# Options by the names that Isaac Lab Arena has for them.
ALIASES = {"record-camera-video": "camera-video", "factors-yaml": "factors"}


def canonical_name(name: str) -> str:
    """Return an option's own name: every option is understood with underscores too, as --chunk_size."""
    dashed = name.replace("_", "-")
    return ALIASES.get(dashed, dashed)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": canonical_name,
    },
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


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand after the verb too.")] = False,
) -> None:
    """Train driving policies in a vectorised simulator and find out how good they are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; tracebacks are shown with --debug alone."""
    debug, given = _take_debug(list(sys.argv[1:] if arguments is None else arguments))
    _clean_up_when_terminated()
    # OpenMP's threads wait for each other by spinning, for long unless they are told before torch is imported. Long
    # waits slow training down on a machine with other work, and none at all on an idle one: see docs/LOG.md.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        return app(given, prog_name="roadworthy", standalone_mode=False) or 0
    except SystemExit as stop:  # how typer ends at Ctrl-C, and when the reader of a pipe has gone
        if stop.code == INTERRUPTED:
            note("interrupted")
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc(file=sys.stderr)
        message = _describe(error, given)
        if message:
            say_error(message)
        return error.exit_code if isinstance(error, RoadworthyError | typer.TyperException) else 1


def _clean_up_when_terminated() -> None:
    """Let SIGTERM end the command in order, like Ctrl-C: no partial files, no processes left."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _describe(error: Exception, given: list[str]) -> str:
    """One line for the user: what is wrong, and for a fault of ours how to find out more."""
    if isinstance(error, typer.TyperException):
        message = error.format_message()
        context = getattr(error, "ctx", None)
        # Without words it is what typer raises after it has printed the help of a group that was called alone.
        return f"{message.rstrip('.')}; see {context.command_path} --help" if message and context else message
    if isinstance(error, RoadworthyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    retry = shlex.join(["roadworthy", "--debug", *given])
    return f"internal error, a fault of Roadworthy: {type(error).__name__}: {error}; for the traceback run {retry}"


def _take_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Whether --debug was given, before or after the verb, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, options + arguments[end:]

"""The command as a whole: help, exit codes, and what becomes of errors."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from roadworthy import __version__, errors
from roadworthy.cli import main as command
from roadworthy.cli.main import app, canonical_name, main

EXIT_CODES = {0, 1, 2, 3, 4, 5, 10, 11, 130}


def verbs(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from verbs(found, (*path, name))
        else:
            yield (*path, name), found


VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes every command raise what the test gives."""

    def fail_with(error: BaseException) -> None:
        def raise_it(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(command, "app", raise_it)

    return fail_with


@pytest.mark.row("UI-1")
def test_the_help_fits_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


@pytest.mark.row("UI-1")
def test_the_exit_codes_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    documented = re.sub(r"\s+", " ", capsys.readouterr().out).split("Exit codes:")[1]
    assert {int(code) for code in re.findall(r"\b\d+\b", documented)} == EXIT_CODES
    raised = {
        cls.exit_code
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.RoadworthyError)
    }
    assert raised <= EXIT_CODES


@pytest.mark.row("UI-1")
@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_has_examples_and_a_line_for_every_option(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*path, "--help"]) == 0
    assert f"Examples\n roadworthy {' '.join(path)} " in re.sub(" +\n", "\n", capsys.readouterr().out)
    assert all(parameter.help for parameter in VERBS[path].params)


@pytest.mark.row("UI-1")
@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_option_is_understood_with_underscores_and_shown_with_dashes(path: tuple[str, ...]) -> None:
    """The parser of each verb is asked, in the context that the whole command gives it."""
    context = typer.main.get_command(app).make_context("roadworthy", [*path, "--help"], resilient_parsing=True)
    names = [name for parameter in VERBS[path].params for name in [*parameter.opts, *parameter.secondary_opts]]
    assert not [name for name in names if "_" in name and name.startswith("-")]
    verb = type(context)(VERBS[path], parent=context, info_name=path[-1])
    parser = VERBS[path].make_parser(verb)
    known = {*parser._long_opt, *parser._short_opt}
    for name in names:
        if name.startswith("--"):
            assert "--" + canonical_name(name[2:].replace("-", "_")) in known


def test_an_option_with_underscores_takes_its_value(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text("jobs = []")
    for option in ("--chunk-size", "--chunk_size"):
        assert main(["jobs", "run", str(tmp_path / "jobs.toml"), option, "0"]) == 2
        assert "'--chunk" in capsys.readouterr().err
        assert main(["jobs", "run", str(tmp_path / "jobs.toml"), f"{option}=3"]) == 2
        assert "it has no jobs" in capsys.readouterr().err
    assert main(["jobs", "run", str(tmp_path / "jobs.toml"), "--chunk_sise", "3"]) == 2
    assert "No such option" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"roadworthy {__version__}\n"


def test_the_bare_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr()
    assert "Train and evaluate:" in output.out
    assert output.err == ""


def test_a_deprecated_name_is_one_line_without_a_place_in_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(*_: Any, **__: Any) -> None:
        for _ in range(2):
            warnings.warn("old is deprecated; use new", errors.DeprecatedNameWarning, stacklevel=1)

    monkeypatch.setattr(command, "app", warn)
    assert main([]) == 0
    assert capsys.readouterr().err == "warning: old is deprecated; use new\n"


@pytest.mark.parametrize(("module", "extra"), [("numba.core", "drive"), ("gymnasium", "gym"), ("numba_cuda", "cuda")])
def test_a_missing_library_names_the_extra_that_installs_it(
    module: str, extra: str, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert main(["evaluate", "town"]) == 5
    name = module.partition(".")[0]
    assert capsys.readouterr().err == (
        f"error: evaluate needs {name}, which is not installed; install it with: pip install 'roadworthy[{extra}]'\n"
    )


def test_another_missing_module_is_an_internal_error(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(ModuleNotFoundError("No module named 'roadworthy.misspelled'", name="roadworthy.misspelled"))
    assert main(["evaluate", "town"]) == 1
    assert "internal error" in capsys.readouterr().err


def test_a_group_called_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 2
    output = capsys.readouterr()
    assert "generate" in output.out
    assert output.err == ""


@pytest.mark.parametrize("arguments", [["scenarois"], ["scenarios", "generate", "--cuont", "3"], ["scenarios", "info"]])
def test_wrong_usage_is_one_line_with_the_way_to_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert re.fullmatch(r"error: .*; see roadworthy.* --help\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RoadworthyError("it is [red]"), 1),
        (errors.ConfigError("it is [red]"), 2),
        (errors.PackError("it is [red]"), 3),
        (errors.GenerationError("it is [red]"), 4),
    ],
)
def test_an_error_is_one_line_and_its_exit_code(
    error: Exception, code: int, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(error)
    assert main(["scenarios"]) == code
    assert capsys.readouterr().err == "error: it is [red]\n"


def test_a_long_error_is_not_broken_into_lines(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(errors.RoadworthyError("word " * 100 + "end"))
    main([])
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--debug", "scenarios"], ["scenarios", "--debug"]])
def test_the_traceback_is_shown_with_debug_alone(
    arguments: list[str], failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(errors.PackError("broken"))
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.endswith("error: broken\n")


def test_what_follows_two_dashes_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(command, "app", lambda given, **_: seen.extend(given))
    main(["--debug", "info", "--", "--debug"])
    assert seen == ["info", "--", "--debug"]


def test_an_internal_error_says_so_and_how_to_see_it(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(ZeroDivisionError("division by zero"))
    assert main(["scenarios", "info", "my town.pack"]) == 1
    error = capsys.readouterr().err
    assert "internal error in Roadworthy: ZeroDivisionError: division by zero" in error
    assert "roadworthy --debug scenarios info 'my town.pack'" in error
    assert "Traceback" not in error


def test_a_file_that_can_not_be_written_is_named(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(PermissionError(13, "Permission denied", "/town.pack"))
    assert main([]) == 1
    assert capsys.readouterr().err == "error: /town.pack: Permission denied\n"


def test_an_interrupt_ends_with_130_and_one_line(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(KeyboardInterrupt())
    assert main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupted_verb_ends_with_130_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wait() -> None:
        raise KeyboardInterrupt

    interrupted = typer.Typer()
    interrupted.command()(wait)
    monkeypatch.setattr(command, "app", interrupted)
    assert main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_help_imports_nothing_heavy() -> None:
    """A newcomer's first command answers at once: what takes long to import waits for the verbs that need it."""
    check = (
        "import sys; from roadworthy.cli.main import main; main(['scenarios', 'generate', '--help']);"
        "print('heavy:', *({'av', 'matplotlib', 'numba', 'numpy', 'pyarrow', 'scipy', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "heavy:"

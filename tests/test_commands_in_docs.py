"""Every command in the README and the docs parses, and the README's Python runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from roadworthy.cli.main import app, canonical_name

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name != "LOG.md")]


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each fenced block of a page."""
    parts = re.split(r"^```(\w*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for number in range(1, len(parts) - 2, 4):
        yield parts[number], parts[number + 1]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each `roadworthy` command in the blocks of a page."""
    for language, text in blocks(page):
        if language not in ("", "sh", "bash", "console"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            if not line.lstrip("$ ").startswith("roadworthy "):
                continue
            words = shlex.split(line.strip().removeprefix("$ "), comments=True)
            end = min((words.index(sign) for sign in ("&&", "&", "|", ";") if sign in words), default=len(words))
            if not {"...", "VERB"} & set(words):
                yield words[1:end]


@pytest.mark.row("UI-6")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_parses(page: Path) -> None:
    group = typer.main.get_command(app)
    for words in commands(page):
        command, rest = group, words
        while hasattr(command, "commands"):
            assert rest, f"{page.name}: roadworthy {' '.join(words)}: lacks a verb"
            assert rest[0] in command.commands, f"{page.name}: roadworthy {' '.join(words)}: there is no {rest[0]!r}"
            command, rest = command.commands[rest[0]], rest[1:]
        context = command.context_class(command, token_normalize_func=canonical_name)
        parser = command.make_parser(context)
        _, unknown, _ = parser.parse_args(args=list(rest))
        assert unknown == [], f"{page.name}: roadworthy {' '.join(words)}"


@pytest.mark.row("UI-4")
def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [text for language, text in blocks(ROOT / "README.md") if language == "python"]
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["runs"]["town"].status == "completed"

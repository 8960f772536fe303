"""`roadworthy config`: check the sections of a file, and explain where each setting comes from."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.options import PolicyOption, SetOption
from roadworthy.cli.output import JsonFlag, examples, new_table, tell, tell_json
from roadworthy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from roadworthy.evaluation.explain import Explained
    from roadworthy.evaluation.sections import Section

CHECK_EXAMPLES = examples(
    "roadworthy config check suite.toml",
    "roadworthy config check behaviors --set scenarios=my.pack",
    "",
    "Exit codes: 0 all sections are correct, 2 the file or a section has an error",
)
EXPLAIN_EXAMPLES = examples(
    "roadworthy config explain eval.hard_stop behaviors",
    "roadworthy config explain eval.town suite.toml --given",
    "roadworthy config explain town suite.toml --policy runs/best --set seed=3",
)

_WIDEST = 60  # longer settings push their comment to the right

app = typer.Typer(no_args_is_help=True, help="Check and explain the evaluators of a config file.")

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A .toml or .ini file, or a shipped suite, such as behaviors or town.")
]


@app.command(epilog=CHECK_EXAMPLES)
def check(file: File, policy: PolicyOption = None, overrides: SetOption = None, json: JsonFlag = False) -> None:
    """Read all sections of a file and print the errors of each."""
    sections = _read(file, policy, overrides)
    faulty = [section.name for section in sections if section.error is not None]
    if json:
        tell_json({"file": file, "sections": [_short(section) for section in sections], "faults": len(faulty)})
    else:
        tell(_overview(sections))
        for section in sections:
            for line in str(section.error).splitlines() if section.error is not None else ():
                tell(f"eval.{section.name}: {line}")
    if faulty:
        raise ConfigError(f"{file}: {len(faulty)} of {len(sections)} sections can't run: {', '.join(faulty)}")


@app.command(epilog=EXPLAIN_EXAMPLES)
def explain(
    name: Annotated[str, typer.Argument(metavar="eval.NAME", help="The section.")],
    file: File,
    policy: PolicyOption = None,
    overrides: SetOption = None,
    given: Annotated[bool, typer.Option("--given", help="Leave out defaults.")] = False,
    json: JsonFlag = False,
) -> None:
    """Show every setting of a section with its value and its source."""
    from roadworthy.evaluation.explain import DEFAULT
    from roadworthy.evaluation.explain import explain as explained
    from roadworthy.evaluation.sections import chosen

    (section,) = chosen(_read(file, policy, overrides), [name])
    settings = [part for part in explained(section) if not given or part.source != DEFAULT]
    if json:
        tell_json(
            {
                "section": section.name,
                "chain": list(section.chain),
                "settings": {
                    part.key: {
                        "value": part.value,
                        "source": part.source,
                        "covered": [list(c) for c in part.overridden],
                    }
                    for part in settings
                },
            }
        )
    else:
        tell(f"[eval.{section.name}]  # from the root down: {' -> '.join(section.chain)}", *_lines(settings))


def _read(file: str, policy: str | None, overrides: list[str] | None) -> tuple[Section, ...]:
    from roadworthy.evaluation.sections import read_sections
    from roadworthy.evaluation.training import training_of

    training = training_of(policy) if policy is not None else None
    return read_sections(file, training=training, overrides=overrides or ())


def _state(section: Section) -> str:
    if section.error is not None:
        return "fault"
    if section.is_template:
        return "template"
    return "runs" if section.config.enabled else "disabled"


def _short(section: Section) -> dict[str, Any]:
    return {
        "name": section.name,
        "type": section.type,
        "chain": list(section.chain),
        "state": _state(section),
        "faults": str(section.error).splitlines() if section.error is not None else [],
    }


def _overview(sections: tuple[Section, ...]) -> Table:
    from rich.text import Text

    styles = {"fault": "red", "template": "dim", "runs": "green", "disabled": "dim"}
    table = new_table("section", "state", "type", "inherits")
    for section in sections:
        state = _state(section)
        ancestors = " -> ".join(reversed(section.chain[:-1]))
        table.add_row(f"eval.{section.name}", Text(state, styles[state]), section.type or "", ancestors)
    return table


def _lines(settings: list[Explained]) -> Iterator[Text]:
    """Yield settings as TOML lines, each with a comment that names its source."""
    from rich.text import Text

    from roadworthy.evaluation.explain import DEFAULT

    lines = [(f"{part.key} = {json_format.dumps(part.value)}", part) for part in settings]
    width = min(max(len(setting) for setting, _ in lines), _WIDEST)
    for setting, part in lines:
        covered = "".join(f", over {json_format.dumps(value)} of {source}" for source, value in part.overridden)
        origin = f"  # {part.source}{covered}"
        is_default = part.source == DEFAULT
        yield Text.assemble(
            (f"{setting:<{width}}", "dim" if is_default else ""), (origin, "dim" if is_default else "cyan")
        )

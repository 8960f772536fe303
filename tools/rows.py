"""List the rows of docs/requirements.md with their tests, and the rows without a test."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

ROOT = Path(__file__).resolve().parent.parent
_SECTION = re.compile(r"## ([A-Z]+): ")
_ROW = re.compile(r"(\d+)\. (.*)")
_NAME = re.compile(r"\b[A-Z]+-\d+\b")


@dataclass(frozen=True)
class Row:
    """One requirement: its name, such as SCEN-2, and the first line of its text."""

    name: str
    text: str


def read_rows(requirements: Path) -> list[Row]:
    """Return the numbered rows of every section, in order."""
    rows, section = [], ""
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif section and (match := _ROW.match(line)):
            rows.append(Row(f"{section}-{match[1]}", match[2]))
    return rows


def find_tests(folder: Path) -> dict[str, list[str]]:
    """Return the tests of each row that a mark or a docstring names, as `tests/test_rows.py::test_...`."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for test, names in _named_rows(tree):
            for name in names:
                found.setdefault(name, []).append(f"{path.relative_to(folder.parent).as_posix()}::{test}")
    return found


def _named_rows(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield each test function with the rows that it, its class or its module names in marks or docstrings."""
    of_module = marked_rows(*(node for node in tree.body if isinstance(node, ast.Assign))) + _spoken_of(tree)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    scopes = [(tree.body, of_module)]
    scopes += [(node.body, of_module + marked_rows(*node.decorator_list) + _spoken_of(node)) for node in classes]
    for body, outer in scopes:
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node.name, list(dict.fromkeys(outer + marked_rows(*node.decorator_list) + _spoken_of(node)))


def _spoken_of(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> list[str]:
    return _NAME.findall(ast.get_docstring(node) or "")


def marked_rows(*trees: ast.AST) -> list[str]:
    """Return the arguments of every `pytest.mark.row(...)` in some syntax trees."""
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        str(argument.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "row"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def main() -> int:
    """Print every row with its tests, then the number of rows with tests."""
    rows = read_rows(ROOT / "docs" / "requirements.md")
    tests = find_tests(ROOT / "tests")
    held = [row for row in rows if row.name in tests]
    for row in held:
        print(f"{row.name:<9} {shorten(row.text, 100, placeholder=' ...')}")
        for test in tests[row.name]:
            print(f"{'':<9}   {test}")
    print("\nWithout a test:")
    for row in rows:
        if row not in held:
            print(f"{row.name:<9} {shorten(row.text, 100, placeholder=' ...')}")
    print(f"\n{len(held)} of {len(rows)} rows have a test")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The list of requirement rows and their tests."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.rows import ROOT, Row, find_tests, marked_rows, read_rows

REQUIREMENTS = """# Title
1. not in a section
## SCEN: scenarios
1. A scenario
   goes on.
2. A pack
## UI: for people
1. Help
"""

TESTS = '''
"""Of SCEN-1."""
import pytest

@pytest.mark.row("SCEN-2")
@pytest.mark.parametrize("x", [1])
def test_a(x):
    pass

class TestB:
    """Of UI-1."""
    def test_b(self):
        """Of UTF-8."""

def helper():
    """Of UI-3."""
'''


def test_rows_are_read_with_their_section(tmp_path: Path) -> None:
    file = tmp_path / "requirements.md"
    file.write_text(REQUIREMENTS)
    assert read_rows(file) == [Row("SCEN-1", "A scenario"), Row("SCEN-2", "A pack"), Row("UI-1", "Help")]


def test_tests_are_found_by_mark_and_by_docstring(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "scenario"
    folder.mkdir(parents=True)
    (folder / "test_x.py").write_text(TESTS)
    found = find_tests(tmp_path / "tests")
    a, b = "tests/scenario/test_x.py::test_a", "tests/scenario/test_x.py::test_b"
    assert found["SCEN-1"] == [a, b]
    assert found["SCEN-2"] == [a]
    assert found["UI-1"] == [b]
    assert "UI-3" not in found


def test_every_mark_of_this_suite_names_a_row_that_exists() -> None:
    known = {row.name for row in read_rows(ROOT / "docs" / "requirements.md")}
    for path in (ROOT / "tests").rglob("test_*.py"):
        names = set(marked_rows(ast.parse(path.read_text(encoding="utf-8")))) if path.name != "test_rows.py" else set()
        assert names <= known, f"{path.name} names {names - known}"

"""Importers named by entry point or by code, and detection of the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.errors import ConfigError, UsageError
from roadworthy.scenario import processes
from roadworthy.scenario.importers import import_scenarios
from roadworthy.scenario.importers.run import detect_format
from roadworthy.scenario.pack import Pack
from tests.scenario.example import example_scenario
from tests.scenario.importers.encoder import frame, womd_message

# A format of text files: each line names the scenarios of a record.
NAMES_IMPORTER = """
from dataclasses import replace
from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers import Location, Record
from tests.scenario.example import example_scenario

class Names:
    def matches(self, path):
        return path.read_bytes().startswith(b"names")

    def records(self, path):
        for number, line in enumerate(path.read_text().splitlines()[1:]):
            yield Record(Location(path, number), line)

    def read(self, data, omitted):
        omitted["colors"] += 1
        example = example_scenario()
        for name in data.split():
            if name == "broken":
                raise ScenarioError("it is broken")
            yield replace(example, id=name)
"""


@pytest.fixture
def importer(tmp_path: Path) -> str:
    """A user's importer by file and class."""
    (tmp_path / "names.py").write_text(NAMES_IMPORTER)
    return f"{tmp_path}/names.py:Names"


def names_file(folder: Path, *lines: str) -> Path:
    path = folder / "some.names"
    path.write_text("\n".join(["names", *lines]))
    return path


def womd_file(folder: Path) -> Path:
    path = folder / "some.tfrecord"
    path.write_bytes(frame(womd_message(example_scenario("seven")).SerializeToString()))
    return path


@pytest.mark.parametrize("process_count", [1, 2])
def test_an_importer_can_be_a_class_in_a_file(
    importer: str, process_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "FIRST_ITEMS", 1)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))  # worker processes import the tests
    path = names_file(tmp_path, "one two", "three")
    report = import_scenarios(path, tmp_path / "new" / "x.pack", format=importer, processes=process_count)
    assert (report.scenario_count, report.file_count, report.omitted) == (3, 1, {"colors": 2})
    with Pack(report.path) as pack:
        assert list(pack.ids) == ["one", "two", "three"]
        assert pack.map_count == 1


def test_no_scenario_of_a_damaged_record_is_kept(importer: str, tmp_path: Path) -> None:
    path = names_file(tmp_path, "one", "two broken", "three three", "four one", "five")
    report = import_scenarios(path, tmp_path / "x.pack", format=importer, processes=1, skip_damaged=True)
    assert [(damage.location.number, damage.reason) for damage in report.damages] == [
        (1, "it is broken"),
        (2, f"its scenario id 'three' is also that of {path}, record 2 at byte 0"),
        (3, f"its scenario id 'one' is also that of {path}, record 0 at byte 0"),
    ]
    with Pack(report.path) as pack:
        assert list(pack.ids) == ["one", "five"]


def test_the_format_is_detected_from_the_content(tmp_path: Path) -> None:
    path = womd_file(tmp_path).rename(tmp_path / "unusual.name")
    assert detect_format(path) == "womd"
    assert import_scenarios(path, tmp_path / "x.pack", processes=1).scenario_count == 1


def test_a_file_of_unknown_content_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    path = names_file(tmp_path, "one")
    with pytest.raises(UsageError, match=r"some.names: no importer recognizes its content; name the format, one of: "):
        import_scenarios([womd_file(tmp_path), path], tmp_path / "new" / "x.pack", processes=1)
    assert not (tmp_path / "new").exists()


def test_a_misspelled_format_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown importer 'wond'; did you mean womd\?"):
        import_scenarios(womd_file(tmp_path), tmp_path / "new" / "x.pack", format="wond")
    assert not (tmp_path / "new").exists()

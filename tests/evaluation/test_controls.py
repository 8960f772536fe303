"""Controls: a section whose memory is cleared after each trial runs the very episodes of its subject."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.sections import read_sections
from roadworthy.scenario.pack import Pack
from tests.evaluation.built_in import declare
from tests.plugin_package import install_own

SECTIONS = """
[eval.base]
scenarios = "{pack}"
episodes = 3
replicates = 2
episode.trials = 2
episode.trial_steps = 3
worlds = 2
env.control.rows = 2

[eval.subject]
type = "multi_scenario"
inherits = "base"

[eval.below]
type = "multi_scenario"
inherits = "subject"
memory = "trial"

[eval.beside]
type = "multi_scenario"
inherits = "base"
memory = "trial"
engine = "inline"
summary.weight = 0.0

[eval.another]
type = "multi_scenario"
inherits = "base"
seed = 0
episode.trial_steps = 4
"""


@pytest.fixture(autouse=True, scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        declare(tmp_path_factory.mktemp("site") / "plugins", monkeypatch)
        yield


@pytest.mark.row("TRIAL-8")
@pytest.mark.row("EVAL-2")
def test_a_control_shares_the_ledger_of_its_subject_whatever_it_is_called(tmp_path: Path, streets: Pack) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(SECTIONS.format(pack=streets.path))
    ledgers = {}
    for outcome in evaluate_sections([s for s in read_sections(file) if not s.is_template], "zero", tmp_path / "runs"):
        assert outcome.is_complete, outcome.error
        assert outcome.run is not None
        ledgers[outcome.name] = outcome.run.ledger.select(
            ["episode_id", "scenario_id", "seed", "replicate"]
        ).to_pylist()
    assert len(ledgers["subject"]) == 6
    assert ledgers["below"] == ledgers["subject"]
    assert ledgers["beside"] == ledgers["subject"]
    assert ledgers["another"] != ledgers["subject"]  # another exam has a sample of its own


def test_the_shipped_control_runs_the_episodes_of_adaptation_in_fog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_own(tmp_path / "own", monkeypatch)
    sections = {section.name: section for section in read_sections("adaptation", overrides=["episodes=20"])}
    assert sections["adaptation_fog_forgets"].ledger_name == "adaptation_fog"
    assert {section.ledger_name for name, section in sections.items() if "forgets" not in name} == {None}

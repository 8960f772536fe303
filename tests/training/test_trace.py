"""The trace: a JSON line for every boundary of memory and value chains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roadworthy.errors import UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.training.loop import Trainer
from roadworthy.training.progress import Progress
from roadworthy.training.run import run_training
from roadworthy.training.segment import RolloutBatch
from tests.training.small import config, copied, sim

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.row("PPO-6")
@pytest.mark.parametrize("trials", [1, 3])
def test_every_memory_reset_every_boundary_and_every_end_of_a_chain_has_a_line(
    trials: int, pack: Pack, tmp_path: Path
) -> None:
    settings = config(env=sim(trials), bootstrap_timeouts=True, steps=300)
    made = Trainer(settings, pack, tmp_path / "run", tmp_path / "trace.jsonl")
    batches: list[RolloutBatch] = []
    collect = made.collector.collect

    def kept() -> Any:
        batches.append(copied(collect()))
        return batches[-1]

    made.collector.collect = kept  # type: ignore[method-assign]
    made.run(lambda _: None)
    lines = lines_of(tmp_path / "trace.jsonl")
    assert {line["update"] for line in lines} == set(range(made.updates))
    for update, (segment, _, was_reset) in enumerate(batches):
        stops = segment.active & ~segment.not_done
        assert not (segment.trial_ended & segment.not_done).any()
        expected = {
            (t, row): (event, "cleared" if event == "episode_ended" else "kept", bool(stops[row, t]))
            for row in range(len(stops))
            for t in range(stops.shape[1])
            if (event := _event(segment, row, t))
        }
        told = [line for line in lines if line["update"] == update and line["event"] != "reset"]
        begun = [line for line in lines if line["update"] == update and line["event"] == "reset"]
        assert [line["row"] for line in begun] == was_reset.nonzero().flatten().tolist()
        assert all((line["step"], line["memory"]) == (0, "cleared") for line in begun)
        events = {(x["step"], x["row"]): (x["event"], x["memory"], x["value_chain"] == "stops") for x in told}
        assert events == expected
        assert len(told) == len(expected)
        assert all(x["final_value"] == float(segment.final_values[x["row"], x["step"]]) for x in told)
    assert any(line["final_value"] for line in lines)
    kinds = {line["event"] for line in lines}
    several = {"episode_ended", "trial_ended", "inactive", "reset"}
    assert kinds == ({"episode_ended"} if trials == 1 else several)
    # In limbo when its trial ends: the chain stopped where it left.
    assert (trials == 1) == all(line["value_chain"] == "stops" for line in lines)


def _event(segment: Any, row: int, t: int) -> str:
    if segment.ended[row, t]:
        return "episode_ended"
    if segment.trial_ended[row, t]:
        return "trial_ended"
    return "inactive" if segment.active[row, t] and not segment.not_done[row, t] else ""


@pytest.mark.row("PPO-6")
def test_a_resumed_run_continues_its_trace(pack: Pack, tmp_path: Path) -> None:
    class Died(Exception):
        pass

    def die(progress: Progress) -> None:
        if progress.update == 3:
            raise Died

    settings = replace(config(env=sim(2), steps=500), checkpoint_interval=2)
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    run_training(settings, pack.path, tmp_path / "whole", trace=whole)
    with pytest.raises(Died):
        run_training(settings, pack.path, tmp_path / "torn", trace=torn, report=die)
    torn.write_text(torn.read_text()[:-5])
    run_training(settings, pack.path, tmp_path / "torn", trace=torn)
    assert torn.read_bytes() == whole.read_bytes()


def test_a_file_that_is_not_a_trace_is_not_overwritten(pack: Pack, tmp_path: Path) -> None:
    for text in ("[ppo]\nhorizon = 64\n", "7\n", '{"update": 1}\n'):
        (tmp_path / "mine").write_text(text)
        with pytest.raises(UsageError, match="mine is there and is no trace; give another file"):
            Trainer(config(), pack, tmp_path / "run", tmp_path / "mine")
        assert (tmp_path / "mine").read_text() == text

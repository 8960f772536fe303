"""How fast an env is: `measure`, and `roadworthy bench sim` that shows it."""

from __future__ import annotations

import json

import pytest

from roadworthy.cli.main import main
from roadworthy.scenario.pack import Pack
from roadworthy.sim.backends import cpu
from roadworthy.sim.config import Mode, OpenConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.speed import measure


def test_a_measured_env_tells_every_stage_and_counts_active_agents_only(towns: Pack) -> None:
    env = DriveEnv(towns, 2, SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=3)), threads=1)
    steps: list[int] = []
    speed = measure(env, 20, lambda done, total: steps.append(done))
    assert list(speed.stages_s) == list(cpu.STAGES)
    assert steps == list(range(1, 21))
    assert 0 < speed.active_share <= 1
    assert speed.agent_steps_s == pytest.approx(speed.rows * speed.active_share / speed.step_s)
    assert speed.written_bytes == int(speed.rows * speed.active_share * env.observation_layout.size * 4)
    assert speed.memory == env.memory()


def test_bench_sim_prints_stages_and_json(towns: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "sim", str(towns.path), "--worlds", "2", "--agents", "3", "--steps", "10"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in (*cpu.STAGES, "the whole step", "agent-steps per second", "GB/s"))
    assert main([*command, "--mode", "replay", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["device"] == "cpu"
    assert told["rows"] == 6


def test_bench_sim_without_a_gpu_ends_with_exit_code_5(towns: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["bench", "sim", str(towns.path), "--device", "cuda"]) == 5
    assert "or use the device 'cpu'" in capsys.readouterr().err

"""The CUDA simulator runs the same kernels line by line on tiny worlds, with the results of the CPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from roadworthy.errors import DeviceError, UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, LightState
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.episode_figures import EPISODE_FIGURES
from tests.sim.scenes import Actor, pack_of, scene

ROOT = Path(__file__).parents[3]
# These two cases run every kernel; the others of tools/parity.py are parts of them.
CASES = (
    "replay with idm",
    "open, disturbed",
    pytest.param("replay", marks=pytest.mark.long),
    pytest.param("open", marks=pytest.mark.long),
)


def played(code: str, *arguments: str) -> dict[str, object]:
    """Run a script in the CUDA simulator and return its last line, which is JSON."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


MANY = """
import json, sys
import numpy as np
from roadworthy.sim.backends import cuda_batch
from roadworthy.sim.config import ObserveConfig
from roadworthy.sim.env import DriveEnv
from tools.parity import cases
config = cases(1, 3, 2, ObserveConfig(partners=3, lanes=9, edges=5, lights=2))["open"]
seen = []
for most in (3, 2):
    cuda_batch._MOST_BESIDE = most
    env = DriveEnv(sys.argv[1], 3, config, device="cuda", scenarios=[0, 1])
    seen.append(np.array(env.reset(seed=1)))
print(json.dumps({"equal": bool(np.array_equal(*seen)), "empty": int((seen[1] == 0).all(1).sum())}))
"""


@pytest.mark.row("SIM-10")
def test_more_worlds_than_a_grid_dimension_allows_are_all_observed(towns: Pack) -> None:
    assert played(MANY, str(towns.path)) == {"equal": True, "empty": 0}


COMPARE = """
import json, sys
from dataclasses import asdict
from roadworthy.sim.config import ObserveConfig
from roadworthy.sim.env import DriveEnv
from tools.parity import apart, are_slots_equal, are_trials_equal, cases, step_by_step
pack, name = sys.argv[1:]
config = cases(2, 3, 2, ObserveConfig(partners=3, lanes=9, edges=5, lights=2, final=True))[name]
cpu, gpu = (DriveEnv(pack, 2, config, device=device, scenarios=[0, 1]) for device in ("cpu", "cuda"))
answer = asdict(step_by_step(cpu, gpu, 7))
answer["ended"] = [len(env.ended_episodes()) for env in (cpu, gpu)]
answer["trials"] = are_trials_equal(gpu, 3, 2)
answer["slots"] = are_slots_equal(DriveEnv(pack, 1, config, device="cuda", scenarios=[0, 1]), gpu, 1, 3)
print(json.dumps(answer))
"""


@pytest.mark.row("SIM-10")
@pytest.mark.row("SIM-11")
@pytest.mark.parametrize("case", CASES)
def test_a_step_is_the_same_on_both_devices(case: str, towns: Pack) -> None:
    found = played(COMPARE, str(towns.path), case)
    assert found["steps"] == 7
    assert found["worst"] <= 1e-5
    assert found["differing_rows"] == found["differing_flags"] == 0
    assert found["trials"] is True
    assert found["slots"] is True


RUN = """
import json, sys
import numpy as np
from roadworthy.errors import UsageError
from roadworthy.sim.config import EpisodeConfig, ControlConfig, ObserveConfig, SimConfig
from roadworthy.sim.env import DriveEnv
config = SimConfig(
    init_steps=10, control=ControlConfig(rows=3), episode=EpisodeConfig(trials=1, trial_steps=3),
    observe=ObserveConfig(partners=2, lanes=4, edges=4, lights=1),
)
answer = {}
for device in ("cpu", "cuda"):
    env = DriveEnv(sys.argv[1], 3, config, device=device, seed=4, scenarios=[0, 1, 2])
    env.reset()
    answer[f"{device} episodes"] = [[e.number, e.scenario, str(e.seed)] for e in env.episodes]
    for _ in range(7):
        env.step(np.full((env.row_count, 2), 3.0, np.float32))
    ended, figures = env.ended_episodes(), env.figures()
    answer[f"{device} ended"] = [ended.rows.tolist(), ended.numbers.tolist(), ended.scenarios.tolist()]
    answer[f"{device} figures"] = {name: value for name, value in figures.items() if name != "comfort"}
    answer[f"{device} roles"] = env.roles.tolist()
    env.assign([1, 2], [2, 0], [11, 12], now=True)
    answer[f"{device} assigned"] = [[e.scenario, e.seed] for e in env.episodes[1:]]
    answer[f"{device} cut"] = env.ended_episodes().is_cut.tolist()
env.step(np.full((env.row_count, 2), np.nan, np.float32))
try:
    env.ended_episodes()
except UsageError as error:
    answer["error"] = str(error)
print(json.dumps(answer))
"""


@pytest.mark.row("SIM-10")
@pytest.mark.row("SIM-12")
def test_both_devices_run_the_same_episodes_and_keep_the_same_figures(towns: Pack) -> None:
    found = played(RUN, str(towns.path))
    for what in ("episodes", "ended", "roles", "assigned", "cut"):
        assert found[f"cuda {what}"] == found[f"cpu {what}"], what
    mine, other = found["cpu figures"], found["cuda figures"]
    assert isinstance(mine, dict)
    assert isinstance(other, dict)
    assert mine["n"] == other["n"] > 0
    for name, value in mine.items():
        assert (value is None) == (other[name] is None)
        assert value is None or np.isclose(value, other[name], rtol=1e-5, atol=1e-5), name
    assert "allowed: a whole number from 0 to 6 and one from 0 to 12" in str(found["error"])


GOALS = """
import json, sys
from dataclasses import asdict
from roadworthy.sim.config import ControlConfig, EpisodeConfig, GoalConfig, ObserveConfig, OpenConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from tools.parity import are_slots_equal, are_trials_equal, step_by_step
pack, at_goal = sys.argv[1:]
config = SimConfig(
    mode="open", episode=EpisodeConfig(2, 3), control=ControlConfig(rows=2),
    open=OpenConfig(agents=2, goals=1, goal_spacing_m=1.0), goal=GoalConfig(at_goal, 8.0),
    observe=ObserveConfig(partners=1, lanes=1, edges=1, lights=1),
)
cpu, gpu = (DriveEnv(pack, 2, config, device=device, scenarios=[0, 1]) for device in ("cpu", "cuda"))
answer = asdict(step_by_step(cpu, gpu, 4))
answer["trials"] = are_trials_equal(gpu, 3, 2)
answer["slots"] = are_slots_equal(DriveEnv(pack, 1, config, device="cuda", scenarios=[0, 1]), gpu, 1, 3)
print(json.dumps(answer))
"""


@pytest.mark.row("SIM-5")
@pytest.mark.row("SIM-10")
@pytest.mark.row("SIM-11")
@pytest.mark.parametrize("at_goal", ["new_goal", "continue"])
def test_goals_beyond_the_first_are_the_same_on_both_devices(at_goal: str, towns: Pack) -> None:
    found = played(GOALS, str(towns.path), at_goal)
    assert found["worst"] <= 1e-5
    assert found["differing_rows"] == found["differing_flags"] == 0
    assert found["trials"] is True
    assert found["slots"] is True


KINDS = """
import json, sys
import numpy as np
from roadworthy.sim.config import ControlConfig, EpisodeConfig, GoalConfig, ObserveConfig, SimConfig
from roadworthy.sim.env import DriveEnv
config = SimConfig(
    actions="continuous", control=ControlConfig(who="agents"), episode=EpisodeConfig(1, 3),
    goal=GoalConfig("continue", 1.0), observe=ObserveConfig(partners=0, lanes=0, edges=0, lights=0),
)
answer = {}
for device in ("cpu", "cuda"):
    env = DriveEnv(sys.argv[1], 1, config, device=device, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    for _ in range(3):
        env.step(np.zeros((env.row_count, 2), np.float32))
    ended = env.ended_episodes()
    order = np.argsort(ended.rows)
    parts = ended.figures[order], ended.trials[order]
    answer[device] = [np.where(np.isnan(part), -1.0, part).tolist() for part in parts]
print(json.dumps(answer))
"""


@pytest.mark.row("SIM-6")
@pytest.mark.row("SIM-10")
@pytest.mark.row("CL-4")
def test_both_devices_judge_types_and_starts_at_goals_equally(tmp_path: Path) -> None:
    actors = (
        Actor(10, speed=0.0),  # starts at its goal
        Actor(30, -4.0, 5.0, np.pi / 2),  # leaves the road
        Actor(60, 1.8, 1.5, np.pi / 2, AgentType.PEDESTRIAN, length=0.8, width=0.6),
        Actor(91, speed=8.0, kind=AgentType.CYCLIST, length=1.8, width=0.6),
        Actor(150, speed=1.5, heading=np.pi, kind=AgentType.PEDESTRIAN, length=0.8, width=0.6),
    )
    pack = pack_of(tmp_path / "p.pack", scene(*actors, light=LightState.STOP))
    found = played(KINDS, str(pack.path))
    assert isinstance(found["cpu"], list)
    for mine, other in zip(found["cpu"], found["cuda"], strict=True):  # type: ignore[call-overload]
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)
    figures = dict(zip(EPISODE_FIGURES, np.array(found["cpu"][0]).T.tolist(), strict=True))
    assert figures["starts_at_goal"] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert figures["score"][0] == -1.0, "no data"
    assert figures["departures"] == [0.0, 1.0, -1.0, -1.0, -1.0]


def test_an_env_without_a_gpu_says_what_is_missing(towns: Pack) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match=r"device 'cuda' was requested, but .*; or use the device 'cpu'"):
        DriveEnv(towns, 2, device="cuda")


def test_too_little_gpu_memory_names_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, device = pytest.importorskip("torch"), pytest.importorskip("roadworthy.sim.backends.cuda_memory")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2**30, 2**31))
    device.require_memory(torch.device("cuda"), 2**30, "")
    said = r"1\.5 GiB of memory are needed on cuda, but 1\.0 of its 2\.0 GiB are free; fewer worlds need less"
    with pytest.raises(DeviceError, match=said):
        device.require_memory(torch.device("cuda"), 3 * 2**29, "fewer worlds need less")


HUGE = """
import json, sys
from roadworthy.errors import DeviceError
from roadworthy.sim.backends import cuda_batch
from roadworthy.sim.env import DriveEnv
def no_room(*_):
    raise MemoryError("Unable to allocate 2 TiB")
cuda_batch.make_worlds = no_room
try:
    DriveEnv(sys.argv[1], 2, device="cuda")
except DeviceError as error:
    print(json.dumps({"said": str(error)}))
"""


def test_too_little_host_memory_names_a_remedy(towns: Pack) -> None:
    said = str(played(HUGE, str(towns.path))["said"])
    assert "Unable to allocate 2 TiB" in said
    assert "fewer than 2 worlds" in said


def test_an_unknown_device_is_an_error(towns: Pack) -> None:
    with pytest.raises(UsageError, match=r"device is 'tpu', expected one of: cpu, cuda"):
        DriveEnv(towns, 2, device="tpu")


COMPILE = """
import json, sys, tempfile
import numba, numpy as np
from roadworthy.kernels.cuda import compile_to_ptx
import numba.cuda.dispatcher as dispatcher
class Device:
    compute_capability = (9, 0)
dispatcher.get_current_device = lambda: Device  # what is compiled for, without a GPU to ask
from roadworthy.sim.config import Mode, ObserveConfig, OpenConfig, SimConfig
from roadworthy.sim.backends import cuda_batch, cuda_memory
import torch
cuda_memory.cuda.is_available = lambda: True
cuda_memory.ready_device = lambda name: torch.device("cpu")
cuda_memory.require_memory = lambda *_: None
cuda_memory.processor_count = lambda device: 1
cuda_memory.kernel_views = lambda tensors, like: like
cuda_memory.kernel_view = lambda tensor, dtype: tensor.numpy().view(dtype)
cuda_batch.cuda = type("Cuda", (), {"to_device": staticmethod(lambda array: array)})
from roadworthy.sim.env import DriveEnv
config = SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=4, traffic=2), observe=ObserveConfig(final=True))
env = DriveEnv(sys.argv[1], 2, config, device="cuda")
answer = {}
for kernel in env.batch._first + env.batch._step:
    if kernel.name in sys.argv[2].split(","):
        types = tuple(numba.typeof(argument) for argument in kernel.arguments)
        answer[kernel.name] = compile_to_ptx(kernel.function, types, (9, 0))
print(json.dumps({name: sum(".f64" in line for line in code.splitlines()) for name, code in answer.items()}))
"""


def float64_instructions(pack: Pack, kernels: str) -> dict[str, int]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(pack.path), kernels],
        env={**os.environ, "PYTHONPATH": paths, "NUMBA_ENABLE_CUDASIM": "0"},
        capture_output=True,
        text=True,
    )
    if re.search(r"libnvvm|libnvrtc|No supported NVVM", done.stderr):
        pytest.skip("CUDA's compiler is not installed")
    assert done.returncode == 0, done.stderr[-3000:]
    counts: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return counts


@pytest.mark.row("SIM-10")
def test_kernels_compile_for_a_gpu_without_float64(towns: Pack) -> None:
    names = "cut,place driven,plan traffic,move,move traffic,judge,finish step,appearances,observe last,advance trial,"
    names += "begin,start,finish start,observe"
    assert float64_instructions(towns, names) == dict.fromkeys(names.split(","), 0)

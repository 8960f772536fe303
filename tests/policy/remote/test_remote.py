"""Remote policies: the same rows as local ones, despite lost connections, restarts, timeouts and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

from roadworthy.errors import UsageError
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.jobs.record import JobRecord, Status
from roadworthy.policy.protocol import Batch, PolicyInfo, PolicyTimeout
from roadworthy.policy.remote.client import RemotePolicy, _message
from roadworthy.policy.remote.codec import RemoteError, decode, describe_space, encode, make_space
from roadworthy.policy.remote.server import PolicyServer
from roadworthy.record import Run
from tests.jobs.arenas import Corridor, Remembering
from tests.jobs.running import run_job

CORRIDOR = "tests.jobs.arenas:Corridor"
ONE_ROW = PolicyInfo.of_gymnasium(1, Corridor.observation_space, Corridor.action_space)


class Slow(Remembering):
    """Is slow in one call."""

    def __init__(self, slow_call: int, seconds: float) -> None:
        super().__init__()
        self._slow_call, self._seconds = slow_call, seconds

    def act(self, batch: Batch) -> Any:
        actions = super().act(batch)
        if self._calls == self._slow_call:
            time.sleep(self._seconds)
        return actions


class Reflex:
    """Has no memory; counts the calls of all sessions."""

    calls = 0

    def act(self, batch: Batch) -> Any:
        Reflex.calls += 1
        return (batch.observations[:, 1] * 48).astype(int) % 3


@pytest.fixture
def server() -> Iterator[PolicyServer]:
    with PolicyServer(Remembering) as running:
        yield running


def job(policy: str, **settings: Any) -> Job:
    return Job(**{"name": "j", "environment": CORRIDOR, "policy": policy, "episodes": 20, "envs": 4, **settings})


def row_of(observation: list[float], step: int) -> Batch:
    """Return the batch of one row."""
    row, seed = np.zeros(1, np.int64), np.full(1, 5, np.uint64)
    return Batch(np.array([observation], np.float32), np.ones(1, np.bool_), row, seed, np.array([step]), ["walk"])


def rows(record: JobRecord) -> Any:
    return Run(record.folder).episodes(["episode_id", "seed", "steps", "status", "outcomes.return"])


@pytest.mark.row("JOB-1")
def test_a_remote_policy_gives_the_same_rows_as_a_local_one(server: PolicyServer, tmp_path: Path) -> None:
    here = run_job(job("tests.jobs.arenas:Remembering"), tmp_path / "here")
    there = run_job(job(server.address), tmp_path / "there")
    assert there.status is Status.COMPLETED, there.traceback
    assert rows(there).equals(rows(here))


def test_a_lost_connection_is_restored_and_no_step_is_made_twice(server: PolicyServer) -> None:
    def play(policy: Any, cut: bool) -> list[int]:
        policy.start(ONE_ROW)
        policy.reset(np.array([True]))
        actions = []
        for step in range(12):
            if cut and step % 3 == 1:
                policy._connection.socket.shutdown(2)
            actions += policy.act(row_of([step, 0.3], step)).tolist()
        return actions

    remote = RemotePolicy(server.address)
    assert play(remote, cut=True) == play(Remembering(), cut=False)
    remote.close()


def test_a_repeated_request_gets_the_same_answer(server: PolicyServer) -> None:
    remote = RemotePolicy(server.address)
    remote.start(ONE_ROW)
    remote.reset(np.array([True]))
    message = {"kind": "act", **_message(row_of([1.0, 1.0], 0))}
    first = remote._ask(message, "actions")
    remote._next_id -= 1
    assert remote._ask(message, "actions")["actions"].tolist() == first["actions"].tolist()
    remote.close()


@pytest.mark.row("JOB-2")
def test_a_missing_answer_fails_its_episodes_and_the_job_continues(tmp_path: Path) -> None:
    with PolicyServer(lambda: Slow(slow_call=20, seconds=3.0)) as server:
        record = run_job(job(server.address, policy_config={"timeout_s": 2.0, "reconnect_s": 10.0}), tmp_path)
    assert record.status is Status.COMPLETED, record.traceback
    assert 1 <= record.failed <= 4
    errors = {row for row in Run(record.folder).episodes(["error"]).to_pydict()["error"] if row}
    assert len(errors) == 1
    assert "gave no answer within 2 s" in errors.pop()


class Stalling:
    """Waits in one call in the middle of episodes, so that its server can be stopped there."""

    def __init__(self, policy: Any, is_reached: threading.Event) -> None:
        self._policy, self._is_reached, self._calls = policy, is_reached, 0
        for name in ("start", "reset"):
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))

    def act(self, batch: Batch) -> Any:
        self._calls += 1
        if self._calls > 20 and batch.steps.min() > 0 and not self._is_reached.is_set():
            self._is_reached.set()
            time.sleep(0.5)
        return self._policy.act(batch)


def restarted(make: Any, has_memory: bool, tmp_path: Path) -> JobRecord:
    """Run a job whose server is stopped and soon restarted at the same address."""
    is_reached = threading.Event()
    first = PolicyServer(lambda: Stalling(make(), is_reached), has_memory=has_memory)
    servers = [first]

    def kill_and_return() -> None:
        assert is_reached.wait(30.0)
        first.close()
        time.sleep(0.3)
        servers.append(PolicyServer(make, port=first.port, has_memory=has_memory))

    thread = threading.Thread(target=kill_and_return)
    thread.start()
    try:
        return run_job(job(first.address, episodes=120), tmp_path)
    finally:
        thread.join()
        servers[-1].close()


def test_a_restart_of_a_server_fails_the_episodes_that_it_does_not_remember(tmp_path: Path) -> None:
    record = restarted(Remembering, True, tmp_path / "out")
    assert record.status is Status.COMPLETED, record.traceback
    assert 1 <= record.failed <= 4
    here = run_job(job("tests.jobs.arenas:Remembering", episodes=120), tmp_path / "here")
    expected = {row["episode_id"]: row for row in rows(here).to_pylist()}
    for row in rows(record).to_pylist():
        if row["status"] == "completed":
            assert row == expected[row["episode_id"]]


def test_a_restart_of_a_server_without_memory_fails_no_episode(tmp_path: Path) -> None:
    record = restarted(Reflex, False, tmp_path)
    assert record.status is Status.COMPLETED, record.traceback
    assert record.failed == 0


def test_an_error_of_the_policy_fails_the_job_with_the_traceback_of_the_server(tmp_path: Path) -> None:
    with PolicyServer(lambda: Remembering(breaks_at=9)) as server:
        record = run_job(job(server.address), tmp_path)
    assert record.status is Status.FAILED
    assert "raised RuntimeError: the policy lost its mind" in (record.error or "")
    assert "arenas.py" in (record.traceback or "")


def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    with PolicyServer(Remembering) as gone:
        address = gone.address
    policy = RemotePolicy(address, timeout_s=1.0, reconnect_s=0.3)
    with pytest.raises(PolicyTimeout, match=f"the policy at {address} could not be reached for 0.3 s"):
        policy.start(ONE_ROW)
    record = run_job(job(address, policy_config={"reconnect_s": 0.2}), tmp_path)
    assert record.status is Status.FAILED
    with pytest.raises(UsageError, match="is not the address of a policy"):
        RemotePolicy("ws:///nowhere").start(ONE_ROW)
    with pytest.raises(UsageError, match="timeout_s is 0"):
        RemotePolicy(address, timeout_s=0.0)


def test_a_port_in_use_is_an_error(server: PolicyServer) -> None:
    with pytest.raises(UsageError, match="choose another port"):
        PolicyServer(Remembering, port=server.port)


messages = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | scalar_dtypes()
    .filter(lambda dtype: dtype.kind in "biufc")
    .flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, max_side=4))),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(messages)
def test_messages_are_decoded_as_they_were_encoded(value: Any) -> None:
    np.testing.assert_equal(decode(encode({"kind": "k", "value": value}))["value"], value)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x81\xa4kind\x01", "text"])
def test_bytes_that_are_not_a_message_are_errors(data: Any) -> None:
    with pytest.raises(RemoteError, match="the peer sent"):
        decode(data)


def test_objects_can_not_be_sent() -> None:
    with pytest.raises(UsageError, match="an array of object can't be sent"):
        encode({"kind": "k", "value": np.array([object()])})
    with pytest.raises(UsageError, match="a Corridor can't be sent"):
        encode({"kind": "k", "value": Corridor()})


def test_spaces_are_decoded_as_they_were_encoded() -> None:
    space = spaces.Dict(
        {
            "box": spaces.Box(-1.0, np.inf, (2, 3), np.float64),
            "picture": spaces.Box(0, 255, (4, 4, 3), np.uint8),
            "rest": spaces.Tuple([spaces.Discrete(4, start=2), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary((3,))]),
        }
    )
    assert make_space(decode(encode({"kind": "k", "space": describe_space(space)}))["space"]) == space
    with pytest.raises(UsageError, match="can't describe a Text space"):
        describe_space(spaces.Text(5))

"""The client of a policy server: it reconnects, and a missing answer fails the episodes that wait for it."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.policy.protocol import Array, Batch, PolicyInfo, PolicyTimeout
from roadworthy.policy.remote.codec import RemoteError, decode, encode
from roadworthy.policy.remote.server import LARGEST_MESSAGE, hello

try:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
    from websockets.sync.client import ClientConnection, connect
except ImportError as error:
    raise UsageError(f"can't import websockets ({error}); pip install 'roadworthy[remote]'") from error

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0  # between attempts to connect

_LOST = (ConnectionClosed, OSError, EOFError)


class RemotePolicy:
    """Asks a policy server for actions.

    timeout_s: an answer that takes longer fails the episodes that wait for it.
    reconnect_s: how long to try to reach a server that does not respond.
    """

    def __init__(self, address: str, timeout_s: float = 30.0, reconnect_s: float = 60.0) -> None:
        for name, value in (("timeout_s", timeout_s), ("reconnect_s", reconnect_s)):
            if not value > 0.0:
                raise UsageError(f"{name} is {value}, expected above 0")
        self.address, self._timeout_s, self._reconnect_s = address, timeout_s, reconnect_s
        self._session = secrets.token_hex(16)
        self._connection: ClientConnection | None = None
        self._opened = ExitStack()
        self._next_id = 0

    def start(self, info: PolicyInfo) -> None:
        """Introduce this session to the server."""
        self._hello = encode(hello(self._session, info))
        rows = np.zeros(info.row_count, np.bool_)
        self._in_episode = rows.copy()
        self._has_acted = rows.copy()  # rows whose episodes have had an action
        self._is_forgotten = rows  # rows whose episodes a restarted server does not know
        self._connect(time.monotonic() + self._reconnect_s)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Report to the server where episodes end or start."""
        self._in_episode |= rows
        self._has_acted &= ~rows
        self._is_forgotten &= ~rows
        self._ask({"kind": "reset", "rows": rows}, "done")

    def act(self, batch: Batch) -> Array:
        """Request actions."""
        actions = self._ask({"kind": "act", **_message(batch)}, "actions")["actions"]
        self._has_acted[batch.rows] = True
        return actions

    def close(self) -> None:
        """Close the connection."""
        self._connection = None
        with suppress(*_LOST):
            self._opened.close()

    def _ask(self, message: dict[str, Any], expected: str) -> dict[str, Any]:
        """Send a message and wait for its answer; after a lost connection, connect and send it again."""
        self._next_id += 1
        number, reconnect_until = self._next_id, time.monotonic() + self._reconnect_s
        data = encode({**message, "id": number})
        while True:
            connection = self._connection or self._connect(reconnect_until)
            forgotten = np.flatnonzero(self._is_forgotten).tolist()
            lost = set(forgotten).intersection(message["rows"].tolist()) if message["kind"] == "act" else None
            if lost:
                raise PolicyTimeout(
                    f"the policy server at {self.address} was restarted and does not remember the episode", lost
                )
            try:
                connection.send(data)
                return self._answer(connection, number, expected)
            except TimeoutError as error:
                self.close()  # a late answer must not be taken for the next one
                raise PolicyTimeout(
                    f"the policy at {self.address} gave no answer within {self._timeout_s:g} s"
                ) from error
            except _LOST:
                self.close()

    def _answer(self, connection: ClientConnection, number: int, expected: str) -> dict[str, Any]:
        until = time.monotonic() + self._timeout_s
        while True:
            answer = decode(connection.recv(timeout=max(0.0, until - time.monotonic())))
            if answer.get("id") != number:
                continue  # to a question whose time was up
            if answer["kind"] == "error":
                raise RemoteError(f"the policy at {self.address} raised {answer['error']}\n{answer.get('traceback')}")
            if answer["kind"] != expected:
                raise RemoteError(f"the policy at {self.address} answered {answer['kind']!r}, expected {expected!r}")
            return answer

    def _connect(self, until: float) -> ClientConnection:
        """Connect, and retry until the time is up."""
        pause, last = FIRST_PAUSE_S, "no attempt was made"
        while time.monotonic() < until:
            try:
                connection = self._opened.enter_context(
                    connect(self.address, open_timeout=self._timeout_s, max_size=LARGEST_MESSAGE, compression=None)
                )
                connection.send(self._hello)
                welcome = decode(connection.recv(timeout=self._timeout_s))
                self._resume(connection, welcome)
                self._connection = connection
                return connection
            except InvalidURI as error:
                raise UsageError(f"{self.address!r} is not the address of a policy, expected ws://HOST:PORT") from error
            except (*_LOST, InvalidHandshake, TimeoutError) as error:
                self.close()
                last = f"{type(error).__name__}: {error}"
                time.sleep(min(pause, max(0.0, until - time.monotonic())))
                pause = min(2.0 * pause, LONGEST_PAUSE_S)
        raise PolicyTimeout(
            f"the policy at {self.address} could not be reached for {self._reconnect_s:g} s ({last}); is it running?"
        )

    def _resume(self, connection: ClientConnection, welcome: dict[str, Any]) -> None:
        """Find out whether the server knows the session; a restarted server has lost the memory of all rows."""
        if welcome["kind"] == "error":
            raise RemoteError(f"the policy at {self.address} refused: {welcome['error']}")
        if welcome["is_known"] or not self._in_episode.any():
            return
        connection.send(encode({"kind": "reset", "id": 0, "rows": self._in_episode}))
        self._answer(connection, 0, "done")
        if welcome["has_memory"]:
            self._is_forgotten |= self._has_acted


def _message(batch: Batch) -> dict[str, Any]:
    """Return a batch as a message can hold it: arrays of NumPy, also where tensors are on a GPU."""
    arrays = {"observations": batch.observations, "active": batch.active}
    return {
        **{name: value.cpu().numpy() if hasattr(value, "cpu") else value for name, value in arrays.items()},
        "rows": batch.rows,
        "seeds": batch.seeds,
        "steps": batch.steps,
        "instructions": None if batch.instructions is None else list(batch.instructions),
    }

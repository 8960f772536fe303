"""A policy on another machine, as a policy here: it reconnects, and an answer that fails to come fails an episode."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.jobs.batch import Traits
from roadworthy.jobs.policies import PolicyTimeout
from roadworthy.policy.remote.codec import RemoteError, decode, encode
from roadworthy.policy.remote.server import LARGEST_MESSAGE, hello

try:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
    from websockets.sync.client import ClientConnection, connect
except ImportError as error:
    raise UsageError(f"websockets can't be imported ({error}); pip install 'roadworthy[remote]'") from error

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0  # between attempts to connect

_LOST = (ConnectionClosed, OSError, EOFError)


class RemotePolicy:
    """Asks a policy server for actions.

    timeout_s: an answer that takes longer fails the episodes that wait for it.
    reconnect_s: so long it tries to reach a server that is gone.
    """

    def __init__(self, address: str, timeout_s: float = 30.0, reconnect_s: float = 60.0) -> None:
        for name, value in (("timeout_s", timeout_s), ("reconnect_s", reconnect_s)):
            if not value > 0.0:
                raise UsageError(f"{name} is {value}, expected above 0")
        self.address, self._timeout_s, self._reconnect_s = address, timeout_s, reconnect_s
        self._session = secrets.token_hex(16)
        self._connection: ClientConnection | None = None
        self._opened = ExitStack()
        self._episodes: dict[int, tuple[int, str | None]] = {}  # seed and instruction in each env
        self._started: set[int] = set()  # envs whose episodes have had an action
        self._forgotten: set[int] = set()  # envs whose episodes a restarted server knows nothing of
        self._next_id = 0

    def start(self, traits: Traits, count: int) -> None:
        """Introduce ourselves."""
        self._hello = encode(hello(self._session, traits, count))
        self._connect(time.monotonic() + self._reconnect_s)

    def reset(self, env: int, seed: int, instruction: str | None) -> None:
        """Tell the server that an episode begins."""
        self._episodes[env] = seed, instruction
        self._started.discard(env)
        self._forgotten.discard(env)
        self._ask({"kind": "reset", "env": env, "seed": seed, "instruction": instruction}, "done")

    def act(self, envs: Sequence[int], observations: Sequence[Any]) -> list[Any]:
        """Ask for actions."""
        message = {"kind": "act", "envs": list(envs), "observations": list(observations)}
        actions: list[Any] = self._ask(message, "actions")["actions"]
        self._started |= set(envs)
        return actions

    def close(self) -> None:
        """Say goodbye."""
        self._connection = None
        with suppress(*_LOST):
            self._opened.close()

    def _ask(self, message: dict[str, Any], expected: str) -> dict[str, Any]:
        """Send a message and wait for its answer; a lost connection is made again, and the message sent once more."""
        self._next_id += 1
        number, reconnect_until = self._next_id, time.monotonic() + self._reconnect_s
        data = encode({**message, "id": number})
        while True:
            connection = self._connection or self._connect(reconnect_until)
            lost = self._forgotten.intersection(message.get("envs", ()))
            if lost:
                raise PolicyTimeout(
                    f"the policy server at {self.address} was restarted and does not remember the episode", lost
                )
            try:
                connection.send(data)
                return self._answer(connection, number, expected)
            except TimeoutError as error:
                self.close()  # the answer may come later, and nobody wants it then
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
                continue  # to a question that was given up
            if answer["kind"] == "error":
                raise RemoteError(f"the policy at {self.address} raised {answer['error']}\n{answer.get('traceback')}")
            if answer["kind"] != expected:
                raise RemoteError(f"the policy at {self.address} answered {answer['kind']!r}, expected {expected!r}")
            return answer

    def _connect(self, until: float) -> ClientConnection:
        """Connect, trying again until the time is up; the server may have to be told once more what runs."""
        pause, last = FIRST_PAUSE_S, "it was not tried"
        while time.monotonic() < until:
            try:
                connection = self._opened.enter_context(
                    connect(self.address, open_timeout=self._timeout_s, max_size=LARGEST_MESSAGE, compression=None)
                )
                connection.send(self._hello)
                welcome = decode(connection.recv(timeout=self._timeout_s))
                self._greet(connection, welcome)
                self._connection = connection
                return connection
            except InvalidURI as error:
                raise UsageError(f"policy {self.address!r} is no address, expected ws://HOST:PORT") from error
            except (*_LOST, InvalidHandshake, TimeoutError) as error:
                self.close()
                last = f"{type(error).__name__}: {error}"
                time.sleep(min(pause, max(0.0, until - time.monotonic())))
                pause = min(2.0 * pause, LONGEST_PAUSE_S)
        raise PolicyTimeout(
            f"the policy at {self.address} could not be reached for {self._reconnect_s:g} s ({last}); is it running?"
        )

    def _greet(self, connection: ClientConnection, welcome: dict[str, Any]) -> None:
        """See whether the server still knows us; one that was restarted has forgotten the episodes under way."""
        if welcome["kind"] == "error":
            raise RemoteError(f"the policy at {self.address} refused: {welcome['error']}")
        if welcome["is_known"] or not self._episodes:
            return
        for env, (seed, instruction) in self._episodes.items():
            message = {"kind": "reset", "id": 0, "env": env, "seed": seed, "instruction": instruction}
            connection.send(encode(message))
            self._answer(connection, 0, "done")
        if welcome["has_memory"]:
            self._forgotten |= self._started

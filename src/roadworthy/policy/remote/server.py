"""A policy server: each client has a session with a policy of its own.

    client                                              server
    hello {protocol, session, row_count, ...}       ->  welcome {protocol, is_known, has_memory}
    reset {id, rows}                                ->  done {id}
    act {id, observations, active, rows, ...}       ->  actions {id, actions}

An error of the policy is answered with `error` {id, error, traceback}. A session outlives its connection: a client that
reconnects gets the same policy with its memory, and a repeated request gets the same answer, so that no step is made
twice. `is_known` says whether the server knows the session, which it does not after a restart.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from roadworthy.errors import UsageError
from roadworthy.policy import protocol
from roadworthy.policy.protocol import Batch, PolicyInfo
from roadworthy.policy.remote.codec import PROTOCOL, decode, describe_space, encode, make_space

try:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.server import Server, ServerConnection
    from websockets.sync.server import serve as serve_websocket
except ImportError as error:
    raise UsageError(f"can't import websockets ({error}); pip install 'roadworthy[remote]'") from error

SESSION_S = 600.0  # how long a session is kept without a connection
LARGEST_MESSAGE = 1 << 28


@dataclass
class _Session:
    policy: Any
    lock: threading.Lock = field(default_factory=threading.Lock)  # a policy is called by one connection at a time
    used: float = field(default_factory=time.monotonic)
    answered: dict[str, Any] = field(default_factory=dict)  # the last answer


class PolicyServer:
    """Serves policies: `with PolicyServer(make_policy, port=8765) as server: server.wait()`.

    make_policy: Called for each session.
    has_memory: Whether a policy remembers earlier steps of an episode. If not, a restart fails no episode.
    """

    def __init__(
        self, make_policy: Callable[[], Any], host: str = "127.0.0.1", port: int = 0, *, has_memory: bool = True
    ) -> None:
        self._make, self._has_memory = make_policy, has_memory
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()
        try:
            self._server: Server = serve_websocket(self._serve, host, port, max_size=LARGEST_MESSAGE, compression=None)
        except OSError as error:
            raise UsageError(
                f"can't listen at {host}:{port}: {error.strerror or error}; choose another port"
            ) from error
        self.host, self.port = self._server.socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, name="policy server", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The spec of the policy for clients."""
        return f"ws://{self.host}:{self.port}"

    def wait(self) -> None:
        """Serve until `close` is called or Ctrl-C is pressed."""
        while self._thread.is_alive():
            self._thread.join(1.0)

    def close(self) -> None:
        """Stop serving, and close the policies."""
        self._server.shutdown()
        self._thread.join()
        for session in self._sessions.values():
            protocol.close(session.policy)
        self._sessions = {}

    def __enter__(self) -> PolicyServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, connection: ServerConnection) -> None:
        """Answer one client until it disconnects."""
        session: _Session | None = None
        try:
            for data in connection:
                message: dict[str, Any] = {}
                try:
                    message = decode(data)
                    if message["kind"] == "hello":
                        session, answer = self._welcome(message)
                    elif session is None:
                        raise UsageError(f"the first message is {message['kind']!r}, expected 'hello'")
                    else:
                        answer = self._answer(session, message)
                except Exception as error:  # a policy may raise anything; the client reports it
                    answer = {
                        "kind": "error",
                        "id": message.get("id"),
                        "error": f"{type(error).__name__}: {error}",
                        "traceback": traceback.format_exc(),
                    }
                connection.send(encode(answer))
        except ConnectionClosed:
            return

    def _welcome(self, message: dict[str, Any]) -> tuple[_Session, dict[str, Any]]:
        if message.get("protocol") != PROTOCOL:
            raise UsageError(
                f"the client has protocol version {message.get('protocol')}, this server {PROTOCOL}; update one"
            )
        name = str(message["session"])
        with self._lock:
            self._remove_old_sessions()
            session = self._sessions.get(name)
            is_known = session is not None
            if session is None:
                session = self._sessions[name] = _Session(self._make())
        if not is_known:
            spaces = make_space(message["observation_space"]), make_space(message["action_space"])
            info = PolicyInfo(int(message["row_count"]), int(message["rows_per_world"]), lambda: spaces)
            with session.lock:
                protocol.start(session.policy, info)
        answer = {"kind": "welcome", "protocol": PROTOCOL, "is_known": is_known, "has_memory": self._has_memory}
        return session, answer

    def _answer(self, session: _Session, message: dict[str, Any]) -> dict[str, Any]:
        with session.lock:
            session.used = time.monotonic()
            if message["id"] and message["id"] == session.answered.get("id"):
                return session.answered
            if message["kind"] == "reset":
                protocol.reset(session.policy, message["rows"])
                session.answered = {"kind": "done", "id": message["id"]}
                return session.answered
            if message["kind"] == "act":
                batch = Batch(*(message[field.name] for field in fields(Batch)))
                actions = session.policy.act(batch)
                actions = actions if isinstance(actions, np.ndarray) else list(actions)
                session.answered = {"kind": "actions", "id": message["id"], "actions": actions}
                return session.answered
        raise UsageError(f"unknown message {message['kind']!r}; known: hello, reset, act")

    def _remove_old_sessions(self) -> None:
        now = time.monotonic()
        old = [name for name, session in self._sessions.items() if now - session.used > SESSION_S]
        for name in old:
            session = self._sessions.pop(name)
            protocol.close(session.policy)


def hello(session: str, info: PolicyInfo) -> dict[str, Any]:
    """Return the first message of a client."""
    return {
        "kind": "hello",
        "protocol": PROTOCOL,
        "session": session,
        "row_count": info.row_count,
        "rows_per_world": info.rows_per_world,
        "observation_space": describe_space(info.observation_space),
        "action_space": describe_space(info.action_space),
    }

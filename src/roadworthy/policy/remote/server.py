"""A policy server: each client has a session with a policy of its own.

    client                                              server
    hello {session, traits, count}                  ->  welcome {protocol, is_known, has_memory}
    reset {id, env, seed, instruction}              ->  done {id}
    act {id, envs, observations}                    ->  actions {id, actions}

An error of the policy is answered with `error` {id, error, traceback}. A session outlives its connection: a client that
was cut off comes back to the policy with all that it remembers, and a question that it asks once more has the same
answer, so that nothing is done twice. `is_known` tells whether the server still knows a session: after a restart it
does not.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from roadworthy.errors import UsageError
from roadworthy.jobs.batch import Traits
from roadworthy.policy.remote.codec import PROTOCOL, decode, describe_space, encode, make_space

try:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.server import Server, ServerConnection
    from websockets.sync.server import serve as serve_websocket
except ImportError as error:
    raise UsageError(f"websockets can't be imported ({error}); pip install 'roadworthy[remote]'") from error

SESSION_S = 600.0  # that a session is kept without a connection
LARGEST_MESSAGE = 1 << 28


@dataclass
class _Session:
    policy: Any
    lock: threading.Lock = field(default_factory=threading.Lock)  # a policy is called by one connection at a time
    used: float = field(default_factory=time.monotonic)
    answered: dict[str, Any] = field(default_factory=dict)  # the last answer


class PolicyServer:
    """Serves policies: `with PolicyServer(make_policy, port=8765) as server: server.wait()`.

    make_policy: called for each session. has_memory: whether a policy remembers what it saw earlier in an episode; if
    not, a restart of the server does no harm to episodes under way.
    """

    def __init__(
        self, make_policy: Callable[[], Any], host: str = "127.0.0.1", port: int = 0, *, has_memory: bool = True
    ) -> None:
        self._make, self._has_memory = make_policy, has_memory
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()
        try:
            self._server: Server = serve_websocket(self._attend, host, port, max_size=LARGEST_MESSAGE, compression=None)
        except OSError as error:
            raise UsageError(f"can't listen at {host}:{port}: {error.strerror or error}; take another port") from error
        self.host, self.port = self._server.socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, name="policy server", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """What a job names as its policy."""
        return f"ws://{self.host}:{self.port}"

    def wait(self) -> None:
        """Serve until somebody closes the server or presses Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(1.0)

    def close(self) -> None:
        """Serve no longer, and let go of the policies."""
        self._server.shutdown()
        self._thread.join()
        for session in self._sessions.values():
            if hasattr(session.policy, "close"):
                session.policy.close()
        self._sessions = {}

    def __enter__(self) -> PolicyServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attend(self, connection: ServerConnection) -> None:
        """Answer one client as long as it is there."""
        session: _Session | None = None
        try:
            for data in connection:
                message: dict[str, Any] = {}
                try:
                    message = decode(data)
                    if message["kind"] == "hello":
                        session, answer = self._welcome(message)
                    elif session is None:
                        raise UsageError(f"the first message is {message['kind']!r}, expected hello")
                    else:
                        answer = self._answer(session, message)
                except Exception as error:  # whatever a policy of somebody's own does: its client has to know
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
                f"the client speaks protocol {message.get('protocol')}, this server {PROTOCOL}; update one"
            )
        name = str(message["session"])
        with self._lock:
            self._forget_old()
            session = self._sessions.get(name)
            is_known = session is not None
            if session is None:
                session = self._sessions[name] = _Session(self._make())
        if not is_known and hasattr(session.policy, "start"):
            spaces = message["observation_space"], message["action_space"]
            traits = Traits(make_space(spaces[0]), make_space(spaces[1]), message.get("metadata", {}))
            with session.lock:
                session.policy.start(traits, int(message["count"]))
        answer = {"kind": "welcome", "protocol": PROTOCOL, "is_known": is_known, "has_memory": self._has_memory}
        return session, answer

    def _answer(self, session: _Session, message: dict[str, Any]) -> dict[str, Any]:
        with session.lock:
            session.used = time.monotonic()
            if message["id"] and message["id"] == session.answered.get("id"):
                return session.answered
            if message["kind"] == "reset":
                if hasattr(session.policy, "reset"):
                    session.policy.reset(message["env"], message["seed"], message["instruction"])
                session.answered = {"kind": "done", "id": message["id"]}
                return session.answered
            if message["kind"] == "act":
                actions = session.policy.act(message["envs"], message["observations"])
                session.answered = {"kind": "actions", "id": message["id"], "actions": list(actions)}
                return session.answered
        raise UsageError(f"a message of kind {message['kind']!r} is unknown; known: hello, reset, act")

    def _forget_old(self) -> None:
        now = time.monotonic()
        old = [name for name, session in self._sessions.items() if now - session.used > SESSION_S]
        for name in old:
            session = self._sessions.pop(name)
            if hasattr(session.policy, "close"):
                session.policy.close()


def hello(session: str, traits: Traits, count: int) -> dict[str, Any]:
    """The first message of a client."""
    return {
        "kind": "hello",
        "protocol": PROTOCOL,
        "session": session,
        "count": count,
        "observation_space": describe_space(traits.observation_space),
        "action_space": describe_space(traits.action_space),
    }

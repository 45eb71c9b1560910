"""
The logic of the client, without I/O. Each call is a generator that yields effects (send a request, read, pause) and receives
their results. The sync and the async client share it and differ only in the driver that executes the effects.
"""

from __future__ import annotations

import email.utils
import json
import math
import random
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Union

from . import _paths as paths
from .errors import ApiError, ConnectionError, ErrandError, api_error
from .records import Record, to_wire
from .shapes import Event, Interaction

REVISION = "2026-05-20"
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
#: Idle timeout. The server sends something every 15 s.
IDLE_S = 45.0
#: Time to reconnect, from the first failure on, before the client raises. The run continues meanwhile.
RECONNECT_TIMEOUT_S = 300.0
#: Retries of the request for the final interaction: about the same time, with the pauses between them.
FINAL_RETRIES = 75
#: A connection that lasted this long resets the count of failures: some proxies close connections after a fixed time.
STABLE_S = 10.0


@dataclass(frozen=True)
class Call:
    method: str
    #: Path below the base address, or an absolute URL, which is requested without the key.
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    #: Sent as JSON.
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Whether the request is idempotent. A request that is not is retried only after a response that means that nothing was
    #: done (429, 503).
    repeatable: bool = True
    #: Whether the body is streamed.
    stream: bool = False
    timeout: float | None = None
    max_retries: int | None = None


@dataclass(frozen=True)
class Answer:
    status: int
    #: Lower-case names.
    headers: dict[str, str]
    #: The whole body; empty if it is streamed.
    body: bytes


@dataclass(frozen=True)
class Send:
    """Sends a request. Its result is an Answer. Raises ConnectionError, TimeoutError."""

    call: Call


@dataclass(frozen=True)
class Read:
    """Reads the next bytes of the streamed body; empty at its end. Raises ConnectionError."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Emit:
    """Passes an event to the caller."""

    event: Event


Effect = Union[Send, Read, Pause, Emit]
Flow = Generator[Effect, Any, Any]


def send(call: Call, max_retries: int) -> Flow:
    """Sends a call, with retries. Returns the successful Answer."""
    most = max_retries if call.max_retries is None else call.max_retries
    tries = 0
    while True:
        tries += 1
        wait = 0.0
        try:
            answer: Answer = yield Send(call)
            if answer.status < 400:
                return answer
            if call.stream:
                body = yield from _rest()
                answer = replace(answer, body=body)
            error: ErrandError = refusal(answer)
            again = _may_repeat(call, answer.status, error)
            wait = getattr(error, "retry_after", None) or 0.0
        except ConnectionError as trouble:
            error, again = trouble, call.repeatable
        if not again or tries > most:
            raise error
        yield Pause(_pause(tries, wait))


def _rest() -> Flow:
    body = b""
    try:
        while piece := (yield Read()):
            body += piece
    except ConnectionError:
        pass
    return body


def _may_repeat(call: Call, status: int, error: ErrandError) -> bool:
    assert isinstance(error, ApiError)
    # A failed run has cost money and its tools may have had effects, so only the caller may start another one.
    if error.interaction_id is not None or not error.retryable:
        return False
    return status in (429, 503) or (call.repeatable and status >= 500)


def refusal(answer: Answer) -> ApiError:
    try:
        body = json.loads(answer.body)
    except ValueError:
        # The error page of a proxy has no error object of the API.
        body = {}
    error = body.get("error") if isinstance(body, dict) else None
    return api_error(
        error if isinstance(error, dict) else {},
        status=answer.status,
        request_id=(body.get("requestId") if isinstance(body, dict) else None) or answer.headers.get("x-request-id"),
        retry_after=_seconds(answer.headers.get("retry-after")),
    )


def _seconds(header: str | None) -> float | None:
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _pause(tries: int, at_least: float) -> float:
    """Exponential backoff with jitter, at least the delay that the server asked for."""
    return at_least + random.random() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tries - 1))


def fetch(call: Call, max_retries: int, kind: type[Record] = Record) -> Flow:
    """Sends a call and returns the JSON of the response as a record."""
    answer = yield from send(call, max_retries)
    try:
        return kind(json.loads(answer.body))
    except ValueError:
        raise not_ours() from None


def not_ours() -> ConnectionError:
    """Error for a response of another program, such as the sign-in page of a proxy."""
    return ConnectionError("The response is not from an Errand server. Check the base address.")


def creation(path: str, body: dict[str, Any], idempotency_key: str | None, strict: bool, timeout: float | None) -> Call:
    headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
    if strict:
        headers["Prefer"] = "handling=strict"
    return Call("POST", path, body=given(body), headers=headers, timeout=timeout)


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


#: Marks a field that is not sent. ``None`` is sent and clears the field of an agent.
UNSET: Any = _Unset()


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in to_wire(fields).items() if value is not UNSET}


@dataclass
class Followed:
    """Position in a stream, shared by its flow and the stream object of the caller."""

    id: str | None
    last: int


def follow(at: Followed, start: Call | None, max_retries: int) -> Flow:
    """
    Emits each event of an interaction once, from ``at.last`` to its end. If the connection breaks, is idle for too long, or is
    closed by a server that shuts down, the client reconnects and resumes after the last received event.
    """
    failures, broken_since = 0, 0.0
    while True:
        wait, opened = 0.0, math.inf
        try:
            if at.id is None:
                assert start is not None
                answer = yield from send(start, max_retries)
                at.id = answer.headers.get("x-interaction-id")
                if at.id is None:
                    raise not_ours()
            else:
                yield from send(_resumption(at), 0)
            opened = time.monotonic()
            messages = _Messages()
            while piece := (yield Read()):
                for identity, name, data in messages.feed(piece):
                    if identity <= at.last:
                        continue
                    failures = 0
                    at.last = identity
                    yield Emit(Event({"id": identity, "event": name, "data": json.loads(data)}))
                    if name == "completed":
                        return None
            raise ConnectionError("The stream ended before `completed`.")
        except (ConnectionError, ApiError) as error:
            if time.monotonic() - opened >= STABLE_S:
                failures = 0
            if failures == 0:
                broken_since = time.monotonic()
            lost = time.monotonic() - broken_since >= RECONNECT_TIMEOUT_S
            if at.id is None or lost or (isinstance(error, ApiError) and not error.retryable):
                raise
            wait = getattr(error, "retry_after", None) or 0.0
        failures += 1
        yield Pause(_pause(failures, wait))


def _resumption(at: Followed) -> Call:
    headers = {"Accept": "text/event-stream"}
    if at.last > 0:
        headers["Last-Event-ID"] = str(at.last)
    return Call("GET", paths.of("interactions.events", at.id, ":stream"), headers=headers, stream=True)


class _Messages:
    """Parser for server-sent events (WHATWG HTML, section 9.2.6)."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = 0
        self._event = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[tuple[int, str, str]]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        found = []
        for line in lines:
            text = line.rstrip(b"\r").decode()
            if text == "":
                if self._data:
                    found.append((self._id, self._event, "\n".join(self._data)))
                self._event, self._data = "", []
                continue
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._id = int(value)
            elif name == "event":
                self._event = value
            elif name == "data":
                self._data.append(value)
        return found


def settled(interaction: Interaction) -> Interaction:
    """Raises if the run failed."""
    error = interaction.raw.get("error")
    if interaction.raw.get("status") == "failed" and error:
        raise api_error(error, status=error["status"], interaction_id=interaction.raw["interactionId"])
    return interaction

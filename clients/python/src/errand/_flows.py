"""
What the client does, without doing it: each call is a generator that says what has to be done next (an effect) and is
given what came of it. The two clients, sync and async, only differ in how they carry the effects out.
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
#: The server sends something every 15 s.
IDLE_S = 45.0
#: How long a way may be broken, from the first failure on, without an event or a connection that held. The run goes on meanwhile.
PATIENCE_S = 300.0
#: The same for the answer at the end, in tries with pauses between them.
PATIENT_TRIES = 75
#: A connection that lived for so long was a good one: proxies end them by the clock, whatever the run does.
HELD_S = 10.0


@dataclass(frozen=True)
class Call:
    method: str
    #: Below the base address; or a whole address, which is then sent no key.
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    #: Sent as JSON.
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Whether the same request twice does no more than once. Where not, it is tried again only after an answer that says
    #: that nothing was done (429, 503).
    repeatable: bool = True
    #: The answer's body is read piece by piece.
    stream: bool = False
    timeout: float | None = None
    max_retries: int | None = None


@dataclass(frozen=True)
class Answer:
    status: int
    #: By names in lower case.
    headers: dict[str, str]
    #: Whole; empty where it is read piece by piece.
    body: bytes


@dataclass(frozen=True)
class Send:
    """→ Answer. Raises ConnectionError, TimeoutError."""

    call: Call


@dataclass(frozen=True)
class Read:
    """The next piece of the answer that was last opened so → bytes; empty at its end. Raises ConnectionError."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Emit:
    """An event for the caller."""

    event: Event


Effect = Union[Send, Read, Pause, Emit]
Flow = Generator[Effect, Any, Any]


def send(call: Call, max_retries: int) -> Flow:
    """→ Answer, once it is a good one."""
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
    # A failed run has cost something, and its tools may have had effects: only the caller starts another one.
    if error.interaction_id is not None or not error.retryable:
        return False
    return status in (429, 503) or (call.repeatable and status >= 500)


def refusal(answer: Answer) -> ApiError:
    try:
        body = json.loads(answer.body)
    except ValueError:
        # A proxy's own error page.
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
    """Growing, by chance, never less than the server asked for."""
    return at_least + random.random() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tries - 1))


def fetch(call: Call, max_retries: int, kind: type[Record] = Record) -> Flow:
    """→ the answer's JSON as a record."""
    answer = yield from send(call, max_retries)
    try:
        return kind(json.loads(answer.body))
    except ValueError:
        raise not_ours() from None


def not_ours() -> ConnectionError:
    """Something else answers there: another program, a proxy's page for signing in."""
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


#: A field that is not sent. ``None`` is sent, and clears what an agent has.
UNSET: Any = _Unset()


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in to_wire(fields).items() if value is not UNSET}


@dataclass
class Followed:
    """Where a stream is: shared by its flow and the object that the caller holds."""

    id: str | None
    last: int


def follow(at: Followed, start: Call | None, max_retries: int) -> Flow:
    """
    An interaction's events, from ``at.last`` on to its end, each emitted once. A connection that breaks, falls silent, or is
    closed by a server that goes down, is taken up again behind the last event that came.
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
            raise ConnectionError("The stream was closed before its end.")
        except (ConnectionError, ApiError) as error:
            if time.monotonic() - opened >= HELD_S:
                failures = 0
            if failures == 0:
                broken_since = time.monotonic()
            lost = time.monotonic() - broken_since >= PATIENCE_S
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
    """Server-sent events out of pieces of their stream (WHATWG HTML, section 9.2.6)."""

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
    """Raises the error of a run that failed."""
    error = interaction.raw.get("error")
    if interaction.raw.get("status") == "failed" and error:
        raise api_error(error, status=error["status"], interaction_id=interaction.raw["interactionId"])
    return interaction

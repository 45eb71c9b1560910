"""Execute the effects of the flows over httpx, sync and async. Keep the two drivers alike."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import httpx

from ._flows import IDLE_S, REVISION, Answer, Call, Emit, Flow, Pause, Read, Send
from .errors import ConnectionError, ErrandError, TimeoutError
from .shapes import Event

DEFAULT_TIMEOUT_S = 60.0


class Identity:
    """Address and API key. Raises ErrandError if there is no API key."""

    def __init__(
        self, api_key: str | None, base_url: str | None, timeout: float | None, headers: Mapping[str, str] | None
    ) -> None:
        key = api_key or os.environ.get("ERRAND_API_KEY")
        if not key:
            raise ErrandError("There is no API key. Pass `api_key`, or set ERRAND_API_KEY in the environment.")
        self._base = (base_url or os.environ.get("ERRAND_BASE_URL") or "http://127.0.0.1:8080").rstrip("/")
        self._timeout = DEFAULT_TIMEOUT_S if timeout is None else timeout
        self._headers = {"x-svc-api-key": key, "Api-Revision": REVISION, **(headers or {})}

    def request_of(self, call: Call) -> dict[str, Any]:
        whole = call.path.startswith(("http:", "https:"))
        timeout = self._timeout if call.timeout is None else call.timeout
        request = {
            "method": call.method,
            "url": call.path if whole else self._base + call.path,
            "params": {name: value for name, value in call.query.items() if value is not None} or None,
            "headers": {**({} if whole else self._headers), **call.headers},
            "timeout": httpx.Timeout(timeout, read=IDLE_S if call.stream else timeout),
        }
        if call.body is not None:
            request["json"] = call.body
        if call.content is not None:
            request["content"] = call.content
        return request


def _trouble(error: httpx.HTTPError | httpx.StreamError) -> ConnectionError:
    if isinstance(error, httpx.TimeoutException):
        return TimeoutError("The server did not answer within the timeout.")
    return ConnectionError(f"The server can't be reached, or the connection broke: {error or type(error).__name__}.")


def _answer(response: httpx.Response, body: bytes) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


class SyncDriver:
    def __init__(self, identity: Identity, http: httpx.Client | None) -> None:
        self._identity = identity
        self._own = http is None
        self._http = http or httpx.Client()

    def run(self, flow: Flow) -> Any:
        """Runs the flow and returns its result. Raises what the flow raises."""
        events = self.events(flow)
        while True:
            try:
                next(events)
            except StopIteration as end:
                return end.value

    def events(self, flow: Flow) -> Generator[Event, None, Any]:
        """Yields the events that the flow emits."""
        opened: httpx.Response | None = None
        pieces: Any = None
        value: Any = None
        trouble: Exception | None = None
        try:
            while True:
                effect = flow.send(value) if trouble is None else flow.throw(trouble)
                value, trouble = None, None
                try:
                    if isinstance(effect, Send):
                        if opened is not None:
                            opened.close()
                            opened = None
                        request = self._http.build_request(**self._identity.request_of(effect.call))
                        response = self._http.send(request, stream=effect.call.stream)
                        if effect.call.stream:
                            opened, pieces = response, response.iter_raw()
                        value = _answer(response, b"" if effect.call.stream else response.content)
                    elif isinstance(effect, Read):
                        value = next(pieces, b"")
                    elif isinstance(effect, Pause):
                        time.sleep(effect.seconds)
                    elif isinstance(effect, Emit):
                        yield effect.event
                except (httpx.HTTPError, httpx.StreamError) as error:
                    trouble = _trouble(error)
        except StopIteration as end:
            return end.value
        finally:
            flow.close()
            if opened is not None:
                opened.close()

    def close(self) -> None:
        if self._own:
            self._http.close()


class AsyncDriver:
    def __init__(self, identity: Identity, http: httpx.AsyncClient | None) -> None:
        self._identity = identity
        self._own = http is None
        self._http = http or httpx.AsyncClient()

    async def run(self, flow: Flow) -> Any:
        """Runs the flow and returns its result. Raises what the flow raises."""
        result: list[Any] = []
        async for _ in self.events(flow, result):
            pass
        return result[0]

    async def events(self, flow: Flow, result: list[Any] | None = None) -> AsyncGenerator[Event, None]:
        """Yields the events that the flow emits and appends its result to ``result``."""
        opened: httpx.Response | None = None
        pieces: Any = None
        value: Any = None
        trouble: Exception | None = None
        try:
            while True:
                try:
                    effect = flow.send(value) if trouble is None else flow.throw(trouble)
                except StopIteration as end:
                    if result is not None:
                        result.append(end.value)
                    return
                value, trouble = None, None
                try:
                    if isinstance(effect, Send):
                        if opened is not None:
                            await opened.aclose()
                            opened = None
                        request = self._http.build_request(**self._identity.request_of(effect.call))
                        response = await self._http.send(request, stream=effect.call.stream)
                        if effect.call.stream:
                            opened, pieces = response, response.aiter_raw()
                        value = _answer(response, b"" if effect.call.stream else response.content)
                    elif isinstance(effect, Read):
                        value = await anext(pieces, b"")
                    elif isinstance(effect, Pause):
                        await asyncio.sleep(effect.seconds)
                    elif isinstance(effect, Emit):
                        yield effect.event
                except (httpx.HTTPError, httpx.StreamError) as error:
                    trouble = _trouble(error)
        finally:
            flow.close()
            if opened is not None:
                await opened.aclose()

    async def close(self) -> None:
        if self._own:
            await self._http.aclose()

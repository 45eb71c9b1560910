"""Build the calls of the API as data, for both clients."""

from __future__ import annotations

from typing import Any

from ._flows import Call, creation, given
from ._paths import INTERACTIONS


def get(path: str, /, timeout: float | None = None, **query: Any) -> Call:
    return Call("GET", path, query=query, timeout=timeout)


def post(path: str, body: dict[str, Any] | None = None, *, repeatable: bool = True) -> Call:
    return Call("POST", path, body=None if body is None else given(body), repeatable=repeatable)


def patch(path: str, body: dict[str, Any], etag: str | None = None) -> Call:
    headers = {} if etag is None else {"If-Match": etag}
    return Call("PATCH", path, body=given(body), headers=headers, repeatable=etag is None)


def delete(path: str, *, repeatable: bool = False) -> Call:
    return Call("DELETE", path, repeatable=repeatable)


def upload(path: str, content: bytes) -> Call:
    return Call("POST", path, content=content, headers={"Content-Type": "application/zip"})


def start(request: dict[str, Any], key: str | None, strict: bool, timeout: float | None) -> Call:
    return creation(INTERACTIONS, {**request, "background": True}, key, strict, timeout)


def stream(request: dict[str, Any], key: str | None, strict: bool, timeout: float | None) -> Call:
    call = creation(f"{INTERACTIONS}:stream", request, key, strict, timeout)
    return Call("POST", call.path, body=call.body, headers={**call.headers, "Accept": "text/event-stream"}, stream=True, timeout=timeout)


def labelled(labels: dict[str, str] | None, **query: Any) -> dict[str, Any]:
    return {**query, **{f"label.{key}": value for key, value in (labels or {}).items()}}

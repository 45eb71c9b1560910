"""Converts field names between the API and Python: ``executionTrace`` and ``execution_trace``."""

from __future__ import annotations

import re
from typing import Any

from ._shapes import FREE_FORM


class Record:
    """An object of the API. An absent field is ``None``. ``raw`` is the JSON as received."""

    raw: dict[str, Any]

    def __init__(self, raw: dict[str, Any]) -> None:
        object.__setattr__(self, "raw", raw)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        key = name if name in self.raw else camel(name)
        if key in self.raw:
            return _wrapped(key, self.raw[key])
        if name in _annotations(type(self)):
            return None
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("records are read-only")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(snake(key) for key in self.raw)]


def _wrapped(key: str, value: Any) -> Any:
    if key in FREE_FORM:
        return value
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped("", each) for each in value]
    return value


def _annotations(kind: type) -> set[str]:
    return {name for each in kind.__mro__ for name in getattr(each, "__annotations__", {})}


def to_wire(value: Any, key: str = "") -> Any:
    """Converts field names to those of the API, recursively. Leaves keys that the caller defines (labels, a JSON Schema) unchanged."""
    if isinstance(value, Record):
        return value.raw
    if key in FREE_FORM:
        return value
    if isinstance(value, dict):
        return {camel(name): to_wire(each, camel(name)) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_wire(each) for each in value]
    return value


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest) if head else name


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)

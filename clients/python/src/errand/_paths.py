"""
Paths of the API. Without its id, the path of an object is that of its collection, and the call another one: so every path
with an id is made here.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .errors import ErrandError

INTERACTIONS = "/v1beta/interactions"
AGENTS = "/v1beta/agents"
SKILLS = "/v1beta/skills"
CREDENTIALS = "/v1beta/credentials"

_OBJECTS = {
    "interactions": (INTERACTIONS, "interaction_id", "the interaction's id, for example int_0Wb1xYz3kJ9mQ2pR5sT7uV"),
    "agents": (AGENTS, "agent_id", "the agent's id, for example analyst"),
    "skills": (SKILLS, "name", "the skill's name, for example pdf"),
    "credentials": (CREDENTIALS, "credential_id", "the credential's id, for example tracker"),
}


def of(method: str, name: Any, rest: str = "") -> str:
    """
    The path of one object, ``rest`` appended. ``method`` is the client's method, as in ``agents.retrieve``. Raises ErrandError
    if ``name`` is missing, empty, not a string, or ``.`` or ``..``, which a URL does not keep.
    """
    base, argument, advice = _OBJECTS[method.partition(".")[0]]
    if fault := _fault(name):
        raise ErrandError(f"{method}: {argument} {fault}; pass {advice}.")
    return f"{base}/{quote(name, safe='')}{rest}"


def of_file(method: str, file: Any) -> str:
    """The URL of an output file. Raises ErrandError if ``file`` is missing, or has no URL."""
    url = getattr(file, "url", None)
    if isinstance(url, str) and url:
        return url
    raise ErrandError(f"{method}: file is missing, or has no url; pass an entry of the interaction's `files`.")


def _fault(name: Any) -> str | None:
    if name is None:
        return "is missing"
    if not isinstance(name, str):
        return f"is not a string but of type {type(name).__name__}"
    if not name.strip():
        return "is empty"
    return f'is "{name}"' if name in (".", "..") else None

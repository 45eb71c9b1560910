"""Files for a run."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any


def input_file(name: str, content: str | bytes, mime_type: str | None = None) -> dict[str, Any]:
    """
    A file as a request's ``files`` take it: ``name`` is its path in the working directory. At most 10 MiB in all by default;
    larger ones go by ``url``.
    """
    if isinstance(content, str):
        return {"name": name, "content": content, "encoding": "utf-8"}
    kind = mime_type or mimetypes.guess_type(name)[0]
    file = {"name": name, "content": base64.b64encode(content).decode(), "encoding": "base64"}
    return {**file, "mimeType": kind} if kind else file


def input_file_from(path: str | Path, name: str | None = None) -> dict[str, Any]:
    """A file of this machine; its name in the working directory is its own unless given."""
    return input_file(name or Path(path).name, Path(path).read_bytes())

"""Input files for a run, and output files on disk."""

from __future__ import annotations

import base64
import mimetypes
import re
from pathlib import Path
from typing import Any

from .errors import ErrandError


def input_file(name: str, content: str | bytes, mime_type: str | None = None) -> dict[str, Any]:
    """
    Builds an entry of a request's ``files``. ``name`` is the path in the working directory. By default the files of a request
    can have 10 MiB in total; pass larger files by ``url``.
    """
    if isinstance(content, str):
        return {"name": name, "content": content, "encoding": "utf-8"}
    kind = mime_type or mimetypes.guess_type(name)[0]
    file = {"name": name, "content": base64.b64encode(content).decode(), "encoding": "base64"}
    return {**file, "mimeType": kind} if kind else file


def input_file_from(path: str | Path, name: str | None = None) -> dict[str, Any]:
    """Reads a local file for a request's ``files``. ``name`` is the path in the working directory; default: the file's own name."""
    return input_file(name or Path(path).name, Path(path).read_bytes())


def check_target(root: Path, name: str, overwrite: bool) -> None:
    """Raises ErrandError if an output file must not be saved under ``name`` below ``root``."""
    segments = name.split("/")
    leaves = any(segment in ("", ".", "..") for segment in segments)
    if leaves or "\\" in name or "\0" in name or re.match("[A-Za-z]:", name):
        raise _refused(name, "the name is not a path below the directory")
    path = root
    for segment in segments[:-1]:
        path = path / segment
        if path.is_symlink():
            raise _refused(name, f"{path} is a symbolic link")
        if path.exists() and not path.is_dir():
            raise _refused(name, f"{path} is not a directory")
    path = path / segments[-1]
    if path.is_symlink():
        raise _refused(name, f"{path} is a symbolic link")
    if path.is_dir():
        raise _refused(name, f"{path} is a directory")
    if path.exists() and not overwrite:
        raise _refused(name, f"{path} exists. Choose another directory, or set `overwrite`")


def write_output(root: Path, name: str, content: bytes, overwrite: bool) -> Path:
    """Writes an output file that ``check_target`` has accepted, and creates its folders."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if overwrite:
        path.unlink(missing_ok=True)
    # "x" neither replaces a file nor follows a link that was created after the check.
    with path.open("xb") as file:
        file.write(content)
    return path


def _refused(name: str, why: str) -> ErrandError:
    return ErrandError(f"{name!r} was not saved: {why}.")

# Made by clients/python/make_clients.py from clients/python/client.py.txt.
from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import httpx

from . import _calls as calls
from . import _paths as paths
from ._drivers import SyncDriver, Identity
from ._flows import FINAL_RETRIES, UNSET, Call, Followed, fetch, follow, send, settled
from .errors import ConnectionError, ErrandError
from .files import check_target, write_output
from .records import Record
from .shapes import Agent, AuditEntry, Credential, Event, Interaction, InteractionSummary, OutputFile, Server, Skill, SkillFile, SkillSummary

T = TypeVar("T", bound=Record)


class _Way:
    """Transport that all resources share."""

    def __init__(self, driver: SyncDriver, max_retries: int) -> None:
        self.driver = driver
        self.max_retries = max_retries

    def fetch(self, call: Call, kind: type[T]) -> T:
        return self.driver.run(fetch(call, self.max_retries, kind))

    def send(self, call: Call) -> bytes:
        return (self.driver.run(send(call, self.max_retries))).body


class List(Generic[T]):
    """
    A paginated list. Iterate it for all items; further pages are fetched on demand. ``page()`` returns only the first page.
    """

    def __init__(self, way: _Way, path: str, field: str, kind: type[T], query: dict[str, Any]) -> None:
        self._way, self._path, self._field, self._kind, self._query = way, path, field, kind, query

    def page(self) -> tuple[list[T], str | None]:
        """Returns the items, and the token of the next page, which is ``None`` on the last page."""
        return self._read(self._query.get("pageToken"))

    def _read(self, token: str | None) -> tuple[list[T], str | None]:
        call = Call("GET", self._path, query={**self._query, "pageToken": token})
        answer = (self._way.fetch(call, Record)).raw
        return [self._kind(item) for item in answer[self._field]], answer.get("nextPageToken")

    def __iter__(self) -> Iterator[T]:
        token = self._query.get("pageToken")
        while True:
            items, token = self._read(token)
            for item in items:
                yield item
            if token is None:
                return


class InteractionStream:
    """
    Streams each event of an interaction once, in order, up to ``completed``. Resumes after the last event if the connection
    breaks. A failed run ends with ``error``, then ``completed``. If an exception leaves the ``with`` block, the run continues,
    unless it was started with ``cancel_on_exit``.
    """

    def __init__(self, way: _Way, at: Followed, start: Call | None, cancel_on_exit: bool = False) -> None:
        self._way, self._at, self._cancel_on_exit = way, at, cancel_on_exit
        self._events = way.driver.events(follow(at, start, way.max_retries))
        self._over = False

    @property
    def interaction_id(self) -> str | None:
        """``None`` until the server has accepted the interaction."""
        return self._at.id

    @property
    def last_event_id(self) -> int:
        """Number of the last yielded event."""
        return self._at.last

    def __iter__(self) -> InteractionStream:
        return self

    def __next__(self) -> Event:
        try:
            event = self._events.__next__()
        except StopIteration:
            raise
        except BaseException:
            self._left()
            raise
        self._over = event.event == "completed"
        return event

    def text(self) -> Iterator[str]:
        """Yields only the text fragments of the answer."""
        for event in self:
            if event.event == "partial_output":
                yield event.data.text

    def final(self) -> Interaction:
        """Reads to the end and returns the interaction. Raises if the run failed."""
        for _ in self:
            pass
        assert self._at.id is not None
        call = Call("GET", paths.of("interactions.retrieve", self._at.id), max_retries=FINAL_RETRIES)
        return settled(self._way.fetch(call, Interaction))

    def cancel(self) -> Interaction:
        """Cancels the run on the server; returns when its sandbox is gone."""
        if self._at.id is None:
            raise ConnectionError("The server has not accepted the interaction yet. Read its first event before cancelling.")
        return self._way.fetch(calls.post(paths.of("interactions.cancel", self._at.id, ":cancel")), Interaction)

    def close(self) -> None:
        """Stops reading. The run continues."""
        self._events.close()

    def _left(self) -> None:
        """Called when reading was interrupted: by Ctrl-C, a timeout, or an exception of the caller."""
        if not self._cancel_on_exit or self._over or self._at.id is None:
            return
        self._over = True
        try:
            self.cancel()
        except ErrandError:
            pass

    def __enter__(self) -> InteractionStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is not None:
            self._left()


class Interactions:
    """Interactions: run agents, follow, cancel and list their runs."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def create(
        self,
        instruction: str = UNSET,
        *,
        agent_id: str = UNSET,
        agent_version: int = UNSET,
        system_instruction: str = UNSET,
        model: str = UNSET,
        tools: Sequence[str] = UNSET,
        skills: Sequence[str] = UNSET,
        files: Sequence[Mapping[str, Any]] = UNSET,
        mcp: Sequence[Mapping[str, Any]] = UNSET,
        network: str | Mapping[str, Any] = UNSET,
        policy: Mapping[str, Any] = UNSET,
        labels: Mapping[str, str] = UNSET,
        response_format: Mapping[str, Any] = UNSET,
        output: str = UNSET,
        previous_interaction_id: str = UNSET,
        webhook: Mapping[str, Any] = UNSET,
        on_disconnect: str = UNSET,
        idempotency_key: str | None = None,
        strict: bool = False,
        cancel_on_exit: bool = False,
        timeout: float | None = None,
    ) -> Interaction:
        """
        Runs an agent and waits until it ends; resumes if the connection breaks. Raises ApiError (a class for each code; with
        ``interaction_id`` if the run failed), ConnectionError. Never starts a failed run again: see ``retryable``. Returns
        with ``status == "cancelled"`` if the run is cancelled.

        ``idempotency_key``: calls with the same key and request share one run for 24 hours. If that run failed with a
        retryable error, the next call starts a new run. Default: a new key for each call, which the retries of the call share.
        ``strict``: an unusable skill or MCP server is an error instead of a warning. ``cancel_on_exit``: an interrupt cancels
        the run; by default the run continues. ``timeout``: seconds for the response to one request to begin, not for the run.
        """
        request = _request(locals())
        call = calls.stream(request, idempotency_key, strict, timeout)
        return InteractionStream(self._way, Followed(None, 0), call, cancel_on_exit).final()

    def start(
        self,
        instruction: str = UNSET,
        *,
        agent_id: str = UNSET,
        agent_version: int = UNSET,
        system_instruction: str = UNSET,
        model: str = UNSET,
        tools: Sequence[str] = UNSET,
        skills: Sequence[str] = UNSET,
        files: Sequence[Mapping[str, Any]] = UNSET,
        mcp: Sequence[Mapping[str, Any]] = UNSET,
        network: str | Mapping[str, Any] = UNSET,
        policy: Mapping[str, Any] = UNSET,
        labels: Mapping[str, str] = UNSET,
        response_format: Mapping[str, Any] = UNSET,
        output: str = UNSET,
        previous_interaction_id: str = UNSET,
        webhook: Mapping[str, Any] = UNSET,
        on_disconnect: str = UNSET,
        idempotency_key: str | None = None,
        strict: bool = False,
        timeout: float | None = None,
    ) -> Interaction:
        """Starts a run and returns when the server has accepted it. Pass its id to ``retrieve``, ``events``, ``wait`` or ``cancel``."""
        request = _request(locals())
        return self._way.fetch(calls.start(request, idempotency_key, strict, timeout), Interaction)

    def stream(
        self,
        instruction: str = UNSET,
        *,
        agent_id: str = UNSET,
        agent_version: int = UNSET,
        system_instruction: str = UNSET,
        model: str = UNSET,
        tools: Sequence[str] = UNSET,
        skills: Sequence[str] = UNSET,
        files: Sequence[Mapping[str, Any]] = UNSET,
        mcp: Sequence[Mapping[str, Any]] = UNSET,
        network: str | Mapping[str, Any] = UNSET,
        policy: Mapping[str, Any] = UNSET,
        labels: Mapping[str, str] = UNSET,
        response_format: Mapping[str, Any] = UNSET,
        output: str = UNSET,
        previous_interaction_id: str = UNSET,
        webhook: Mapping[str, Any] = UNSET,
        on_disconnect: str = UNSET,
        idempotency_key: str | None = None,
        strict: bool = False,
        cancel_on_exit: bool = False,
        timeout: float | None = None,
    ) -> InteractionStream:
        """Runs an agent and streams its events. Sends the request when the first event is read."""
        request = _request(locals())
        call = calls.stream(request, idempotency_key, strict, timeout)
        return InteractionStream(self._way, Followed(None, 0), call, cancel_on_exit)

    def events(self, interaction_id: str, *, after: int = 0) -> InteractionStream:
        """Streams the events of an interaction after number ``after``, until it ends."""
        paths.of("interactions.events", interaction_id)
        return InteractionStream(self._way, Followed(interaction_id, after), None)

    def wait(self, interaction_id: str) -> Interaction:
        """Waits until a started run ends. Raises as ``create`` does."""
        paths.of("interactions.wait", interaction_id)
        return self.events(interaction_id).final()

    def retrieve(self, interaction_id: str) -> Interaction:
        return self._way.fetch(calls.get(paths.of("interactions.retrieve", interaction_id)), Interaction)

    def list(
        self,
        *,
        agent_id: str | None = None,
        model: str | None = None,
        status: str | None = None,
        labels: dict[str, str] | None = None,
        order: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> List[InteractionSummary]:
        """Lists interactions, by default newest first."""
        query = calls.labelled(labels, agentId=agent_id, model=model, status=status, order=order, pageSize=page_size, pageToken=page_token)
        return List(self._way, paths.INTERACTIONS, "interactions", InteractionSummary, query)

    def cancel(self, interaction_id: str) -> Interaction:
        """Cancels a run; returns when its sandbox is gone. Raises ConflictError if the run has already completed or failed."""
        return self._way.fetch(calls.post(paths.of("interactions.cancel", interaction_id, ":cancel")), Interaction)

    def approve(
        self,
        interaction_id: str,
        *,
        approve: bool = UNSET,
        reason: str = UNSET,
        decisions: Sequence[Mapping[str, Any]] = UNSET,
    ) -> Interaction:
        """Approves or denies waiting tool calls: those in ``decisions``, or all with the same verdict."""
        body = {"approve": approve, "reason": reason, "decisions": decisions}
        return self._way.fetch(calls.post(paths.of("interactions.approve", interaction_id, ":approve"), body), Interaction)

    def delete(self, interaction_id: str) -> None:
        """Deletes an ended interaction with its events and files."""
        self._way.send(calls.delete(paths.of("interactions.delete", interaction_id), repeatable=True))

    def audit(self, interaction_id: str) -> List[AuditEntry]:
        """Lists the external hosts that the run connected to."""
        return List(self._way, paths.of("interactions.audit", interaction_id, "/audit"), "entries", AuditEntry, {})

    def deliveries(self, interaction_id: str) -> Record:
        """Returns the delivery attempts of the webhook."""
        return self._way.fetch(calls.get(paths.of("interactions.deliveries", interaction_id, "/deliveries")), Record)


_OPTIONS = {"self", "idempotency_key", "strict", "cancel_on_exit", "timeout"}


def _request(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _OPTIONS}


class Agents:
    """Stored agents. Fields: ``display_name``, ``description``, ``system_instruction``, ``model``, ``tools``, ``skills``, ``mcp``, ``network``, ``policy``, ``labels``."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def create(self, *, id: str = UNSET, **fields: Any) -> Agent:
        """Raises ConflictError if the ``id`` is in use."""
        return self._way.fetch(calls.post(paths.AGENTS, {"id": id, **fields}, repeatable=False), Agent)

    def retrieve(self, agent_id: str) -> Agent:
        return self._way.fetch(calls.get(paths.of("agents.retrieve", agent_id)), Agent)

    def list(
        self,
        *,
        model: str | None = None,
        labels: dict[str, str] | None = None,
        order: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> List[Agent]:
        query = calls.labelled(labels, model=model, order=order, pageSize=page_size, pageToken=page_token)
        return List(self._way, paths.AGENTS, "agents", Agent, query)

    def update(self, agent_id: str, *, etag: str | None = None, **fields: Any) -> Agent:
        """
        Changes the given fields: ``None`` clears a field, lists are replaced, ``policy`` and ``labels`` are merged key by key.
        With ``etag``, raises PreconditionFailedError if the agent has changed since it was read.
        """
        return self._way.fetch(calls.patch(paths.of("agents.update", agent_id), fields, etag), Agent)

    def delete(self, agent_id: str) -> None:
        self._way.send(calls.delete(paths.of("agents.delete", agent_id)))

    def versions(self, agent_id: str) -> List[Agent]:
        """Lists the versions of an agent, newest first."""
        return List(self._way, paths.of("agents.versions", agent_id, "/versions"), "versions", Agent, {})

    def version(self, agent_id: str, version: int) -> Agent:
        return self._way.fetch(calls.get(paths.of("agents.version", agent_id, f"/versions/{version}")), Agent)


class Skills:
    """Skills: folders of instructions, scripts and references that runs use by name."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def upload(self, zip: bytes) -> Skill:
        """Uploads a zip with SKILL.md at its root or in its only top-level folder. New content under the same name becomes the next version."""
        return self._way.fetch(calls.upload(paths.SKILLS, zip), Skill)

    def retrieve(self, name: str) -> Skill:
        """``pdf`` returns the newest version, ``pdf@3`` that version."""
        return self._way.fetch(calls.get(paths.of("skills.retrieve", name)), Skill)

    def list(self, *, order: str | None = None, page_size: int | None = None, page_token: str | None = None) -> List[SkillSummary]:
        query = {"order": order, "pageSize": page_size, "pageToken": page_token}
        return List(self._way, paths.SKILLS, "skills", SkillSummary, query)

    def versions(self, name: str) -> List[SkillSummary]:
        return List(self._way, paths.of("skills.versions", name, "/versions"), "versions", SkillSummary, {})

    def file(self, name: str, path: str) -> SkillFile:
        """Returns a file of the newest or the named version, with ``text`` if it is text of at most 256 KiB."""
        return self._way.fetch(calls.get(paths.of("skills.file", name, "/file"), path=path), SkillFile)

    def delete(self, name: str) -> None:
        """Deletes all versions, or the named one."""
        self._way.send(calls.delete(paths.of("skills.delete", name)))


class Credentials:
    """Credentials: secrets that runs can use. The API never returns the secret."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def create(self, *, type: str, **fields: Any) -> Credential:
        """Stores a credential: ``id``, ``name``, ``allowed_hosts``, and the fields of its type: ``token``, ``headers``, ``username`` and ``password`` …"""
        return self._way.fetch(calls.post(paths.CREDENTIALS, {"type": type, **fields}, repeatable=False), Credential)

    def retrieve(self, credential_id: str) -> Credential:
        return self._way.fetch(calls.get(paths.of("credentials.retrieve", credential_id)), Credential)

    def list(self, *, order: str | None = None, page_size: int | None = None, page_token: str | None = None) -> List[Credential]:
        query = {"order": order, "pageSize": page_size, "pageToken": page_token}
        return List(self._way, paths.CREDENTIALS, "credentials", Credential, query)

    def update(self, credential_id: str, **fields: Any) -> Credential:
        """Changes fields of a credential. A new secret or a new type replaces the previous one."""
        return self._way.fetch(calls.patch(paths.of("credentials.update", credential_id), fields), Credential)

    def delete(self, credential_id: str) -> None:
        self._way.send(calls.delete(paths.of("credentials.delete", credential_id)))


class Files:
    """Downloads output files by the signed URLs in ``interaction.files``. URLs expire after an hour; ``retrieve`` returns new ones."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def download(self, file: OutputFile) -> bytes:
        """Downloads the file and checks it against its ``sha256``."""
        return self._read("files.download", file)

    def text(self, file: OutputFile) -> str:
        return (self._read("files.text", file)).decode()

    def save(
        self, files: Sequence[OutputFile], directory: str | Path, *, overwrite: bool = False
    ) -> list[Path]:
        """
        Downloads output files into ``directory``, each checked against its ``sha256``, and returns their paths. Creates the
        directory, and the subfolders that the names contain.

        The model chose the names. Before the first download, all are checked: raises ErrandError if a name leaves the
        directory (absolute, ``..``, a backslash, a drive letter, a NUL), if its path goes through a symbolic link, or if the
        file exists and ``overwrite`` is not set.
        """
        root = Path(directory).absolute()
        for file in files:
            check_target(root, file.name, overwrite)
        return [write_output(root, file.name, self._read("files.save", file), overwrite) for file in files]

    def _read(self, method: str, file: OutputFile) -> bytes:
        content = self._way.send(calls.get(paths.of_file(method, file)))
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ErrandError(f"The download of {file.name} does not match its sha256.")
        return content


class Errand:
    """
    Client of an Errand server.

    ``api_key``: API key of a project; default: ``ERRAND_API_KEY`` of the environment. ``base_url``: address of the server;
    default: ``ERRAND_BASE_URL``, else ``http://127.0.0.1:8080``. ``timeout``: seconds for the response to one request to begin.
    ``max_retries``: maximum number of retries of a request. ``http``: your own httpx client, which you must close.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int = 4,
        headers: Mapping[str, str] | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        self._driver = SyncDriver(Identity(api_key, base_url, timeout, headers), http)
        self._way = _Way(self._driver, max_retries)
        self.interactions = Interactions(self._way)
        self.agents = Agents(self._way)
        self.skills = Skills(self._way)
        self.credentials = Credentials(self._way)
        self.files = Files(self._way)

    def server(self) -> Server:
        """Describes the server: version, isolation, models, tools and limits."""
        return self._way.fetch(calls.get("/v1beta/server"), Server)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Errand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

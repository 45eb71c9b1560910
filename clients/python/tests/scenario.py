"""
One scenario of the clients' table (test/clients/scenarios.ts), played by this client against the server that ERRAND_BASE_URL
names: ``scenario.py sync|async NAME`` prints what came of it, as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import errand as lib  # noqa: E402

MODE, NAME = sys.argv[1:]
Client: Any = lib.Errand if MODE == "sync" else lib.AsyncErrand
errand = Client(timeout=20)
interactions, agents, skills = errand.interactions, errand.agents, errand.skills
credentials, files = errand.credentials, errand.files
TOOLS = ["code_execution"]


async def got(value: Any) -> Any:
    """Of either client."""
    return await value if inspect.isawaitable(value) else value


async def each(values: Any) -> AsyncIterator[Any]:
    """Of either client."""
    if hasattr(values, "__aiter__"):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


class Abort(BaseException):
    """As Ctrl-C, or the end of a task."""


async def caught(action: Callable[[], Any]) -> Any:
    try:
        await got(action())
    except lib.ApiError as error:
        told = {
            "error": type(error).__name__,
            "code": error.code,
            "status": error.status,
            "failed": error.interaction_id is not None,
            "retryable": error.retryable,
        }
        return told if error.param is None else {**told, "param": error.param}
    except lib.ErrandError as error:
        return {"error": type(error).__name__}
    except Abort:
        return {"error": "AbortedError"}
    return "nothing was thrown"


async def read_all(stream: Any) -> dict[str, Any]:
    events = [event async for event in each(stream)]
    return {
        "ids": [event.id for event in events],
        "names": list(dict.fromkeys(event.event for event in events)),
        "text": "".join(event.data.text for event in events if event.event == "partial_output"),
        "last": events[-1].event if events else None,
    }


async def create() -> Any:
    found = await got(interactions.create("[works]", tools=TOOLS))
    steps = [step.type for step in found.execution_trace]
    return {"status": found.status, "output": found.output, "steps": steps, "counted": found.usage.input_tokens > 0}


async def works() -> Any:
    return await read_all(interactions.stream("[works]", tools=TOOLS))


async def text() -> Any:
    return "".join([part async for part in each(interactions.stream("[speaks]").text())])


async def final() -> Any:
    stream = interactions.stream("[speaks]")
    found = await got(stream.final())
    return {"output": found.output, "same": found.interaction_id == stream.interaction_id, "last": stream.last_event_id > 0}


async def events() -> Any:
    found = await got(interactions.create("[speaks]"))
    everything = await read_all(interactions.events(found.interaction_id))
    rest = await read_all(interactions.events(found.interaction_id, after=2))
    return {"all": len(everything["ids"]), "rest": rest["ids"], "text": everything["text"]}


async def output_of(instruction: str, **fields: Any) -> Any:
    return (await got(interactions.create(instruction, **fields))).output


async def start_refused() -> Any:
    return (await got(interactions.start("[speaks]"))).status


async def analyst() -> Any:
    return (await got(agents.retrieve("analyst"))).id


async def give_up() -> Any:
    return await caught(lambda: Client(max_retries=1).agents.retrieve("analyst"))


async def other_server() -> Any:
    client = Client(max_retries=0)
    return {
        "call": await caught(lambda: client.agents.retrieve("analyst")),
        "stream": await caught(lambda: client.interactions.create("[speaks]")),
    }


async def error_classes() -> Any:
    client, names = Client(max_retries=0), []
    while isinstance(thrown := await caught(lambda: client.agents.retrieve("analyst")), dict):
        names.append(thrown["error"])
    return names


async def error_key() -> Any:
    return await caught(lambda: Client(api_key="errand_sk_no").agents.list().page())


async def error_idempotency() -> Any:
    key = f"key-{time.time()}"
    first = await got(interactions.start("[speaks]", idempotency_key=key))
    second = await got(interactions.start("[speaks]", idempotency_key=key))
    other = await caught(lambda: interactions.start("[works]", idempotency_key=key))
    return {"same": first.interaction_id == second.interaction_id, "other": other}


async def error_cancel() -> Any:
    found = await got(interactions.create("[speaks]"))
    return await caught(lambda: interactions.cancel(found.interaction_id))


async def run_fails_retryably() -> Any:
    key, failed = f"key-{time.time()}", []

    async def create() -> Any:
        try:
            return await got(interactions.create("[flaky]", idempotency_key=key))
        except lib.ApiError as error:
            failed.append(error.interaction_id)
            raise

    first = await caught(create)
    second = await create()
    return {"first": first, "second": {"output": second.output, "replaces": [second.retry_of] == failed}}


async def stream_fails() -> Any:
    stream = interactions.stream("[fails]")
    read = await read_all(stream)
    return {"error": "error" in read["names"], "last": read["last"], "final": await caught(stream.final)}


async def cancel() -> Any:
    started = await got(interactions.start("[silent]"))
    ended = await got(interactions.cancel(started.interaction_id))
    waited = await got(interactions.wait(started.interaction_id))
    return {"status": ended.status, "waited": waited.status}


async def interrupted(stream: Any) -> Any:
    """Left by an exception inside ``with``."""

    async def leave() -> None:
        if MODE == "sync":
            with stream:
                for _ in stream:
                    raise Abort
        async with stream:
            async for _ in stream:
                raise Abort

    return await caught(leave)


async def abort_goes_on() -> Any:
    stream = interactions.stream("[silent]")
    error = await interrupted(stream)
    status = (await got(interactions.retrieve(stream.interaction_id))).status
    await got(interactions.cancel(stream.interaction_id))
    return {"error": error, "status": status}


async def abort_cancels() -> Any:
    stream = interactions.stream("[silent]", cancel_on_exit=True)
    error = await interrupted(stream)
    return {"error": error, "status": (await got(interactions.wait(stream.interaction_id))).status}


async def leave_loop() -> Any:
    stream = interactions.stream("[works]", tools=TOOLS)
    async for _ in each(stream):
        break
    return (await got(interactions.wait(stream.interaction_id))).output


async def paging() -> Any:
    for i in range(5):
        await got(agents.create(id=f"paged-{i}", labels={"set": "paging"}))
    query = {"labels": {"set": "paging"}, "page_size": 2, "order": "asc"}
    ids = [agent.id async for agent in each(agents.list(**query))]
    items, more = await got(agents.list(**query).page())
    return {"ids": ids, "first": len(items), "more": more is not None}


async def agent_story() -> Any:
    made = await got(agents.create(id="story", system_instruction="One.", labels={"a": "1", "b": "2"}))
    changed = await got(agents.update("story", etag=made.etag, system_instruction=None, labels={"b": None}))
    versions = [agent.version async for agent in each(agents.versions("story"))]
    first = await got(agents.version("story", 1))
    await got(agents.delete("story"))
    return {
        "version": changed.version,
        "labels": changed.labels,
        "cleared": changed.system_instruction is None,
        "versions": versions,
        "first": first.system_instruction,
        "gone": await caught(lambda: agents.retrieve("story")),
    }


async def file_story() -> Any:
    content = bytes(i % 256 for i in range(1000))
    inputs = [lib.input_file("in.bin", content), lib.input_file("in.txt", "Grüße 🙂")]
    made = {file.name: file for file in (await got(interactions.create("[copies]", tools=TOOLS, files=inputs))).files}
    return {
        "names": sorted(made),
        "same": await got(files.download(made["out.bin"])) == content,
        "text": await got(files.text(made["out.txt"])),
    }


async def save_story() -> Any:
    made = (await got(interactions.create("[saves]", tools=TOOLS))).files
    with tempfile.TemporaryDirectory() as home:
        directory, outside = Path(home) / "in/side", Path(home) / "outside"
        outside.mkdir()
        paths = await got(files.save(made, directory))
        (directory / "link").symlink_to(outside)
        (directory / "link.txt").symlink_to(outside / "file")
        refused = {}
        for name in json.loads(os.environ["HOSTILE_NAMES"]):
            file = lib.shapes.OutputFile({**made[0].raw, "name": name})
            overwrite = not name.startswith("a.txt")
            refused[name] = await caught(lambda: files.save([file], directory, overwrite=overwrite))
        return {
            "saved": sorted(str(path.relative_to(directory)) for path in paths),
            "text": (directory / "b/c/d.txt").read_text(),
            "again": len(await got(files.save(made, directory, overwrite=True))),
            "refused": refused,
            "left": sorted(str(path.relative_to(home)) for path in Path(home).rglob("*")),
        }


#: The methods that take neither an id nor a file. All others are called, so that a new one can't be forgotten.
WITHOUT_ID = re.compile(r"interactions\.(create|start|stream)|skills\.upload|(agents|credentials)\.create|files\.save|\w+\.list")


def methods_with_ids() -> Iterator[tuple[str, Callable[..., Any]]]:
    resources = {"interactions": interactions, "agents": agents, "skills": skills, "credentials": credentials, "files": files}
    for name, resource in resources.items():
        for method, function in vars(type(resource)).items():
            full = f"{name}.{method}"
            if not method.startswith("_") and callable(function) and not WITHOUT_ID.fullmatch(full):
                yield full, getattr(resource, method)


async def refusal_of(method: Callable[..., Any], bad: Any) -> str | None:
    """The message of the ErrandError that it raises; ``None`` if it raises nothing."""
    others = [p for p in inspect.signature(method).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    try:
        await got(method(bad, *["x" for _ in others[1:]]))
    except lib.ErrandError as error:
        return str(error)
    except Exception as error:
        return f"not an ErrandError: {error!r}"
    return None


async def missing_ids() -> Any:
    accepted, messages = [], {}
    for name, method in methods_with_ids():
        for bad in [None, "", " ", ".", "..", 7, {}, []]:
            error = await refusal_of(method, bad)
            if not (error or "").startswith(f"{name}: "):
                accepted.append(f"{name}({bad!r}): {error}")
        messages[name] = await refusal_of(method, None)
    return {"accepted": accepted, "methods": sorted(messages), "retrieve": messages["interactions.retrieve"]}


async def file_corrupt() -> Any:
    [file] = (await got(interactions.create("[writes]", tools=TOOLS))).files
    # By the same unreliable way.
    url = re.sub(r"^http://[^/]+", os.environ["ERRAND_BASE_URL"], file.url)
    return await caught(lambda: files.download(lib.shapes.OutputFile({**file.raw, "url": url})))


async def skill_story() -> Any:
    content = base64.b64decode(os.environ["SKILL_ZIP"])
    added = await got(skills.upload(content))
    again = await got(skills.upload(content))
    text = (await got(skills.file(added.name, "SKILL.md"))).text
    names = [skill.name async for skill in each(skills.list())]
    await got(skills.delete(added.name))
    gone = await caught(lambda: skills.retrieve(added.name))
    same = added.version == again.version
    return {"name": added.name, "again": same, "text": added.name in text, "names": names, "gone": gone}


async def credential_story() -> Any:
    made = await got(credentials.create(id="tracker", type="bearer", token="secret-token", allowed_hosts=["a.example"]))
    shown = json.dumps((await got(credentials.retrieve("tracker"))).raw)
    await got(credentials.delete("tracker"))
    gone = await caught(lambda: credentials.retrieve("tracker"))
    return {"id": made.id, "secret": "secret-token" in shown, "gone": gone}


async def list_story() -> Any:
    made = await got(interactions.create("[speaks]", labels={"set": "list"}))
    items, _ = await got(interactions.list(labels={"set": "list"}, status="completed").page())
    await got(interactions.delete(made.interaction_id))
    return {"found": len(items), "gone": await caught(lambda: interactions.retrieve(made.interaction_id))}


async def server() -> Any:
    return "code_execution" in (await got(errand.server())).tools.available


async def webhook() -> Any:
    given = json.loads(os.environ["WEBHOOK"])
    payload = given["payload"]

    def verify(tolerance: float = 300.0, **change: Any) -> Any:
        return lib.verify_webhook(**{**given, **change}, tolerance=tolerance)

    return {
        "type": verify().type,
        "bytes": verify(payload=payload.encode()).type,
        "tampered": await caught(lambda: verify(payload=payload.replace("completed", "cancelled"))),
        "unsigned": await caught(lambda: verify(headers={})),
        "old": await caught(lambda: verify(tolerance=-1)),
        "other": await caught(lambda: verify(secret="whsec_AAAA")),
    }


SCENARIOS: dict[str, Callable[[], Awaitable[Any]]] = {
    "create": create,
    "stream": works,
    "text": text,
    "final": final,
    "events": events,
    "stream-cut": works,
    "create-cut": lambda: output_of("[works]", tools=TOOLS),
    "restart": lambda: read_all(interactions.stream("[slow tool]", tools=TOOLS)),
    "answer-lost": lambda: output_of("[speaks]"),
    "answer-cut": lambda: output_of("[speaks]"),
    "start-refused": start_refused,
    "retry-429": analyst,
    "retry-503": lambda: _id(agents.create(id="after-503")),
    "proxy-502": analyst,
    "no-repeat": lambda: caught(lambda: agents.create(display_name="Once")),
    "give-up": give_up,
    "other-server": other_server,
    "time-out": lambda: caught(lambda: Client(timeout=1.0, max_retries=0).agents.retrieve("analyst")),
    "error-invalid": lambda: caught(interactions.create),
    "error-key": error_key,
    "error-not-found": lambda: caught(lambda: interactions.create("x", agent_id="nobody")),
    "error-classes": error_classes,
    "error-conflict": lambda: caught(lambda: agents.create(id="analyst")),
    "error-etag": lambda: caught(lambda: agents.update("analyst", etag='"old"', description="x")),
    "error-idempotency": error_idempotency,
    "error-strict": lambda: caught(lambda: interactions.create("[speaks]", skills=["none"], strict=True)),
    "error-cancel": error_cancel,
    "run-fails": lambda: caught(lambda: interactions.create("[fails]")),
    "run-fails-retryably": run_fails_retryably,
    "stream-fails": stream_fails,
    "run-deadline": lambda: caught(lambda: interactions.create("[silent]", policy={"max_turn_duration": 1})),
    "cancel": cancel,
    "abort-goes-on": abort_goes_on,
    "abort-cancels": abort_cancels,
    "leave-loop": leave_loop,
    "unknown-event": lambda: read_all(interactions.stream("[speaks]")),
    "paging": paging,
    "agents": agent_story,
    "files": file_story,
    "save": save_story,
    "file-corrupt": file_corrupt,
    "missing-ids": missing_ids,
    "skills": skill_story,
    "credentials": credential_story,
    "list": list_story,
    "server": server,
    "webhook": webhook,
}


async def _id(made: Any) -> Any:
    return (await got(made)).id


print(json.dumps(asyncio.run(SCENARIOS[NAME]())))

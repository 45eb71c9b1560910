"""
What is Python's own in the client, on a real server with the demo model (ERRAND_BASE_URL, ERRAND_API_KEY): records, context
managers, interrupts, tasks. What every client does alike is in the table of test/clients.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from errand import AsyncErrand, Errand, ErrandError, input_file, input_file_from

SLEEP = "Run:\n```bash\nsleep 60\n```"
CODE = ["code_execution"]


@pytest.fixture
def errand() -> Iterator[Errand]:
    with Errand() as client:
        yield client


def test_there_has_to_be_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ERRAND_API_KEY")
    with pytest.raises(ErrandError, match="ERRAND_API_KEY"):
        Errand()


def test_fields_have_pythons_names_and_labels_their_own(errand: Errand) -> None:
    found = errand.interactions.create("What is 6 * 7?", tools=CODE, labels={"a_b": "c"}, policy={"max_turn_duration": 60})
    assert found.execution_trace[0].type and found.raw["executionTrace"]
    assert found.labels == {"a_b": "c"}
    assert found.resolved.policy.max_turn_duration == 60
    assert found.error is None
    with pytest.raises(AttributeError, match="no field 'nothing'"):
        found.nothing
    with pytest.raises(AttributeError, match="read-only"):
        found.output = "another"
    assert found == errand.interactions.retrieve(found.interaction_id)


def test_files_of_a_disk_and_of_memory_go_in_and_come_out(errand: Errand, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from a disk\n")
    files = [input_file_from(tmp_path / "a.txt"), input_file("b/b.bin", bytes(range(256)))]
    copy = "Run:\n```bash\ncp a.txt b/b.bin outputs/\n```"
    made = {file.name: file for file in errand.interactions.create(copy, tools=CODE, files=files).files}
    assert errand.files.text(made["a.txt"]) == "from a disk\n"
    assert errand.files.download(made["b.bin"]) == bytes(range(256))


@pytest.mark.parametrize("cancel, status", [(False, "running"), (True, "cancelled")])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_stream_that_is_left_by_an_exception(errand: Errand, error: type[BaseException], cancel: bool, status: str) -> None:
    stream = errand.interactions.stream(SLEEP, tools=CODE, cancel_on_exit=cancel)
    with pytest.raises(error), stream:
        for event in stream:
            if event.event == "tool_call":
                raise error
    assert errand.interactions.retrieve(stream.interaction_id).status == status
    if not cancel:
        stream.cancel()


def test_a_stream_that_is_left_by_break_goes_on(errand: Errand) -> None:
    with errand.interactions.stream("What is 6 * 7?", tools=CODE) as stream:
        next(stream)
    assert errand.interactions.wait(stream.interaction_id).status == "completed"


def test_an_httpx_client_of_ones_own_stays_open() -> None:
    seen: list[Any] = []
    with httpx.Client(event_hooks={"request": [seen.append]}) as http:
        with Errand(http=http) as errand:
            errand.server()
        assert [request.url.path for request in seen] == ["/v1beta/server"]
        assert not http.is_closed


def test_tasks_run_side_by_side_and_one_that_ends_cancels_its_run() -> None:
    async def play() -> tuple[list[str], str]:
        async with AsyncErrand() as errand:
            runs = (errand.interactions.create(f"What is {n} * {n}?", tools=CODE) for n in (3, 4, 5))
            outputs = [found.output for found in await asyncio.gather(*runs)]
            stream = errand.interactions.stream(SLEEP, tools=CODE, cancel_on_exit=True)
            begun = asyncio.Event()

            async def read() -> None:
                async for event in stream:
                    if event.event == "tool_call":
                        begun.set()

            task = asyncio.create_task(read())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return outputs, (await errand.interactions.wait(stream.interaction_id)).status

    outputs, status = asyncio.run(play())
    assert [("9" in outputs[0]), ("16" in outputs[1]), ("25" in outputs[2])] == [True] * 3
    assert status == "cancelled"

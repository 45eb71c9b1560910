"""
Generates ``_sync.py`` and ``_async.py`` from ``client.py.txt``, so that they differ only in how they wait.
Usage: ``make_clients.py [DIRECTORY]``. Default: the package.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
MADE = "# Made by clients/python/make_clients.py from clients/python/client.py.txt.\n"

ASYNC = {
    "«def»": "async def",
    "«await» ": "await ",
    "«for»": "async for",
    "«with»": "async with",
    "«A»": "Async",
    "«Client»": "AsyncErrand",
    "«Iterator»": "AsyncIterator",
    "«Driver»": "AsyncDriver",
    "«http»": "httpx.AsyncClient",
    "«iter»": "aiter",
    "«next»": "anext",
    "«stop»": "StopAsyncIteration",
    "«enter»": "aenter",
    "«exit»": "aexit",
    "«close»": "aclose",
}
SYNC = {
    "«def»": "def",
    "«await» ": "",
    "«for»": "for",
    "«with»": "with",
    "«A»": "",
    "«Client»": "Errand",
    "«Iterator»": "Iterator",
    "«Driver»": "SyncDriver",
    "«http»": "httpx.Client",
    "«iter»": "iter",
    "«next»": "next",
    "«stop»": "StopIteration",
    "«enter»": "enter",
    "«exit»": "exit",
    "«close»": "close",
}


def written(words: dict[str, str]) -> str:
    text = (HERE / "client.py.txt").read_text()
    for mark, word in words.items():
        text = text.replace(mark, word)
    left = re.search("«[^»]*»", text)
    assert left is None, left
    return MADE + text


target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "src/errand"
(target / "_sync.py").write_text(written(SYNC))
(target / "_async.py").write_text(written(ASYNC))

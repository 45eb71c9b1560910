"""Client of Errand, a self-hosted managed agent service: ``Errand``, and ``AsyncErrand`` for asyncio."""

from . import errors, shapes
from ._async import AsyncErrand, AsyncInteractionStream
from ._sync import Errand, InteractionStream
from .errors import *  # noqa: F403 - every error, by its own name
from .files import input_file, input_file_from
from .records import Record
from .webhooks import verify_webhook

__all__ = [
    "AsyncErrand",
    "AsyncInteractionStream",
    "Errand",
    "InteractionStream",
    "Record",
    "errors",
    "input_file",
    "input_file_from",
    "shapes",
    "verify_webhook",
]
__all__ += [name for name in dir(errors) if name.endswith("Error")]

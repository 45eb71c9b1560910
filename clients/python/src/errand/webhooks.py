"""Webhooks, signed as Standard Webhooks has it (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from .errors import WebhookSignatureError
from .shapes import WebhookEvent


def verify_webhook(
    payload: str | bytes, headers: Mapping[str, str], secret: str, *, tolerance: float = 300.0
) -> WebhookEvent:
    """
    The event, once its signature is proved. ``payload``: the body as it came, before any JSON parser. ``secret``: of the
    project, ``errand webhooks secret --project NAME`` shows it. ``tolerance``: how old it may be, seconds. Raises
    WebhookSignatureError. The same event may come more than once.
    """
    given = {name.lower(): value for name, value in headers.items()}
    identity, timestamp, signatures = (
        given.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not (identity and timestamp and signatures):
        raise WebhookSignatureError("The webhook is not signed.")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookSignatureError("The webhook is too old, or from the future: an old one, played again?")
    body = payload.encode() if isinstance(payload, str) else payload
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise WebhookSignatureError("The secret is not one of a project: they begin with whsec_.") from error
    digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    if not any(hmac.compare_digest(expected, each) for each in signatures.split(" ")):
        raise WebhookSignatureError("The webhook's signature is wrong: is it the secret of this project?")
    return WebhookEvent(json.loads(body))

"""Verification of webhooks, which are signed as in Standard Webhooks (https://www.standardwebhooks.com)."""

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
    Verifies the signature and returns the event. Raises WebhookSignatureError. Events are delivered at least once.

    ``payload``: the body as received, before JSON parsing. ``secret``: the webhook secret of the project, which
    ``errand webhooks secret --project NAME`` prints. ``tolerance``: the maximum age in seconds.
    """
    given = {name.lower(): value for name, value in headers.items()}
    identity, timestamp, signatures = (
        given.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not (identity and timestamp and signatures):
        raise WebhookSignatureError("The webhook has no signature headers.")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookSignatureError("The timestamp of the webhook is too old or in the future. It may be a replay.")
    body = payload.encode() if isinstance(payload, str) else payload
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise WebhookSignatureError("The secret is not a webhook secret. Webhook secrets begin with whsec_.") from error
    digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    if not any(hmac.compare_digest(expected, each) for each in signatures.split(" ")):
        raise WebhookSignatureError("The signature of the webhook is wrong. Check that the secret is that of this project.")
    return WebhookEvent(json.loads(body))

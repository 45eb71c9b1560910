"""Error classes, one for each error code of the API, for use with ``except``."""

from __future__ import annotations

from typing import Any


class ErrandError(Exception):
    """Base class of all errors that this library raises."""


class ConnectionError(ErrandError):  # noqa: A001 - named as the other clients have it
    """The server could not be reached, or a broken connection could not be resumed."""


class TimeoutError(ConnectionError):  # noqa: A001
    """The server did not answer within the timeout."""


class WebhookSignatureError(ErrandError):
    """The signature of a webhook is missing, wrong, or too old."""


class ApiError(ErrandError):
    """The server refused the request, or the run failed. A failed run sets ``interaction_id``."""

    def __init__(
        self,
        *,
        code: str,
        message: str,
        status: int,
        retryable: bool,
        param: str | None = None,
        details: Any = None,
        interaction_id: str | None = None,
        supported: list[str] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message if param is None else f"{message} ({param})")
        self.code = code
        self.message = message
        #: HTTP status.
        self.status = status
        #: Name of the invalid field of the request.
        self.param = param
        #: All problems that the server found.
        self.details = details
        #: Whether a retry may succeed. After a failed run, a request with the same idempotency key starts a new run.
        self.retryable = retryable
        #: Id of the failed run.
        self.interaction_id = interaction_id
        #: API revisions that the server supports.
        self.supported = supported
        #: Id of the request in the server's log.
        self.request_id = request_id
        #: Delay that the server asks for, in seconds.
        self.retry_after = retry_after


class InvalidRequestError(ApiError):
    """400: the request is malformed or has an invalid field, which ``param`` names."""


class UnsupportedApiRevisionError(ApiError):
    """400: the server does not serve this library's API revision; ``supported`` lists those it does."""


class FileUnavailableError(ApiError):
    """400: a file by URL could not be fetched when the run started."""


class UnauthenticatedError(ApiError):
    """401: the key is missing, mistyped, expired or revoked."""


class FeatureDisabledError(ApiError):
    """403: the service is switched off for the account of the key."""


class PermissionDeniedError(ApiError):
    """403: the scope of the key does not allow this call."""


class BudgetExceededError(ApiError):
    """403: the project has spent its budget for this month."""


class NotFoundError(ApiError):
    """404: the object does not exist."""


class MethodNotAllowedError(ApiError):
    """405: the path does not allow this method."""


class ConflictError(ApiError):
    """409: the call conflicts with the state, for example an id in use or a run that has ended."""


class PreconditionFailedError(ApiError):
    """412: the agent has changed since its ``etag``."""


class PayloadTooLargeError(ApiError):
    """413: the request is too large."""


class UnsupportedMediaTypeError(ApiError):
    """415: the path does not accept this Content-Type."""


class IdempotencyMismatchError(ApiError):
    """422: the idempotency key was used with a different request."""


class RateLimitedError(ApiError):
    """429: too many requests. ``retry_after`` says when to retry."""


class InternalError(ApiError):
    """500: internal error of the server."""


class ModelError(ApiError):
    """500: the model behind the agent failed."""


class SandboxUnavailableError(ApiError):
    """503: no sandbox was available."""


class UnavailableError(ApiError):
    """503: the server cannot accept the request now."""


class DeadlineExceededError(ApiError):
    """504: the run took longer than ``policy.max_turn_duration``."""


_CLASSES: dict[str, type[ApiError]] = {
    "invalid_request": InvalidRequestError,
    "unsupported_api_revision": UnsupportedApiRevisionError,
    "file_unavailable": FileUnavailableError,
    "unauthenticated": UnauthenticatedError,
    "feature_disabled": FeatureDisabledError,
    "permission_denied": PermissionDeniedError,
    "budget_exceeded": BudgetExceededError,
    "not_found": NotFoundError,
    "method_not_allowed": MethodNotAllowedError,
    "conflict": ConflictError,
    "precondition_failed": PreconditionFailedError,
    "payload_too_large": PayloadTooLargeError,
    "unsupported_media_type": UnsupportedMediaTypeError,
    "idempotency_mismatch": IdempotencyMismatchError,
    "rate_limited": RateLimitedError,
    "internal": InternalError,
    "model_error": ModelError,
    "sandbox_unavailable": SandboxUnavailableError,
    "unavailable": UnavailableError,
    "deadline_exceeded": DeadlineExceededError,
}


def api_error(
    error: dict[str, Any],
    *,
    status: int,
    request_id: str | None = None,
    retry_after: float | None = None,
    interaction_id: str | None = None,
) -> ApiError:
    """Creates an error of the class for its code. A code that this version does not know becomes a plain ApiError."""
    known = _CLASSES.get(error.get("code", ""), ApiError)
    return known(
        code=error.get("code", f"http_{status}"),
        message=error.get("message", f"The server answered {status}."),
        status=status,
        retryable=error.get("retryable", status == 429 or status >= 500),
        param=error.get("param"),
        details=error.get("details"),
        interaction_id=error.get("interactionId", interaction_id),
        supported=error.get("supported"),
        request_id=request_id,
        retry_after=retry_after,
    )

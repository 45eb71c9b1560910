"""What can go wrong, one class a code, so that a program can tell by ``except``."""

from __future__ import annotations

from typing import Any


class ErrandError(Exception):
    """The base of everything that this library raises."""


class ConnectionError(ErrandError):  # noqa: A001 - named as the other clients have it
    """The server could not be reached, or the connection broke and stayed broken."""


class TimeoutError(ConnectionError):  # noqa: A001
    """The server took longer than the time-out."""


class WebhookSignatureError(ErrandError):
    """A webhook's signature is missing, wrong, or too old."""


class ApiError(ErrandError):
    """The server refused the request, or the run failed: then ``interaction_id`` is there."""

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
        #: The HTTP status.
        self.status = status
        #: The request field that is wrong.
        self.param = param
        #: All that was found wrong.
        self.details = details
        #: Whether the same request may succeed later; of a failed run, with its idempotency key, as a new run.
        self.retryable = retryable
        #: Of the run that failed.
        self.interaction_id = interaction_id
        #: The API revisions that the server serves.
        self.supported = supported
        #: Names the request in the server's log.
        self.request_id = request_id
        #: Seconds that the server asks to wait.
        self.retry_after = retry_after


class InvalidRequestError(ApiError):
    """400: the request is malformed or a field is wrong; ``param`` names it."""


class UnsupportedApiRevisionError(ApiError):
    """400: the server does not serve this library's API revision; ``supported`` lists those it does."""


class FileUnavailableError(ApiError):
    """400: a file by URL could not be had when the run started."""


class UnauthenticatedError(ApiError):
    """401: the key is missing, mistyped, expired or revoked."""


class FeatureDisabledError(ApiError):
    """403: the service is switched off for the key's account."""


class PermissionDeniedError(ApiError):
    """403: the key may not do this."""


class BudgetExceededError(ApiError):
    """403: the project has spent its budget for this month."""


class NotFoundError(ApiError):
    """404: there is no such thing."""


class MethodNotAllowedError(ApiError):
    """405: the address does not take this method."""


class ConflictError(ApiError):
    """409: what is asked does not fit the state: an id that is taken, a run that is over."""


class PreconditionFailedError(ApiError):
    """412: the agent has changed since its ``etag``."""


class PayloadTooLargeError(ApiError):
    """413: the request is too large."""


class UnsupportedMediaTypeError(ApiError):
    """415: the body is of a type that the address does not take."""


class IdempotencyMismatchError(ApiError):
    """422: the idempotency key was used with another request."""


class RateLimitedError(ApiError):
    """429: too many requests; ``retry_after`` says when to try again."""


class InternalError(ApiError):
    """500: the server's own fault."""


class ModelError(ApiError):
    """500: the model behind the agent failed."""


class SandboxUnavailableError(ApiError):
    """503: no sandbox could be had."""


class UnavailableError(ApiError):
    """503: the server can't take the request now."""


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
    """The error of its code's own class; a code that this version does not know is a plain ApiError."""
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

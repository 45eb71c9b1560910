/** What can go wrong, one class a code, so that a program can tell by `instanceof`. */

export interface ErrorDetails {
  readonly code: string
  readonly message: string
  /** The HTTP status. */
  readonly status: number
  /** The request field that is wrong. */
  readonly param?: string
  /** All that was found wrong. */
  readonly details?: unknown
  /** Whether the same request may succeed later; of a failed run, with its idempotency key, as a new run. */
  readonly retryable: boolean
  /** Of the run that failed. */
  readonly interactionId?: string
  /** The API revisions that the server serves. */
  readonly supported?: readonly string[]
  /** Names the request in the server's log. */
  readonly requestId?: string
  /** Seconds that the server asks to wait. */
  readonly retryAfterS?: number
}

/** The base of everything that this library throws. */
export class ErrandError extends Error {
  override name = 'ErrandError'
}

/** The server could not be reached, or the connection broke and stayed broken. */
export class ConnectionError extends ErrandError {
  override name = 'ConnectionError'
}

/** The server took longer than `timeoutMs`. */
export class TimeoutError extends ConnectionError {
  override name = 'TimeoutError'
}

/** The caller's `signal` aborted. */
export class AbortedError extends ErrandError {
  override name = 'AbortedError'
}

/** A webhook's signature is missing, wrong, or too old. */
export class WebhookSignatureError extends ErrandError {
  override name = 'WebhookSignatureError'
}

/** The server refused the request, or the run failed: then `interactionId` is there. */
export class ApiError extends ErrandError {
  override name = 'ApiError'
  readonly code: string
  readonly status: number
  readonly param: string | undefined
  readonly details: unknown
  readonly retryable: boolean
  readonly interactionId: string | undefined
  readonly supported: readonly string[] | undefined
  readonly requestId: string | undefined
  readonly retryAfterS: number | undefined

  constructor(error: ErrorDetails) {
    super(error.param === undefined ? error.message : `${error.message} (${error.param})`)
    this.code = error.code
    this.status = error.status
    this.param = error.param
    this.details = error.details
    this.retryable = error.retryable
    this.interactionId = error.interactionId
    this.supported = error.supported
    this.requestId = error.requestId
    this.retryAfterS = error.retryAfterS
  }
}

/** 400: the request is malformed or a field is wrong; `param` names it. */
export class InvalidRequestError extends ApiError {
  override name = 'InvalidRequestError'
}
/** 400: the server does not serve this library's API revision; `supported` lists those it does. */
export class UnsupportedApiRevisionError extends ApiError {
  override name = 'UnsupportedApiRevisionError'
}
/** 400: a file by URL could not be had when the run started. */
export class FileUnavailableError extends ApiError {
  override name = 'FileUnavailableError'
}
/** 401: the key is missing, mistyped, expired or revoked. */
export class UnauthenticatedError extends ApiError {
  override name = 'UnauthenticatedError'
}
/** 403: the service is switched off for the key's account. */
export class FeatureDisabledError extends ApiError {
  override name = 'FeatureDisabledError'
}
/** 403: the key may not do this. */
export class PermissionDeniedError extends ApiError {
  override name = 'PermissionDeniedError'
}
/** 403: the project has spent its budget for this month. */
export class BudgetExceededError extends ApiError {
  override name = 'BudgetExceededError'
}
/** 404: there is no such thing. */
export class NotFoundError extends ApiError {
  override name = 'NotFoundError'
}
/** 405: the address does not take this method. */
export class MethodNotAllowedError extends ApiError {
  override name = 'MethodNotAllowedError'
}
/** 409: what is asked does not fit the state: an id that is taken, a run that is over. */
export class ConflictError extends ApiError {
  override name = 'ConflictError'
}
/** 412: the agent has changed since its `etag`. */
export class PreconditionFailedError extends ApiError {
  override name = 'PreconditionFailedError'
}
/** 413: the request is too large. */
export class PayloadTooLargeError extends ApiError {
  override name = 'PayloadTooLargeError'
}
/** 415: the body is of a type that the address does not take. */
export class UnsupportedMediaTypeError extends ApiError {
  override name = 'UnsupportedMediaTypeError'
}
/** 422: the idempotency key was used with another request. */
export class IdempotencyMismatchError extends ApiError {
  override name = 'IdempotencyMismatchError'
}
/** 429: too many requests; `retryAfterS` says when to try again. */
export class RateLimitedError extends ApiError {
  override name = 'RateLimitedError'
}
/** 500: the server's own fault. */
export class InternalError extends ApiError {
  override name = 'InternalError'
}
/** 500: the model behind the agent failed. */
export class ModelError extends ApiError {
  override name = 'ModelError'
}
/** 503: no sandbox could be had. */
export class SandboxUnavailableError extends ApiError {
  override name = 'SandboxUnavailableError'
}
/** 503: the server can't take the request now. */
export class UnavailableError extends ApiError {
  override name = 'UnavailableError'
}
/** 504: the run took longer than `policy.maxTurnDuration`. */
export class DeadlineExceededError extends ApiError {
  override name = 'DeadlineExceededError'
}

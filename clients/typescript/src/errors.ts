/** Error classes, one for each error code of the API, for use with `instanceof`. */

export interface ErrorDetails {
  readonly code: string
  readonly message: string
  /** HTTP status. */
  readonly status: number
  /** Name of the invalid field of the request. */
  readonly param?: string
  /** All problems that the server found. */
  readonly details?: unknown
  /** Whether a retry may succeed. After a failed run, a request with the same idempotency key starts a new run. */
  readonly retryable: boolean
  /** Id of the failed run. */
  readonly interactionId?: string
  /** API revisions that the server supports. */
  readonly supported?: readonly string[]
  /** Id of the request in the server's log. */
  readonly requestId?: string
  /** Delay that the server asks for, in seconds. */
  readonly retryAfterS?: number
}

/** Base class of all errors that this library throws. */
export class ErrandError extends Error {
  override name = 'ErrandError'
}

/** The server could not be reached, or a broken connection could not be resumed. */
export class ConnectionError extends ErrandError {
  override name = 'ConnectionError'
}

/** The server did not answer within `timeoutMs`. */
export class TimeoutError extends ConnectionError {
  override name = 'TimeoutError'
}

/** The `signal` of the call was aborted. */
export class AbortedError extends ErrandError {
  override name = 'AbortedError'
}

/** The signature of a webhook is missing, wrong, or too old. */
export class WebhookSignatureError extends ErrandError {
  override name = 'WebhookSignatureError'
}

/** The server refused the request, or the run failed. A failed run sets `interactionId`. */
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

/** 400: the request is malformed or has an invalid field, which `param` names. */
export class InvalidRequestError extends ApiError {
  override name = 'InvalidRequestError'
}
/** 400: the server does not serve this library's API revision; `supported` lists those it does. */
export class UnsupportedApiRevisionError extends ApiError {
  override name = 'UnsupportedApiRevisionError'
}
/** 400: a file by URL could not be fetched when the run started. */
export class FileUnavailableError extends ApiError {
  override name = 'FileUnavailableError'
}
/** 401: the key is missing, mistyped, expired or revoked. */
export class UnauthenticatedError extends ApiError {
  override name = 'UnauthenticatedError'
}
/** 403: the service is switched off for the account of the key. */
export class FeatureDisabledError extends ApiError {
  override name = 'FeatureDisabledError'
}
/** 403: the scope of the key does not allow this call. */
export class PermissionDeniedError extends ApiError {
  override name = 'PermissionDeniedError'
}
/** 403: the project has spent its budget for this month. */
export class BudgetExceededError extends ApiError {
  override name = 'BudgetExceededError'
}
/** 404: the object does not exist. */
export class NotFoundError extends ApiError {
  override name = 'NotFoundError'
}
/** 405: the path does not allow this method. */
export class MethodNotAllowedError extends ApiError {
  override name = 'MethodNotAllowedError'
}
/** 409: the call conflicts with the state, for example an id in use or a run that has ended. */
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
/** 415: the path does not accept this Content-Type. */
export class UnsupportedMediaTypeError extends ApiError {
  override name = 'UnsupportedMediaTypeError'
}
/** 422: the idempotency key was used with a different request. */
export class IdempotencyMismatchError extends ApiError {
  override name = 'IdempotencyMismatchError'
}
/** 429: too many requests. `retryAfterS` says when to retry. */
export class RateLimitedError extends ApiError {
  override name = 'RateLimitedError'
}
/** 500: internal error of the server. */
export class InternalError extends ApiError {
  override name = 'InternalError'
}
/** 500: the model behind the agent failed. */
export class ModelError extends ApiError {
  override name = 'ModelError'
}
/** 503: no sandbox was available. */
export class SandboxUnavailableError extends ApiError {
  override name = 'SandboxUnavailableError'
}
/** 503: the server cannot accept the request now. */
export class UnavailableError extends ApiError {
  override name = 'UnavailableError'
}
/** 504: the run took longer than `policy.maxTurnDuration`. */
export class DeadlineExceededError extends ApiError {
  override name = 'DeadlineExceededError'
}

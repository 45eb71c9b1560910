/**
 * All errors of the API in one table: code → HTTP status, whether a retry can help, and after how long. A room throws
 * `ErrandError` if the caller should read the message. Any other exception is a bug or lost infrastructure and becomes
 * `internal`.
 */

interface ErrorKind {
  readonly status: number
  readonly retryable: boolean
  /** Seconds for the `Retry-After` header; ErrorExtras may override it. */
  readonly retryAfterS?: number
}

export const ERRORS = {
  invalid_request: { status: 400, retryable: false },
  unsupported_api_revision: { status: 400, retryable: false },
  file_unavailable: { status: 400, retryable: false },
  unauthenticated: { status: 401, retryable: false },
  feature_disabled: { status: 403, retryable: false },
  permission_denied: { status: 403, retryable: false },
  budget_exceeded: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  conflict: { status: 409, retryable: false },
  precondition_failed: { status: 412, retryable: false },
  payload_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  idempotency_mismatch: { status: 422, retryable: false },
  rate_limited: { status: 429, retryable: true },
  internal: { status: 500, retryable: true, retryAfterS: 5 },
  model_error: { status: 500, retryable: true, retryAfterS: 5 },
  sandbox_unavailable: { status: 503, retryable: true, retryAfterS: 5 },
  unavailable: { status: 503, retryable: true, retryAfterS: 5 },
  deadline_exceeded: { status: 504, retryable: false },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorExtras {
  /** The request field or parameter that is wrong, as the caller wrote it: `files[2].name`. */
  readonly param?: string
  readonly details?: unknown
  /** Overrides the table, for example if a model provider says that a retry is useless. */
  readonly retryable?: boolean
  readonly retryAfterS?: number
  /** Kept for the log; never shown to a caller. */
  readonly cause?: unknown
  /** The interaction that this error ended. */
  readonly interactionId?: string
  /** The supported API revisions, for `unsupported_api_revision`. */
  readonly supported?: readonly string[]
}

export class ErrandError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly retryable: boolean
  readonly retryAfterS: number | undefined
  readonly extras: ErrorExtras

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'ErrandError'
    const kind: ErrorKind = ERRORS[code]
    this.code = code
    this.status = kind.status
    this.retryable = extras.retryable ?? kind.retryable
    this.retryAfterS = extras.retryAfterS ?? kind.retryAfterS
    this.extras = extras
  }
}

/** The error of a failed run, as its log stores it and GET returns it. */
export interface RunError {
  readonly code: ErrorCode
  readonly message: string
  readonly status: number
  readonly retryable: boolean
}

export function toRunError(code: ErrorCode, message: string, retryable?: boolean): RunError {
  const kind: ErrorKind = ERRORS[code]
  return { code, message, status: kind.status, retryable: retryable ?? kind.retryable }
}

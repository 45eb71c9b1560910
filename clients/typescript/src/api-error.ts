/** Maps error codes to their classes. */
import {
  ApiError,
  BudgetExceededError,
  ConflictError,
  DeadlineExceededError,
  type ErrorDetails,
  FeatureDisabledError,
  FileUnavailableError,
  IdempotencyMismatchError,
  InternalError,
  InvalidRequestError,
  MethodNotAllowedError,
  ModelError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PreconditionFailedError,
  RateLimitedError,
  SandboxUnavailableError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedApiRevisionError,
  UnsupportedMediaTypeError,
} from './errors.ts'

const CLASSES: Readonly<Record<string, typeof ApiError>> = {
  invalid_request: InvalidRequestError,
  unsupported_api_revision: UnsupportedApiRevisionError,
  file_unavailable: FileUnavailableError,
  unauthenticated: UnauthenticatedError,
  feature_disabled: FeatureDisabledError,
  permission_denied: PermissionDeniedError,
  budget_exceeded: BudgetExceededError,
  not_found: NotFoundError,
  method_not_allowed: MethodNotAllowedError,
  conflict: ConflictError,
  precondition_failed: PreconditionFailedError,
  payload_too_large: PayloadTooLargeError,
  unsupported_media_type: UnsupportedMediaTypeError,
  idempotency_mismatch: IdempotencyMismatchError,
  rate_limited: RateLimitedError,
  internal: InternalError,
  model_error: ModelError,
  sandbox_unavailable: SandboxUnavailableError,
  unavailable: UnavailableError,
  deadline_exceeded: DeadlineExceededError,
}

/** Creates an error of the class for its code. A code that this version does not know becomes a plain ApiError. */
export function apiError(error: ErrorDetails): ApiError {
  const Class = CLASSES[error.code] ?? ApiError
  return new Class(error)
}

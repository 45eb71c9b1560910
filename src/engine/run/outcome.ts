/** The result of a run as a value. */
import { type ErrorCode, type RunError, toRunError } from '../../domain/errors.ts'
import type { StopReason, TerminalStatus } from '../../domain/event.ts'

export interface Outcome {
  readonly status: TerminalStatus
  readonly stopReason?: StopReason
  readonly error?: RunError
}

export function failure(code: ErrorCode, message: string): Outcome {
  return { status: 'failed', error: toRunError(code, message) }
}

/** The outcome after a bug in Errand. */
export function internalFailure(): Outcome {
  const message = 'Something went wrong in the server; the log of the server has more under this interaction.'
  return failure('internal', message)
}

export function storeOutOfReach(): Outcome {
  return failure('unavailable', 'The file store can’t be reached. Try again later.')
}

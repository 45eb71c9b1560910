/**
 * Reasons why work on an interaction stops before it has ended. One AbortSignal reaches the model's connection and the process
 * in the sandbox; its reason is a Stop.
 */
export type StopCause =
  | 'deadline' // maxTurnDuration is over: the run fails
  | 'cancelled' // the cancelling request has already written the end
  | 'lost' // another worker may have it, or the database is unreachable: write nothing
  | 'defect' // the database refused what this worker wrote: the run fails
  | 'shutdown' // this process ends: requeue the run

export class Stop extends Error {
  override readonly cause: StopCause
  constructor(cause: StopCause) {
    super(`stopped: ${cause}`)
    this.name = 'Stop'
    this.cause = cause
  }
}

export function stopCause(signal: AbortSignal): StopCause | undefined {
  return signal.reason instanceof Stop ? signal.reason.cause : undefined
}

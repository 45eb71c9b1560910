/**
 * Why work on an interaction stops before its own end. One AbortSignal goes down to the model's connection and to the
 * process in the sandbox; its reason is a Stop.
 */
export type StopCause =
  | 'deadline' // maxTurnDuration is over: the run fails
  | 'cancelled' // the end is written already, by whoever cancelled
  | 'lost' // another worker may have it, or the database is gone: write nothing
  | 'defect' // the database refused what this worker wrote: the run fails
  | 'shutdown' // this process goes: hand the run over

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

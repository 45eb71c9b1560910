/** Collects the parts of a server that must be closed, and closes them in reverse order. */
import type { Log } from '../telemetry/log.ts'

export interface Closers {
  /** Registers a part to be closed later, and returns it. */
  readonly add: <T extends { close(graceMs: number): Promise<unknown> }>(part: T) => T
  /** Closes the newest part first and goes on after a failure, which it logs. Returns whether no part failed. Idempotent. */
  readonly close: (graceMs: number) => Promise<boolean>
}

export function createClosers(log: Log): Closers {
  const open: { close(graceMs: number): Promise<unknown> }[] = []
  let closing: Promise<boolean> | undefined
  async function closeAll(graceMs: number): Promise<boolean> {
    let allClosed = true
    for (const part of open.reverse()) {
      try {
        await part.close(graceMs)
      } catch (error) {
        allClosed = false
        log.error({ err: error }, 'a part of the server could not be closed')
      }
    }
    return allClosed
  }
  return {
    add(part) {
      open.push(part)
      return part
    },
    close(graceMs) {
      closing ??= closeAll(graceMs)
      return closing
    },
  }
}

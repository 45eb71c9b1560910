/**
 * The server's log: structured lines, written by pino. It never contains secrets or content of callers.
 *
 * The request or run of a line comes from the async context, so that it need not be passed along.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** The part of pino's interface that we use. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const storage = new AsyncLocalStorage<object>()

/** Runs `work` with these fields on all its log lines, and those of what it starts. Replaces outer fields. */
export function logWith<T>(fields: object, work: () => T): T {
  return storage.run(fields, work)
}

/** Log fields of the current async context. */
export function logFields(): object {
  return storage.getStore() ?? {}
}

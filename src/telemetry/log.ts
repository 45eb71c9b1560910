/**
 * The server's own log: structured lines, by pino. Never a secret, never a caller's content.
 *
 * Which request or run a line belongs to is known by where it is written, so that no room has to hand it down.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** What rooms need of a logger: pino's shape. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const storage = new AsyncLocalStorage<object>()

/** Does `work`; all that is logged in it, and in what it starts, carries these fields in place of those around. */
export function logWith<T>(fields: object, work: () => T): T {
  return storage.run(fields, work)
}

/** The fields of where we are. */
export function logFields(): object {
  return storage.getStore() ?? {}
}

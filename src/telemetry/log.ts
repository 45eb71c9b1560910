/** The server's own log: structured lines, by pino. Never a secret, never a caller's content. */

/** What rooms need of a logger: pino's shape. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * Wake-ups between the nodes of a database: something was committed that another may be waiting for. Hints, never the
 * truth: one may come late, twice or never, so whoever hears one reads the database, and whoever waits also looks by
 * itself now and then.
 */
export interface Wakeups {
  /** Tells the other nodes, soon; to be called behind the commit. `topic`: a short word without a comma. Never fails. */
  send(topic: string): void
  /** Called for what others send. Undefined: some may have been missed, so whoever waits is to look. One listener. */
  listen(onTopic: (topic: string | undefined) => void): void
  close(): Promise<void>
}

/** For a database that one machine has to itself. */
export const NO_WAKEUPS: Wakeups = { send() {}, listen() {}, async close() {} }

/**
 * Wake-ups between the nodes of a database. One says that something was committed that another node may wait for. Wake-ups
 * are hints: one may arrive late, twice or never. A node that gets one reads the database, and waiting nodes also poll.
 */
export interface Wakeups {
  /** Notifies the other nodes, soon. Call it after the commit. `topic` is a short word without a comma. Never fails. */
  send(topic: string): void
  /** Sets the one listener. It gets undefined if wake-ups may have been missed: all waiting callers should then poll. */
  listen(onTopic: (topic: string | undefined) => void): void
  close(): Promise<void>
}

/** For a database that only one machine uses. */
export const NO_WAKEUPS: Wakeups = { send() {}, listen() {}, async close() {} }

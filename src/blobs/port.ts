/** The port to files that outlive a sandbox: input files before a run, output files after it. */

export interface Blobs {
  /** Stores bytes under a new key. Durable when it resolves. */
  put(key: string, bytes: Uint8Array): Promise<void>
  /** Undefined where there is none. */
  get(key: string): Promise<Uint8Array | undefined>
  /** A stream of the bytes, for downloads; undefined where there is none. */
  open(key: string): Promise<import('node:stream').Readable | undefined>
  /** Idempotent. */
  remove(keys: readonly string[]): Promise<void>
  close(): Promise<void>
}

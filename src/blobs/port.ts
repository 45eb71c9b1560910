/**
 * The port to files that outlive a sandbox: input files before a run, output files after it. A key begins with its owner,
 * the interaction: `int_…/in/0`.
 */

export interface Blobs {
  /** Stores bytes under a new key. Durable when it resolves. Where their source throws, so does it, and nothing is stored. */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>
  /** Undefined where there is none. */
  get(key: string): Promise<Uint8Array | undefined>
  /** A stream of the bytes, for downloads; undefined where there is none. */
  open(key: string): Promise<import('node:stream').Readable | undefined>
  /** Removes everything under `owner/`: an interaction's files. Idempotent. */
  removeAll(owner: string): Promise<void>
  /** Owners whose files are older than `ageMs`: to find those that nobody knows any more. */
  owners(ageMs: number): Promise<string[]>
  close(): Promise<void>
}

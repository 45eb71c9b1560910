/**
 * The port to files that outlive a sandbox: input files before a run, output files after it. A key begins with its owner,
 * the interaction: `int_…/in/0`. A key is written once and never again.
 */
import type { Readable } from 'node:stream'

export interface Blobs {
  /**
   * Stores bytes under a new key. Durable when it resolves. Where their source throws, so does it, and nothing is stored.
   * Throws BlobsUnavailable.
   */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>
  /** Undefined where there is none. */
  get(key: string): Promise<Uint8Array | undefined>
  /** A stream of the bytes; undefined where there is none. */
  open(key: string): Promise<Readable | undefined>
  /** Removes everything under `owner/`: an interaction's files. Idempotent. */
  removeAll(owner: string): Promise<void>
  /** Everyone who has files here. */
  owners(): AsyncIterable<string>
  close(): Promise<void>
}

/** Where files are kept. */
export type BlobsLocation =
  | { readonly kind: 'disk'; readonly directory: string }
  | {
      readonly kind: 's3'
      readonly bucket: string
      /** Before every key, without slashes at its ends; may be empty. */
      readonly prefix: string
      /** Undefined: Amazon's own, by the region. */
      readonly endpoint?: string
      /** Undefined: as the SDK finds it in its environment and files. */
      readonly region?: string
      readonly pathStyle: boolean
    }

/** Keys are made by the server: letters, digits, `_`, `-` and `/`. Never a caller's file name. Throws for any other. */
export function checkKey(key: string): string {
  if (!/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/.test(key)) throw new Error(`not a blob key: ${JSON.stringify(key)}`)
  return key
}

/** The store can't be reached, or refuses: try again later. What was to be stored was not. */
export class BlobsUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BlobsUnavailable'
  }
}

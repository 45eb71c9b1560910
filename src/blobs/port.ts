/**
 * The port to the file store, which has files that outlive a sandbox: input files and output files of runs. A key begins with
 * its owner, such as the interaction in `int_…/in/0`. A key is written only once.
 */
import type { Readable } from 'node:stream'

export interface Blobs {
  /**
   * Stores bytes under a new key. Durable when it resolves. An error of the source is rethrown, and nothing is stored.
   * Throws BlobsUnavailable.
   */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>
  /** Reads a file; undefined if there is none. */
  get(key: string): Promise<Uint8Array | undefined>
  /** Streams a file; undefined if there is none. */
  open(key: string): Promise<Readable | undefined>
  /** Removes all files of an owner. Idempotent. */
  removeAll(owner: string): Promise<void>
  /** All owners that have files. */
  owners(): AsyncIterable<string>
  close(): Promise<void>
}

/** Location of the file store. */
export type BlobsLocation =
  | { readonly kind: 'disk'; readonly directory: string }
  | {
      readonly kind: 's3'
      readonly bucket: string
      /** Prefix of every key, without slashes at its ends; may be empty. */
      readonly prefix: string
      /** Undefined: Amazon S3, by region. */
      readonly endpoint?: string
      /** Undefined: from the AWS SDK's environment variables and files. */
      readonly region?: string
      readonly pathStyle: boolean
    }

/** Returns the key if it is valid, and throws otherwise. The server makes keys of letters, digits, `_`, `-` and `/`, never from a caller's file name. */
export function checkKey(key: string): string {
  if (!/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/.test(key))
    throw new Error(`This is not a key of the file store: ${JSON.stringify(key)}`)
  return key
}

/** The file store can't be reached or refuses the operation. Nothing was stored; retry later. */
export class BlobsUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BlobsUnavailable'
  }
}

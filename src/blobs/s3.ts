/**
 * The file store in an S3-compatible bucket. The AWS SDK finds the credentials (environment, files, the machine's role). A
 * stream is uploaded in parts of limited size, each retried separately; the object appears once all parts are uploaded, or
 * not at all. An interrupted download is resumed where it stopped.
 */
import { Readable } from 'node:stream'
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import { randomBase62 } from '../domain/ids.ts'
import { noteTransferred } from '../runtime/collect-buffers.ts'
import { type Blobs, type BlobsLocation, BlobsUnavailable, checkKey } from './port.ts'

export type S3Location = Extract<BlobsLocation, { kind: 's3' }>

/** Size of an upload part: the minimum of S3. Parts are uploaded one after another, to save memory for many uploads. */
const PART_BYTES = 5 * 1024 * 1024
const PARTS_AT_ONCE = 1
const MAX_TRIES = 4
const CONNECT_MS = 5_000
/** Maximum time without a byte in either direction, milliseconds. */
const IDLE_MS = 15_000
/** Maximum number of keys in one DeleteObjects or list request. */
const PAGE = 1_000

export interface S3Options {
  /** Default: those that the SDK finds. */
  readonly credentials?: S3ClientConfig['credentials']
  readonly idleMs?: number
}

/** Throws BlobsUnavailable, with a message for the operator, if the bucket can't be written. */
export async function openS3Blobs(location: S3Location, options: S3Options = {}): Promise<Blobs> {
  // Loaded lazily: it costs half a second and 20 MB of memory.
  const sdk = await import('@aws-sdk/client-s3')
  const { Upload } = await import('@aws-sdk/lib-storage')
  const { bucket: Bucket } = location
  const root = location.prefix === '' ? '' : `${location.prefix}/`
  const client = new sdk.S3Client(clientConfig(location, options))

  async function get(key: string, from: number): Promise<Readable | undefined> {
    const Range = from > 0 ? `bytes=${from}-` : undefined
    try {
      const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket, Key: root + checkKey(key), Range }))
      // The stream may fail before it is read.
      return (Body as Readable).on('error', () => {})
    } catch (error) {
      if (error instanceof sdk.NoSuchKey) return undefined
      throw unavailable(location, error)
    }
  }

  /** Reads `first`. If it is interrupted, continues with a new request from that position. */
  async function* read(key: string, first: Readable): AsyncGenerator<Uint8Array> {
    let body: Readable | undefined = first
    for (let at = 0, failures = 0; body; body = await get(key, at)) {
      try {
        for await (const chunk of body) {
          noteTransferred(chunk.byteLength)
          yield chunk
          at += chunk.byteLength
          failures = 0
        }
        return
      } catch (error) {
        if (++failures === MAX_TRIES) throw unavailable(location, error)
      } finally {
        body.destroy()
      }
    }
    throw new BlobsUnavailable('A stored file was removed while it was read.')
  }

  /** Lists the keys under a prefix, by page. */
  async function* list(prefix: string): AsyncGenerator<readonly string[]> {
    for (let ContinuationToken: string | undefined; ; ) {
      const page = await client
        .send(new sdk.ListObjectsV2Command({ Bucket, Prefix: prefix, MaxKeys: PAGE, ContinuationToken }))
        .catch((error) => Promise.reject(unavailable(location, error)))
      yield (page.Contents ?? []).map(({ Key = '' }) => Key)
      ContinuationToken = page.NextContinuationToken
      if (!page.IsTruncated || ContinuationToken === undefined) return
    }
  }

  async function remove(keys: readonly string[]): Promise<void> {
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true }
    const { Errors: [first] = [] } = await client
      .send(new sdk.DeleteObjectsCommand({ Bucket, Delete }))
      .catch((error) => Promise.reject(unavailable(location, error)))
    if (first) throw unavailable(location, new Error(`${first.Code} ${first.Message}`))
  }

  const blobs: Blobs = {
    async put(key, bytes) {
      const source = watched(bytes)
      const params = { Bucket, Key: root + checkKey(key), Body: source.body }
      const upload = new Upload({ client, params, partSize: PART_BYTES, queueSize: PARTS_AT_ONCE })
      try {
        await upload.done()
      } catch (error) {
        throw source.failure ? source.failure.error : unavailable(location, error)
      }
    },
    async get(key) {
      const body = await blobs.open(key)
      return body && Buffer.concat(await body.toArray())
    },
    async open(key) {
      const first = await get(key, 0)
      return first && Readable.from(read(key, first), { objectMode: false })
    },
    async removeAll(owner) {
      for await (const keys of list(`${root}${checkKey(owner)}/`)) if (keys.length > 0) await remove(keys)
    },
    async *owners() {
      // Keys are sorted, so an owner's keys are adjacent. `Delimiter` would need fewer pages, but not every store supports it well.
      let last = ''
      for await (const keys of list(root)) {
        for (const key of keys) {
          const owner = key.slice(root.length).split('/', 1)[0]!
          if (owner !== last) yield owner
          last = owner
        }
      }
    },
    async close() {
      client.destroy()
    },
  }
  await tryOut(blobs, client)
  return blobs
}

function clientConfig(location: S3Location, { credentials, idleMs = IDLE_MS }: S3Options): S3ClientConfig {
  const { endpoint, pathStyle } = location
  const region = location.region ?? (endpoint === undefined ? undefined : 'us-east-1')
  return {
    endpoint,
    region,
    credentials,
    forcePathStyle: pathStyle,
    maxAttempts: MAX_TRIES,
    // Many S3-compatible stores do not understand the checksums that newer SDKs add by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: idleMs },
  }
}

/** The source as a stream. Remembers an error of the source, to distinguish it from an error of the store. */
function watched(bytes: Uint8Array | AsyncIterable<Uint8Array>) {
  const source: { body: Uint8Array | Readable; failure?: { error: unknown } } = { body: new Uint8Array() }
  async function* watch(chunks: AsyncIterable<Uint8Array>) {
    try {
      yield* chunks
    } catch (error) {
      source.failure = { error }
      throw error
    }
  }
  source.body = bytes instanceof Uint8Array ? bytes : Readable.from(watch(bytes), { objectMode: false })
  return source
}

/** Writes and removes a file, so that a wrong bucket or credential is detected at the start of the server. */
async function tryOut(blobs: Blobs, client: S3Client): Promise<void> {
  const owner = `probe_${randomBase62(22)}`
  try {
    await blobs.put(`${owner}/0`, new TextEncoder().encode('written by errand to see that it can'))
    await blobs.removeAll(owner)
  } catch (error) {
    client.destroy()
    throw error
  }
}

function unavailable({ bucket, endpoint }: S3Location, error: unknown): BlobsUnavailable {
  if (error instanceof BlobsUnavailable) return error
  const { name, message } = error as Error
  const where = endpoint === undefined ? '' : ` at ${endpoint}`
  return new BlobsUnavailable(`The bucket ${bucket}${where} can't be used: ${message || name}`, error)
}

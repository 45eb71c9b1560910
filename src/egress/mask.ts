/** Replaces secrets in data on its way into a sandbox. The mask has a fixed length, so it does not reveal that of the secret. */
import { type Duplex, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { createSearch, type Span } from '../domain/search.ts'

const MASK = Buffer.from('[secret]')
/** Minimum length of a secret, in bytes. Shorter ones are not replaced, because they occur everywhere by chance. */
const MIN_BYTES = 6

export interface Mask {
  text(text: string): string
  /** Returns a stream that masks a body, and changes its length. It buffers only bytes that may begin a secret. */
  stream(): Transform
}

export function createMask(secrets: readonly string[]): Mask {
  const needles = [...new Set(secrets)].map((secret) => Buffer.from(secret)).filter(({ length }) => length >= MIN_BYTES)
  const search = createSearch(needles)

  return {
    text(text) {
      const bytes = Buffer.from(text)
      const scan = search.scan()
      const { clear, spans } = scan.feed(bytes)
      const end = bytes.subarray(clear)
      return Buffer.concat([cover(bytes.subarray(0, clear), spans), cover(end, scan.end())]).toString()
    },
    stream() {
      const scan = search.scan()
      let held: Buffer = Buffer.alloc(0)
      return new Transform({
        transform(chunk: Buffer, _encoding, callback) {
          const { clear, spans } = scan.feed(chunk)
          const bytes = Buffer.concat([held, chunk])
          held = bytes.subarray(clear)
          callback(null, cover(bytes.subarray(0, clear), spans))
        },
        flush: (callback) => callback(null, cover(held, scan.end())),
      })
    },
  }
}

/** Replaces the spans by the mask. A span that continues one of the previous chunk was masked there. */
function cover(bytes: Buffer, spans: readonly Span[]): Buffer {
  if (spans.length === 0) return bytes
  const parts: Buffer[] = []
  let from = 0
  for (const { start, end, continues } of spans) {
    parts.push(bytes.subarray(from, start), ...(continues ? [] : [MASK]))
    from = end
  }
  return Buffer.concat([...parts, bytes.subarray(from)])
}

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** A stream that decompresses this content coding; undefined if the coding is unknown. */
export function decoderOf(coding: string): Duplex | undefined {
  const name = coding.trim().toLowerCase()
  return Object.hasOwn(DECODERS, name) ? DECODERS[name]!() : undefined
}

/** Bytes on their way into a sandbox, with what must not be in them made unreadable, in its place and of its length. */
import { type Duplex, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'

const STAR = '*'.charCodeAt(0)
/** A shorter text hides nothing, and is everywhere. */
const MIN_BYTES = 6

export interface Mask {
  text(text: string): string
  /** Holds back only what may be the beginning of a secret. */
  stream(): Transform
}

export function createMask(secrets: readonly string[]): Mask {
  const needles = [...new Set(secrets)].map((secret) => Buffer.from(secret)).filter(({ length }) => length >= MIN_BYTES)
  const longest = Math.max(0, ...needles.map(({ length }) => length))

  function cover(bytes: Buffer): Buffer {
    for (const needle of needles) {
      for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) {
        bytes.fill(STAR, at, at + needle.length)
      }
    }
    return bytes
  }

  /** How many bytes at the end begin a secret. */
  function begun(bytes: Buffer): number {
    for (let length = Math.min(longest - 1, bytes.length); length > 0; length--) {
      const end = bytes.subarray(bytes.length - length)
      if (needles.some((needle) => needle.subarray(0, length).equals(end))) return length
    }
    return 0
  }

  return {
    text: (text) => cover(Buffer.from(text)).toString(),
    stream() {
      let held: Buffer = Buffer.alloc(0)
      return new Transform({
        transform(chunk: Buffer, _encoding, callback) {
          const bytes = cover(Buffer.concat([held, chunk]))
          const clear = bytes.length - begun(bytes)
          held = bytes.subarray(clear)
          callback(null, bytes.subarray(0, clear))
        },
        flush: (callback) => callback(null, held),
      })
    },
  }
}

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** What makes such a content readable for a mask; undefined where that is not known. */
export function decoderOf(coding: string): Duplex | undefined {
  const name = coding.trim().toLowerCase()
  return Object.hasOwn(DECODERS, name) ? DECODERS[name]!() : undefined
}

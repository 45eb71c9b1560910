/**
 * Frames between server and sandbox host, and between host and runner: two big-endian u32 (length of the header, length of
 * the payload), the header as JSON, and the payload. File content and output are never base64.
 */
import type { Writable } from 'node:stream'
import { noteTransferred } from '../runtime/collect-buffers.ts'

/** Far above the largest frame (chunks have 256 KiB, code a few MiB): a larger one means that the peer is broken. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

export interface Frame<Header> {
  readonly header: Header
  readonly payload: Buffer
}

/** Sends a frame. The payload is not copied: the caller must not change it afterwards. */
export function writeFrame(stream: Writable, header: object, payload?: Uint8Array): void {
  const head = JSON.stringify(header)
  const headBytes = Buffer.byteLength(head)
  const start = Buffer.allocUnsafe(8 + headBytes)
  start.writeUInt32BE(headBytes, 0)
  start.writeUInt32BE(payload?.byteLength ?? 0, 4)
  start.write(head, 8)
  stream.cork()
  stream.write(start)
  if (payload && payload.byteLength > 0) stream.write(payload)
  stream.uncork()
}

/** Splits a stream of bytes into frames. Throws if the bytes are no frames, or a frame is larger than `maxBytes`. */
export function createFrameReader<Header>(
  onFrame: (frame: Frame<Header>) => void,
  maxBytes = MAX_FRAME_BYTES,
): (bytes: Buffer) => void {
  let parts: Buffer[] = []
  let held = 0
  let wanted = 8
  return (bytes) => {
    noteTransferred(bytes.length)
    parts.push(bytes)
    held += bytes.length
    if (held < wanted) return
    let rest = parts.length === 1 ? bytes : Buffer.concat(parts, held)
    parts = []
    for (;;) {
      wanted = 8
      if (rest.length < 8) break
      const headBytes = rest.readUInt32BE(0)
      wanted = 8 + headBytes + rest.readUInt32BE(4)
      if (wanted > maxBytes) throw new Error(`A frame of ${wanted} bytes: the peer does not speak this protocol.`)
      if (rest.length < wanted) break
      const header = JSON.parse(rest.toString('utf8', 8, 8 + headBytes)) as Header
      const payload = rest.subarray(8 + headBytes, wanted)
      rest = rest.subarray(wanted)
      onFrame({ header, payload })
    }
    held = rest.length
    if (held > 0) parts.push(rest)
  }
}

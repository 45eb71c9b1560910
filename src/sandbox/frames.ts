/**
 * Frames, as they go between server and sandbox host, and between host and runner: two big-endian u32 (bytes of the
 * header, bytes of the payload), the header as JSON, the payload as it is. File content and output are never base64.
 */
import type { Writable } from 'node:stream'
import { noteTransferred } from '../runtime/collect-buffers.ts'

/** Far above any frame that is sent (chunks are 256 KiB, code at most a few MiB): beyond it the other side is broken. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024

export interface Frame<Header> {
  readonly header: Header
  readonly payload: Buffer
}

/** Sends a frame in one piece. The payload is not copied: it must not change any more. */
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

/** Takes bytes as they come and hands on whole frames. Throws where the bytes are no frames, or one has more than `maxBytes`. */
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
      if (wanted > maxBytes) throw new Error(`A frame of ${wanted} bytes: the other side does not speak frames.`)
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

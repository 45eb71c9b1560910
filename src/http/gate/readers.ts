/**
 * Disconnects callers that stop reading: those that take no byte of a response for 20 to 25 s. Large responses are written in
 * pieces, so that a slow reader makes visible progress.
 */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

const TICK_MS = 5_000
/** Number of consecutive ticks without progress after which a reader counts as gone. */
const STALLED_TICKS = 4
/** Larger responses are written in pieces of this size, in bytes. */
export const PIECE_BYTES = 64 * 1024

export interface Readers {
  /** Watches a response until it closes. `onStalled` is called before a stalled connection is destroyed. */
  watch(response: ServerResponse, onStalled?: () => void): void
  close(): void
}

interface Sending {
  readonly onStalled: (() => void) | undefined
  /** Bytes that the kernel had accepted from the connection at the last tick. */
  taken: number
  stalled: number
}

export function createReaders(): Readers {
  const sending = new Map<ServerResponse, Sending>()
  const timer = setInterval(() => {
    for (const [response, state] of sending) {
      const { socket } = response
      // Answers behind another one on the same connection have no socket yet.
      if (!socket) continue
      const taken = socket.bytesWritten - socket.writableLength
      state.stalled = socket.writableLength > 0 && taken === state.taken ? state.stalled + 1 : 0
      state.taken = taken
      if (state.stalled < STALLED_TICKS) continue
      state.onStalled?.()
      socket.destroy()
    }
  }, TICK_MS).unref()
  return {
    watch(response, onStalled) {
      if (response.destroyed) return
      sending.set(response, { onStalled, taken: -1, stalled: 0 })
      response.once('close', () => sending.delete(response))
    },
    close: () => clearInterval(timer),
  }
}

/** The bytes as a stream of pieces, which share their memory. */
export function inPieces(bytes: Buffer): Readable {
  return Readable.from(pieces(bytes), { objectMode: false, highWaterMark: PIECE_BYTES })
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

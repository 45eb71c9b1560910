/**
 * Streams an interaction's events as Server-Sent Events: one write per batch, with backpressure. A reader that reads nothing is
 * disconnected (readers.ts) and can resume after its last event.
 *
 * Event data is JSON on one line, without raw line breaks, so no text can forge an event.
 */
import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { ErrandError } from '../../domain/errors.ts'
import type { StoredEvent } from '../../domain/event.ts'
import type { Emit } from '../../telemetry/events.ts'
import type { Readers } from '../gate/readers.ts'
import type { Frame } from '../wire/codec.ts'

const KEEP_ALIVE_MS = 15_000

/** In lower case, like the headers that they replace. Otherwise Node would send both. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

export interface EventStream {
  readonly response: ServerResponse
  readonly headers: OutgoingHttpHeaders
  readonly follow: (signal: AbortSignal) => AsyncIterable<readonly StoredEvent[]>
  /** The text of one event on the wire; empty if it is not sent. */
  readonly encode: (event: StoredEvent) => string
  /** Aborts when the server closes, which ends the stream. */
  readonly closing: AbortSignal
  readonly emit: Emit
  readonly readers: Readers
  /** Sets the number of bytes that wait for the reader. Throws if the project has too many. */
  readonly hold: (bytes: number) => void
}

/** The frames of one event. Only the last has the event's number as its id: a caller resumes after whole events. */
export function formatEvent(seq: number, frames: readonly Frame[]): string {
  const last = frames.length - 1
  return frames
    .map(({ type, data }, i) => `${i === last ? `id: ${seq}\n` : ''}event: ${type}\ndata: ${data}\n\n`)
    .join('')
}

/** Resolves when the response has ended: true after the last event or at closing, false if the reader disconnected. */
export async function sendEvents({
  response,
  headers,
  follow,
  encode,
  closing,
  emit,
  readers,
  hold,
}: EventStream): Promise<boolean> {
  emit({ type: 'stream_opened' })
  const reader = watchReader(response, readers, closing)
  const { signal } = reader
  response.writeHead(200, { ...headers, ...STREAM_HEADERS })
  // The headers go out with the first events, or by themselves where those take longer than this tick.
  const early = setImmediate(() => response.flushHeaders())
  let refused = false
  try {
    for await (const batch of follow(signal)) {
      let text = ''
      for (const event of batch) text += encode(event)
      clearImmediate(early)
      if (text === '' || response.write(text)) continue
      hold(text.length)
      await once(response, 'drain', { signal })
      hold(0)
    }
    response.end()
  } catch (error) {
    response.destroy()
    // A reader that is too slow for what its project has in flight can resume later (`Last-Event-ID`).
    refused = error instanceof ErrandError
    if (!signal.aborted && !refused) throw error
  } finally {
    clearImmediate(early)
    reader.release()
    emit({ type: 'stream_closed', cause: refused || reader.isSlow() ? 'slow' : reader.isGone() ? 'gone' : 'whole' })
  }
  return !reader.isGone()
}

interface Reader {
  /** Aborts when the reader disconnects or the server closes. */
  readonly signal: AbortSignal
  isGone(): boolean
  isSlow(): boolean
  release(): void
}

/** Keeps the connection alive and detects that the reader has disconnected or stalled. */
function watchReader(response: ServerResponse, readers: Readers, closing: AbortSignal): Reader {
  const stop = new AbortController()
  const onClosing = () => stop.abort()
  let gone = false
  let slow = false
  const onClose = () => {
    gone = true
    stop.abort()
  }
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(': keep-alive\n\n')
  }, KEEP_ALIVE_MS)
  readers.watch(response, () => {
    slow = true
  })
  response.on('close', onClose)
  closing.addEventListener('abort', onClosing)
  if (closing.aborted) onClosing()
  if (response.destroyed || response.socket?.destroyed) onClose()
  return {
    signal: stop.signal,
    isGone: () => gone,
    isSlow: () => slow,
    release() {
      clearInterval(timer)
      response.off('close', onClose)
      closing.removeEventListener('abort', onClosing)
    },
  }
}

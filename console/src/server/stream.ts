/**
 * Streams a run's events by fetch, because EventSource can't POST or send headers. A broken connection is resumed after the
 * last event. Events are numbered, so none is lost or repeated.
 */
import type { NewInteraction } from '../api/types.gen.js'
import { headers } from './client.ts'
import { Problem } from './problem.ts'

export interface LogEvent {
  readonly seq: number
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

type OnEvents = (events: readonly LogEvent[]) => void

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 8_000

/** Starts a run. Calls `onId` as soon as the server accepts it. Resolves when the run has ended. */
export async function startRun(
  body: NewInteraction,
  onId: (id: string) => void,
  onEvents: OnEvents,
  signal: AbortSignal,
): Promise<void> {
  const response = await open('/v1beta/interactions:stream', signal, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json' },
  })
  const id = response.headers.get('x-interaction-id') as string
  onId(id)
  const seen = await read(response, 0, onEvents, signal)
  if (seen !== ENDED) await followRun(id, seen, onEvents, signal)
}

/** Streams the events after number `after` until the run ends. Rejects with Problem if the server refuses. */
export async function followRun(id: string, after: number, onEvents: OnEvents, signal: AbortSignal): Promise<void> {
  let last = after
  let wait = FIRST_WAIT_MS
  while (!signal.aborted) {
    const response = await open(`/v1beta/interactions/${encodeURIComponent(id)}:stream`, signal, {
      headers: last > 0 ? { 'Last-Event-ID': String(last) } : {},
    }).catch((error) => stopOnRefusal(error, signal))
    if (response) {
      wait = FIRST_WAIT_MS
      last = await read(response, last, onEvents, signal)
      if (last === ENDED) return
    }
    await new Promise((resolve) => setTimeout(resolve, wait))
    wait = Math.min(wait * 2, LONGEST_WAIT_MS)
  }
}

const ENDED = -1

/** Rethrows refusals (4xx). Broken connections and unavailable servers are retried. */
function stopOnRefusal(error: unknown, signal: AbortSignal): undefined {
  if (signal.aborted || (error instanceof Problem && error.status >= 400 && error.status < 500)) throw error
}

async function open(path: string, signal: AbortSignal, init: RequestInit): Promise<Response> {
  const response = await fetch(path, {
    ...init,
    signal,
    cache: 'no-store',
    headers: { ...headers(), Accept: 'text/event-stream', ...init.headers },
  })
  if (response.ok) return response
  throw Problem.of(await response.json().catch(() => undefined), response.status)
}

/** Resolves with the last number read when the connection ends, in whatever way, or with ENDED after the run's last event. */
async function read(response: Response, after: number, onEvents: OnEvents, signal: AbortSignal): Promise<number> {
  let last = after
  let rest = ''
  const body = response.body as ReadableStream<Uint8Array<ArrayBuffer>>
  try {
    for await (const chunk of chunks(body.pipeThrough(new TextDecoderStream()))) {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop() as string
      const events = frames.map(parse).filter((event): event is LogEvent => event !== undefined && event.seq > last)
      if (events.length === 0) continue
      last = events.at(-1)?.seq ?? last
      onEvents(events)
      if (events.some(({ type }) => type === 'completed')) return ENDED
    }
  } catch (error) {
    if (signal.aborted) throw error
  }
  return last
}

/** Safari can't iterate over a stream. */
async function* chunks(stream: ReadableStream<string>): AsyncGenerator<string> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Parses a frame with id, event and data. Returns undefined for keep-alive comments. */
function parse(frame: string): LogEvent | undefined {
  const fields = new Map(
    frame.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  const [id, type, json] = [fields.get('id'), fields.get('event'), fields.get('data')]
  return id && type && json ? { seq: Number(id), type, data: JSON.parse(json) } : undefined
}

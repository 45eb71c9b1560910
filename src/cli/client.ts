/**
 * The service over HTTP, as any caller meets it. `errand run` and `errand agents` speak through it to a server near or
 * far, the one in their own process included.
 *
 * A stream that breaks is taken up again after the last event that came, with growing pauses.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '../domain/event.ts'
import { withoutEnd } from '../domain/trim.ts'
import { readSse } from './sse.ts'

const REVISION = '2026-05-20'

/** The server answered with an error. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'Refused'
    this.status = status
  }
}

/** There is no server, or the way to it broke and stayed broken. */
export class Unreachable extends Error {}

export type JsonObject = Readonly<Record<string, unknown>>

export interface RunStream {
  readonly interactionId: string
  /** In order, each once, until `completed`. Throws Unreachable, Refused. */
  readonly events: AsyncIterable<RunEvent>
}

export interface Client {
  readonly url: string
  /** One call; the answer's JSON. Throws Refused, Unreachable. */
  call(method: string, path: string, body?: JsonObject, headers?: Readonly<Record<string, string>>): Promise<JsonObject>
  /** One call whose body is these bytes. Throws as `call` does. */
  upload(method: string, path: string, body: Uint8Array, type: string): Promise<JsonObject>
  /** Starts an interaction and follows it. Throws as `call` does. */
  run(request: JsonObject, onBreak?: (message: string) => void): Promise<RunStream>
  /** A file by its signed link. */
  download(url: string): Promise<Uint8Array>
}

const PAUSES_MS = [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]

export function createClient(url: string, key: string): Client {
  const base = withoutEnd(url, '/')
  const identity = { 'x-svc-api-key': key, 'Api-Revision': REVISION }

  async function send(path: string, init: RequestInit): Promise<Response> {
    const target = URL.canParse(path) ? path : base + path
    const response = await fetch(target, init).catch((error: unknown) => {
      throw new Unreachable(`${new URL(target).origin} can't be reached: ${reason(error)}.`)
    })
    if (!response.ok) throw await refusal(response)
    return response
  }

  function request(
    method: string,
    body: JsonObject | undefined,
    headers: Readonly<Record<string, string>>,
  ): RequestInit {
    const json = body === undefined ? {} : { 'Content-Type': 'application/json' }
    return { method, headers: { ...identity, ...json, ...headers }, body: body && JSON.stringify(body) }
  }

  async function resume(id: string, last: string): Promise<Response> {
    return send(`/v1beta/interactions/${id}:stream`, {
      headers: { ...identity, Accept: 'text/event-stream', ...(last === '' ? {} : { 'Last-Event-ID': last }) },
    })
  }

  async function* follow(first: Response, id: string, onBreak: (message: string) => void): AsyncGenerator<RunEvent> {
    let response: Response | undefined = first
    let last = ''
    let pauses = [...PAUSES_MS]
    for (;;) {
      try {
        response ??= await resume(id, last)
        for await (const message of readSse(response.body!)) {
          last = message.id
          pauses = [...PAUSES_MS]
          const event = { ...JSON.parse(message.data), type: message.event } as RunEvent
          yield event
          if (event.type === 'completed') return
        }
      } catch (error) {
        if (error instanceof Refused && error.status < 500) throw error
      }
      response = undefined
      const pause = pauses.shift()
      if (pause === undefined) throw new Unreachable(`The stream of ${id} broke and could not be taken up again.`)
      onBreak('The stream broke; taking it up again.')
      await sleep(pause)
    }
  }

  return {
    url: base,
    async call(method, path, body, headers = {}) {
      return (await (await send(path, request(method, body, headers))).json()) as JsonObject
    },
    async upload(method, path, body, type) {
      const headers = { ...identity, 'Content-Type': type }
      return (await (await send(path, { method, headers, body: new Uint8Array(body) })).json()) as JsonObject
    },
    async run(body, onBreak = () => {}) {
      const headers = { Accept: 'text/event-stream', 'Idempotency-Key': randomUUID() }
      const response = await send('/v1beta/interactions:stream', request('POST', body, headers))
      const interactionId = response.headers.get('x-interaction-id') ?? ''
      return { interactionId, events: follow(response, interactionId, onBreak) }
    },
    async download(link) {
      return new Uint8Array(await (await send(link, {})).arrayBuffer())
    },
  }
}

async function refusal(response: Response): Promise<Refused> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = (body as { error?: { message?: string; param?: string } } | undefined)?.error
  const what = error?.message ?? `The server answered ${response.status} ${response.statusText}.`
  const retryAfter = response.headers.get('retry-after')
  return new Refused(
    response.status,
    [what, error?.param && `(${error.param})`, retryAfter && `Try again after ${retryAfter} s.`]
      .filter(Boolean)
      .join(' '),
  )
}

/** fetch says "fetch failed" and keeps what happened in a chain of causes. */
function reason(error: unknown): string {
  let deepest = error as { message?: string; code?: string; cause?: unknown }
  while (deepest.cause) deepest = deepest.cause as typeof deepest
  return deepest.message || deepest.code || String(error)
}

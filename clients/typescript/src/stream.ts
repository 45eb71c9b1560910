/**
 * An interaction's events, from any one on to its end. A connection that breaks, falls silent, or is closed by a server
 * that goes down, is taken up again behind the last event that came: none is missed, none comes twice.
 */
import { ApiError, ConnectionError } from './errors.ts'
import type { Interaction, StreamEvent } from './generated/types.ts'
import { readSse } from './sse.ts'
import { aborted, notOurs, type RequestOptions, type Transport } from './transport.ts'

/** The server sends something every 15 s. */
const IDLE_MS = 45_000
/** How long a way may be broken, from the first failure on, without an event or a connection that held. The run goes on meanwhile. */
const PATIENCE_MS = 300_000
/** The same for the answer at the end, in tries with pauses between them. */
const PATIENT_TRIES = 75
/** A connection that lived for so long was a good one: proxies end them by the clock, whatever the run does. */
const HELD_MS = 10_000

export interface StreamSource {
  /** Opens the stream of an interaction that is there, behind event number `after`. */
  resume(id: string, after: number, options: RequestOptions): Promise<Response>
  /** Starts the interaction; undefined where it is there already. Repeatable: the same run is joined. */
  start?: (options: RequestOptions) => Promise<Response>
  retrieve(id: string, options: RequestOptions): Promise<Interaction>
  cancel(id: string): Promise<Interaction>
  /** Throws where the run failed. */
  settle(interaction: Interaction): Interaction
}

export interface StreamOptions extends RequestOptions {
  /** Called with the reason each time the connection breaks, before the client reconnects. */
  readonly onReconnect?: (reason: Error) => void
}

export class InteractionStream implements AsyncIterable<StreamEvent> {
  #id: string | undefined
  #last: number
  readonly #transport: Transport
  readonly #source: StreamSource
  readonly #options: StreamOptions
  readonly #leave = new AbortController()
  #events: AsyncGenerator<StreamEvent> | undefined

  /** @internal */
  constructor(
    transport: Transport,
    source: StreamSource,
    from: { id?: string; after?: number },
    options: StreamOptions,
  ) {
    this.#transport = transport
    this.#source = source
    this.#options = options
    this.#id = from.id
    this.#last = from.after ?? 0
  }

  /** Undefined until the server has accepted the interaction. */
  get interactionId(): string | undefined {
    return this.#id
  }

  /** The number of the last event that was handed out: what `interactions.events(id, {after})` goes on behind. */
  get lastEventId(): number {
    return this.#last
  }

  /**
   * The events in order, each once, to `completed`. A run that fails ends its stream like any other: by `error`, then
   * `completed`. A newer server may send events that `StreamEvent` does not name: pass them over.
   */
  [Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    this.#events ??= this.#read()
    return this.#events
  }

  /** The fragments of the answer alone. */
  async *text(): AsyncGenerator<string> {
    for await (const event of this) if (event.event === 'partial_output') yield event.data.text
  }

  /** Reads to the end; the whole interaction. Throws the error of a run that failed. */
  async final(): Promise<Interaction> {
    for await (const _ of this);
    return this.#source.settle(await this.#source.retrieve(this.#id!, { maxRetries: PATIENT_TRIES, ...this.#options }))
  }

  /** Ends the run on the server; resolves when its sandbox is gone. The stream then ends with `completed`. */
  cancel(): Promise<Interaction> {
    if (this.#id === undefined) throw new ConnectionError('The interaction was not accepted yet: read its first event.')
    return this.#source.cancel(this.#id)
  }

  /** Stops reading. The run goes on. */
  close(): void {
    this.#leave.abort()
  }

  async *#read(): AsyncGenerator<StreamEvent> {
    const { signal } = this.#options
    const leave = signal ? AbortSignal.any([signal, this.#leave.signal]) : this.#leave.signal
    let failures = 0
    let brokenSince = 0
    for (;;) {
      let waitMs = 0
      let openedAt = Number.POSITIVE_INFINITY
      try {
        const response = await this.#open({ ...this.#options, signal: leave })
        openedAt = performance.now()
        for await (const { id, event, data } of readSse(response.body!, IDLE_MS, silent)) {
          if (Number(id) <= this.#last) continue
          failures = 0
          this.#last = Number(id)
          yield { id: this.#last, event, data: JSON.parse(data) } as StreamEvent
          if (event === 'completed') return
        }
        throw new ConnectionError('The stream was closed before its end.')
      } catch (error) {
        if (leave.aborted) break
        if (performance.now() - openedAt >= HELD_MS) failures = 0
        if (failures === 0) brokenSince = performance.now()
        const lost = performance.now() - brokenSince >= PATIENCE_MS
        if (this.#id === undefined || !mayPass(error) || lost) throw error
        waitMs = error instanceof ApiError ? (error.retryAfterS ?? 0) * 1000 : 0
        this.#options.onReconnect?.(error as Error)
      }
      failures++
      await this.#transport.pause(failures, waitMs, leave).catch(() => {})
      if (leave.aborted) break
    }
    if (signal?.aborted) throw aborted(signal)
  }

  async #open(options: RequestOptions): Promise<Response> {
    if (this.#id !== undefined) return this.#source.resume(this.#id, this.#last, { ...options, maxRetries: 0 })
    const response = await this.#source.start!(options)
    const id = response.headers.get('x-interaction-id')
    if (id === null) throw notOurs()
    this.#id = id
    return response
  }
}

const silent = () => new ConnectionError('The stream sent nothing for 45 s.')

/** What `fetch` throws where a body breaks off has no class of its own. */
function mayPass(error: unknown): boolean {
  if (error instanceof ApiError) return error.retryable
  return error instanceof ConnectionError || error instanceof TypeError || (error as Error)?.name === 'AbortError'
}

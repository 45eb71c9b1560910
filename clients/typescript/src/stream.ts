/**
 * Streams the events of an interaction until its end. If the connection breaks, is idle for too long, or is closed by a server
 * that shuts down, the client reconnects and resumes after the last received event: none is lost or repeated.
 */
import { ApiError, ConnectionError } from './errors.ts'
import type { Interaction, StreamEvent } from './generated/types.ts'
import { readSse } from './sse.ts'
import { aborted, notOurs, type RequestOptions, type Transport } from './transport.ts'

/** Idle timeout. The server sends something every 15 s. */
const IDLE_MS = 45_000
/** Time to reconnect, from the first failure on, before the client throws. The run continues meanwhile. */
const RECONNECT_TIMEOUT_MS = 300_000
/** Retries of the request for the final interaction: about the same time, with the pauses between them. */
const FINAL_RETRIES = 75
/** A connection that lasted this long resets the count of failures: some proxies close connections after a fixed time. */
const STABLE_MS = 10_000

export interface StreamSource {
  /** Opens the stream of an existing interaction after event number `after`. */
  resume(id: string, after: number, options: RequestOptions): Promise<Response>
  /** Starts the interaction; undefined if it exists already. Idempotent: a repeated call joins the same run. */
  start?: (options: RequestOptions) => Promise<Response>
  retrieve(id: string, options: RequestOptions): Promise<Interaction>
  cancel(id: string): Promise<Interaction>
  /** Throws if the run failed. */
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

  /** Number of the last yielded event. Pass it to `interactions.events(id, { after })` to continue after it. */
  get lastEventId(): number {
    return this.#last
  }

  /**
   * Yields each event once, in order, up to `completed`. A failed run ends with `error`, then `completed`. A newer server may
   * send events that `StreamEvent` does not have: ignore them.
   */
  [Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    this.#events ??= this.#read()
    return this.#events
  }

  /** Yields only the text fragments of the answer. */
  async *text(): AsyncGenerator<string> {
    for await (const event of this) if (event.event === 'partial_output') yield event.data.text
  }

  /** Reads to the end and returns the interaction. Throws if the run failed. */
  async final(): Promise<Interaction> {
    for await (const _ of this);
    return this.#source.settle(await this.#source.retrieve(this.#id!, { maxRetries: FINAL_RETRIES, ...this.#options }))
  }

  /** Cancels the run on the server; resolves when its sandbox is gone. The stream then ends with `completed`. */
  cancel(): Promise<Interaction> {
    if (this.#id === undefined)
      throw new ConnectionError(
        'The server has not accepted the interaction yet. Read its first event before cancelling.',
      )
    return this.#source.cancel(this.#id)
  }

  /** Stops reading. The run continues. */
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
        for await (const { id, event, data } of readSse(response.body!, IDLE_MS, idleError)) {
          if (Number(id) <= this.#last) continue
          failures = 0
          this.#last = Number(id)
          yield { id: this.#last, event, data: JSON.parse(data) } as StreamEvent
          if (event === 'completed') return
        }
        throw new ConnectionError('The stream ended before `completed`.')
      } catch (error) {
        if (leave.aborted) break
        if (performance.now() - openedAt >= STABLE_MS) failures = 0
        if (failures === 0) brokenSince = performance.now()
        const lost = performance.now() - brokenSince >= RECONNECT_TIMEOUT_MS
        if (this.#id === undefined || !isTransient(error) || lost) throw error
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

const idleError = () => new ConnectionError('The stream sent nothing for 45 s.')

/** Whether a retry may succeed. `fetch` has no error class of its own for an interrupted body. */
function isTransient(error: unknown): boolean {
  if (error instanceof ApiError) return error.retryable
  return error instanceof ConnectionError || error instanceof TypeError || (error as Error)?.name === 'AbortError'
}

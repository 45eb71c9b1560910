/** Running agents. */
import { apiError } from './api-error.ts'
import type {
  Approval,
  AuditEntry,
  DeliveryList,
  Interaction,
  InteractionList,
  InteractionSummary,
  NewInteraction,
} from './generated/types.ts'
import { byLabel, List } from './paging.ts'
import { InteractionStream, type StreamSource } from './stream.ts'
import type { Call, RequestOptions, Transport } from './transport.ts'

/** What is asked of an agent; how it is answered is the method's choice. */
export type InteractionRequest = Omit<NewInteraction, 'stream' | 'background'>

export interface RunOptions extends RequestOptions {
  /** Default: one made for the call, so that its own tries make one run. Your own makes one run of several calls, for 24 hours. */
  readonly idempotencyKey?: string
  /** Where `signal` aborts, the run is cancelled on the server too; else it goes on. */
  readonly cancelOnAbort?: boolean
  /** A skill or an MCP server that can't be used is an error instead of a warning. */
  readonly strict?: boolean
}

export interface InteractionQuery {
  readonly agentId?: string
  /** As it was asked for. */
  readonly model?: string
  readonly status?: Interaction['status']
  readonly labels?: Readonly<Record<string, string>>
  readonly order?: 'asc' | 'desc'
  readonly pageSize?: number
  readonly pageToken?: string
}

const PATH = '/v1beta/interactions'

export class Interactions {
  readonly #transport: Transport
  readonly #source: StreamSource

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
    this.#source = {
      resume: (id, after, options) => {
        const headers = { Accept: 'text/event-stream', ...(after > 0 && { 'Last-Event-ID': String(after) }) }
        return transport.send({ ...this.#read(id, ':stream'), headers }, options)
      },
      retrieve: (id, options) => this.retrieve(id, options),
      cancel: (id) => this.cancel(id),
      settle,
    }
  }

  /**
   * Runs an agent and waits for its end, however long it takes and whatever becomes of the connection meanwhile. Throws
   * ApiError (one class a code; with `interactionId` where the run failed), ConnectionError, AbortedError. A run that
   * somebody cancels resolves, with `status: "cancelled"`.
   */
  create(request: InteractionRequest, options?: RunOptions): Promise<Interaction> {
    return this.stream(request, options).final()
  }

  /** Starts a run and resolves as soon as it is accepted: `retrieve`, `events`, `wait` and `cancel` take its id. */
  async start(request: InteractionRequest, options: RunOptions = {}): Promise<Interaction> {
    const body = { ...request, background: true }
    return this.#transport.json<Interaction>(creation(PATH, body, options), options)
  }

  /** Runs an agent; its events as they come. Nothing is sent before the first one is asked for. */
  stream(request: InteractionRequest, options: RunOptions = {}): InteractionStream {
    const call = creation(`${PATH}:stream`, request, options)
    const start = async (each: RequestOptions) => {
      const response = await this.#transport.send(
        { ...call, headers: { ...call.headers, Accept: 'text/event-stream' } },
        each,
      )
      if (options.cancelOnAbort) this.#cancelWith(options.signal, response.headers.get('x-interaction-id'))
      return response
    }
    return new InteractionStream(this.#transport, { ...this.#source, start }, {}, options)
  }

  /** The events of an interaction behind number `after` (default: all), live until its end. */
  events(id: string, options: RequestOptions & { readonly after?: number } = {}): InteractionStream {
    return new InteractionStream(this.#transport, this.#source, { id, after: options.after }, options)
  }

  /** Waits for the end of a run that was started. Throws as `create` does. */
  wait(id: string, options: RequestOptions = {}): Promise<Interaction> {
    return this.events(id, options).final()
  }

  retrieve(id: string, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json(this.#read(id), options)
  }

  /** Newest first unless asked otherwise. */
  list(
    { labels = {}, pageToken, ...query }: InteractionQuery = {},
    options?: RequestOptions,
  ): List<InteractionSummary> {
    return new List(pageToken, async (token) => {
      const call = { ...this.#read(), query: { ...query, ...byLabel(labels), pageToken: token } }
      const { interactions, nextPageToken } = await this.#transport.json<InteractionList>(call, options)
      return { items: interactions, nextPageToken }
    })
  }

  /** Ends a run; resolves when no process of it is left. Throws ConflictError where it has ended otherwise. */
  cancel(id: string, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json({ ...this.#read(id, ':cancel'), method: 'POST' }, options)
  }

  /** Decides on tool calls that wait for a person: on those of `decisions`, or the same on all that wait. */
  approve(id: string, verdict: Approval, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json({ ...this.#read(id, ':approve'), method: 'POST', body: verdict }, options)
  }

  /** Removes an ended interaction with its events and files. */
  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...this.#read(id), method: 'DELETE' }, options)
  }

  /** The hosts outside that were turned to on its behalf. */
  audit(id: string, { pageSize, pageToken }: { pageSize?: number; pageToken?: string } = {}): List<AuditEntry> {
    return new List(pageToken, async (token) => {
      const call = { ...this.#read(id, '/audit'), query: { pageSize, pageToken: token } }
      const { entries, nextPageToken } = await this.#transport.json<{ entries: AuditEntry[]; nextPageToken?: string }>(
        call,
      )
      return { items: entries, nextPageToken }
    })
  }

  /** What became of its webhook. */
  deliveries(id: string, options?: RequestOptions): Promise<DeliveryList> {
    return this.#transport.json(this.#read(id, '/deliveries'), options)
  }

  #read(id?: string, rest = ''): Call {
    const path = id === undefined ? PATH : `${PATH}/${encodeURIComponent(id)}${rest}`
    return { method: 'GET', path, repeatable: true }
  }

  #cancelWith(signal: AbortSignal | undefined, id: string | null): void {
    if (!signal || id === null) return
    const cancel = () => void this.cancel(id).catch(() => {})
    if (signal.aborted) cancel()
    else signal.addEventListener('abort', cancel, { once: true })
  }
}

function creation(path: string, body: object, options: RunOptions): Call {
  return {
    method: 'POST',
    path,
    body,
    headers: {
      'Idempotency-Key': options.idempotencyKey ?? crypto.randomUUID(),
      ...(options.strict && { Prefer: 'handling=strict' }),
    },
    repeatable: true,
  }
}

function settle(interaction: Interaction): Interaction {
  const { status, error, interactionId } = interaction
  if (status !== 'failed' || !error) return interaction
  throw apiError({ ...error, interactionId })
}

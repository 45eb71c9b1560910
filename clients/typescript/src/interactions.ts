/** Interactions: run agents, follow, cancel and list their runs. */
import { apiError } from './api-error.ts'
import { listCall, objectCall } from './calls.ts'
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
import { InteractionStream, type StreamOptions, type StreamSource } from './stream.ts'
import type { Call, RequestOptions, Transport } from './transport.ts'

/** Fields of a new interaction. The methods set `stream` and `background`. */
export type InteractionRequest = Omit<NewInteraction, 'stream' | 'background'>

export interface RunOptions extends StreamOptions {
  /**
   * Calls with the same key and request share one run for 24 hours. If that run failed with a retryable error, the next call
   * starts a new run. Default: a new key for each call, which the retries of the call share.
   */
  readonly idempotencyKey?: string
  /** Whether aborting `signal` also cancels the run on the server. By default the run continues. */
  readonly cancelOnAbort?: boolean
  /** Whether an unusable skill or MCP server is an error instead of a warning. */
  readonly strict?: boolean
}

export interface InteractionQuery {
  readonly agentId?: string
  /** Model that the request named. */
  readonly model?: string
  readonly status?: Interaction['status']
  readonly labels?: Readonly<Record<string, string>>
  readonly order?: 'asc' | 'desc'
  readonly pageSize?: number
  readonly pageToken?: string
}

const LIST = listCall('interactions')

export class Interactions {
  readonly #transport: Transport
  readonly #source: StreamSource

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
    this.#source = {
      resume: (id, after, options) => {
        const headers = { Accept: 'text/event-stream', ...(after > 0 && { 'Last-Event-ID': String(after) }) }
        return transport.send({ ...objectCall('interactions.events', id, ':stream'), headers }, options)
      },
      retrieve: (id, options) => this.retrieve(id, options),
      cancel: (id) => this.cancel(id),
      settle,
    }
  }

  /**
   * Runs an agent and waits until it ends; resumes if the connection breaks. Throws ApiError (a class for each code; with
   * `interactionId` if the run failed), ConnectionError, AbortedError. Never starts a failed run again: see `retryable`.
   * Resolves with `status: "cancelled"` if the run is cancelled.
   */
  create(request: InteractionRequest, options?: RunOptions): Promise<Interaction> {
    return this.stream(request, options).final()
  }

  /** Starts a run and resolves when the server has accepted it. Pass its id to `retrieve`, `events`, `wait` or `cancel`. */
  async start(request: InteractionRequest, options: RunOptions = {}): Promise<Interaction> {
    const body = { ...request, background: true }
    return this.#transport.json<Interaction>(creation(LIST.path, body, options), options)
  }

  /** Runs an agent and streams its events. Sends the request when the first event is read. */
  stream(request: InteractionRequest, options: RunOptions = {}): InteractionStream {
    const call = creation(`${LIST.path}:stream`, request, options)
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

  /** Streams the events of an interaction after number `after` (default: all), until it ends. */
  events(id: string, options: StreamOptions & { readonly after?: number } = {}): InteractionStream {
    objectCall('interactions.events', id)
    return new InteractionStream(this.#transport, this.#source, { id, after: options.after }, options)
  }

  /** Waits until a started run ends. Throws as `create` does. */
  async wait(id: string, options: RequestOptions = {}): Promise<Interaction> {
    objectCall('interactions.wait', id)
    return this.events(id, options).final()
  }

  async retrieve(id: string, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json(objectCall('interactions.retrieve', id), options)
  }

  /** Lists interactions, by default newest first. */
  list(
    { labels = {}, pageToken, ...query }: InteractionQuery = {},
    options?: RequestOptions,
  ): List<InteractionSummary> {
    return new List(pageToken, async (token) => {
      const call = { ...LIST, query: { ...query, ...byLabel(labels), pageToken: token } }
      const { interactions, nextPageToken } = await this.#transport.json<InteractionList>(call, options)
      return { items: interactions, nextPageToken }
    })
  }

  /** Cancels a run; resolves when its sandbox is gone. Throws ConflictError if the run has already completed or failed. */
  async cancel(id: string, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json({ ...objectCall('interactions.cancel', id, ':cancel'), method: 'POST' }, options)
  }

  /** Approves or denies waiting tool calls: those in `decisions`, or all with the same verdict. */
  async approve(id: string, verdict: Approval, options?: RequestOptions): Promise<Interaction> {
    return this.#transport.json(
      { ...objectCall('interactions.approve', id, ':approve'), method: 'POST', body: verdict },
      options,
    )
  }

  /** Deletes an ended interaction with its events and files. */
  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...objectCall('interactions.delete', id), method: 'DELETE' }, options)
  }

  /** Lists the external hosts that the run connected to. */
  audit(id: string, { pageSize, pageToken }: { pageSize?: number; pageToken?: string } = {}): List<AuditEntry> {
    const call = objectCall('interactions.audit', id, '/audit')
    return new List(pageToken, async (token) => {
      const { entries, nextPageToken } = await this.#transport.json<{ entries: AuditEntry[]; nextPageToken?: string }>({
        ...call,
        query: { pageSize, pageToken: token },
      })
      return { items: entries, nextPageToken }
    })
  }

  /** Returns the delivery attempts of the webhook. */
  async deliveries(id: string, options?: RequestOptions): Promise<DeliveryList> {
    return this.#transport.json(objectCall('interactions.deliveries', id, '/deliveries'), options)
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

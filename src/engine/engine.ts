/** What the HTTP edge and the command line ask of the engine. */
import type { Status, StoredEvent } from '../domain/event.ts'
import type { InteractionView } from '../domain/fold.ts'
import type { Interaction, InteractionSummary, RunRequest } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import type { WebhookLog, WebhookState, WebhookSummary } from '../domain/webhook.ts'
import type { AuditPage } from '../store/audit.ts'
import type { EventPage } from '../store/events.ts'
import type { Verdict } from './agent/approval.ts'

export interface SubmitOptions {
  /** The caller's `Idempotency-Key`, with a digest of what the key stands for. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string }
  /** `Prefer: handling=strict`: what would be a warning is refused. */
  readonly strict: boolean
  readonly keyId: string
  /** Of the request, where it is traced. */
  readonly traceparent?: string | undefined
}

export interface Submitted {
  readonly interactionId: string
  /** True if an earlier request with the same idempotency key started it. */
  readonly joined: boolean
  /** The log so far, where it can be known without reading it. */
  readonly begun?: readonly StoredEvent[] | undefined
}

/** An interaction with the view its events tell. */
export interface InteractionSnapshot {
  readonly interaction: Interaction
  readonly view: InteractionView
  /** Of the end, or of the run so far. */
  readonly usage: Usage
}

/** Hears how much of a log is read, and ends the reading by what it throws. */
export interface Reading {
  /** Awaited before a log of so many events is read. */
  begin(events: number): Promise<void>
  /** A part of it was read: its size in bytes, about. */
  read(bytes: number): void
}

export interface ListQuery {
  readonly agentId?: string
  /** That was asked for. */
  readonly model?: string
  readonly status?: Status
  readonly keyId?: string
  /** Made at that time or later, and before the other; milliseconds since 1970. */
  readonly createdAfter?: number
  readonly createdBefore?: number
  readonly labels: Readonly<Record<string, string>>
  readonly pageSize: number
  /** The id that the last page ended with. */
  readonly after?: string
  readonly order: 'asc' | 'desc'
}

export interface WebhookQuery {
  readonly state?: WebhookState | undefined
  readonly pageSize: number
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

export interface WebhookPage {
  readonly webhooks: readonly WebhookSummary[]
  /** What `after` takes for the page behind; undefined on the last one. */
  readonly next: string | undefined
}

export interface Engine {
  /**
   * Accepts a run: durable when it resolves. Throws ErrandError: `not_found` (agentId, agentVersion,
   * previousInteractionId), `invalid_request` (model, strict warnings), `conflict`, `idempotency_mismatch`,
   * `unavailable` (queue full, shutting down).
   */
  submit(projectId: string, request: RunRequest, options: SubmitOptions): Promise<Submitted>
  /**
   * The events after number `after`, in order, in batches, live until `completed`; then it ends. Reads are bounded: a slow
   * consumer costs no memory. Ends early, without an error, when `signal` aborts. The interaction must exist. `known`: what
   * stands there, as `submit` told it just now: it is not read again.
   */
  follow(
    projectId: string,
    interactionId: string,
    after: number,
    signal: AbortSignal,
    known?: readonly StoredEvent[],
  ): AsyncIterable<readonly StoredEvent[]>
  /**
   * Resolves when the interaction has ended or is deleted, or when `signal` aborts. Does not read the log. The interaction
   * must exist.
   */
  waitForEnd(projectId: string, interactionId: string, signal: AbortSignal): Promise<void>
  /** The interaction without its view: cheap, however long its log. Undefined where the project has none by that id. */
  find(projectId: string, interactionId: string): Promise<Interaction | undefined>
  /** Undefined where the project has none by that id. Throws what `reading` throws. */
  get(projectId: string, interactionId: string, reading?: Reading): Promise<InteractionSnapshot | undefined>
  /**
   * Newest first unless asked otherwise. `next` is what `after` takes for the page behind. A page may have fewer than
   * `pageSize` where they are large.
   */
  list(
    projectId: string,
    query: ListQuery,
  ): Promise<{
    readonly interactions: readonly { interaction: InteractionSummary; usage: Usage }[]
    readonly next: string | undefined
  }>
  /** Its log with the times of its events. Undefined where the project has none by that id. */
  events(
    projectId: string,
    interactionId: string,
    query: { readonly pageSize: number; readonly after?: string },
  ): Promise<EventPage | undefined>
  /** Its audit, oldest first. Undefined where the project has none by that id. */
  audit(
    projectId: string,
    interactionId: string,
    query: { readonly pageSize: number; readonly after?: string },
  ): Promise<AuditPage | undefined>
  /**
   * Ends a running interaction; resolves when its sandbox is dead. Again: the same. Throws ErrandError `not_found`,
   * `conflict` (already completed or failed).
   */
  cancel(projectId: string, interactionId: string): Promise<void>
  /**
   * Decides on tool calls that wait for a person; durable when it resolves. Throws ErrandError `not_found`, `conflict`
   * (nothing waits, or it was decided otherwise).
   */
  approve(projectId: string, interactionId: string, verdict: Verdict, keyId: string): Promise<void>
  /**
   * Removes an ended interaction with its events and files; who did stays on record. Throws ErrandError `not_found`,
   * `conflict` (still running).
   */
  remove(projectId: string, interactionId: string, keyId: string): Promise<void>
  /** What became of its webhook; undefined where it has none. Throws ErrandError `not_found`. */
  webhookLog(projectId: string, interactionId: string): Promise<WebhookLog | undefined>
  /** Of all the project's interactions that have one, the newest first. */
  webhooks(projectId: string, query: WebhookQuery): Promise<WebhookPage>
  /** Able to take work: for `/readyz`. A sentence where not. */
  ready(): Promise<true | string>
  /** Takes no more work, waits up to `graceMs` for what runs, hands over the rest, stops. Idempotent. */
  close(graceMs: number): Promise<void>
}

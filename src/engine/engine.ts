/** The engine's interface for the HTTP server and the command line. */
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
  /** `Prefer: handling=strict`: some warnings become errors. */
  readonly strict: boolean
  readonly keyId: string
  /** W3C trace context of the request, if it is traced. */
  readonly traceparent?: string | undefined
}

export interface Submitted {
  readonly interactionId: string
  /** True if an earlier request with the same idempotency key started it. */
  readonly joined: boolean
  /** The first events, if they are known without a read. */
  readonly begun?: readonly StoredEvent[] | undefined
}

/** An interaction with the view of its events. */
export interface InteractionSnapshot {
  readonly interaction: Interaction
  readonly view: InteractionView
  /** Final usage, or usage so far. */
  readonly usage: Usage
}

/** Observes how much of a log is read. Throws to abort the read. */
export interface Reading {
  /** Awaited before a log of so many events is read. */
  begin(events: number): Promise<void>
  /** A part of it was read: its size in bytes, about. */
  read(bytes: number): void
}

export interface ListQuery {
  readonly agentId?: string
  /** The requested model. */
  readonly model?: string
  readonly status?: Status
  readonly keyId?: string
  /** Creation time: from `createdAfter` to before `createdBefore`, in milliseconds since 1970. */
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
  /** Value of `after` for the next page; undefined on the last one. */
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
   * The events after number `after`, in order, in batches, live until `completed`; then it ends. Memory is bounded,
   * however slow the consumer is. Ends early, without an error, when `signal` aborts. The interaction must exist. `known`:
   * the first events from `submit`, which are not read again.
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
  /** The interaction without its view. Cheap for logs of any length. Undefined if the project has no such interaction. */
  find(projectId: string, interactionId: string): Promise<Interaction | undefined>
  /** Undefined if the project has no such interaction. Throws what `reading` throws. */
  get(projectId: string, interactionId: string, reading?: Reading): Promise<InteractionSnapshot | undefined>
  /**
   * Newest first by default. `next` is the value of `after` for the next page. A page of large interactions may have fewer
   * than `pageSize` entries.
   */
  list(
    projectId: string,
    query: ListQuery,
  ): Promise<{
    readonly interactions: readonly { interaction: InteractionSummary; usage: Usage }[]
    readonly next: string | undefined
  }>
  /** The log with the times of its events. Undefined if the project has no such interaction. */
  events(
    projectId: string,
    interactionId: string,
    query: { readonly pageSize: number; readonly after?: string },
  ): Promise<EventPage | undefined>
  /** The audit log of connections, oldest first. Undefined if the project has no such interaction. */
  audit(
    projectId: string,
    interactionId: string,
    query: { readonly pageSize: number; readonly after?: string },
  ): Promise<AuditPage | undefined>
  /**
   * Ends a running interaction; resolves when its sandbox is dead. Idempotent. Throws ErrandError `not_found`,
   * `conflict` (already completed or failed).
   */
  cancel(projectId: string, interactionId: string): Promise<void>
  /**
   * Approves or denies waiting tool calls; durable when it resolves. Throws ErrandError `not_found`, `conflict`
   * (nothing waits, or it was decided otherwise).
   */
  approve(projectId: string, interactionId: string, verdict: Verdict, keyId: string): Promise<void>
  /**
   * Removes an ended interaction with its events and files. A record of the removal stays. Throws ErrandError `not_found`,
   * `conflict` (still running).
   */
  remove(projectId: string, interactionId: string, keyId: string): Promise<void>
  /** The deliveries of its webhook; undefined without one. Throws ErrandError `not_found`. */
  webhookLog(projectId: string, interactionId: string): Promise<WebhookLog | undefined>
  /** Webhooks of all the project's interactions, newest first. */
  webhooks(projectId: string, query: WebhookQuery): Promise<WebhookPage>
  /** True if the engine can accept work, else the reason. For `/readyz`. */
  ready(): Promise<true | string>
  /** Accepts no more work, waits up to `graceMs` for running interactions, requeues the rest, and stops. Idempotent. */
  close(graceMs: number): Promise<void>
}

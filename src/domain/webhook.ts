/** Being told of an interaction's end at an address of the caller's. */

export interface WebhookRequest {
  /** As the caller wrote it: it may hold a secret. Checked when the run is accepted, sealed where it is stored. */
  readonly url: string
  /** In which revision's words it is told. */
  readonly revision: string
}

/** `pending` until the end was told (`delivered`), the receiver said that it wants none (`gone`), or it was given up (`failed`). */
export type WebhookState = 'pending' | 'delivered' | 'gone' | 'failed'

/** One attempt to tell. */
export interface Delivery {
  /** From 1. */
  readonly attempt: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly durationMs: number
  /** Of the receiver's answer; undefined where there was none. */
  readonly status?: number
  /** Why it counts as failed, in words. */
  readonly error?: string
}

/** One interaction's webhook, in a list of all. */
export interface WebhookSummary extends Omit<WebhookLog, 'deliveries'> {
  readonly interactionId: string
  /** Who is told: the rest of the address may be a secret. */
  readonly host: string
  /** Those that were begun. */
  readonly attempts: number
  readonly last?: Delivery
}

export interface WebhookLog {
  readonly state: WebhookState
  /** When it is tried next, milliseconds since 1970; undefined where it is over, or the interaction still runs. */
  readonly nextAt?: number
  /** Oldest first. */
  readonly deliveries: readonly Delivery[]
}

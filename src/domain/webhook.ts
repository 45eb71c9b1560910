/** Webhooks: notifications about the end of an interaction, sent to the caller's URL. */

export interface WebhookRequest {
  /** The caller's URL, which may contain a secret. Checked when the run is accepted; stored sealed. */
  readonly url: string
  /** The API revision of the notification's body. */
  readonly revision: string
}

/** `delivered`: the receiver accepted it. `gone`: the receiver wants no more. `failed`: all attempts failed. */
export type WebhookState = 'pending' | 'delivered' | 'gone' | 'failed'

/** One delivery attempt. */
export interface Delivery {
  /** From 1. */
  readonly attempt: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly durationMs: number
  /** HTTP status of the receiver's response; undefined if there was none. */
  readonly status?: number
  /** Why the attempt failed. */
  readonly error?: string
}

/** One interaction's webhook, in a list of all. */
export interface WebhookSummary extends Omit<WebhookLog, 'deliveries'> {
  readonly interactionId: string
  /** Host of the receiver. The rest of its URL may be a secret. */
  readonly host: string
  /** Number of started attempts. */
  readonly attempts: number
  readonly last?: Delivery
}

export interface WebhookLog {
  readonly state: WebhookState
  /** Time of the next attempt, in milliseconds since 1970. Undefined after the last one, and while the interaction runs. */
  readonly nextAt?: number
  /** Oldest first. */
  readonly deliveries: readonly Delivery[]
}

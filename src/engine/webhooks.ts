/**
 * Delivers webhooks about the end of interactions, signed according to Standard Webhooks (standardwebhooks.com), through the
 * egress guard.
 *
 *   interaction over ──▶ due ──claim──▶ sending ──2xx──▶ delivered
 *                         ▲               ├──410──────▶ gone
 *                         └──── later ────┴──otherwise, eleven times in a day──▶ failed
 *
 * At least once: if a node dies while it sends, its claim expires, and the next attempt has the same `webhook-id`. The URL and
 * the signing secret never appear in a log.
 */
import { createHmac } from 'node:crypto'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import type { Interaction, RunRequest } from '../domain/interaction.ts'
import { type Egress, EgressError } from '../egress/port.ts'
import { insertAudit } from '../store/audit.ts'
import { findInteraction } from '../store/interactions.ts'
import { claimDueWebhook, type DueWebhook, recordDelivery } from '../store/webhooks.ts'
import type { EngineDependencies } from './dependencies.ts'

/** Delays between attempts, in seconds. Together about a day. */
const DELAYS_S = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 36_000]
const SEND_MS = 20_000
/** Lease of an attempt. Longer than an attempt can take. */
const LEASE_MS = 45_000
const POLL_MS = 2_000
const AT_ONCE = 16
const AT_ONCE_PER_PROJECT = 4
/** Maximum size of a response. Only its status is used. */
const MAX_ANSWER_BYTES = 64 * 1024

export interface WebhookOptions {
  readonly deps: Pick<EngineDependencies, 'db' | 'egress' | 'vault' | 'log' | 'now' | 'emit'>
  /** `whsec_…` of a project. */
  readonly secretOf: (projectId: string) => string
  /** The event's `type`, `timestamp` and `data` in the form of an API revision. */
  readonly encode: (interaction: Interaction, revision: string) => object
  /** For tests. */
  readonly delaysMs?: readonly number[]
}

export interface Webhooks {
  /** Call when an interaction may have ended. */
  wake(): void
  /** Aborts deliveries under way. Another process sends them again. */
  close(): Promise<void>
}

/** Throws ErrandError `invalid_request` for a URL that the egress guard always refuses. */
export function refuseWebhook(egress: Egress, webhook: RunRequest['webhook']): void {
  const fault = webhook && egress.faultOf(webhook.url)
  if (!fault) return
  const param = 'webhook.url'
  throw new ErrandError('invalid_request', `\`${param}\` ${fault}.`, { param })
}

/** The owner that a webhook's URL is sealed for. */
export function webhookOwner(interactionId: string): readonly string[] {
  return ['webhook', interactionId]
}

export function openWebhooks({ deps, secretOf, encode, delaysMs }: WebhookOptions): Webhooks {
  const { db, log } = deps
  const delays = delaysMs ?? DELAYS_S.map((seconds) => seconds * 1_000)
  const sending = new Map<Promise<void>, string>()
  const closing = new AbortController()
  let claiming: Promise<void> | undefined
  let wokenMeanwhile = false
  const poll = setInterval(wake, POLL_MS)
  wake()

  function wake(): void {
    if (closing.signal.aborted) return
    if (claiming) wokenMeanwhile = true
    else {
      claiming = claimDue()
        .catch((error) => log.error({ err: error }, 'could not look for webhooks'))
        .finally(() => {
          claiming = undefined
        })
    }
  }

  async function claimDue(): Promise<void> {
    do {
      wokenMeanwhile = false
      while (sending.size < AT_ONCE && !closing.signal.aborted) {
        const due = await claimDueWebhook(db, LEASE_MS, busyProjects())
        if (!due) break
        const sent = deliver(due)
          .catch((error) => log.error({ err: error, interactionId: due.interactionId }, 'could not process a webhook'))
          .finally(() => {
            sending.delete(sent)
            wake()
          })
        sending.set(sent, due.projectId)
      }
    } while (wokenMeanwhile)
  }

  /** Projects at their limit: one project's slow receivers must not delay the others'. */
  function busyProjects(): string[] {
    const counts = new Map<string, number>()
    for (const project of sending.values()) counts.set(project, (counts.get(project) ?? 0) + 1)
    return [...counts].flatMap(([project, count]) => (count >= AT_ONCE_PER_PROJECT ? [project] : []))
  }

  async function deliver(due: DueWebhook): Promise<void> {
    const { interactionId, attempt } = due
    const interaction = await findInteraction(db, interactionId)
    if (!interaction) return
    const at = deps.now()
    const startedAt = performance.now()
    const outcome = await send(due, JSON.stringify(encode(interaction, due.revision)))
    if (closing.signal.aborted) return
    const state = stateAfter(outcome.status, attempt > delays.length)
    const inMs = (delays[attempt - 1] ?? 0) * (0.8 + 0.4 * Math.random())
    const delivery = { at, durationMs: Math.round(performance.now() - startedAt), ...outcome }
    await recordDelivery(db, due, delivery, { state, inMs })
    deps.emit({ type: 'webhook_sent', state, ms: delivery.durationMs })
    log.info({ interactionId, attempt, status: outcome.status, state }, 'webhook')
  }

  async function send(due: DueWebhook, body: string): Promise<{ status?: number; error?: string }> {
    try {
      const timestamp = Math.floor(deps.now() / 1_000)
      const answer = await deps.egress.fetch(deps.vault.unseal(due.sealedUrl, webhookOwner(due.interactionId)), {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          'api-revision': due.revision,
          'webhook-id': due.interactionId,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': sign(secretOf(due.projectId), due.interactionId, timestamp, body),
        },
        redirect: 'manual',
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: SEND_MS,
        signal: closing.signal,
        // Bypasses the run's auditor: a full audit log must not block the webhook.
        onConnect: (connection) => insertAudit(db, due.interactionId, { ...connection, ...auditKey(deps.now()) }),
      })
      answer.close()
      const { status } = answer
      return isSuccess(status) ? { status } : { status, error: `The answer was ${status}${hint(status)}.` }
    } catch (error) {
      if (error instanceof EgressError) return { error: error.message }
      if (!closing.signal.aborted)
        log.error({ err: error, interactionId: due.interactionId }, 'a webhook could not be sent')
      return { error: 'The webhook could not be sent; the server log has details.' }
    }
  }

  return {
    wake,
    async close() {
      closing.abort(new Error('the server is stopping'))
      clearInterval(poll)
      await claiming
      await Promise.all(sending.keys())
    },
  }
}

function auditKey(at: number) {
  return { id: newId('aud', at), at, kind: 'webhook' as const }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

function stateAfter(status: number | undefined, wasLast: boolean) {
  if (status !== undefined && isSuccess(status)) return 'delivered'
  if (status === 410) return 'gone'
  return wasLast ? 'failed' : 'pending'
}

function hint(status: number): string {
  if (status >= 300 && status < 400) return ', a redirect, which is not followed'
  return status === 410 ? ', so nothing more is sent' : ''
}

function sign(secret: string, id: string, timestamp: number, body: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

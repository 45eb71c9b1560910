/**
 * Webhooks of interactions, and the log of deliveries. A webhook is due once its interaction is over. A node that claims it
 * moves `next_at` past its own timeout, on the database's clock, so that no two nodes send it.
 */
import { sql } from 'kysely'
import type { Delivery, WebhookLog, WebhookState, WebhookSummary } from '../domain/webhook.ts'
import { databaseNow, fromNow } from './clock.ts'
import { textsOf } from './json-list.ts'
import { type Database, fenced, type Statement, wasMade } from './port.ts'

/** A claimed webhook, to be sent now. */
export interface DueWebhook {
  readonly interactionId: string
  readonly projectId: string
  readonly sealedUrl: string
  readonly revision: string
  /** Number of this attempt, from 1. */
  readonly attempt: number
}

export function insertWebhook(
  db: Database,
  row: {
    readonly interactionId: string
    readonly projectId: string
    readonly sealedUrl: string
    readonly revision: string
  },
): Statement {
  return {
    query: db.query
      .insertInto('webhooks')
      .values({
        interaction_id: row.interactionId,
        project_id: row.projectId,
        url: row.sealedUrl,
        revision: row.revision,
        state: 'pending',
        attempts: 0,
        next_at: 0,
      })
      .compile(),
  }
}

/** Claims the webhook that has been due longest. `except`: projects at their limit. Undefined if none is due or another node was faster. */
export async function claimDueWebhook(
  db: Database,
  leaseMs: number,
  except: readonly string[],
): Promise<DueWebhook | undefined> {
  const row = await db.query
    .selectFrom('webhooks as w')
    .innerJoin('interactions as i', 'i.id', 'w.interaction_id')
    .select(['w.interaction_id', 'w.project_id', 'w.url', 'w.revision', 'w.attempts'])
    .where('w.state', '=', sql.lit('pending'))
    .where('w.next_at', '<=', databaseNow(db.dialect))
    .where('i.status', '<>', sql.lit('running'))
    .where('w.project_id', 'not in', textsOf(db.dialect, JSON.stringify(except)))
    .orderBy('w.next_at')
    .limit(1)
    .executeTakeFirst()
  if (!row) return undefined
  const attempts = Number(row.attempts)
  const claim = db.query
    .updateTable('webhooks')
    .set({ attempts: attempts + 1, next_at: fromNow(db.dialect, leaseMs) })
    .where('interaction_id', '=', row.interaction_id)
    .where('state', '=', 'pending')
    .where('attempts', '=', attempts)
    .where('next_at', '<=', databaseNow(db.dialect))
    .compile()
  if (!wasMade(await db.write([fenced(claim)]), 'fence')) return undefined
  return {
    interactionId: row.interaction_id,
    projectId: row.project_id,
    sealedUrl: row.url,
    revision: row.revision,
    attempt: attempts + 1,
  }
}

/** Records the result of an attempt. Ignored if the webhook was claimed again since, or its interaction was removed. */
export async function recordDelivery(
  db: Database,
  { interactionId, attempt }: DueWebhook,
  delivery: Omit<Delivery, 'attempt'>,
  next: { readonly state: WebhookState; readonly inMs: number },
): Promise<void> {
  const { at, durationMs, status = null, error = null } = delivery
  const result = await db.write([
    fenced(
      db.query
        .updateTable('webhooks')
        .set({ state: next.state, next_at: fromNow(db.dialect, next.inMs) })
        .where('interaction_id', '=', interactionId)
        .where('attempts', '=', attempt)
        .compile(),
    ),
    {
      query: db.query
        .insertInto('webhook_deliveries')
        .values({ interaction_id: interactionId, attempt, at, duration_ms: durationMs, status, error })
        .compile(),
    },
  ])
  // A taken key means that an earlier try was committed and its response lost.
  wasMade(result, 'fence', 'unique')
}

/** Undefined if the interaction has no webhook. */
export async function readWebhookLog(db: Database, interactionId: string): Promise<WebhookLog | undefined> {
  const row = await db.query
    .selectFrom('webhooks')
    .select(['state', 'attempts', 'next_at'])
    .where('interaction_id', '=', interactionId)
    .executeTakeFirst()
  if (!row) return undefined
  const rows = await db.query
    .selectFrom('webhook_deliveries')
    .select(['attempt', 'at', 'duration_ms', 'status', 'error'])
    .where('interaction_id', '=', interactionId)
    .orderBy('attempt')
    .execute()
  const begun = row.state === 'pending' && Number(row.attempts) > 0
  return {
    state: row.state as WebhookState,
    ...(begun && { nextAt: Number(row.next_at) }),
    deliveries: rows.map(({ attempt, at, duration_ms, status, error }) => ({
      attempt: Number(attempt),
      at: Number(at),
      durationMs: Number(duration_ms),
      ...(status !== null && { status: Number(status) }),
      ...(error !== null && { error }),
    })),
  }
}

export interface WebhookQuery {
  readonly state?: WebhookState | undefined
  readonly pageSize: number
  readonly after?: string | undefined
}

export interface SealedWebhook extends Omit<WebhookSummary, 'host'> {
  readonly sealedUrl: string
}

/** Webhooks of a project, newest interaction first. */
export async function listWebhooks(
  db: Database,
  projectId: string,
  { state, pageSize, after }: WebhookQuery,
): Promise<{ readonly rows: readonly SealedWebhook[]; readonly next: string | undefined }> {
  let select = db.query
    .selectFrom('webhooks as w')
    .innerJoin('interactions as i', 'i.id', 'w.interaction_id')
    // The last finished attempt: a later one may still be under way.
    .leftJoin('webhook_deliveries as d', (join) =>
      join.onRef('d.interaction_id', '=', 'w.interaction_id').on((eb) =>
        eb(
          'd.attempt',
          '=',
          eb
            .selectFrom('webhook_deliveries as newer')
            .whereRef('newer.interaction_id', '=', 'w.interaction_id')
            .select((of) => of.fn.max('newer.attempt').as('attempt')),
        ),
      ),
    )
    .select(['w.interaction_id', 'w.url', 'w.state', 'w.attempts', 'w.next_at', 'i.status as runs'])
    .select(['d.attempt', 'd.at', 'd.duration_ms', 'd.status', 'd.error'])
    .where('w.project_id', '=', projectId)
  if (state !== undefined) select = select.where('w.state', '=', state)
  if (after !== undefined) select = select.where('w.interaction_id', '<', after)
  const found = await select
    .orderBy('w.interaction_id', 'desc')
    .limit(pageSize + 1)
    .execute()
  const rows = found.slice(0, pageSize).map((row) => ({
    interactionId: row.interaction_id,
    sealedUrl: row.url,
    state: row.state as WebhookState,
    attempts: Number(row.attempts),
    ...(row.state === 'pending' && row.runs !== 'running' && { nextAt: Number(row.next_at) }),
    ...(row.attempt !== null && {
      last: {
        attempt: Number(row.attempt),
        at: Number(row.at),
        durationMs: Number(row.duration_ms),
        ...(row.status !== null && { status: Number(row.status) }),
        ...(row.error !== null && { error: row.error }),
      },
    }),
  }))
  return { rows, next: found.length > pageSize ? rows.at(-1)!.interactionId : undefined }
}

/** Number of undelivered webhooks of ended interactions. */
export async function countPendingWebhooks(db: Database): Promise<number> {
  const { count } = await db.query
    .selectFrom('webhooks as w')
    .innerJoin('interactions as i', 'i.id', 'w.interaction_id')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('w.state', '=', sql.lit('pending'))
    .where('i.status', '<>', sql.lit('running'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

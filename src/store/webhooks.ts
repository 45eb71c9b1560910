/**
 * Webhooks of interactions, and the log of what was sent. A row waits while its interaction runs and is due when that is
 * over; whoever claims it moves `next_at` behind its own time-out, by the database's clock, so that two nodes don't both send.
 */
import { sql } from 'kysely'
import type { Delivery, WebhookLog, WebhookState, WebhookSummary } from '../domain/webhook.ts'
import { databaseNow, fromNow } from './clock.ts'
import { textsOf } from './lists.ts'
import { type Database, fenced, type Statement, wasMade } from './port.ts'

/** A webhook that was claimed: to be told now. */
export interface DueWebhook {
  readonly interactionId: string
  readonly projectId: string
  readonly sealedUrl: string
  readonly revision: string
  /** Which attempt this is, from 1. */
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

/** The one that is due longest. `except`: projects that have enough under way. Undefined where none is due, or others took it. */
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

/** What came of a claimed attempt. Ignored where somebody claimed it since, or the interaction was removed. */
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
  // Taken: it was written before, and the answer to that got lost.
  wasMade(result, 'fence', 'unique')
}

/** Undefined where the interaction has no webhook. */
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

/** Of the project that the database is seen as, by interaction, newest first. */
export async function listWebhooks(
  db: Database,
  projectId: string,
  { state, pageSize, after }: WebhookQuery,
): Promise<{ readonly rows: readonly SealedWebhook[]; readonly next: string | undefined }> {
  let select = db.query
    .selectFrom('webhooks as w')
    .innerJoin('interactions as i', 'i.id', 'w.interaction_id')
    // The attempt that was begun last may not be over.
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

/** How many are yet to be delivered of interactions that are over. */
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

/**
 * The log of an interaction: fenced append, read by range, and the two ways a log ends.
 *
 * Invariants: events are numbered 1..n without a gap; only the holder of the row's epoch appends; the terminal event is
 * written in one transaction with the status, and nothing is written after it.
 */

import { sql } from 'kysely'
import type { RunError } from '../domain/errors.ts'
import { encodeEvent, type RunEvent, type Stage, type StoredEvent } from '../domain/event.ts'
import type { StoredFile } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import { databaseNow } from './clock.ts'
import { fixedQuery } from './fixed-query.ts'
import { type Database, fenced, type Statement } from './port.ts'
import type { EventsTable } from './tables.ts'
import { type CountedFor, usageStatement } from './usage.ts'

/** The fencing token of a writer: its epoch, and the number of the last event that it knows. */
export interface Fence {
  readonly id: string
  readonly epoch: number
  readonly lastSeq: number
}

/** Numbers events from `after` + 1. */
export function numberEvents(events: readonly RunEvent[], after: number): StoredEvent[] {
  return events.map((event, i) => ({ seq: after + 1 + i, type: event.type, data: encodeEvent(event) }))
}

const advance = fixedQuery((db, to: { lastSeq: number; stage: string; id: string; epoch: number; from: number }) =>
  db.query
    .updateTable('interactions')
    .set({ last_seq: to.lastSeq, stage: to.stage })
    .where('id', '=', to.id)
    .where('epoch', '=', to.epoch)
    .where('last_seq', '=', to.from)
    .where('status', '=', sql.lit('running')),
)

const insertEvent = fixedQuery((db, row: EventsTable) =>
  db.query
    .insertInto('events')
    .values({ interaction_id: row.interaction_id, seq: row.seq, type: row.type, data: row.data, at: row.at }),
)

/** Inserts the events' rows only. The same write must update the interaction's row. */
function insertEvents(db: Database, id: string, events: readonly StoredEvent[], at: number): Statement[] {
  return events.map(({ seq, type, data }) => ({ query: insertEvent(db, { interaction_id: id, seq, type, data, at }) }))
}

const insertFirstEvent = fixedQuery((db, row: Omit<EventsTable, 'at'>) =>
  db.query.insertInto('events').values({
    interaction_id: row.interaction_id,
    seq: row.seq,
    type: row.type,
    data: row.data,
    at: databaseNow(db.dialect),
  }),
)

/** Inserts the first events of a new interaction. Their time is the database's, like that of the interaction's row. */
export function insertFirstEvents(db: Database, id: string, events: readonly StoredEvent[]): Statement[] {
  return events.map(({ seq, type, data }) => ({ query: insertFirstEvent(db, { interaction_id: id, seq, type, data }) }))
}

/** Updates the interaction's row under the fence, then inserts the events. If the fence fails, nothing is written. */
export function appendStatements(
  db: Database,
  { id, epoch, lastSeq }: Fence,
  events: readonly StoredEvent[],
  stage: Stage,
  at: number,
): Statement[] {
  const to = { lastSeq: lastSeq + events.length, stage, id, epoch, from: lastSeq }
  return [fenced(advance(db, to)), ...insertEvents(db, id, events, at)]
}

/** The end of an interaction: its last events, status and usage. */
export interface Ending {
  readonly events: readonly RunEvent[]
  readonly status: string
  readonly usage: Usage
  readonly countedFor: CountedFor
  readonly stopReason?: string
  readonly error?: RunError
  readonly at: number
}

type EndColumns = ReturnType<typeof endColumns>

/** Ends the interaction and releases the lease of the worker that writes this. */
const endRow = fixedQuery((db, to: EndColumns & { id: string; epoch: number; from: number; lastSeq: number }) =>
  db.query
    .updateTable('interactions')
    .set({
      status: to.status,
      ended_at: to.ended_at,
      usage: to.usage,
      stop_reason: to.stop_reason,
      error: to.error,
      lease_owner: sql.lit(null),
      lease_until: sql.lit(0),
      last_seq: to.lastSeq,
    })
    .where('id', '=', to.id)
    .where('epoch', '=', to.epoch)
    .where('status', '=', sql.lit('running'))
    .where('last_seq', '=', to.from),
)

/** The end, written by the worker that holds the fence: last events, status and usage in one transaction. */
export function endStatements(db: Database, fence: Fence, events: readonly StoredEvent[], ending: Ending): Statement[] {
  const { id, epoch, lastSeq: from } = fence
  const end = endRow(db, { ...endColumns(ending), id, epoch, from, lastSeq: from + events.length })
  return [fenced(end), ...insertEvents(db, id, events, ending.at), usageStatement(db, id, ending)]
}

/**
 * The end, written from outside: a cancellation, or an interaction without a worker. It raises the epoch, so the former
 * worker can write nothing more; that worker keeps the lease until it has cleaned up (leases.ts). Statement 0 returns
 * `last_seq`. It affects no row if the interaction is already over or, with `epoch`, was claimed since.
 */
export function endFromOutside(db: Database, id: string, ending: Ending, epoch?: number): Statement[] {
  const count = ending.events.length
  let end = db.query
    .updateTable('interactions')
    .set((eb) => ({
      ...endColumns(ending),
      epoch: eb('epoch', '+', 1),
      last_seq: eb('last_seq', '+', count),
    }))
    .where('id', '=', id)
    .where('status', '=', 'running')
  if (epoch !== undefined) end = end.where('epoch', '=', epoch)
  return [
    fenced(end.returning('last_seq').compile()),
    ...ending.events.map((event, i) => ({
      query: db.query
        .insertInto('events')
        .columns(['interaction_id', 'seq', 'type', 'data', 'at'])
        .expression((eb) =>
          eb
            .selectFrom('interactions')
            .select((s) => [
              'id',
              s('last_seq', '-', count - 1 - i).as('seq'),
              s.val(event.type).as('type'),
              s.val(encodeEvent(event)).as('data'),
              s.val(ending.at).as('at'),
            ])
            .where('id', '=', id),
        )
        .compile(),
    })),
    usageStatement(db, id, ending),
  ]
}

function endColumns(ending: Ending) {
  return {
    status: ending.status,
    ended_at: ending.at,
    usage: JSON.stringify(ending.usage),
    stop_reason: ending.stopReason ?? null,
    error: ending.error ? JSON.stringify(ending.error) : null,
  }
}

/** Sets the run's output files under the fence; the list may be empty. Part of an append's write. */
export function outputFilesStatement(
  db: Database,
  fence: Pick<Fence, 'id' | 'epoch'>,
  files: readonly StoredFile[],
): Statement {
  const query = db.query
    .updateTable('interactions')
    .set({ output_files: JSON.stringify(files) })
    .where('id', '=', fence.id)
    .where('epoch', '=', fence.epoch)
  return fenced(query.compile())
}

/** True if the run's output files were set. */
export async function outputsTaken(db: Database, id: string): Promise<boolean> {
  const row = await db.query.selectFrom('interactions').select('output_files').where('id', '=', id).executeTakeFirst()
  return row !== undefined && row.output_files !== null
}

/** The number of its tool calls that have a result. */
export async function countToolResults(db: Database, id: string): Promise<number> {
  const { count } = await db.query
    .selectFrom('events')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('interaction_id', '=', id)
    .where('type', '=', 'tool_result')
    .executeTakeFirstOrThrow()
  return Number(count)
}

const eventsAfter = fixedQuery((db, page: { id: string; after: number; limit: number }) =>
  db.query
    .selectFrom('events')
    .select(['seq', 'type', 'data'])
    .where('interaction_id', '=', page.id)
    .where('seq', '>', page.after)
    .orderBy('seq')
    .limit(page.limit),
)

/** More events than an interaction can have: reads a whole log. */
export const ALL_EVENTS = 1_000_000

/** Events after number `after`, at most `limit`. */
export async function readEvents(db: Database, id: string, after: number, limit: number): Promise<StoredEvent[]> {
  return (await db.read(eventsAfter(db, { id, after, limit }))) as StoredEvent[]
}

export interface TimedEvent extends StoredEvent {
  /** Time when it was stored, milliseconds since the Unix epoch. */
  readonly at: number
}

export interface EventPage {
  readonly events: readonly TimedEvent[]
  /** The `after` of the next page; undefined on the last page. */
  readonly next: string | undefined
}

/** One page of the log, in order, with times. `after` is the number of an event. */
export async function listEvents(
  db: Database,
  id: string,
  { pageSize, after = '0' }: { readonly pageSize: number; readonly after?: string },
): Promise<EventPage> {
  const rows = await db.query
    .selectFrom('events')
    .select(['seq', 'type', 'data', 'at'])
    .where('interaction_id', '=', id)
    .where('seq', '>', Number(after))
    .orderBy('seq')
    .limit(pageSize + 1)
    .execute()
  const events = rows.slice(0, pageSize).map((row) => ({ ...row, at: Number(row.at) }) as TimedEvent)
  return { events, next: rows.length > pageSize ? String(events.at(-1)?.seq) : undefined }
}

/** The status, epoch and last event number. Undefined if there is no such interaction. */
export async function readProgress(
  db: Database,
  id: string,
): Promise<(Pick<Fence, 'epoch' | 'lastSeq'> & { readonly status: string }) | undefined> {
  const row = await db.query
    .selectFrom('interactions')
    .select(['status', 'epoch', 'last_seq'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { status: row.status, epoch: Number(row.epoch), lastSeq: Number(row.last_seq) }
}

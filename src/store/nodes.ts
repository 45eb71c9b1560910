/** The processes on this database: each writes now and then that it lives, and what the others are to know of it. */
import { sql } from 'kysely'
import { databaseNow, fromNow } from './clock.ts'
import type { Database } from './port.ts'

/** After so long without a sign of life a node counts as gone. */
const ALIVE_MS = 20_000
/** What a worker told is of use to an api for as long, where no other lives. */
const FORGOTTEN_MS = 3_600_000

export interface NodeSign {
  readonly id: string
  readonly role: string
  readonly version: string
  /** JSON: what its sandboxes are. */
  readonly facts: string
  /** JSON: how the models did lately, by their names. */
  readonly models: string
}

export interface StoredNode extends NodeSign {
  readonly startedAt: number
  readonly alive: boolean
}

export async function signOfLife(db: Database, { id, role, version, facts, models }: NodeSign): Promise<void> {
  const now = databaseNow(db.dialect)
  await db.write([
    {
      query: db.query
        .insertInto('nodes')
        .values({ id, role, version, facts, models, started_at: now, seen_at: now })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: now, models }))
        .compile(),
    },
    { query: db.query.deleteFrom('nodes').where('seen_at', '<', fromNow(db.dialect, -FORGOTTEN_MS)).compile() },
  ])
}

/** Of a node that stops. Its facts stay, for as long as those of one that was killed. */
export async function lastSign(db: Database, id: string): Promise<void> {
  const gone = fromNow(db.dialect, -ALIVE_MS)
  await db.write([{ query: db.query.updateTable('nodes').set({ seen_at: gone }).where('id', '=', id).compile() }])
}

/** Those that were seen last come first. */
export async function readNodes(db: Database): Promise<StoredNode[]> {
  const rows = await db.query
    .selectFrom('nodes')
    .select(['id', 'role', 'version', 'facts', 'models', 'started_at'])
    .select(sql<boolean>`seen_at > ${fromNow(db.dialect, -ALIVE_MS)}`.as('alive'))
    .orderBy('seen_at', 'desc')
    .execute()
  return rows.map(({ started_at, alive, ...row }) => ({ ...row, startedAt: Number(started_at), alive: Boolean(alive) }))
}

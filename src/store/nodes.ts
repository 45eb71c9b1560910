/** Nodes: the processes on this database. Each writes a heartbeat, with facts that the other nodes need. */
import { sql } from 'kysely'
import { databaseNow, fromNow } from './clock.ts'
import type { Database } from './port.ts'

/** A node without a heartbeat for this long counts as dead. */
const ALIVE_MS = 20_000
/** Retention of a dead node's facts: an api node uses them while no worker is alive. */
const FORGOTTEN_MS = 3_600_000

export interface Heartbeat {
  readonly id: string
  readonly role: string
  readonly version: string
  /** JSON: properties of its sandboxes. */
  readonly facts: string
  /** JSON: recent health of the models, by name. */
  readonly models: string
}

export interface StoredNode extends Heartbeat {
  readonly startedAt: number
  readonly alive: boolean
}

/** Writes this node's heartbeat, and deletes nodes that have been dead for FORGOTTEN_MS. */
export async function writeHeartbeat(db: Database, { id, role, version, facts, models }: Heartbeat): Promise<void> {
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

/** Marks a stopping node as dead. Its row is kept as long as that of a killed node. */
export async function markStopped(db: Database, id: string): Promise<void> {
  const gone = fromNow(db.dialect, -ALIVE_MS)
  await db.write([{ query: db.query.updateTable('nodes').set({ seen_at: gone }).where('id', '=', id).compile() }])
}

/** All known nodes, the latest heartbeat first. */
export async function readNodes(db: Database): Promise<StoredNode[]> {
  const rows = await db.query
    .selectFrom('nodes')
    .select(['id', 'role', 'version', 'facts', 'models', 'started_at'])
    .select(sql<boolean>`seen_at > ${fromNow(db.dialect, -ALIVE_MS)}`.as('alive'))
    .orderBy('seen_at', 'desc')
    .execute()
  return rows.map(({ started_at, alive, ...row }) => ({ ...row, startedAt: Number(started_at), alive: Boolean(alive) }))
}

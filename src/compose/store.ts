/** The database, wake-ups between nodes, and the node's entry in the table of nodes. */
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { newId } from '../domain/ids.ts'
import { VERSION } from '../domain/version.ts'
import { type Nodes, openNodes } from '../engine/queue/nodes.ts'
import { announceProcess, loadDataDirectoryId } from '../sandbox/data-directory.ts'
import type { Database } from '../store/port.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { NO_WAKEUPS, type Wakeups } from '../store/wakeups.ts'
import { emitDatabaseWrites } from '../store/write-telemetry.ts'
import type { Emit } from '../telemetry/events.ts'
import type { Log } from '../telemetry/log.ts'
import type { ComposeContext } from './context.ts'

export interface Store {
  readonly db: Database
  readonly wakeups: Wakeups
  /** Identifies this process in the leases that it holds. */
  readonly owner: string
  /** Undefined with SQLite, which one node uses alone. */
  readonly nodes: Nodes | undefined
}

export async function openStore({ config, mode, log, emit, closers }: ComposeContext): Promise<Store> {
  const db = emitDatabaseWrites(closers.add(await openDatabase(config, log, emit)), emit)
  const wakeups = closers.add(await openWakeups(config, log))
  const owner = `${loadDataDirectoryId(config.dataDir)}.${newId('req')}`
  closers.add(await announceProcess(owner))
  if (config.databaseUrl === undefined) return { db, wakeups, owner, nodes: undefined }
  const self = mode === 'serve' ? { id: owner, role: config.role, version: VERSION } : undefined
  return { db, wakeups, owner, nodes: closers.add(await openNodes({ db, log, self })) }
}

/** The caller closes it. */
export async function openDatabase(
  { databaseUrl, databasePool, dataDir }: Config,
  log: Log,
  emit?: Emit,
): Promise<Database> {
  if (databaseUrl === undefined) return openSqlite(join(dataDir, 'errand.db'), emit)
  const { openPostgres } = await import('../store/postgres/postgres.ts')
  return openPostgres(databaseUrl, { poolSize: databasePool, log })
}

async function openWakeups({ databaseUrl, databaseListenUrl = databaseUrl }: Config, log: Log): Promise<Wakeups> {
  if (databaseListenUrl === undefined) return NO_WAKEUPS
  const { openPostgresWakeups } = await import('../store/postgres/wakeups.ts')
  return openPostgresWakeups(databaseListenUrl, { log })
}

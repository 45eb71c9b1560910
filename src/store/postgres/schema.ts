/**
 * Migrates a Postgres database, in one transaction and under a lock, so that any number of nodes may start at the same time.
 * The lock belongs to the transaction, because a connection pooler may pass the session to another client.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import type { ClientBase } from 'pg'
import { MIGRATION_LOCK } from '../locks.ts'
import { MIGRATIONS, newerSchema } from '../migrations/migrations.ts'
import type { Tables } from '../tables.ts'
import { refuseReadOnly } from './pool.ts'
import { PROJECT_SETTING, SERVER } from './row-security.ts'

const LOCK_NOT_AVAILABLE = '55P03'
/** Timeout for a table lock. While a schema change waits for one, every query of the table waits too, so we give up and retry. */
const LOCK_TIMEOUT_MS = 3_000
const TRIES = 20

/** Throws if the schema is from a newer version of Errand, or if the database's encoding is not UTF-8. */
export async function migratePostgres(client: ClientBase): Promise<void> {
  await refuseReadOnly(client)
  await checkEncoding(client)
  for (let attempt = 1; ; attempt++) {
    try {
      return await migrateOnce(client)
    } catch (error) {
      if (attempt === TRIES || (error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
      await delay(LOCK_TIMEOUT_MS)
    }
  }
}

async function migrateOnce(client: ClientBase): Promise<void> {
  await client.query(`begin isolation level read committed; set local ${PROJECT_SETTING} = '${SERVER}'`)
  try {
    // No timeout while another node migrates.
    await client.query('set local statement_timeout = 0; set local lock_timeout = 0')
    await client.query('select pg_advisory_xact_lock($1, 0)', [MIGRATION_LOCK])
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    await runMissing(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function checkEncoding(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ server_encoding: string }>('show server_encoding')
  const encoding = rows[0]!.server_encoding
  if (encoding === 'UTF8') return
  throw new Error(
    `it stores text as ${encoding}. Create one with \`create database … encoding 'UTF8' template template0\`.`,
  )
}

async function runMissing(client: ClientBase): Promise<void> {
  await client.query('create table if not exists migrations (name text primary key, at bigint not null)')
  const { rows } = await client.query<{ name: string }>('select name from migrations')
  const done = new Set(rows.map((row) => row.name))
  const newer = newerSchema(done)
  if (newer) throw new Error(newer)
  for (const migration of MIGRATIONS) {
    if (done.has(migration.name)) continue
    for (const statement of migration.statements(BUILDER, 'postgres')) {
      await client.query(statement.sql, [...statement.parameters])
    }
    await client.query('insert into migrations values ($1, $2)', [migration.name, Date.now()])
  }
}

/** Builds SQL and has no connection. */
const BUILDER = new Kysely<Tables>({
  dialect: new PostgresDialect({
    pool: async () => {
      throw new Error('no connection')
    },
  }),
})

/** True if row-level security applies to this connection's role. */
export async function isRowSecurityEnforced(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ passes: boolean }>(
    'select rolsuper or rolbypassrls as passes from pg_roles where rolname = current_user',
  )
  return !rows[0]!.passes
}

/**
 * Brings a Postgres database up to date: in one transaction, under a lock, so that any number of nodes may start at once.
 * The lock is the transaction's, not the session's, which poolers share out.
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
/** While a change waits for a table, every query of that table waits behind it: better to step back and come again. */
const LOCK_TIMEOUT_MS = 3_000
const TRIES = 20

/** Throws where the schema is of a newer version or the database can't hold every text. */
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
    // Another node's migration may take its time.
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
    `it stores text as ${encoding}; make one with \`create database … encoding 'UTF8' template template0\`.`,
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

/** Only writes SQL. */
const BUILDER = new Kysely<Tables>({
  dialect: new PostgresDialect({
    pool: async () => {
      throw new Error('no connection')
    },
  }),
})

/** Whether row-level security holds for the role that this connection has. */
export async function isWalled(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ passes: boolean }>(
    'select rolsuper or rolbypassrls as passes from pg_roles where rolname = current_user',
  )
  return !rows[0]!.passes
}

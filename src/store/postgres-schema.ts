/** Brings a Postgres database up to date: in one transaction, under a lock, so that several nodes may start at once. */
import type { Kysely } from 'kysely'
import type { ClientBase } from 'pg'
import { MIGRATION_LOCK } from './locks.ts'
import { MIGRATIONS, newerSchema } from './migrations.ts'
import type { Tables } from './tables.ts'

/** Throws where the schema is of a newer version or the database can't hold every text. `builder` only writes SQL. */
export async function migratePostgres(client: ClientBase, builder: Kysely<Tables>): Promise<void> {
  await client.query('begin isolation level read committed')
  try {
    // Another node's migration may take its time.
    await client.query('set local statement_timeout = 0')
    await client.query('select pg_advisory_xact_lock($1, 0)', [MIGRATION_LOCK])
    await checkEncoding(client)
    await runMissing(client, builder)
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

async function runMissing(client: ClientBase, builder: Kysely<Tables>): Promise<void> {
  await client.query('create table if not exists migrations (name text primary key, at bigint not null)')
  const { rows } = await client.query<{ name: string }>('select name from migrations')
  const done = new Set(rows.map((row) => row.name))
  const newer = newerSchema(done)
  if (newer) throw new Error(newer)
  for (const migration of MIGRATIONS) {
    if (done.has(migration.name)) continue
    for (const statement of migration.statements(builder, 'postgres')) {
      await client.query(statement.sql, [...statement.parameters])
    }
    await client.query('insert into migrations values ($1, $2)', [migration.name, Date.now()])
  }
}

/**
 * Transactions on Postgres. Each runs for one project and sees only that project's rows, or for the server and sees all. It
 * sets its scope inside (`set local`), because a connection pooler may pass the session to another client afterwards.
 */
import type { ClientBase, QueryResult } from 'pg'
import type { Query } from '../port.ts'
import { PROJECT_SETTING } from './row-security.ts'

/** A project's id, or SERVER. Safe to insert into SQL. */
export type Scope = string

/** Throws if the text is not an id. */
export function scopeOf(projectId: string): Scope {
  if (/^[\w-]+$/.test(projectId)) return projectId
  throw new Error(`This is not the id of a project: ${JSON.stringify(projectId)}`)
}

/** Sets READ COMMITTED because the database may have another default. A read-only database is detected by the write that fails. */
export function begin(scope: Scope, access: '' | 'read only' = ''): string {
  return `begin isolation level read committed ${access}; set local ${PROJECT_SETTING} = '${scope}'`
}

/** Runs one query in a read-only transaction, in one round trip. */
export async function runRead(client: ClientBase, scope: Scope, query: Query): Promise<QueryResult> {
  const [begun, read, ended] = await Promise.allSettled([
    client.query(begin(scope, 'read only')),
    send(client, query),
    client.query('commit'),
  ])
  if (begun.status === 'rejected') throw begun.reason
  if (read.status === 'rejected') throw read.reason
  if (ended.status === 'rejected') throw ended.reason
  return read.value
}

/** Sends one query. Postgres text can't contain NUL, so NUL becomes U+FFFD; a lookup with it finds nothing. */
export function send(client: ClientBase, { sql, parameters }: Query): Promise<QueryResult> {
  return client.query(sql, parameters.map(withoutNul))
}

function withoutNul(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}

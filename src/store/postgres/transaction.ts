/**
 * Transactions on Postgres, each for somebody: for one project, whose rows it sees alone, or for the server itself. Whom it
 * is for is said inside of it (`set local`), since poolers hand a connection to another client after each transaction.
 */
import type { ClientBase, QueryResult } from 'pg'
import type { Query } from '../port.ts'
import { PROJECT_SETTING } from './row-security.ts'

/** A project's id, or SERVER; safe in SQL. */
export type Scope = string

/** Throws for what is no id. */
export function scopeOf(projectId: string): Scope {
  if (/^[\w-]+$/.test(projectId)) return projectId
  throw new Error(`not the id of a project: ${JSON.stringify(projectId)}`)
}

/** READ COMMITTED is said each time, since a database may have another default; that it writes is not: where it may not, the write tells. */
export function begin(scope: Scope, access: '' | 'read only' = ''): string {
  return `begin isolation level read committed ${access}; set local ${PROJECT_SETTING} = '${scope}'`
}

/** One query in a transaction of its own, which can't write. One flight. */
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

/** Sends one query. Text in Postgres can't hold a NUL: it becomes U+FFFD, which finds nothing where it is looked for. */
export function send(client: ClientBase, { sql, parameters }: Query): Promise<QueryResult> {
  return client.query(sql, parameters.map(withoutNul))
}

function withoutNul(value: unknown): unknown {
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
}

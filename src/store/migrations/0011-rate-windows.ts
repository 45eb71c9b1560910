/** Rate-limit windows, for several nodes on one database. On SQLite the process counts in memory. */
import { type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity, ofProject } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function rateWindows(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const { text } = columnTypes(dialect)
  const table = db.schema
    .createTable('rate_windows')
    .modifyFront(sql`unlogged`)
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('class', text, (c) => c.notNull())
    .addColumn('ends_at', 'bigint', (c) => c.notNull())
    .addColumn('used', 'integer', (c) => c.notNull())
    .addColumn('granted', 'integer', (c) => c.notNull())
    .addPrimaryKeyConstraint('rate_windows_pk', ['project_id', 'class'])
    // Rows are updated often. Free space in the page lets Postgres update them in place.
    .modifyEnd(sql`with (fillfactor = 50)`)
  return [table.compile(), ...enableRowSecurity(db, 'rate_windows', ofProject())]
}

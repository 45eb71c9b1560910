/** The processes on the database, where there can be several. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function nodes({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const { text } = columnTypes(dialect)
  return [
    schema
      .createTable('nodes')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('role', text, (c) => c.notNull())
      .addColumn('version', text, (c) => c.notNull())
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .addColumn('seen_at', 'bigint', (c) => c.notNull())
      .addColumn('facts', text, (c) => c.notNull())
      .compile(),
  ]
}

/** Records of removed interactions. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity, ofProject } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function removals(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  const table = db.schema
    .createTable('removals')
    .addColumn('interaction_id', text, (c) => c.primaryKey())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addColumn('removed_by', text, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('events', integer, (c) => c.notNull())
    .addColumn('files', integer, (c) => c.notNull())
    .addColumn('file_bytes', integer, (c) => c.notNull())
  const byAge = db.schema.createIndex('removals_by_age').on('removals').columns(['at', 'interaction_id'])
  return [
    table.compile(),
    byAge.compile(),
    ...(dialect === 'sqlite' ? [] : enableRowSecurity(db, 'removals', ofProject())),
  ]
}

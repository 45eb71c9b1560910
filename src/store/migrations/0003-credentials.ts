/** Secrets that runs use, encrypted by the vault. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function credentials({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('credentials')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('id', text, (c) => c.notNull())
      .addColumn('name', text)
      .addColumn('type', text, (c) => c.notNull())
      .addColumn('allowed_hosts', text)
      .addColumn('sealed', text, (c) => c.notNull())
      .addColumn('version', integer, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addColumn('last_used_at', 'bigint')
      .addPrimaryKeyConstraint('credentials_pk', ['project_id', 'id']),
    schema.createIndex('credentials_by_age').on('credentials').columns(['project_id', 'created_at', 'id']),
  ].map((statement) => statement.compile())
}

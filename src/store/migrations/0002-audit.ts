/** The audit of external hosts that runs contacted. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function audit({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('audit')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('kind', text, (c) => c.notNull())
      .addColumn('host', text, (c) => c.notNull())
      .addColumn('port', integer, (c) => c.notNull())
      .addColumn('outcome', text, (c) => c.notNull()),
    schema.createIndex('audit_by_interaction').on('audit').columns(['interaction_id', 'at']),
  ].map((statement) => statement.compile())
}

/** Approval decisions on tool calls. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function approvals({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('approvals')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('step', integer, (c) => c.notNull())
      .addColumn('approve', integer, (c) => c.notNull())
      .addColumn('reason', text)
      .addColumn('key_id', text, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('approvals_pk', ['interaction_id', 'step']),
  ].map((statement) => statement.compile())
}

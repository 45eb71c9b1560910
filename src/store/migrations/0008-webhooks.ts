/** Webhooks of interactions, and their delivery attempts. */
import { type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function webhooks({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('webhooks')
      .addColumn('interaction_id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('url', text, (c) => c.notNull())
      .addColumn('revision', text, (c) => c.notNull())
      .addColumn('state', text, (c) => c.notNull())
      .addColumn('attempts', integer, (c) => c.notNull())
      .addColumn('next_at', 'bigint', (c) => c.notNull()),
    schema
      .createIndex('webhooks_pending')
      .on('webhooks')
      .columns(['next_at'])
      .where(sql.ref('state'), '=', sql.lit('pending')),
    schema
      .createTable('webhook_deliveries')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('attempt', integer, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('duration_ms', integer, (c) => c.notNull())
      .addColumn('status', integer)
      .addColumn('error', text)
      .addPrimaryKeyConstraint('webhook_deliveries_pk', ['interaction_id', 'attempt']),
  ].map((statement) => statement.compile())
}

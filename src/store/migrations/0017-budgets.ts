/** Budgets, their alerts, and the cost of each model call. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity, ofProject } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function budgets(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { schema } = db
  const { text, integer } = columnTypes(dialect)
  const tables = [
    schema
      .createTable('budgets')
      .addColumn('project_id', text, (c) => c.primaryKey())
      .addColumn('monthly_nanos', 'bigint', (c) => c.notNull())
      .addColumn('alert_at', text, (c) => c.notNull())
      .addColumn('hard_stop', integer, (c) => c.notNull()),
    schema
      .createTable('budget_alerts')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('month', text, (c) => c.notNull())
      .addColumn('percent', integer, (c) => c.notNull())
      .addPrimaryKeyConstraint('budget_alerts_pk', ['project_id', 'month', 'percent']),
    schema.alterTable('turns').addColumn('cost_nanos', 'bigint'),
  ].map((statement) => statement.compile())
  if (dialect === 'sqlite') return tables
  return [
    ...tables,
    ...enableRowSecurity(db, 'budgets', ofProject()),
    ...enableRowSecurity(db, 'budget_alerts', ofProject()),
  ]
}

/** Adds ids to audit entries, for paging, and a count, so that one entry may cover several connections. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function auditPages({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema.alterTable('audit').addColumn('id', text, (c) => c.notNull().defaultTo('')),
    schema.alterTable('audit').addColumn('count', integer, (c) => c.notNull().defaultTo(1)),
  ].map((statement) => statement.compile())
}

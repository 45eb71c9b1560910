/** Media of tool results. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function resultMedia({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('result_media')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('step', integer, (c) => c.notNull())
      .addColumn('media', text, (c) => c.notNull())
      .addPrimaryKeyConstraint('result_media_pk', ['interaction_id', 'step'])
      .compile(),
  ]
}

/** The beginning of a run's model requests as it was sent, so that a resumed run sends the same. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity, OF_INTERACTION } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function frames(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  const table = db.schema
    .createTable('frames')
    .addColumn('interaction_id', text, (c) => c.notNull())
    .addColumn('at_seq', integer, (c) => c.notNull())
    .addColumn('frame', text, (c) => c.notNull())
    .addPrimaryKeyConstraint('frames_pk', ['interaction_id', 'at_seq'])
    .compile()
  return dialect === 'sqlite' ? [table] : [table, ...enableRowSecurity(db, 'frames', OF_INTERACTION)]
}

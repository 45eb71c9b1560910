/** Adds the messages that Errand itself sent before a turn, so that a resumed run sends the same conversation. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function askedTurns({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  return [schema.alterTable('turns').addColumn('asked', columnTypes(dialect).text).compile()]
}

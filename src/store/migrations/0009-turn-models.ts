/** Adds the model of a turn, since a fallback may have answered. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function turnModels({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  return [schema.alterTable('turns').addColumn('model', columnTypes(dialect).text).compile()]
}

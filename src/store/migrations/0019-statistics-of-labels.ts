/**
 * How often a label is there, for the planner: by its columns one by one it guesses a fiftieth. A list by two labels then took
 * 100 ms (two that are never together: 400), where it takes 3 (33) now, among 10⁵ interactions.
 */
import { type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import type { Dialect } from './column-types.ts'

export function statisticsOfLabels(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  return [
    sql`create statistics labels_together (mcv) on project_id, kind, key, value from labels`.compile(db),
    sql`analyze labels`.compile(db),
  ]
}

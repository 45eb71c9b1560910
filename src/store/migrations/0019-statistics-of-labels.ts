/**
 * Extended statistics on labels for the planner. From its columns one by one it estimates that a label is on one row in
 * fifty. Among 10⁵ interactions, a list by two labels then took 100 ms (400 ms for two labels that never occur together);
 * with these statistics it takes 3 ms (33 ms).
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

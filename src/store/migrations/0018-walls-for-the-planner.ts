/** Rewrites the policies of tables that the interactions list joins, so that the planner estimates their rows better. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import { OF_INTERACTION, ofProject, rewritePolicy } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import type { Dialect } from './column-types.ts'

export function wallsForThePlanner(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  return [
    rewritePolicy(db, 'labels', ofProject()),
    rewritePolicy(db, 'interactions', ofProject()),
    rewritePolicy(db, 'specs', OF_INTERACTION),
  ]
}

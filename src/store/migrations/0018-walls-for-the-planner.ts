/** The walls of what the lists of interactions join, said so that the planner guesses better what they let through. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import { OF_INTERACTION, ofProject, wallAnew } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import type { Dialect } from './column-types.ts'

export function wallsForThePlanner(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  return [
    wallAnew(db, 'labels', ofProject()),
    wallAnew(db, 'interactions', ofProject()),
    wallAnew(db, 'specs', OF_INTERACTION),
  ]
}

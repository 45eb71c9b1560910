/** Row-level security between projects. A migration that adds a table with a project's rows must enable it there too. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import {
  allowReadingOperatorRows,
  enableRowSecurity,
  OF_INTERACTION,
  OF_SKILL_VERSION,
  ofProject,
  policyFunctions,
} from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import type { Dialect } from './column-types.ts'

export function rowSecurity(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const owned = ['keys', 'agents', 'agent_versions', 'labels', 'interactions', 'idempotency'] as const
  const ownedToo = ['credentials', 'skills', 'skill_versions', 'webhooks'] as const
  const ofRuns = ['specs', 'events', 'turns', 'audit', 'result_media', 'approvals', 'webhook_deliveries'] as const
  return [
    ...policyFunctions(db),
    ...enableRowSecurity(db, 'projects', ofProject('id')),
    ...[...owned, ...ownedToo].flatMap((table) => enableRowSecurity(db, table, ofProject())),
    ...ofRuns.flatMap((table) => enableRowSecurity(db, table, OF_INTERACTION)),
    ...enableRowSecurity(db, 'skill_contents', OF_SKILL_VERSION),
    allowReadingOperatorRows(db, 'skills'),
    allowReadingOperatorRows(db, 'skill_versions'),
  ]
}

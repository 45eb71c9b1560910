/**
 * The schema's migrations, oldest first. Never edit a released migration; add a new one. Each returns its statements for one
 * dialect. The store runs the missing ones in one transaction, under a lock that also covers other processes.
 */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { start } from './0001-start.ts'
import { audit } from './0002-audit.ts'
import { credentials } from './0003-credentials.ts'
import { resultMedia } from './0004-result-media.ts'
import { approvals } from './0005-approvals.ts'
import { skills } from './0006-skills.ts'
import { auditPages } from './0007-audit-pages.ts'
import { webhooks } from './0008-webhooks.ts'
import { turnModels } from './0009-turn-models.ts'
import { rowSecurity } from './0010-row-security.ts'
import { rateWindows } from './0011-rate-windows.ts'
import { removals } from './0012-removals.ts'
import { nodes } from './0013-nodes.ts'
import { people } from './0014-people.ts'
import { usage } from './0015-usage.ts'
import { consolePages } from './0016-console-pages.ts'
import { budgets } from './0017-budgets.ts'
import { wallsForThePlanner } from './0018-walls-for-the-planner.ts'
import { statisticsOfLabels } from './0019-statistics-of-labels.ts'
import { askedTurns } from './0020-asked-turns.ts'
import { frames } from './0021-frames.ts'
import type { Dialect } from './column-types.ts'

export interface Migration {
  readonly name: string
  statements(db: Kysely<Tables>, dialect: Dialect): Query[]
}

export const MIGRATIONS: readonly Migration[] = [
  { name: '0001-start', statements: start },
  { name: '0002-audit', statements: audit },
  { name: '0003-credentials', statements: credentials },
  { name: '0004-result-media', statements: resultMedia },
  { name: '0005-approvals', statements: approvals },
  { name: '0006-skills', statements: skills },
  { name: '0007-audit-pages', statements: auditPages },
  { name: '0008-webhooks', statements: webhooks },
  { name: '0009-turn-models', statements: turnModels },
  { name: '0010-row-security', statements: rowSecurity },
  { name: '0011-rate-windows', statements: rateWindows },
  { name: '0012-removals', statements: removals },
  { name: '0013-nodes', statements: nodes },
  { name: '0014-people', statements: people },
  { name: '0015-usage', statements: usage },
  { name: '0016-console-pages', statements: consolePages },
  { name: '0017-budgets', statements: budgets },
  { name: '0018-walls-for-the-planner', statements: wallsForThePlanner },
  { name: '0019-statistics-of-labels', statements: statisticsOfLabels },
  { name: '0020-asked-turns', statements: askedTurns },
  { name: '0021-frames', statements: frames },
]

/** The reason why this version can't use a database with these migrations; undefined if it can. */
export function newerSchema(done: Iterable<string>): string | undefined {
  const known = new Set(MIGRATIONS.map((migration) => migration.name))
  const newer = [...done].filter((name) => !known.has(name))
  if (newer.length === 0) return undefined
  return (
    `it was made by a newer version of Errand (it has the migration ${newer.join(', ')}). ` +
    'Start that version, or restore a backup from before the upgrade.'
  )
}

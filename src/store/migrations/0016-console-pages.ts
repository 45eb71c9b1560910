/** For the console: an index for a project's webhooks, and model health by node. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import type { Dialect } from './column-types.ts'

export function consolePages({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const listed = schema.createIndex('webhooks_by_project').on('webhooks').columns(['project_id', 'interaction_id'])
  const health = schema.alterTable('nodes').addColumn('models', 'text', (c) => c.notNull().defaultTo('{}'))
  return [listed.compile(), ...(dialect === 'sqlite' ? [] : [health.compile()])]
}

/** Skill names, versions, and the contents that versions share. */
import type { Kysely } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function skills({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('skills')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('newest', integer, (c) => c.notNull())
      .addColumn('last_version', integer, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('skills_pk', ['project_id', 'name']),
    schema
      .createTable('skill_versions')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('version', integer, (c) => c.notNull())
      .addColumn('digest', text, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('skill_versions_pk', ['project_id', 'name', 'version']),
    schema.createIndex('skill_versions_by_digest').on('skill_versions').columns(['digest']),
    schema
      .createTable('skill_contents')
      .addColumn('digest', text, (c) => c.primaryKey())
      .addColumn('blob', text, (c) => c.notNull().unique())
      .addColumn('meta', text, (c) => c.notNull())
      .addColumn('files', text, (c) => c.notNull())
      .addColumn('size', 'bigint', (c) => c.notNull())
      .addColumn('file_count', integer, (c) => c.notNull())
      .addColumn('released_at', 'bigint'),
  ].map((statement) => statement.compile())
}

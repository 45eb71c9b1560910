/**
 * The schema's history, oldest first. A migration is never edited once released; the next one changes what it made.
 * Each gives statements for one dialect; the store runs the missing ones in one transaction under a lock that spans
 * processes.
 */
import { type CreateTableBuilder, type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import {
  OF_INTERACTION,
  OF_SKILL_VERSION,
  ofProject,
  showOperators,
  wall,
  wallAnew,
  wallFunctions,
} from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { budgets } from './budgets.ts'
import { columnTypes, type Dialect } from './column-types.ts'
import { usage } from './usage.ts'

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
]

/** Why a database with these migrations can't be used by this version; undefined where it can. */
export function newerSchema(done: Iterable<string>): string | undefined {
  const known = new Set(MIGRATIONS.map((migration) => migration.name))
  const newer = [...done].filter((name) => !known.has(name))
  if (newer.length === 0) return undefined
  return (
    `it was made by a newer version of Errand (it has the migration ${newer.join(', ')}); ` +
    'start that version, or restore a back-up from before the upgrade.'
  )
}

function start(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { schema } = db
  const { text, integer } = columnTypes(dialect)
  // Rows that are found by their whole key and lie in its order: SQLite can keep them in the key's tree itself.
  const clustered = <T extends string, C extends string>(table: CreateTableBuilder<T, C>) =>
    dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table

  return [
    schema
      .createTable('accounts')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('name', text, (c) => c.notNull().unique())
      .addColumn('created_at', 'bigint', (c) => c.notNull()),
    clustered(
      schema
        .createTable('settings')
        .addColumn('account_id', text, (c) => c.notNull())
        .addColumn('name', text, (c) => c.notNull())
        .addColumn('value', text, (c) => c.notNull())
        .addPrimaryKeyConstraint('settings_pk', ['account_id', 'name']),
    ),
    schema
      .createTable('projects')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addUniqueConstraint('projects_name', ['account_id', 'name']),
    schema
      .createTable('keys')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('prefix', text, (c) => c.notNull())
      .addColumn('hash', text, (c) => c.notNull().unique())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('last_used_at', 'bigint')
      .addColumn('expires_at', 'bigint')
      .addColumn('revoked_at', 'bigint'),
    schema
      .createTable('agents')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('id', text, (c) => c.notNull())
      .addColumn('version', integer, (c) => c.notNull())
      .addColumn('config', text, (c) => c.notNull())
      .addColumn('model', text)
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('agents_pk', ['project_id', 'id']),
    schema.createIndex('agents_by_age').on('agents').columns(['project_id', 'created_at', 'id']),
    clustered(
      schema
        .createTable('agent_versions')
        .addColumn('project_id', text, (c) => c.notNull())
        .addColumn('agent_id', text, (c) => c.notNull())
        .addColumn('version', integer, (c) => c.notNull())
        .addColumn('config', text, (c) => c.notNull())
        .addColumn('created_at', 'bigint', (c) => c.notNull())
        .addPrimaryKeyConstraint('agent_versions_pk', ['project_id', 'agent_id', 'version']),
    ),
    clustered(
      schema
        .createTable('labels')
        .addColumn('project_id', text, (c) => c.notNull())
        .addColumn('kind', text, (c) => c.notNull())
        .addColumn('key', text, (c) => c.notNull())
        .addColumn('value', text, (c) => c.notNull())
        .addColumn('object_id', text, (c) => c.notNull())
        .addPrimaryKeyConstraint('labels_pk', ['project_id', 'kind', 'key', 'value', 'object_id']),
    ),
    schema.createIndex('labels_by_object').on('labels').columns(['object_id', 'kind']),
    schema
      .createTable('interactions')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('key_id', text, (c) => c.notNull())
      .addColumn('agent_id', text)
      .addColumn('status', text, (c) => c.notNull())
      .addColumn('stage', text, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('started_at', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('epoch', integer, (c) => c.notNull())
      .addColumn('attempts', integer, (c) => c.notNull())
      .addColumn('lease_owner', text)
      .addColumn('lease_until', 'bigint', (c) => c.notNull())
      .addColumn('last_seq', integer, (c) => c.notNull())
      .addColumn('stop_reason', text)
      .addColumn('error', text)
      .addColumn('usage', text)
      .addColumn('output_files', text),
    schema.createIndex('interactions_by_age').on('interactions').columns(['project_id', 'id']),
    schema.createIndex('interactions_by_agent').on('interactions').columns(['project_id', 'agent_id', 'id']),
    schema.createIndex('interactions_by_status').on('interactions').columns(['project_id', 'status', 'id']),
    // The queue: only what is not over, so it stays as small as the work at hand.
    schema
      .createIndex('interactions_open')
      .on('interactions')
      .columns(['project_id', 'id'])
      .where(sql.ref('status'), '=', sql.lit('running')),
    schema
      .createIndex('interactions_ended')
      .on('interactions')
      .columns(['ended_at'])
      .where(sql.ref('status'), '<>', sql.lit('running')),
    schema
      .createTable('specs')
      .addColumn('interaction_id', text, (c) => c.primaryKey())
      .addColumn('spec', text, (c) => c.notNull())
      .addColumn('labels', text, (c) => c.notNull()),
    clustered(
      schema
        .createTable('events')
        .addColumn('interaction_id', text, (c) => c.notNull())
        .addColumn('seq', integer, (c) => c.notNull())
        .addColumn('type', text, (c) => c.notNull())
        .addColumn('data', text, (c) => c.notNull())
        .addColumn('at', 'bigint', (c) => c.notNull())
        .addPrimaryKeyConstraint('events_pk', ['interaction_id', 'seq']),
    ),
    schema
      .createTable('turns')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('turn', integer, (c) => c.notNull())
      .addColumn('message', text, (c) => c.notNull())
      .addColumn('finish', text, (c) => c.notNull())
      .addColumn('tokens', text, (c) => c.notNull())
      .addColumn('at_seq', integer, (c) => c.notNull())
      .addPrimaryKeyConstraint('turns_pk', ['interaction_id', 'turn']),
    clustered(
      schema
        .createTable('idempotency')
        .addColumn('project_id', text, (c) => c.notNull())
        .addColumn('key', text, (c) => c.notNull())
        .addColumn('fingerprint', text, (c) => c.notNull())
        .addColumn('interaction_id', text, (c) => c.notNull())
        .addColumn('created_at', 'bigint', (c) => c.notNull())
        .addPrimaryKeyConstraint('idempotency_pk', ['project_id', 'key']),
    ),
    schema.createIndex('idempotency_by_age').on('idempotency').columns(['created_at']),
    schema.createIndex('idempotency_by_interaction').on('idempotency').columns(['interaction_id']),
  ].map((statement) => statement.compile())
}

/** The hosts that were turned to on a run's behalf. */
function audit({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('audit')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('kind', text, (c) => c.notNull())
      .addColumn('host', text, (c) => c.notNull())
      .addColumn('port', integer, (c) => c.notNull())
      .addColumn('outcome', text, (c) => c.notNull()),
    schema.createIndex('audit_by_interaction').on('audit').columns(['interaction_id', 'at']),
  ].map((statement) => statement.compile())
}

/** Secrets that runs use, encrypted by the vault. */
function credentials({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('credentials')
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('id', text, (c) => c.notNull())
      .addColumn('name', text)
      .addColumn('type', text, (c) => c.notNull())
      .addColumn('allowed_hosts', text)
      .addColumn('sealed', text, (c) => c.notNull())
      .addColumn('version', integer, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addColumn('last_used_at', 'bigint')
      .addPrimaryKeyConstraint('credentials_pk', ['project_id', 'id']),
    schema.createIndex('credentials_by_age').on('credentials').columns(['project_id', 'created_at', 'id']),
  ].map((statement) => statement.compile())
}

/** What tool results showed beside their text. */
function resultMedia({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('result_media')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('step', integer, (c) => c.notNull())
      .addColumn('media', text, (c) => c.notNull())
      .addPrimaryKeyConstraint('result_media_pk', ['interaction_id', 'step'])
      .compile(),
  ]
}

/** Decisions of people about tool calls. */
function approvals({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('approvals')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('step', integer, (c) => c.notNull())
      .addColumn('approve', integer, (c) => c.notNull())
      .addColumn('reason', text)
      .addColumn('key_id', text, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('approvals_pk', ['interaction_id', 'step']),
  ].map((statement) => statement.compile())
}

/** Skills by name, their versions, and the contents that versions share. */
function skills({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
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

/** Entries of the audit are paged, and may stand for several contacts. */
function auditPages({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema.alterTable('audit').addColumn('id', text, (c) => c.notNull().defaultTo('')),
    schema.alterTable('audit').addColumn('count', integer, (c) => c.notNull().defaultTo(1)),
  ].map((statement) => statement.compile())
}

/** Where the end of an interaction is told, and each attempt. */
function webhooks({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  return [
    schema
      .createTable('webhooks')
      .addColumn('interaction_id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('url', text, (c) => c.notNull())
      .addColumn('revision', text, (c) => c.notNull())
      .addColumn('state', text, (c) => c.notNull())
      .addColumn('attempts', integer, (c) => c.notNull())
      .addColumn('next_at', 'bigint', (c) => c.notNull()),
    schema
      .createIndex('webhooks_pending')
      .on('webhooks')
      .columns(['next_at'])
      .where(sql.ref('state'), '=', sql.lit('pending')),
    schema
      .createTable('webhook_deliveries')
      .addColumn('interaction_id', text, (c) => c.notNull())
      .addColumn('attempt', integer, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('duration_ms', integer, (c) => c.notNull())
      .addColumn('status', integer)
      .addColumn('error', text)
      .addPrimaryKeyConstraint('webhook_deliveries_pk', ['interaction_id', 'attempt']),
  ].map((statement) => statement.compile())
}

/** A fallback may have said a turn. */
function turnModels({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  return [schema.alterTable('turns').addColumn('model', columnTypes(dialect).text).compile()]
}

/** The second wall between projects. Whoever adds a table with rows of a project puts it behind the wall as well. */
function rowSecurity(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const owned = ['keys', 'agents', 'agent_versions', 'labels', 'interactions', 'idempotency'] as const
  const ownedToo = ['credentials', 'skills', 'skill_versions', 'webhooks'] as const
  const ofRuns = ['specs', 'events', 'turns', 'audit', 'result_media', 'approvals', 'webhook_deliveries'] as const
  return [
    ...wallFunctions(db),
    ...wall(db, 'projects', ofProject('id')),
    ...[...owned, ...ownedToo].flatMap((table) => wall(db, table, ofProject())),
    ...ofRuns.flatMap((table) => wall(db, table, OF_INTERACTION)),
    ...wall(db, 'skill_contents', OF_SKILL_VERSION),
    showOperators(db, 'skills'),
    showOperators(db, 'skill_versions'),
  ]
}

/** How often a project called: counted here where several nodes share the database, else in the process. */
function rateWindows(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const { text } = columnTypes(dialect)
  const table = db.schema
    .createTable('rate_windows')
    .modifyFront(sql`unlogged`)
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('class', text, (c) => c.notNull())
    .addColumn('ends_at', 'bigint', (c) => c.notNull())
    .addColumn('used', 'integer', (c) => c.notNull())
    .addColumn('granted', 'integer', (c) => c.notNull())
    .addPrimaryKeyConstraint('rate_windows_pk', ['project_id', 'class'])
    // A row is written again and again: with room beside it, in its place.
    .modifyEnd(sql`with (fillfactor = 50)`)
  return [table.compile(), ...wall(db, 'rate_windows', ofProject())]
}

/** What was removed outlives the interaction. */
function removals(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { text, integer } = columnTypes(dialect)
  const table = db.schema
    .createTable('removals')
    .addColumn('interaction_id', text, (c) => c.primaryKey())
    .addColumn('project_id', text, (c) => c.notNull())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addColumn('removed_by', text, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('events', integer, (c) => c.notNull())
    .addColumn('files', integer, (c) => c.notNull())
    .addColumn('file_bytes', integer, (c) => c.notNull())
  const byAge = db.schema.createIndex('removals_by_age').on('removals').columns(['at', 'interaction_id'])
  return [table.compile(), byAge.compile(), ...(dialect === 'sqlite' ? [] : wall(db, 'removals', ofProject()))]
}

/** The processes on the database, where several may be. */
function nodes({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  const { text } = columnTypes(dialect)
  return [
    schema
      .createTable('nodes')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('role', text, (c) => c.notNull())
      .addColumn('version', text, (c) => c.notNull())
      .addColumn('started_at', 'bigint', (c) => c.notNull())
      .addColumn('seen_at', 'bigint', (c) => c.notNull())
      .addColumn('facts', text, (c) => c.notNull())
      .compile(),
  ]
}

/** Users and their sessions, in the shape of the sign-in library; members of accounts; one-time links; what was done. */
function people(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { schema } = db
  const { text, integer } = columnTypes(dialect)
  const tables = [
    schema
      .createTable('users')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('name', text, (c) => c.notNull())
      .addColumn('email', text, (c) => c.notNull().unique())
      .addColumn('email_verified', integer, (c) => c.notNull())
      .addColumn('image', text)
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
    schema
      .createTable('sessions')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('user_id', text, (c) => c.notNull())
      .addColumn('token', text, (c) => c.notNull().unique())
      .addColumn('ip_address', text)
      .addColumn('user_agent', text)
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
    schema.createIndex('sessions_by_user').on('sessions').columns(['user_id']),
    schema
      .createTable('identities')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('user_id', text, (c) => c.notNull())
      .addColumn('provider_id', text, (c) => c.notNull())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('access_token', text)
      .addColumn('refresh_token', text)
      .addColumn('id_token', text)
      .addColumn('access_token_expires_at', 'bigint')
      .addColumn('refresh_token_expires_at', 'bigint')
      .addColumn('scope', text)
      .addColumn('password', text)
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull())
      .addUniqueConstraint('identities_account', ['provider_id', 'account_id']),
    schema.createIndex('identities_by_user').on('identities').columns(['user_id']),
    schema
      .createTable('verifications')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('identifier', text, (c) => c.notNull())
      .addColumn('value', text, (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
    schema.createIndex('verifications_by_identifier').on('verifications').columns(['identifier']),
    schema
      .createTable('sign_in_attempts')
      .addColumn('who', text, (c) => c.primaryKey())
      .addColumn('count', integer, (c) => c.notNull())
      .addColumn('until', 'bigint', (c) => c.notNull()),
    schema
      .createTable('members')
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('user_id', text, (c) => c.notNull())
      .addColumn('role', text, (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('members_pk', ['account_id', 'user_id']),
    schema.createIndex('members_by_user').on('members').columns(['user_id']),
    schema
      .createTable('links')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('hash', text, (c) => c.notNull().unique())
      .addColumn('kind', text, (c) => c.notNull())
      .addColumn('account_id', text)
      .addColumn('role', text)
      .addColumn('user_id', text)
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull()),
    schema
      .createTable('account_events')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('account_id', text, (c) => c.notNull())
      .addColumn('at', 'bigint', (c) => c.notNull())
      .addColumn('actor', text)
      .addColumn('action', text, (c) => c.notNull())
      .addColumn('target', text)
      .addColumn('details', text, (c) => c.notNull()),
    schema.createIndex('account_events_by_age').on('account_events').columns(['account_id', 'id']),
    schema.alterTable('keys').addColumn('scope', text, (c) => c.notNull().defaultTo('all')),
    schema.createIndex('keys_by_project').on('keys').columns(['project_id', 'id']),
  ].map((statement) => statement.compile())
  if (dialect === 'sqlite') return tables
  const serversOwn = ['users', 'sessions', 'identities', 'verifications', 'sign_in_attempts'] as const
  const ofAccounts = ['members', 'links', 'account_events'] as const
  return [...tables, ...[...serversOwn, ...ofAccounts].flatMap((table) => wall(db, table, sql`false`))]
}

/** What the console lists: a project's webhooks by their interactions, and how models did on each node. */
function consolePages({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  const listed = schema.createIndex('webhooks_by_project').on('webhooks').columns(['project_id', 'interaction_id'])
  const health = schema.alterTable('nodes').addColumn('models', 'text', (c) => c.notNull().defaultTo('{}'))
  return [listed.compile(), ...(dialect === 'sqlite' ? [] : [health.compile()])]
}

/** The walls of what the lists of interactions join, said so that the planner guesses better what they let through. */
function wallsForThePlanner(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  return [
    wallAnew(db, 'labels', ofProject()),
    wallAnew(db, 'interactions', ofProject()),
    wallAnew(db, 'specs', OF_INTERACTION),
  ]
}

/**
 * How often a label is there, for the planner: by its columns one by one it guesses a fiftieth. A list by two labels then took
 * 100 ms (two that are never together: 400), where it takes 3 (33) now, among 10⁵ interactions.
 */
function statisticsOfLabels(db: Kysely<Tables>, dialect: Dialect): Query[] {
  if (dialect === 'sqlite') return []
  return [
    sql`create statistics labels_together (mcv) on project_id, kind, key, value from labels`.compile(db),
    sql`analyze labels`.compile(db),
  ]
}

/** What Errand said to the model before a turn, so that a resumed run sends the same conversation. */
function askedTurns({ schema }: Kysely<Tables>, dialect: Dialect): Query[] {
  return [schema.alterTable('turns').addColumn('asked', columnTypes(dialect).text).compile()]
}

/** The first schema: accounts with their projects and keys, agents, and interactions with their logs. */
import { type Compilable, type CreateTableBuilder, type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function start(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const parts = [accountTables, agentTables, interactionTable, interactionDetails]
  return parts.flatMap((part) => part(db, dialect)).map((statement) => statement.compile())
}

/** Stores a table's rows in the primary key's tree (SQLite), for tables whose rows are looked up by that whole key. */
function clusteredFor(dialect: Dialect) {
  return <T extends string, C extends string>(table: CreateTableBuilder<T, C>) =>
    dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table
}

/** Accounts, their settings, their projects and API keys. */
function accountTables({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text } = columnTypes(dialect)
  const clustered = clusteredFor(dialect)
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
  ]
}

/** Agents, their versions, and the labels of agents and interactions. */
function agentTables({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text, integer } = columnTypes(dialect)
  const clustered = clusteredFor(dialect)
  return [
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
  ]
}

/** Interactions and the indexes of their lists and of the queue. */
function interactionTable({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text, integer } = columnTypes(dialect)
  return [
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
  ]
}

/** An interaction's spec, events, turns and idempotency key. */
function interactionDetails({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text, integer } = columnTypes(dialect)
  const clustered = clusteredFor(dialect)
  return [
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
  ]
}

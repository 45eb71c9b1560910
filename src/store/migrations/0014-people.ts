/** People: users and their sessions in the shape of the sign-in library, members of accounts, one-time links, account events. */
import { type Compilable, type Kysely, sql } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function people(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const tables = [...signInTables(db, dialect), ...accountTables(db, dialect)].map((statement) => statement.compile())
  if (dialect === 'sqlite') return tables
  const serversOwn = ['users', 'sessions', 'identities', 'verifications', 'sign_in_attempts'] as const
  const ofAccounts = ['members', 'links', 'account_events'] as const
  return [...tables, ...[...serversOwn, ...ofAccounts].flatMap((table) => enableRowSecurity(db, table, sql`false`))]
}

/** Tables of the sign-in library (src/accounts/sign-in-store.ts). */
function signInTables({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text, integer } = columnTypes(dialect)
  return [
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
  ]
}

/** Members, one-time links and the account log; the scope of a key. */
function accountTables({ schema }: Kysely<Tables>, dialect: Dialect): Compilable[] {
  const { text } = columnTypes(dialect)
  return [
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
  ]
}

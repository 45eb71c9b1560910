/**
 * Accounts over the database. One account, `default`, is made with the first project; more come with the console.
 * A key is looked up by its hash at each call: the read is a few microseconds, and a revoked key is dead at once.
 */
import { createSecretKey, hkdfSync } from 'node:crypto'
import { sql } from 'kysely'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import { fixedQuery } from '../store/fixed-query.ts'
import type { Database } from '../store/port.ts'
import type { Accounts, Caller, KeyInfo, SettingName } from './accounts.ts'
import { hashKey, isKeyText, newKeyText, visiblePrefix } from './key-text.ts'
import { webhookSecret } from './webhook-secret.ts'

const DEFAULT_ACCOUNT = 'default'
/** The key id of an interaction that a command in this process made. */
const TEMPORARY = 'key_temporary'
/** `last_used_at` is written at most so often a key: it is for people, who look by the minute. */
const LAST_USED_MS = 60_000

export interface AccountsOptions {
  readonly db: Database
  /** The server's. */
  readonly secret: string
  readonly now?: () => number
}

/** Asked on every call. */
const callerOf = fixedQuery((db, { hash }: { hash: string }) =>
  db.query
    .selectFrom('keys as k')
    .innerJoin('projects as p', 'p.id', 'k.project_id')
    .leftJoin('settings as s', (join) =>
      join.onRef('s.account_id', '=', 'p.account_id').on('s.name', '=', sql.lit('experimental.managedAgents')),
    )
    .select(['k.id', 'k.project_id', 'k.expires_at', 'k.revoked_at', 'p.account_id', 's.value'])
    .where('k.hash', '=', hash),
)

export function openAccounts({ db, secret, now = Date.now }: AccountsOptions): Accounts {
  const hashSecret = createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', 'errand api keys', 32)))
  const temporary = new Map<string, Caller>()
  const lastUsed = new Map<string, number>()

  function touch(keyId: string): void {
    const at = now()
    if (at - (lastUsed.get(keyId) ?? 0) < LAST_USED_MS) return
    lastUsed.set(keyId, at)
    const query = db.query.updateTable('keys').set({ last_used_at: at }).where('id', '=', keyId).compile()
    // Only a hint for people: a call must not fail, or wait, for it.
    db.write([{ query }]).catch(() => lastUsed.delete(keyId))
  }

  async function accountId(name: string): Promise<string> {
    const found = await db.query.selectFrom('accounts').select('id').where('name', '=', name).executeTakeFirst()
    if (found) return found.id
    if (name === DEFAULT_ACCOUNT) return createDefaultAccount()
    throw new ErrandError('not_found', `There is no account ${JSON.stringify(name)}.`)
  }

  /** Its owner is who runs this server, so the service is switched on. */
  async function createDefaultAccount(): Promise<string> {
    const id = newId('acc', now())
    const account = db.query.insertInto('accounts').values({ id, name: DEFAULT_ACCOUNT, created_at: now() }).compile()
    const setting = db.query
      .insertInto('settings')
      .values({ account_id: id, name: 'experimental.managedAgents', value: 'on' })
      .compile()
    const result = await db.write([{ query: account }, { query: setting }])
    return result.ok ? id : accountId(DEFAULT_ACCOUNT)
  }

  async function findProject(account: string, name: string): Promise<string | undefined> {
    const row = await db.query
      .selectFrom('projects')
      .select('id')
      .where('account_id', '=', account)
      .where('name', '=', name)
      .executeTakeFirst()
    return row?.id
  }

  /** Made where there is none. */
  async function projectId(name: string): Promise<string> {
    const account = await accountId(DEFAULT_ACCOUNT)
    const found = await findProject(account, name)
    if (found !== undefined) return found
    const id = newId('prj', now())
    const query = db.query.insertInto('projects').values({ id, account_id: account, name, created_at: now() }).compile()
    const result = await db.write([{ query }])
    return result.ok ? id : (await findProject(account, name))!
  }

  function keyQuery() {
    return db.query
      .selectFrom('keys as k')
      .innerJoin('projects as p', 'p.id', 'k.project_id')
      .select([
        'k.id',
        'k.name',
        'k.project_id as projectId',
        'p.name as projectName',
        'k.prefix',
        'k.created_at as createdAt',
        'k.last_used_at as lastUsedAt',
        'k.expires_at as expiresAt',
        'k.revoked_at as revokedAt',
      ])
  }

  return {
    async authenticate(key) {
      if (!isKeyText(key)) return undefined
      const hash = hashKey(hashSecret, key)
      const own = temporary.get(hash)
      if (own) return own
      const [row] = (await db.query.executeQuery(callerOf(db, { hash }))).rows
      if (!row || row.revoked_at !== null) return undefined
      if (row.expires_at !== null && Number(row.expires_at) <= now()) return undefined
      touch(row.id)
      return { keyId: row.id, projectId: row.project_id, accountId: row.account_id, enabled: row.value === 'on' }
    },

    async webhookSecret(project) {
      const id = await findProject(await accountId(DEFAULT_ACCOUNT), project)
      return id && webhookSecret(secret, id)
    },
    async createKey({ name, project, expiresAt }) {
      const key = newKeyText()
      const id = newId('key', now())
      const query = db.query
        .insertInto('keys')
        .values({
          id,
          project_id: await projectId(project),
          name,
          prefix: visiblePrefix(key),
          hash: hashKey(hashSecret, key),
          created_at: now(),
          last_used_at: null,
          expires_at: expiresAt ?? null,
          revoked_at: null,
        })
        .compile()
      await db.write([{ query, rows: 1 }])
      const info = await keyQuery().where('k.id', '=', id).executeTakeFirstOrThrow()
      return { key, info: toKeyInfo(info) }
    },

    async temporaryKey(project) {
      const key = newKeyText()
      const [project_id, account_id] = [await projectId(project), await accountId(DEFAULT_ACCOUNT)]
      const caller: Caller = { keyId: TEMPORARY, projectId: project_id, accountId: account_id, enabled: true }
      temporary.set(hashKey(hashSecret, key), caller)
      return key
    },

    async listKeys() {
      return (await keyQuery().orderBy('k.id').execute()).map(toKeyInfo)
    },

    async revokeKey(id) {
      const query = db.query
        .updateTable('keys')
        .set({ revoked_at: sql<number>`coalesce(revoked_at, ${now()})` })
        .where('id', '=', id)
        .compile()
      return (await db.write([{ query, rows: 1 }])).ok
    },

    async getSetting(name, account = DEFAULT_ACCOUNT) {
      const row = await db.query
        .selectFrom('settings')
        .select('value')
        .where('account_id', '=', await accountId(account))
        .where('name', '=', name)
        .executeTakeFirst()
      return row?.value === 'on'
    },

    async setSetting(name: SettingName, on, account = DEFAULT_ACCOUNT) {
      const id = await accountId(account)
      const query = db.query
        .insertInto('settings')
        .values({ account_id: id, name, value: on ? 'on' : 'off' })
        .onConflict((conflict) => conflict.columns(['account_id', 'name']).doUpdateSet({ value: on ? 'on' : 'off' }))
        .compile()
      await db.write([{ query, rows: 1 }])
    },
  }
}

interface KeyRow extends Omit<KeyInfo, 'lastUsedAt' | 'expiresAt' | 'revokedAt'> {
  readonly lastUsedAt: number | null
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}

function toKeyInfo(row: KeyRow): KeyInfo {
  const time = (value: number | null) => (value === null ? undefined : Number(value))
  return {
    ...row,
    createdAt: Number(row.createdAt),
    lastUsedAt: time(row.lastUsedAt),
    expiresAt: time(row.expiresAt),
    revokedAt: time(row.revokedAt),
  }
}

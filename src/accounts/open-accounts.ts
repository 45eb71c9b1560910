/**
 * Accounts over the database. One account, `default`, is made with the first project; more come by `errand accounts create`
 * and by signing up. A key is looked up by its hash at each call: the read is a few microseconds, and a revoked key is dead
 * at once.
 */
import { createSecretKey, hash as digestOf, hkdfSync } from 'node:crypto'
import { sql } from 'kysely'
import { fixedQuery } from '../store/fixed-query.ts'
import type { Database } from '../store/port.ts'
import type { Accounts, Caller } from './accounts.ts'
import { hashKey, isKeyText, newKeyText } from './key-text.ts'
import { createKeys } from './keys.ts'
import { createLinks } from './links.ts'
import { createMembers } from './members.ts'
import { createProjects, DEFAULT_ACCOUNT } from './projects.ts'
import type { Scope } from './scopes.ts'
import { webhookSecret } from './webhook-secret.ts'

/** The key id of an interaction that a command on this process's data directory made. */
const TEMPORARY = 'key_temporary'
/** `last_used_at` is written at most so often a key: it is for people, who look by the minute. */
const LAST_USED_MS = 60_000
const MAX_KNOWN_HASHES = 1_000

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
    .select(['k.id', 'k.project_id', 'k.scope', 'k.expires_at', 'k.revoked_at', 'p.account_id', 's.value'])
    .where('k.hash', '=', hash),
)

export function openAccounts({ db, secret, now = Date.now }: AccountsOptions): Accounts {
  const hashSecret = createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', 'errand api keys', 32)))
  const temporary = new Map<string, Caller>()
  const lastUsed = new Map<string, number>()
  /** Of good keys, by a digest that costs a tenth of the keyed one. */
  const knownHashes = new Map<string, string>()
  const keys = createKeys(db, hashSecret, now)
  const projects = createProjects(db, now)

  function touch(keyId: string): void {
    const at = now()
    if (at - (lastUsed.get(keyId) ?? 0) < LAST_USED_MS) return
    lastUsed.set(keyId, at)
    const query = db.query.updateTable('keys').set({ last_used_at: at }).where('id', '=', keyId).compile()
    // Only a hint for people: a call must not fail, or wait, for it.
    db.write([{ query }]).catch(() => lastUsed.delete(keyId))
  }

  return {
    keys,
    projects,
    members: createMembers(db, now),
    links: createLinks(db, now),

    async authenticate(key) {
      const digest = digestOf('sha256', key)
      const known = knownHashes.get(digest)
      if (known === undefined && !isKeyText(key)) return undefined
      const hash = known ?? hashKey(hashSecret, key)
      const own = temporary.get(hash)
      if (own) return own
      const [row] = await db.read(callerOf(db, { hash }))
      if (!row || row.revoked_at !== null) return undefined
      if (row.expires_at !== null && Number(row.expires_at) <= now()) return undefined
      touch(row.id)
      if (known === undefined) {
        if (knownHashes.size === MAX_KNOWN_HASHES) knownHashes.clear()
        knownHashes.set(digest, hash)
      }
      return {
        keyId: row.id,
        projectId: row.project_id,
        accountId: row.account_id,
        enabled: row.value === 'on',
        scope: row.scope as Scope,
      }
    },

    async webhookSecret(project) {
      const own = await projects.list(await projects.accountId(DEFAULT_ACCOUNT))
      const found = own.find(({ name }) => name === project)
      return found && webhookSecret(secret, found.id)
    },

    async createKey({ project, account = DEFAULT_ACCOUNT, ...key }) {
      return keys.issue(await projects.ensure(await projects.accountId(account), project), key)
    },

    async temporaryKey(project) {
      const key = newKeyText()
      const accountId = await projects.accountId(DEFAULT_ACCOUNT)
      const projectId = await projects.ensure(accountId, project)
      const caller: Caller = { keyId: TEMPORARY, projectId, accountId, enabled: true, scope: 'all' }
      temporary.set(hashKey(hashSecret, key), caller)
      return key
    },

    async getSetting(_name, account = DEFAULT_ACCOUNT) {
      return projects.isOn(await projects.accountId(account))
    },

    async setSetting(_name, on, account = DEFAULT_ACCOUNT) {
      await projects.switchService(await projects.accountId(account), on)
    },
  }
}

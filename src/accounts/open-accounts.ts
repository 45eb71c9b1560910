/**
 * Accounts in the database. The account `default` is created with the first project, others by `errand accounts create` and by
 * signing up. Each call looks up its key by hash: the read takes a few microseconds, and revoking a key works immediately.
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

/** Key id of interactions that a command on this process's data directory starts. */
const TEMPORARY = 'key_temporary'
/** Minimum time between two writes of a key's `last_used_at`, which is only shown to people. */
const LAST_USED_MS = 60_000
const MAX_KNOWN_HASHES = 1_000

export interface AccountsOptions {
  readonly db: Database
  /** The server's secret. */
  readonly secret: string
  readonly now?: () => number
}

/** The query of every call. */
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
  /** Valid keys by a digest that costs a tenth of the keyed one. */
  const knownHashes = new Map<string, string>()
  const keys = createKeys(db, hashSecret, now)
  const projects = createProjects(db, now)

  function touch(keyId: string): void {
    const at = now()
    if (at - (lastUsed.get(keyId) ?? 0) < LAST_USED_MS) return
    lastUsed.set(keyId, at)
    const query = db.query.updateTable('keys').set({ last_used_at: at }).where('id', '=', keyId).compile()
    // Only shown to people: a call must not wait for it, or fail because of it.
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

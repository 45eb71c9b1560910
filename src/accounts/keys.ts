/** API keys of projects: issues, lists, rotates and revokes them. Every change is recorded in the account's log. */
import type { KeyObject } from 'node:crypto'
import { sql } from 'kysely'
import { newId } from '../domain/ids.ts'
import { assertMade, type Database, fenced, type Statement, wasMade } from '../store/port.ts'
import { type AccountAction, entryStatement } from './account-log.ts'
import { hashKey, newKeyText, visiblePrefix } from './key-text.ts'
import type { Scope } from './scopes.ts'

export interface KeyInfo {
  readonly id: string
  readonly name: string
  readonly projectId: string
  readonly projectName: string
  /** First characters of the key, so that people can tell keys apart. */
  readonly prefix: string
  readonly scope: Scope
  readonly createdAt: number
  readonly lastUsedAt: number | undefined
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
}

export interface NewKey {
  readonly name: string
  readonly scope?: Scope
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt?: number
}

/** A new key. `key` is its text, which is returned only once and never stored. */
export interface IssuedKey {
  readonly key: string
  readonly info: KeyInfo
}

/** `actor` is the user who does it; undefined: the server's operator. */
export interface Keys {
  issue(projectId: string, key: NewKey, actor?: string): Promise<IssuedKey>
  /** Issues a key in one transaction with the claim. Undefined if the claim fails. */
  issueOnce(projectId: string, key: NewKey, claim: Statement): Promise<IssuedKey | undefined>
  /** All keys, or those of a project, oldest first. */
  list(projectId?: string): Promise<readonly KeyInfo[]>
  find(id: string): Promise<KeyInfo | undefined>
  /** Issues a copy of the key; the old one expires `overlapMs` from now or earlier. Undefined if it is no longer valid. */
  rotate(
    id: string,
    overlapMs: number,
    actor?: string,
  ): Promise<(IssuedKey & { readonly replaced: KeyInfo }) | undefined>
  /** Idempotent. Returns false if there is no such key. */
  revoke(id: string, actor?: string): Promise<boolean>
}

export function createKeys(db: Database, hashSecret: KeyObject, now: () => number): Keys {
  const keys = () =>
    db.query
      .selectFrom('keys as k')
      .innerJoin('projects as p', 'p.id', 'k.project_id')
      .select([
        'k.id',
        'k.name',
        'k.project_id as projectId',
        'p.name as projectName',
        'k.prefix',
        'k.scope',
        'k.created_at as createdAt',
        'k.last_used_at as lastUsedAt',
        'k.expires_at as expiresAt',
        'k.revoked_at as revokedAt',
      ])

  async function find(id: string): Promise<KeyInfo | undefined> {
    const row = await keys().where('k.id', '=', id).executeTakeFirst()
    return row && toKeyInfo(row)
  }

  async function entry(action: AccountAction, projectId: string, target: string, name: string, actor?: string) {
    const { account_id: accountId } = await db.query
      .selectFrom('projects')
      .select('account_id')
      .where('id', '=', projectId)
      .executeTakeFirstOrThrow()
    return entryStatement(db, { accountId, action, actor, target, details: { name } }, now())
  }

  async function issue(projectId: string, key: NewKey, beside: readonly Statement[], actor?: string) {
    const text = newKeyText()
    const id = newId('key', now())
    const query = db.query
      .insertInto('keys')
      .values({
        id,
        project_id: projectId,
        name: key.name,
        prefix: visiblePrefix(text),
        hash: hashKey(hashSecret, text),
        scope: key.scope ?? 'all',
        created_at: now(),
        last_used_at: null,
        expires_at: key.expiresAt ?? null,
        revoked_at: null,
      })
      .compile()
    const result = await db.write([...beside, { query }, await entry('key.created', projectId, id, key.name, actor)])
    return wasMade(result, 'fence', 'unique') ? { key: text, info: (await find(id))! } : undefined
  }

  return {
    find,
    async issue(projectId, key, actor) {
      return (await issue(projectId, key, [], actor))!
    },
    issueOnce: (projectId, key, claim) => issue(projectId, key, [claim]),
    async list(projectId) {
      const query = projectId === undefined ? keys() : keys().where('k.project_id', '=', projectId)
      return (await query.orderBy('k.id').execute()).map(toKeyInfo)
    },
    async rotate(id, overlapMs, actor) {
      const old = await find(id)
      if (!old) return undefined
      const until = Math.min(now() + overlapMs, old.expiresAt ?? Number.POSITIVE_INFINITY)
      const ending = db.query
        .updateTable('keys')
        .set({ expires_at: until })
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now())]))
        .compile()
      const rotated = await entry('key.rotated', old.projectId, id, old.name, actor)
      const { name, scope, expiresAt } = old
      const issued = await issue(old.projectId, { name, scope, expiresAt }, [fenced(ending), rotated], actor)
      return issued && { ...issued, replaced: (await find(id))! }
    },
    async revoke(id, actor) {
      const old = await find(id)
      if (!old) return false
      if (old.revokedAt !== undefined) return true
      const query = db.query
        .updateTable('keys')
        .set({ revoked_at: sql<number>`coalesce(revoked_at, ${now()})` })
        .where('id', '=', id)
        .compile()
      assertMade(await db.write([{ query }, await entry('key.revoked', old.projectId, id, old.name, actor)]))
      return true
    },
  }
}

interface KeyRow extends Omit<KeyInfo, 'scope' | 'lastUsedAt' | 'expiresAt' | 'revokedAt'> {
  readonly scope: string
  readonly lastUsedAt: number | null
  readonly expiresAt: number | null
  readonly revokedAt: number | null
}

function toKeyInfo(row: KeyRow): KeyInfo {
  const time = (value: number | null) => (value === null ? undefined : Number(value))
  return {
    ...row,
    scope: row.scope as Scope,
    createdAt: Number(row.createdAt),
    lastUsedAt: time(row.lastUsedAt),
    expiresAt: time(row.expiresAt),
    revokedAt: time(row.revokedAt),
  }
}

/**
 * One-time links: the first owner's welcome, an invitation, a password reset. Only a hash of a link's token is stored. Using a
 * link deletes its row, so it can be used only once.
 */
import { createHash } from 'node:crypto'
import { newId, randomBase62 } from '../domain/ids.ts'
import { type Database, fenced, type Statement, wasMade } from '../store/port.ts'
import { type AccountEntry, entryStatement } from './account-log.ts'
import type { Role } from './members.ts'

const HOUR_MS = 3_600_000
const LASTS_MS = { welcome: 24 * HOUR_MS, invite: 7 * 24 * HOUR_MS, reset: 24 * HOUR_MS } as const
const TOKEN_CHARS = 43

export type LinkKind = keyof typeof LASTS_MS

export interface NewLink {
  readonly kind: LinkKind
  /** For `welcome` and `invite`: the account, and the role in it. */
  readonly accountId?: string
  readonly role?: Role
  /** For `reset`: the user. */
  readonly userId?: string
}

export interface Link extends NewLink {
  readonly id: string
  readonly createdAt: number
  readonly expiresAt: number
}

interface NewToken {
  readonly token: string
  readonly link: Link
}

export interface Links {
  /** Returns the token, which is not stored. `entry`: for the account's log. */
  create(link: NewLink, entry?: AccountEntry): Promise<NewToken>
  /** Creates a link in one transaction with the claim. Undefined if the claim fails. */
  createOnce(link: NewLink, claim: Statement): Promise<NewToken | undefined>
  /** Undefined if the link was used, has expired, or does not exist. */
  find(token: string): Promise<Link | undefined>
  /** Statement that uses the link: it deletes one row, or the link is no longer valid. */
  use(link: Link): Statement
  invites(accountId: string): Promise<readonly Link[]>
  /** Returns false if the account has no such invitation. */
  revokeInvite(accountId: string, id: string, entry: AccountEntry): Promise<boolean>
}

/** Path of the link's page. The token is in the fragment, which browsers do not send to servers. */
export function pathOfLink(kind: LinkKind, token: string): string {
  return `/console/${kind}#${token}`
}

export function createLinks(db: Database, now: () => number): Links {
  const good = () => db.query.selectFrom('links').selectAll().where('expires_at', '>', now())

  async function create({ kind, accountId, role, userId }: NewLink, beside: (at: number) => readonly Statement[]) {
    const token = randomBase62(TOKEN_CHARS)
    const at = now()
    const id = newId('lnk', at)
    const link = { id, kind, accountId, role, userId, createdAt: at, expiresAt: at + LASTS_MS[kind] }
    const query = db.query
      .insertInto('links')
      .values({
        id,
        hash: hashOf(token),
        kind,
        account_id: accountId ?? null,
        role: role ?? null,
        user_id: userId ?? null,
        created_at: at,
        expires_at: link.expiresAt,
      })
      .compile()
    const over = db.query.deleteFrom('links').where('expires_at', '<=', at).compile()
    const result = await db.write([...beside(at), { query: over }, { query }])
    return wasMade(result, 'fence', 'unique') ? { token, link } : undefined
  }

  return {
    create: async (link, entry) => (await create(link, (at) => (entry ? [entryStatement(db, entry, at)] : [])))!,
    createOnce: (link, claim) => create(link, () => [claim]),
    async find(token) {
      const row = await good().where('hash', '=', hashOf(token)).executeTakeFirst()
      return row && toLink(row)
    },
    use({ id }) {
      const query = db.query.deleteFrom('links').where('id', '=', id).where('expires_at', '>', now()).compile()
      return fenced(query)
    },
    async invites(accountId) {
      const rows = await good().where('account_id', '=', accountId).where('kind', '=', 'invite').orderBy('id').execute()
      return rows.map(toLink)
    },
    async revokeInvite(accountId, id, entry) {
      const query = db.query
        .deleteFrom('links')
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('kind', '=', 'invite')
        .compile()
      return wasMade(await db.write([fenced(query), entryStatement(db, entry, now())]), 'fence')
    },
  }
}

/** Hashes a token. A plain hash is enough, because the token is too random to be guessed. */
function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

interface LinkRow {
  readonly id: string
  readonly kind: string
  readonly account_id: string | null
  readonly role: string | null
  readonly user_id: string | null
  readonly created_at: number
  readonly expires_at: number
}

function toLink(row: LinkRow): Link {
  return {
    id: row.id,
    kind: row.kind as LinkKind,
    accountId: row.account_id ?? undefined,
    role: (row.role ?? undefined) as Role | undefined,
    userId: row.user_id ?? undefined,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
  }
}

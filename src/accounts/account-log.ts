/** The account's log, for its owners. An entry is written in the same transaction as the change that it records. */
import { newId } from '../domain/ids.ts'
import type { Database, Statement } from '../store/port.ts'

export type AccountAction =
  | 'account.created'
  | 'budget.alert'
  | 'budget.changed'
  | 'budget.exceeded'
  | 'invite.created'
  | 'invite.revoked'
  | 'key.created'
  | 'key.revoked'
  | 'key.rotated'
  | 'member.joined'
  | 'member.removed'
  | 'member.role_changed'
  | 'password.reset_link_created'
  | 'project.created'
  | 'project.renamed'
  | 'setting.changed'
  | 'sign_in.failed'

export interface AccountEntry {
  readonly accountId: string
  readonly action: AccountAction
  /** The user who did it. Undefined: the server's operator. */
  readonly actor: string | undefined
  /** Id of the changed object. */
  readonly target?: string
  /** Names and values for people to read. Never contains a secret. */
  readonly details?: Readonly<Record<string, string>>
}

export interface LoggedEntry {
  readonly id: string
  readonly at: number
  readonly action: string
  readonly actor: { readonly userId: string; readonly email: string | undefined } | undefined
  readonly target: string | undefined
  readonly details: Readonly<Record<string, string>>
}

export function entryStatement(db: Database, entry: AccountEntry, now: number): Statement {
  return {
    query: db.query
      .insertInto('account_events')
      .values({
        id: newId('evt', now),
        account_id: entry.accountId,
        at: now,
        actor: entry.actor ?? null,
        action: entry.action,
        target: entry.target ?? null,
        details: JSON.stringify(entry.details ?? {}),
      })
      .compile(),
  }
}

/** One page, newest first. `after`: the last id of the previous page. */
async function readAccountLog(
  db: Database,
  accountId: string,
  { pageSize, after }: { readonly pageSize: number; readonly after?: string },
): Promise<{ readonly entries: readonly LoggedEntry[]; readonly next: string | undefined }> {
  let query = db.query
    .selectFrom('account_events as e')
    .leftJoin('users as u', 'u.id', 'e.actor')
    .select(['e.id', 'e.at', 'e.action', 'e.actor', 'u.email', 'e.target', 'e.details'])
    .where('e.account_id', '=', accountId)
  if (after !== undefined) query = query.where('e.id', '<', after)
  const rows = await query
    .orderBy('e.id', 'desc')
    .limit(pageSize + 1)
    .execute()
  const entries = rows.slice(0, pageSize).map((row) => ({
    id: row.id,
    at: Number(row.at),
    action: row.action,
    actor: row.actor === null ? undefined : { userId: row.actor, email: row.email ?? undefined },
    target: row.target ?? undefined,
    details: JSON.parse(row.details) as Record<string, string>,
  }))
  return { entries, next: rows.length > pageSize ? entries.at(-1)?.id : undefined }
}

export interface AccountLog {
  read: (
    accountId: string,
    page: { readonly pageSize: number; readonly after?: string },
  ) => ReturnType<typeof readAccountLog>
  /** Adds an entry to every account of the user with this e-mail address. Does nothing if there is no such user. */
  signInFailed(email: string): Promise<void>
}

export function createAccountLog(db: Database, now: () => number): AccountLog {
  return {
    read: (accountId, page) => readAccountLog(db, accountId, page),
    async signInFailed(email) {
      const rows = await db.query
        .selectFrom('members as m')
        .innerJoin('users as u', 'u.id', 'm.user_id')
        .select(['m.account_id', 'u.id'])
        .where('u.email', '=', email.toLowerCase())
        .execute()
      const entry = (row: (typeof rows)[number]) =>
        entryStatement(
          db,
          { accountId: row.account_id, action: 'sign_in.failed', actor: row.id, target: row.id },
          now(),
        )
      if (rows.length > 0) await db.write(rows.map(entry))
    },
  }
}

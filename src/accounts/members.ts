/** Members of accounts and their roles. An account that has an owner always keeps one. */
import { ErrandError } from '../domain/errors.ts'
import { projectLock } from '../store/locks.ts'
import { type Database, fenced, type Query, wasMade } from '../store/port.ts'
import { type AccountEntry, entryStatement } from './account-log.ts'

/** Roles. `owner`: everything. `developer`: everything except members, the service switch and budgets. `viewer`: reads. */
export const ROLES = ['owner', 'developer', 'viewer'] as const
export type Role = (typeof ROLES)[number]

export interface Member {
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly role: Role
  readonly joinedAt: number
}

export interface Membership {
  readonly accountId: string
  readonly accountName: string
  readonly role: Role
  /** Whether the service is on for the account. */
  readonly enabled: boolean
}

export interface Members {
  /** Memberships of a user, oldest first. */
  ofUser(userId: string): Promise<readonly Membership[]>
  /** Membership of the user in the account. Undefined if there is none. */
  find(userId: string, accountId: string): Promise<Membership | undefined>
  /** Membership of the user in the account of a project. Undefined if there is none. */
  findByProject(userId: string, projectId: string): Promise<Membership | undefined>
  /** Whether any account of this server has an owner. */
  anyOwner(): Promise<boolean>
  /** Id of the user with this e-mail address. */
  userOf(email: string): Promise<string | undefined>
  list(accountId: string): Promise<readonly Member[]>
  /** Throws ErrandError `not_found`, `conflict` (the last owner). */
  changeRole(accountId: string, userId: string, role: Role, actor: string): Promise<void>
  /** Throws ErrandError `not_found`, `conflict` (the last owner). */
  remove(accountId: string, userId: string, actor: string): Promise<void>
}

export function createMembers(db: Database, now: () => number): Members {
  const memberships = (userId: string) =>
    db.query
      .selectFrom('members as m')
      .innerJoin('accounts as a', 'a.id', 'm.account_id')
      .leftJoin('settings as s', (join) =>
        join.onRef('s.account_id', '=', 'a.id').on('s.name', '=', 'experimental.managedAgents'),
      )
      .select(['a.id as accountId', 'a.name as accountName', 'm.role', 's.value'])
      .where('m.user_id', '=', userId)

  /** Runs one change at a time per account, so that two owners can't leave at the same time. */
  async function change(query: Query, entry: AccountEntry): Promise<void> {
    const lock = projectLock(db, entry.accountId)
    const result = await db.write([...lock, fenced(query), entryStatement(db, entry, now())])
    if (wasMade(result, 'fence')) return
    const found = await db.query
      .selectFrom('members')
      .select('role')
      .where('account_id', '=', entry.accountId)
      .where('user_id', '=', entry.target!)
      .executeTakeFirst()
    if (!found) throw new ErrandError('not_found', `There is no member ${JSON.stringify(entry.target)}.`)
    throw new ErrandError('conflict', 'This is the last owner of the account. Make another member an owner first.')
  }

  const otherOwners = (accountId: string, userId: string) =>
    db.query
      .selectFrom('members as o')
      .select('o.user_id')
      .where('o.account_id', '=', accountId)
      .where('o.role', '=', 'owner')
      .where('o.user_id', '!=', userId)

  return {
    async ofUser(userId) {
      return (await memberships(userId).orderBy('a.id').execute()).map(toMembership)
    },
    async find(userId, accountId) {
      const row = await memberships(userId).where('a.id', '=', accountId).executeTakeFirst()
      return row && toMembership(row)
    },
    async findByProject(userId, projectId) {
      const row = await memberships(userId)
        .innerJoin('projects as p', 'p.account_id', 'a.id')
        .where('p.id', '=', projectId)
        .executeTakeFirst()
      return row && toMembership(row)
    },

    async anyOwner() {
      const row = await db.query.selectFrom('members').select('user_id').where('role', '=', 'owner').executeTakeFirst()
      return row !== undefined
    },

    async userOf(email) {
      const query = db.query.selectFrom('users').select('id').where('email', '=', email.toLowerCase())
      return (await query.executeTakeFirst())?.id
    },

    async list(accountId) {
      const rows = await db.query
        .selectFrom('members as m')
        .innerJoin('users as u', 'u.id', 'm.user_id')
        .select(['u.id', 'u.name', 'u.email', 'm.role', 'm.created_at'])
        .where('m.account_id', '=', accountId)
        .orderBy('m.created_at')
        .execute()
      return rows.map(({ id, name, email, role, created_at }) => {
        return { userId: id, name, email, role: role as Role, joinedAt: Number(created_at) }
      })
    },

    async changeRole(accountId, userId, role, actor) {
      let query = db.query
        .updateTable('members')
        .set({ role })
        .where('account_id', '=', accountId)
        .where('user_id', '=', userId)
      if (role !== 'owner') {
        query = query.where((eb) => eb.or([eb('role', '!=', 'owner'), eb.exists(otherOwners(accountId, userId))]))
      }
      const entry = { accountId, action: 'member.role_changed', actor, target: userId, details: { role } } as const
      await change(query.compile(), entry)
    },

    async remove(accountId, userId, actor) {
      const query = db.query
        .deleteFrom('members')
        .where('account_id', '=', accountId)
        .where('user_id', '=', userId)
        .where((eb) => eb.or([eb('role', '!=', 'owner'), eb.exists(otherOwners(accountId, userId))]))
      await change(query.compile(), { accountId, action: 'member.removed', actor, target: userId })
    },
  }
}

function toMembership(row: { accountId: string; accountName: string; role: string; value: string | null }): Membership {
  const { accountId, accountName, role, value } = row
  return { accountId, accountName, role: role as Role, enabled: value === 'on' }
}

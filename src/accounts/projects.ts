/** Accounts and their projects, which own keys, agents, interactions and secrets. */
import { sql } from 'kysely'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import { assertMade, type Database, fenced, type Statement, wasMade } from '../store/port.ts'
import { entryStatement } from './account-log.ts'

export const DEFAULT_ACCOUNT = 'default'
const SWITCH = 'experimental.managedAgents'

export interface Project {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly createdAt: number
}

export interface AccountInfo {
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly enabled: boolean
}

/** A one-time claim of one process, stored with the account's settings. */
export type Claim = 'first.key' | 'first.link'

export interface Projects {
  /** Id of the account with this name. Creates `default` if needed. Throws ErrandError `not_found`. */
  accountId(name: string): Promise<string>
  accounts(): Promise<readonly AccountInfo[]>
  /** Creates an account with the service off. `beside`: statements for the same transaction. Throws ErrandError `conflict`. */
  createAccount(name: string, beside?: (accountId: string) => readonly Statement[], actor?: string): Promise<string>
  find(id: string): Promise<Project | undefined>
  /** Oldest first. */
  list(accountId: string): Promise<readonly Project[]>
  /** Throws ErrandError `conflict` if the account has a project with this name. */
  create(accountId: string, name: string, actor?: string): Promise<Project>
  /** Id of the project with this name. Creates it if needed. */
  ensure(accountId: string, name: string): Promise<string>
  /** Throws ErrandError `conflict` if the account has a project with this name. */
  rename(project: Project, name: string, actor?: string): Promise<Project>
  isOn(accountId: string): Promise<boolean>
  /** The process that has made the claim. Undefined if none has. */
  claimed(accountId: string, what: Claim): Promise<string | undefined>
  /** Statement that makes the claim: it changes one row, or another process was first. `before`: the previous claimant. */
  claim(accountId: string, what: Claim, before: string | undefined, by: string): Statement
  switchService(accountId: string, on: boolean, actor?: string): Promise<void>
}

export function createProjects(db: Database, now: () => number): Projects {
  async function insertAccount(
    name: string,
    on: boolean,
    beside: (id: string) => readonly Statement[],
    actor?: string,
  ) {
    const id = newId('acc', now())
    const account = db.query.insertInto('accounts').values({ id, name, created_at: now() }).compile()
    const setting = db.query.insertInto('settings').values({ account_id: id, name: SWITCH, value: on ? 'on' : 'off' })
    const result = await db.write([
      { query: account, rows: 1 },
      { query: setting.compile() },
      entryStatement(db, { accountId: id, action: 'account.created', actor, target: id, details: { name } }, now()),
      ...beside(id),
    ])
    return wasMade(result, 'fence', 'unique') ? id : undefined
  }

  async function accountId(name: string): Promise<string> {
    const found = await db.query.selectFrom('accounts').select('id').where('name', '=', name).executeTakeFirst()
    if (found) return found.id
    if (name !== DEFAULT_ACCOUNT) throw new ErrandError('not_found', `There is no account ${JSON.stringify(name)}.`)
    // This account belongs to the server's operator, so the service is on.
    return (await insertAccount(name, true, () => [])) ?? accountId(name)
  }

  const projects = () =>
    db.query.selectFrom('projects').select(['id', 'account_id as accountId', 'name', 'created_at as createdAt'])

  async function named(account: string, name: string) {
    const row = await projects().where('account_id', '=', account).where('name', '=', name).executeTakeFirst()
    return row && toProject(row)
  }

  async function insert(account: string, name: string, actor?: string): Promise<Project | undefined> {
    const project = { id: newId('prj', now()), accountId: account, name, createdAt: now() }
    const query = db.query
      .insertInto('projects')
      .values({ id: project.id, account_id: account, name, created_at: project.createdAt })
      .compile()
    const entry = {
      accountId: account,
      action: 'project.created',
      actor,
      target: project.id,
      details: { name },
    } as const
    const result = await db.write([{ query }, entryStatement(db, entry, now())])
    return wasMade(result, 'unique') ? project : undefined
  }

  async function setting(account: string, name: string): Promise<string | undefined> {
    const row = await db.query
      .selectFrom('settings')
      .select('value')
      .where('account_id', '=', account)
      .where('name', '=', name)
      .executeTakeFirst()
    return row?.value
  }

  return {
    accountId,
    async accounts() {
      const rows = await db.query
        .selectFrom('accounts as a')
        .leftJoin('settings as s', (join) => join.onRef('s.account_id', '=', 'a.id').on('s.name', '=', sql.lit(SWITCH)))
        .select(['a.id', 'a.name', 'a.created_at', 's.value'])
        .orderBy('a.id')
        .execute()
      return rows.map(({ id, name, created_at, value }) => {
        return { id, name, createdAt: Number(created_at), enabled: value === 'on' }
      })
    },
    async createAccount(name, beside = () => [], actor) {
      const id = await insertAccount(name, false, beside, actor)
      if (id === undefined) throw new ErrandError('conflict', `There is already an account ${JSON.stringify(name)}.`)
      return id
    },
    async find(id) {
      const row = await projects().where('id', '=', id).executeTakeFirst()
      return row && toProject(row)
    },
    async list(account) {
      return (await projects().where('account_id', '=', account).orderBy('id').execute()).map(toProject)
    },
    async create(account, name, actor) {
      const project = await insert(account, name, actor)
      if (!project) throw nameTaken(name)
      return project
    },
    async ensure(account, name) {
      const project = (await named(account, name)) ?? (await insert(account, name)) ?? (await named(account, name))
      return project!.id
    },
    async rename(project, name, actor) {
      if (name === project.name) return project
      const query = db.query.updateTable('projects').set({ name }).where('id', '=', project.id).compile()
      const { accountId: account, id: target } = project
      const entry = { accountId: account, action: 'project.renamed', actor, target, details: { name } } as const
      const result = await db.write([{ query, rows: 1 }, entryStatement(db, entry, now())])
      if (!wasMade(result, 'unique')) throw nameTaken(name)
      return { ...project, name }
    },
    isOn: async (account) => (await setting(account, SWITCH)) === 'on',
    claimed: setting,
    claim(account, name, before, value) {
      const query =
        before === undefined
          ? db.query.insertInto('settings').values({ account_id: account, name, value }).compile()
          : db.query
              .updateTable('settings')
              .set({ value })
              .where('account_id', '=', account)
              .where('name', '=', name)
              .where('value', '=', before)
              .compile()
      return fenced(query)
    },
    async switchService(account, on, actor) {
      const value = on ? 'on' : 'off'
      const query = db.query
        .insertInto('settings')
        .values({ account_id: account, name: SWITCH, value })
        .onConflict((conflict) => conflict.columns(['account_id', 'name']).doUpdateSet({ value }))
        .compile()
      const details = { [SWITCH]: value }
      const entry = { accountId: account, action: 'setting.changed', actor, details } as const
      assertMade(await db.write([{ query, rows: 1 }, entryStatement(db, entry, now())]))
    },
  }
}

function toProject(row: Project): Project {
  return { ...row, createdAt: Number(row.createdAt) }
}

function nameTaken(name: string): ErrandError {
  return new ErrandError('conflict', `The account already has a project ${JSON.stringify(name)}.`, { param: 'name' })
}

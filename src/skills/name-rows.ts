/** SQL of skill names: which names an owner has used, and whose skill a project sees under a name. */
import { type Database, fenced, type Statement } from '../store/port.ts'

/** Owner of the operator's skills. No project has this id. */
export const SERVER = ''

/** A name that an owner has used. `newest` is 0 if no version is left. */
export interface NameRow {
  readonly newest: number
  readonly lastVersion: number
  readonly createdAt: number
}

export async function findName(db: Database, owner: string, name: string): Promise<NameRow | undefined> {
  const row = await db.query
    .selectFrom('skills')
    .select(['newest', 'last_version', 'created_at'])
    .where('project_id', '=', owner)
    .where('name', '=', name)
    .executeTakeFirst()
  return row && { newest: Number(row.newest), lastVersion: Number(row.last_version), createdAt: Number(row.created_at) }
}

/** Names of which the owner has a version. */
export async function findNames(db: Database, owner: string): Promise<string[]> {
  const rows = await db.query
    .selectFrom('skills')
    .select('name')
    .where('project_id', '=', owner)
    .where('newest', '>', 0)
    .execute()
  return rows.map(({ name }) => name)
}

/** Sets a name's newest version, or inserts a new name. Affects no row if another writer was faster. */
export function nameStatement(
  db: Database,
  owner: string,
  name: string,
  before: NameRow | undefined,
  next: { readonly newest: number; readonly lastVersion: number; readonly createdAt: number },
): Statement {
  const values = { newest: next.newest, last_version: next.lastVersion, created_at: next.createdAt }
  const query = before
    ? db.query
        .updateTable('skills')
        .set(values)
        .where('project_id', '=', owner)
        .where('name', '=', name)
        .where('newest', '=', before.newest)
        .where('last_version', '=', before.lastVersion)
        .compile()
    : db.query
        .insertInto('skills')
        .values({ project_id: owner, name, ...values })
        .compile()
  return fenced(query)
}

/** Selects the owner of the skill that a project sees under a name: the project if it has one. The operator's id is empty and sorts last. */
export function ownerSeen(db: Database, projectId: string, name: string) {
  return db.query
    .selectFrom('skills')
    .select('project_id')
    .where('project_id', 'in', [projectId, SERVER])
    .where('name', '=', name)
    .where('newest', '>', 0)
    .orderBy('project_id', 'desc')
    .limit(1)
}

export async function findOwner(db: Database, projectId: string, name: string): Promise<string | undefined> {
  return (await ownerSeen(db, projectId, name).executeTakeFirst())?.project_id
}

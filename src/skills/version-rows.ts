/** SQL of skill versions: numbered rows that refer to a content by its digest. */
import type { Skill, SkillMeta } from '../domain/skill.ts'
import { fixedQuery } from '../store/fixed-query.ts'
import type { Database, Statement } from '../store/port.ts'
import { ownerSeen, SERVER } from './name-rows.ts'
import type { SkillPage } from './port.ts'

export interface Page {
  readonly pageSize: number
  readonly after?: string
}

export async function countVersions(db: Database, owner: string): Promise<number> {
  const { count } = await db.query
    .selectFrom('skill_versions')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('project_id', '=', owner)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Version numbers, newest first. */
export async function versionNumbers(db: Database, owner: string, name: string): Promise<number[]> {
  const rows = await db.query
    .selectFrom('skill_versions')
    .select('version')
    .where('project_id', '=', owner)
    .where('name', '=', name)
    .orderBy('version', 'desc')
    .execute()
  return rows.map(({ version }) => Number(version))
}

export function insertVersion(
  db: Database,
  row: { owner: string; name: string; version: number; digest: string; at: number },
): Statement {
  const { owner, name, version, digest, at } = row
  const values = { project_id: owner, name, version, digest, created_at: at }
  return { query: db.query.insertInto('skill_versions').values(values).compile() }
}

/** Deletes a version, or all versions. Must affect `rows` rows, or the write is rolled back. */
export function deleteVersions(
  db: Database,
  owner: string,
  name: string,
  version: number | undefined,
  rows: number,
): Statement {
  let query = db.query.deleteFrom('skill_versions').where('project_id', '=', owner).where('name', '=', name)
  if (version !== undefined) query = query.where('version', '=', version)
  return { query: query.compile(), rows }
}

/** Finds an owner's version; the newest if none is given. */
export async function findVersion(
  db: Database,
  owner: string,
  name: string,
  version?: number,
): Promise<Skill | undefined> {
  const rows = versionRows(db).where('v.project_id', '=', owner).where('v.name', '=', name)
  const row = await (version === undefined
    ? rows.whereRef('v.version', '=', 's.newest')
    : rows.where('v.version', '=', version)
  ).executeTakeFirst()
  return row && toSkill(row)
}

const seenRows = (db: Database, projectId: string, name: string) =>
  versionRows(db)
    .where('v.project_id', '=', ownerSeen(db, projectId, name))
    .where('v.name', '=', name)

const newestSeen = fixedQuery((db, { projectId, name }: { projectId: string; name: string }) =>
  seenRows(db, projectId, name).whereRef('v.version', '=', 's.newest'),
)

const versionSeen = fixedQuery((db, asked: { projectId: string; name: string; version: number }) =>
  seenRows(db, asked.projectId, asked.name).where('v.version', '=', asked.version),
)

/** Finds the skill that a project sees; the newest version if none is given. */
export async function findSeen(
  db: Database,
  projectId: string,
  name: string,
  version?: number,
): Promise<Skill | undefined> {
  const query =
    version === undefined ? newestSeen(db, { projectId, name }) : versionSeen(db, { projectId, name, version })
  const [row] = await db.read(query)
  return row && toSkill(row)
}

export async function listVersions(db: Database, owner: string, name: string, page: Page): Promise<SkillPage> {
  let rows = versionRows(db).where('v.project_id', '=', owner).where('v.name', '=', name)
  if (page.after !== undefined && /^\d{1,9}$/.test(page.after)) rows = rows.where('v.version', '<', Number(page.after))
  const found = await rows
    .orderBy('v.version', 'desc')
    .limit(page.pageSize + 1)
    .execute()
  return pageOf(found.map(toSkill), page.pageSize, ({ version }) => `${version}`)
}

/** The newest versions that a project sees, by (created_at, name): its own, and the operator's under names that it does not have. */
export async function listSkills(
  db: Database,
  projectId: string,
  { order, pageSize, after }: Page & { readonly order: 'asc' | 'desc' },
): Promise<SkillPage> {
  let rows = versionRows(db)
    .where('v.project_id', 'in', [projectId, SERVER])
    .whereRef('v.version', '=', 's.newest')
    .where((eb) => {
      const own = eb
        .selectFrom('skills as own')
        .select('own.name')
        .where('own.project_id', '=', projectId)
        .whereRef('own.name', '=', 'v.name')
        .where('own.newest', '>', 0)
      return eb.or([eb('v.project_id', '=', projectId), eb.not(eb.exists(own))])
    })
  const [, time, name] = /^(\d{1,15})\.(.*)$/.exec(after ?? '') ?? []
  if (time !== undefined && name !== undefined) {
    const [beyond, createdAt] = [order === 'asc' ? '>' : '<', Number(time)] as const
    rows = rows.where((eb) =>
      eb.or([
        eb('s.created_at', beyond, createdAt),
        eb.and([eb('s.created_at', '=', createdAt), eb('v.name', beyond, name)]),
      ]),
    )
  }
  const found = await rows
    .orderBy('s.created_at', order)
    .orderBy('v.name', order)
    .limit(pageSize + 1)
    .execute()
  return pageOf(found.map(toSkill), pageSize, ({ createdAt, name: last }) => `${createdAt}.${last}`)
}

function versionRows(db: Database) {
  return db.query
    .selectFrom('skill_versions as v')
    .innerJoin('skill_contents as c', 'c.digest', 'v.digest')
    .innerJoin('skills as s', (join) => join.onRef('s.project_id', '=', 'v.project_id').onRef('s.name', '=', 'v.name'))
    .select(['v.project_id', 'v.name', 'v.version', 'v.digest', 'v.created_at as updated_at'])
    .select(['c.meta', 'c.size', 'c.file_count', 's.created_at'])
}

type VersionRow = Awaited<ReturnType<ReturnType<typeof versionRows>['executeTakeFirstOrThrow']>>

function toSkill(row: VersionRow): Skill {
  return {
    name: row.name,
    version: Number(row.version),
    digest: row.digest,
    origin: row.project_id === SERVER ? 'server' : 'project',
    meta: JSON.parse(row.meta) as SkillMeta,
    size: Number(row.size),
    fileCount: Number(row.file_count),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  }
}

function pageOf(found: Skill[], pageSize: number, position: (skill: Skill) => string): SkillPage {
  const skills = found.slice(0, pageSize)
  return { skills, next: found.length > skills.length ? position(skills.at(-1)!) : undefined }
}

/** SQL of skill contents: what versions share, one row for each digest. */
import type { SkillFile, SkillMeta } from '../domain/skill.ts'
import { fixedQuery } from '../store/fixed-query.ts'
import { type Database, fenced, type Statement, wasMade } from '../store/port.ts'
import type { SkillContentsTable } from '../store/tables.ts'

const contentRow = fixedQuery((db, { digest }: { digest: string }) =>
  db.query.selectFrom('skill_contents').select(['blob', 'meta', 'files']).where('digest', '=', digest),
)

export async function findContent(db: Database, digest: string): Promise<Content | undefined> {
  const [row] = await db.read(contentRow(db, { digest }))
  return (
    row && {
      blob: row.blob,
      meta: JSON.parse(row.meta) as SkillMeta,
      files: JSON.parse(row.files) as SkillFile[],
    }
  )
}

export interface Content {
  /** Owner of its bytes in the file store. */
  readonly blob: string
  readonly meta: SkillMeta
  readonly files: readonly SkillFile[]
}

export function insertContent(db: Database, digest: string, { blob, meta, files }: Content): Statement {
  const values: SkillContentsTable = {
    digest,
    blob,
    meta: JSON.stringify(meta),
    files: JSON.stringify(files),
    size: files.reduce((sum, file) => sum + file.size, 0),
    file_count: files.length,
    released_at: null,
  }
  return { query: db.query.insertInto('skill_contents').values(values).compile() }
}

/** Keeps an existing content. Affects no row if it was removed meanwhile. */
export function holdContent(db: Database, digest: string): Statement {
  const query = db.query.updateTable('skill_contents').set({ released_at: null }).where('digest', '=', digest).compile()
  return fenced(query)
}

/** Stamps contents to which no version refers any more with the current time. */
export async function releaseContents(db: Database, now: number): Promise<void> {
  const query = db.query
    .updateTable('skill_contents')
    .set({ released_at: now })
    .where('released_at', 'is', null)
    .where('digest', 'not in', (eb) => eb.selectFrom('skill_versions').select('digest'))
    .compile()
  await db.write([{ query }])
}

export async function releasedContents(db: Database, before: number): Promise<{ digest: string; blob: string }[]> {
  return db.query
    .selectFrom('skill_contents')
    .select(['digest', 'blob'])
    .where('released_at', '<', before)
    .limit(100)
    .execute()
}

/** Deletes a content. Returns false if a version refers to it again. */
export async function deleteContent(db: Database, digest: string): Promise<boolean> {
  const query = db.query
    .deleteFrom('skill_contents')
    .where('digest', '=', digest)
    .where('released_at', 'is not', null)
    .where('digest', 'not in', (eb) => eb.selectFrom('skill_versions').select('digest'))
    .compile()
  return wasMade(await db.write([fenced(query)]), 'fence')
}

export async function isKnownBlob(db: Database, blob: string): Promise<boolean> {
  const row = await db.query.selectFrom('skill_contents').select('blob').where('blob', '=', blob).executeTakeFirst()
  return row !== undefined
}

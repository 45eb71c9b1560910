/** Processes that start concurrently, on an empty database and on one of an earlier version; and incompatible versions. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { MIGRATIONS } from '../../src/store/migrations/migrations.ts'
import type { Database } from '../../src/store/port.ts'
import { onEveryBackend } from './backends.ts'
import { append, insert, insertClaimed, said, typesOf } from './rows.ts'

const STARTER = new URL('starter.ts', import.meta.url).pathname
const MANY = 5

onEveryBackend(({ createPlace, openAt }) => {
  it('creates the schema once if many processes start on an empty database', async () => {
    const place = await createPlace()
    expect(await startAtOnce(place, MANY)).toEqual(Array(MANY).fill('found 0'))
    expect(await migrationsOf(await openAt(place))).toEqual(MIGRATIONS.map(({ name }) => name))
  })

  it('migrates a database of an earlier version once, with its data', async () => {
    const place = await createPlace()
    const db = await openAt(place)
    await insert(db)
    // The newest migration that can be undone by dropping a part of the schema.
    await undo(db, '0009-turn-models', 'alter table turns drop column model')
    await db.close()
    expect(await startAtOnce(place, MANY)).toEqual(Array(MANY).fill('found 1'))
    const after = await openAt(place)
    expect((await migrationsOf(after)).sort()).toEqual(MIGRATIONS.map(({ name }) => name))
    expect(await after.query.selectFrom('turns').select('model').execute()).toEqual([])
  })

  it('stops a process that is older than the schema, with a message, and leaves running ones alone', async () => {
    const place = await createPlace()
    const running = await openAt(place)
    const fence = await insertClaimed(running)
    // A migration of a newer version, unknown to this one.
    await running.write([
      { query: sql`alter table turns add column later text`.compile(running.query) },
      { query: sql`insert into migrations values ('9999-later', 1)`.compile(running.query) },
    ])
    expect(await startAtOnce(place, 1)).toEqual([
      expect.stringMatching(/^refused: The database .* newer version of Errand \(it has the migration 9999-later\)/),
    ])
    expect(await append(running, fence, said('still here'))).toMatchObject({ ok: true })
    expect(await typesOf(running, fence.id)).toEqual(['1 stage', '2 partial_output'])
  })
})

/** The final output of each process. */
async function startAtOnce(place: string, count: number): Promise<string[]> {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, [STARTER, place], { stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  const said = children.map(async ({ stdout }) => {
    let text = ''
    for await (const piece of stdout.setEncoding('utf8')) text += piece
    return text.split('\n')[1] ?? ''
  })
  await Promise.all(children.map(({ stdout }) => once(stdout, 'data')))
  for (const { stdin } of children) stdin.write('go\n')
  return Promise.all(said)
}

async function migrationsOf(db: Database): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from migrations`.execute(db.query)
  return rows.map(({ name }) => name)
}

async function undo(db: Database, migration: string, statement: string): Promise<void> {
  const result = await db.write([
    { query: sql.raw(statement).compile(db.query) },
    { query: sql`delete from migrations where name = ${migration}`.compile(db.query), rows: 1 },
  ])
  expect(result.ok).toBe(true)
}

/** The database port: guarantees of a write, on every backend. */
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { type Database, fenced, type Statement } from '../../src/store/port.ts'
import { onEveryBackend } from './backends.ts'
import { times } from './rows.ts'

onEveryBackend(({ open, openAt, createPlace }) => {
  it('runs all statements or none, and reports the first that failed with its reason', async () => {
    const db = await open()
    const [a, b] = [account(db, 'a'), account(db, 'b')]
    const touching = touch(db, 'b').query
    const failure = { ok: false, failedAt: 1, sql: touching.sql }
    expect(await db.write([a, { query: touching, rows: 1 }, b])).toEqual({ ...failure, reason: 'rows' })
    expect(await db.write([a, fenced(touching), b])).toEqual({ ...failure, reason: 'fence' })
    const inserting = { ...failure, sql: b.query.sql, reason: 'unique' }
    expect(await db.write([b, b, { ...touch(db, 'none'), rows: 1 }])).toEqual(inserting)
    expect(await names(db)).toEqual([])
    expect(await db.write([a])).toMatchObject({ ok: true })
    expect(await db.write([a])).toMatchObject({ ok: false, failedAt: 0, reason: 'unique' })
    expect(await db.write([{ ...touch(db, 'a'), rows: 2 }])).toMatchObject({ ok: false })
    expect(await db.query.selectFrom('accounts').selectAll().execute()).toEqual([{ id: 'a', name: 'a', created_at: 1 }])
    expect(await db.write([])).toEqual({ ok: true, rows: [] })
  })

  it('returns rows in the order of the statements', async () => {
    const db = await open()
    const returning = db.query.updateTable('accounts').set({ created_at: 2 }).returning(['id', 'created_at']).compile()
    const result = await db.write([account(db, 'a'), { query: returning, rows: 1 }, touch(db, 'a')])
    expect(result).toEqual({ ok: true, rows: [[], [{ id: 'a', created_at: 2 }], []] })
  })

  it('calls a function once for its statements, and rejects only its own caller if it throws', async () => {
    const db = await open()
    let asked = 0
    const wrong = db.write(() => {
      throw new Error('no statements')
    })
    const right = times(5, (i) =>
      db.write(() => {
        asked++
        return [account(db, `a${i}`)]
      }),
    )
    await expect(wrong).rejects.toThrow('no statements')
    expect((await Promise.all(right)).every(({ ok }) => ok)).toBe(true)
    expect(asked).toBe(5)
  })

  it('fails only the write whose statement the database refuses', async () => {
    const db = await open()
    const refused = db.write([account(db, 'a'), { query: { sql: 'insert into nowhere values (1)', parameters: [] } }])
    const others = times(5, (i) => db.write([account(db, `b${i}`)]))
    await expect(refused).rejects.toThrow(/The database refused a write: .*nowhere/)
    expect((await Promise.all(others)).every(({ ok }) => ok)).toBe(true)
    expect(await names(db)).toEqual(times(5, (i) => `b${i}`))
  })

  it('finds earlier writes after reopening, and refuses writes after close', async () => {
    const place = await createPlace()
    const first = await openAt(place)
    const writes = times(20, (i) => first.write([account(first, `${10 + i}`)]))
    await first.close()
    expect((await Promise.all(writes)).every(({ ok }) => ok)).toBe(true)
    await expect(first.write([account(first, 'late')])).rejects.toThrow('The database is closed.')
    expect(await names(await openAt(place))).toHaveLength(20)
  })

  it('refuses a database of a newer version without changing it', async () => {
    const place = await createPlace()
    const db = await openAt(place)
    await db.write([{ query: sql`insert into migrations (name, at) values ('9999-later', 1)`.compile(db.query) }])
    await expect(openAt(place)).rejects.toThrow(/made by a newer version of Errand \(it has the migration 9999-later\)/)
  })
})

function account({ query }: Database, id: string): Statement {
  return { query: query.insertInto('accounts').values({ id, name: id, created_at: 1 }).compile() }
}

function touch({ query }: Database, id: string): Statement {
  return { query: query.updateTable('accounts').set({ created_at: 5 }).where('id', '=', id).compile() }
}

async function names({ query }: Database): Promise<string[]> {
  return (await query.selectFrom('accounts').select('name').orderBy('name').execute()).map(({ name }) => name)
}

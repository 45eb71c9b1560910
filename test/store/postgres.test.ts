/** Guarantees of the Postgres adapter beyond the port: concurrent starts, broken connections, retries. */
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import type { Database, Statement } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { closingAfterEach, onPostgres, quiet } from './backends.ts'

onPostgres('Postgres', (cluster) => {
  const opened = closingAfterEach<Database>()
  const open = async (url: string, poolSize?: number) => opened(await openPostgres(url, { poolSize, log: quiet }))

  it('creates the schema once if several nodes start on an empty database', async () => {
    const url = await cluster().createDatabase()
    const nodes = await Promise.all(Array.from({ length: 6 }, () => open(url, 2)))
    const applied = await Promise.all(
      nodes.map((db) => sql<{ name: string }>`select name from migrations`.execute(db.query)),
    )
    expect(new Set(applied.map(({ rows }) => rows.length)).size).toBe(1)
    expect(applied[0]!.rows[0]).toEqual({ name: '0001-start' })
  })

  it('retries a write after a deadlock, with the statements that it already has', async () => {
    const db = await open(await cluster().createDatabase())
    for (const id of ['a', 'b']) await db.write([account(id)])
    let asked = 0
    const crossing = (ids: readonly string[]) => () => {
      asked++
      const [first, second] = ids.map((id) =>
        raw(`update accounts set created_at = created_at + 1 where id = '${id}'`, 1),
      )
      return [first!, raw('select pg_sleep(0.2)'), second!]
    }
    const results = await Promise.all([db.write(crossing(['a', 'b'])), db.write(crossing(['b', 'a']))])
    expect(results.map((result) => result.ok)).toEqual([true, true])
    expect(asked).toBe(2)
    const rows = await db.query.selectFrom('accounts').select('created_at').execute()
    expect(rows).toEqual([{ created_at: 3 }, { created_at: 3 }])
    // Postgres updates its statistics with a delay of a second.
    const deadlocks = sql<{
      deadlocks: number
    }>`select deadlocks from pg_stat_database where datname = current_database()`
    const count = async () => (await deadlocks.execute(db.query)).rows[0]!.deadlocks
    await expect.poll(count, { timeout: 20_000 }).toBeGreaterThan(0)
  })

  it('rejects and rolls back a write whose connection breaks, without effect on later writes', async () => {
    const db = await open(await cluster().createDatabase())
    const breaking = db.write([account('lost'), raw('select pg_terminate_backend(pg_backend_pid())')])
    await expect(breaking).rejects.toThrow(/The database refused a write: /)
    expect(await db.write([account('kept')])).toMatchObject({ ok: true })
    expect(await db.query.selectFrom('accounts').select('id').execute()).toEqual([{ id: 'kept' }])
  })

  it('replaces idle connections that break', async () => {
    const url = await cluster().createDatabase()
    const [db, other] = [await open(url), await open(url)]
    await Promise.all(Array.from({ length: 5 }, (_, i) => db.write([account(`a${i}`)])))
    const kill = sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`
    await kill.execute(other.query)
    await expect
      .poll(() =>
        db.query
          .selectFrom('accounts')
          .select('id')
          .execute()
          .then(
            (rows) => rows.length,
            () => 0,
          ),
      )
      .toBe(5)
  })

  it('never exceeds the size of the pool, and serves all waiting callers', async () => {
    const url = await cluster().createDatabase()
    const [db, watcher] = [await open(url, 3), await open(url, 1)]
    const writes = Array.from({ length: 40 }, (_, i) => db.write([account(`a${i}`), raw('select pg_sleep(0.01)')]))
    const { rows } = await sql<{ count: number }>`select count(*) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`.execute(watcher.query)
    expect(rows[0]!.count).toBeLessThanOrEqual(3)
    expect((await Promise.all(writes)).every((result) => result.ok)).toBe(true)
  })

  it('waits on close for writes under way, and refuses later ones', async () => {
    const url = await cluster().createDatabase()
    const [db, other] = [await openPostgres(url, { poolSize: 2, log: quiet }), await open(url)]
    const writes = Array.from({ length: 8 }, (_, i) => db.write([account(`a${i}`), raw('select pg_sleep(0.02)')]))
    const read = db.query.selectFrom('accounts').select('id').execute()
    await new Promise(setImmediate)
    await Promise.all([db.close(), db.close()])
    await expect(db.write([account('late')])).rejects.toThrow('The database is closed.')
    expect((await Promise.all(writes)).every((result) => result.ok)).toBe(true)
    await expect(read).resolves.toBeInstanceOf(Array)
    expect(await other.query.selectFrom('accounts').select('id').execute()).toHaveLength(8)
  })

  it('refuses a database that is not UTF-8, and says what to do', async () => {
    const url = await cluster().createDatabase("encoding 'SQL_ASCII' locale_provider libc locale 'C'")
    await expect(open(url)).rejects.toThrow(/stores text as SQL_ASCII.*encoding 'UTF8'/s)
  })

  it('names the address of a database that can’t be reached, without the password', async () => {
    const error = await open('postgres://errand:hunter2@127.0.0.1:9/errand').catch((reason: Error) => reason)
    expect(String(error)).toMatch(/errand at 127\.0\.0\.1:9 can't be used: .*ECONNREFUSED/)
    expect(String(error)).not.toContain('hunter2')
  })
})

function account(id: string): Statement {
  return raw(`insert into accounts (id, name, created_at) values ('${id}', '${id}', 1)`, 1)
}

function raw(text: string, rows?: number): Statement {
  return { query: { sql: text, parameters: [] }, rows }
}

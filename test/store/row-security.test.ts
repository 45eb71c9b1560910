/** The second wall: what a query that forgot its project meets on Postgres, for every table that there is. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database, Statement } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { closingAfterEach, onPostgres, quiet } from './backends.ts'

/** Tables without a row of any project. Every other one must be behind the wall. */
const SHARED = ['accounts', 'migrations', 'nodes', 'settings']
/** The server's own, behind the wall for every project. */
const SERVERS = [
  'account_events',
  'identities',
  'links',
  'members',
  'sessions',
  'sign_in_attempts',
  'users',
  'verifications',
]
const [MINE, THEIRS] = ['prj_mine', 'prj_theirs']

type Row = Readonly<Record<string, unknown>>

onPostgres('row-level security', (cluster) => {
  const opened = closingAfterEach<Database>()
  let url: string
  let tables: Map<string, Row[]>

  beforeAll(async () => {
    url = await cluster().createDatabase()
    const db = await openPostgres(url, { log: quiet })
    tables = await rowsForEveryTable(url)
    for (const [table, rows] of tables) {
      for (const row of rows) expect(await db.write([insertion(table, row)])).toMatchObject({ ok: true })
    }
    await db.close()
  })

  const open = async () => opened(await openPostgres(url, { log: quiet }))

  it('stands before every table with rows of projects, also for the owner of the tables', async () => {
    const unprotected = await ask(
      url,
      `select relname as name from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not (relrowsecurity and relforcerowsecurity)
       order by relname`,
    )
    expect(
      unprotected.map(({ name }) => name),
      'a new table with rows of a project goes behind the wall (src/store/postgres/row-security.ts); one without, on the list of this test',
    ).toEqual(SHARED)
    expect([...tables.keys()]).toEqual(expect.arrayContaining(['interactions', 'events', 'skill_contents']))
  })

  it('a query that says no project at all sees and changes nothing', async () => {
    for (const table of tables.keys()) {
      expect(await ask(url, `select * from ${table}`), table).toEqual([])
      expect(await ask(url, `delete from ${table} returning *`), table).toEqual([])
    }
  })

  it('the server sees the rows of all', async () => {
    const db = await open()
    for (const table of tables.keys()) expect(await all(db, table), table).toHaveLength(2)
  })

  describe('a query for one project that forgot its `where`', () => {
    it('sees that project’s rows alone', async () => {
      const mine = (await open()).forProject(MINE)
      for (const table of tables.keys()) {
        const rows = await all(mine, table)
        expect(rows, table).toHaveLength(1)
        expect(JSON.stringify(rows), table).not.toContain(THEIRS)
      }
    })

    it('removes and changes no other’s row', async () => {
      const mine = (await open()).forProject(MINE)
      const never: Statement = { query: { sql: 'select 1 where false', parameters: [] }, rows: 1 }
      for (const [table, [row]] of tables) {
        const column = Object.keys(row!)[0]
        for (const text of [`delete from ${table}`, `update ${table} set ${column} = ${column}`]) {
          // The second statement undoes the write; that it was the one to fail says that the first touched one row.
          const result = await mine.write([{ query: { sql: text, parameters: [] }, rows: 1 }, never])
          expect(result, text).toMatchObject({ ok: false, failedAt: 1, reason: 'rows' })
        }
      }
    })

    it('writes no row of another', async () => {
      const mine = (await open()).forProject(MINE)
      for (const [table, [, theirs]] of tables) {
        await expect(mine.write([insertion(table, theirs!)]), table).rejects.toThrow(/row-level security/)
      }
    })
  })

  it('a project sees the operator’s skills, and can’t change them', async () => {
    const db = await open()
    const theirs = tables.get('skills')![1]!
    await db.write([insertion('skills', { ...theirs, project_id: '' })])
    const mine = db.forProject(MINE)
    expect((await all(mine, 'skills')).map((row) => row.project_id).sort()).toEqual(['', MINE])
    const removal = { query: { sql: "delete from skills where project_id = ''", parameters: [] }, rows: 1 }
    expect(await mine.write([removal])).toMatchObject({ ok: false })
    expect(await db.write([removal])).toMatchObject({ ok: true })
  })

  it('no project sees who signs in, or what they did, and none writes it', async () => {
    const server = await open()
    await server.write([insertion('members', { account_id: 'a', user_id: 'u', role: 'owner', created_at: 1 })])
    const mine = server.forProject(MINE)
    for (const table of SERVERS) expect(await all(mine, table), table).toEqual([])
    const row = { account_id: 'b', user_id: 'u', role: 'owner', created_at: 1 }
    await expect(mine.write([insertion('members', row)])).rejects.toThrow(/row-level security/)
    expect(await all(server, 'members')).toHaveLength(1)
  })

  it('what is no id of a project is none', async () => {
    const db = await open()
    for (const id of ['*', '', "' or true --"]) expect(() => db.forProject(id)).toThrow(/not the id of a project/)
  })

  it('a role that passes it by is told of at the start, with what to do', async () => {
    const said: string[] = []
    const log = { warn: (_fields: object, message: string) => said.push(message) }
    const proper = opened(await openPostgres(url, { log }))
    expect([proper.walled, said]).toEqual([true, []])
    const admin = opened(await openPostgres(url.replace('user=errand', 'user=admin'), { log }))
    expect(admin.walled).toBe(false)
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('create role errand login')
  })
})

/** A row of MINE and one of THEIRS for each table, from the catalogue: texts all alike, so that what refers to another row finds it. */
async function rowsForEveryTable(url: string): Promise<Map<string, Row[]>> {
  const columns = await ask(
    url,
    `select c.table_name, c.column_name, c.data_type from information_schema.columns c
     where c.table_schema = 'public' order by c.table_name, c.ordinal_position`,
  )
  const tables = new Map<string, Row[]>()
  for (const { table_name: table, column_name: name, data_type: type } of columns as Record<string, string>[]) {
    if (SHARED.includes(table!) || SERVERS.includes(table!)) continue
    const rows = tables.get(table!) ?? [{}, {}]
    const valueFor = (project: string) => {
      if (type !== 'text') return 1
      return name === 'project_id' || (table === 'projects' && name === 'id') ? project : `of_${project}`
    }
    tables.set(
      table!,
      [MINE, THEIRS].map((project, i) => ({ ...rows[i], [name!]: valueFor(project) })),
    )
  }
  return tables
}

function insertion(table: string, row: Row): Statement {
  const places = Object.keys(row).map((_, i) => `$${i + 1}`)
  const sql = `insert into ${table} (${Object.keys(row).join(', ')}) values (${places.join(', ')})`
  return { query: { sql, parameters: Object.values(row) }, rows: 1 }
}

async function all(db: Database, table: string): Promise<Row[]> {
  return (await db.query
    .selectFrom(table as 'events')
    .selectAll()
    .execute()) as unknown as Row[]
}

/** On a connection of the tables' owner that says nothing about whom it is for. */
async function ask(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

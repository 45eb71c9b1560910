/** Row-level security: queries that omit the project, on every table of Postgres. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database, Statement } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { closingAfterEach, onPostgres, quiet } from './backends.ts'

/** Tables without rows of a project. Every other table must have row-level security. */
const SHARED = ['accounts', 'migrations', 'nodes', 'settings']
/** The server's own tables, which no project may see. */
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

  it('is enabled on every table with rows of projects, also for the tables’ owner', async () => {
    const unprotected = await ask(
      url,
      `select relname as name from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not (relrowsecurity and relforcerowsecurity)
       order by relname`,
    )
    expect(
      unprotected.map(({ name }) => name),
      'enable row-level security on a new table with a project’s rows (src/store/postgres/row-security.ts), or add a table without such rows to the list in this test',
    ).toEqual(SHARED)
    expect([...tables.keys()]).toEqual(expect.arrayContaining(['interactions', 'events', 'skill_contents']))
  })

  it('lets a query without any scope see and change nothing', async () => {
    for (const table of tables.keys()) {
      expect(await ask(url, `select * from ${table}`), table).toEqual([])
      expect(await ask(url, `delete from ${table} returning *`), table).toEqual([])
    }
  })

  it('lets the server see all rows', async () => {
    const db = await open()
    for (const table of tables.keys()) expect(await all(db, table), table).toHaveLength(2)
  })

  describe('a query for one project without `where`', () => {
    it('sees only that project’s rows', async () => {
      const mine = (await open()).forProject(MINE)
      for (const table of tables.keys()) {
        const rows = await all(mine, table)
        expect(rows, table).toHaveLength(1)
        expect(JSON.stringify(rows), table).not.toContain(THEIRS)
      }
    })

    it('removes and changes no row of another project', async () => {
      const mine = (await open()).forProject(MINE)
      const never: Statement = { query: { sql: 'select 1 where false', parameters: [] }, rows: 1 }
      for (const [table, [row]] of tables) {
        const column = Object.keys(row!)[0]
        for (const text of [`delete from ${table}`, `update ${table} set ${column} = ${column}`]) {
          // The second statement rolls the write back. That it failed, and not the first, shows that the first affected one row.
          const result = await mine.write([{ query: { sql: text, parameters: [] }, rows: 1 }, never])
          expect(result, text).toMatchObject({ ok: false, failedAt: 1, reason: 'rows' })
        }
      }
    })

    it('writes no row of another project', async () => {
      const mine = (await open()).forProject(MINE)
      for (const [table, [, theirs]] of tables) {
        await expect(mine.write([insertion(table, theirs!)]), table).rejects.toThrow(/row-level security/)
      }
    })
  })

  it('lets a project read but not change the operator’s skills', async () => {
    const db = await open()
    const theirs = tables.get('skills')![1]!
    await db.write([insertion('skills', { ...theirs, project_id: '' })])
    const mine = db.forProject(MINE)
    expect((await all(mine, 'skills')).map((row) => row.project_id).sort()).toEqual(['', MINE])
    const removal = { query: { sql: "delete from skills where project_id = ''", parameters: [] }, rows: 1 }
    expect(await mine.write([removal])).toMatchObject({ ok: false })
    expect(await db.write([removal])).toMatchObject({ ok: true })
  })

  it('hides users and the account log from projects', async () => {
    const server = await open()
    await server.write([insertion('members', { account_id: 'a', user_id: 'u', role: 'owner', created_at: 1 })])
    const mine = server.forProject(MINE)
    for (const table of SERVERS) expect(await all(mine, table), table).toEqual([])
    const row = { account_id: 'b', user_id: 'u', role: 'owner', created_at: 1 }
    await expect(mine.write([insertion('members', row)])).rejects.toThrow(/row-level security/)
    expect(await all(server, 'members')).toHaveLength(1)
  })

  it('refuses a text that is not a project’s id', async () => {
    const db = await open()
    for (const id of ['*', '', "' or true --"]) expect(() => db.forProject(id)).toThrow(/not the id of a project/)
  })

  it('warns at the start about a role that bypasses it, and says what to do', async () => {
    const said: string[] = []
    const log = { warn: (_fields: object, message: string) => said.push(message) }
    const proper = opened(await openPostgres(url, { log }))
    expect([proper.hasRowSecurity, said]).toEqual([true, []])
    const admin = opened(await openPostgres(url.replace('user=errand', 'user=admin'), { log }))
    expect(admin.hasRowSecurity).toBe(false)
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('create role errand login')
  })
})

/** Inserts a row of MINE and one of THEIRS into each table of the catalog. All texts are equal, so that references match. */
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

/** Runs on a connection of the tables' owner without a scope. */
async function ask(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

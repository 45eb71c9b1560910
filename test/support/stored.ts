/** Rows stored by a server, read directly from its database, SQLite or Postgres. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { PROJECT_SETTING, SERVER } from '../../src/store/postgres/row-security.ts'

export type StoredRow = Record<string, unknown>

export interface Stored {
  /** Runs one statement with `?` for each parameter. Resolves with the rows. */
  query(sql: string, ...parameters: (string | null)[]): Promise<StoredRow[]>
  /** All stored data as text, to search in. */
  text(): Promise<string>
}

const INT8 = 20

/** Opens the database of a server. `database`: a Postgres address; undefined is SQLite in `dataDir`. */
export function lookInto(dataDir: string, database: string | undefined): Stored {
  return database === undefined ? inSqlite(join(dataDir, 'errand.db')) : inPostgres(database)
}

function inSqlite(file: string): Stored {
  return {
    async query(sql, ...parameters) {
      const db = new DatabaseSync(file)
      try {
        return db.prepare(sql).all(...parameters) as StoredRow[]
      } finally {
        db.close()
      }
    },
    text: async () =>
      [file, `${file}-wal`].map((path) => (existsSync(path) ? readFileSync(path, 'latin1') : '')).join(),
  }
}

function inPostgres(url: string): Stored {
  async function query(sql: string, ...parameters: (string | null)[]): Promise<StoredRow[]> {
    const types = { getTypeParser: (oid: number) => (oid === INT8 ? Number : pg.types.getTypeParser(oid)) }
    const client = new pg.Client({ connectionString: url, types: types as typeof pg.types })
    await client.connect()
    try {
      // Reads with the server's access: without this setting, row security hides all rows.
      await client.query(`set ${PROJECT_SETTING} = '${SERVER}'`)
      let place = 0
      return (
        await client.query(
          sql.replace(/\?/g, () => `$${++place}`),
          parameters,
        )
      ).rows
    } finally {
      await client.end()
    }
  }
  return {
    query,
    async text() {
      const tables = await query("select table_name from information_schema.tables where table_schema = 'public'")
      const rows = tables.map(({ table_name: name }) => query(`select t::text as row from ${name} t`))
      return (await Promise.all(rows))
        .flat()
        .map(({ row }) => row)
        .join('\n')
    },
  }
}

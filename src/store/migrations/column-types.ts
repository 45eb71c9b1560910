/** Types of columns in migrations. */
import { sql } from 'kysely'

export type Dialect = 'sqlite' | 'postgres'

export function columnTypes(dialect: Dialect) {
  if (dialect === 'sqlite') return { text: 'text', integer: 'integer' } as const
  return {
    // SQLite compares text by its bytes. Postgres would by the database's language, in which ids don't sort by their age.
    text: sql`text collate "C"`,
    // SQLite's are as wide as they must be. Here, asking for a number beyond four bytes would fail.
    integer: 'bigint',
  } as const
}

/** Column types for migrations. */
import { sql } from 'kysely'

export type Dialect = 'sqlite' | 'postgres'

export function columnTypes(dialect: Dialect) {
  if (dialect === 'sqlite') return { text: 'text', integer: 'integer' } as const
  return {
    // SQLite compares text by bytes. Postgres would use the database's locale, in which ids do not sort by age.
    text: sql`text collate "C"`,
    // SQLite integers have any width. A Postgres `integer` has four bytes, and a query with a larger number would fail.
    integer: 'bigint',
  } as const
}

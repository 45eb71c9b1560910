/** The database's own clock in milliseconds: leases hang on it, never on a worker's. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from './port.ts'

export function databaseNow(dialect: Database['dialect']): RawBuilder<number> {
  return dialect === 'sqlite'
    ? sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
    : sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
}

/** `ms` from now; before now where it is negative. Whole: a setting in seconds may be no whole number of milliseconds. */
export function fromNow(dialect: Database['dialect'], ms: number): RawBuilder<number> {
  return sql<number>`${databaseNow(dialect)} + ${Math.round(ms)}`
}

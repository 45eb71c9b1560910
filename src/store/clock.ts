/** The database's clock, in milliseconds since the Unix epoch. Leases use it, never a worker's clock. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from './port.ts'

export function databaseNow(dialect: Database['dialect']): RawBuilder<number> {
  return dialect === 'sqlite'
    ? sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
    : sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
}

/** The time `ms` from now, or before now if negative. Rounded: a setting in seconds may have a fraction of a millisecond. */
export function fromNow(dialect: Database['dialect'], ms: number): RawBuilder<number> {
  return sql<number>`${databaseNow(dialect)} + ${Math.round(ms)}`
}

/** Lists in queries, as one parameter each: the text of a query is the same however long its lists are. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from './port.ts'

/** The texts of a JSON array, for `in` and `not in`. */
export function textsOf(dialect: Database['dialect'], json: string): RawBuilder<string> {
  return dialect === 'sqlite'
    ? sql<string>`(select value from json_each(${json}))`
    : sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`
}

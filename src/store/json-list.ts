/** Passes a list to a query as one parameter, so that the query's text does not depend on the list's length. */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from './port.ts'

/** Selects the strings of a JSON array, for `in` and `not in`. */
export function textsOf(dialect: Database['dialect'], json: string): RawBuilder<string> {
  return dialect === 'sqlite'
    ? sql<string>`(select value from json_each(${json}))`
    : sql<string>`(select jsonb_array_elements_text(${json}::jsonb))`
}

/**
 * Row-level security on Postgres, the second separation of projects, on every table that has a project's rows. The first is
 * the project's id in each query's `where`; with the policies, a query that omits it still sees no other project's row.
 *
 * Each transaction sets the project that it runs for (transaction.ts). Without one it sees no row. The policies also apply to
 * the tables' owner, because Errand creates its tables itself. Only superusers and roles with BYPASSRLS bypass them.
 *
 * Postgres plans a statement's policies each time. So they contain no sub-select: one that looked up a row's interaction made
 * an append take half as long again. In a function, whose plan is cached, it costs almost nothing.
 */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'

export const PROJECT_SETTING = 'errand.project'
/** Value of the setting for the server's own work: claims, leases, keys, the reaper. No project has this id. */
export const SERVER = '*'

/** The current project. After a transaction that set it, Postgres leaves an empty string, which counts as null. */
const current = sql`nullif(current_setting(${sql.lit(PROJECT_SETTING)}, true), '')`

/** Policy for rows with the project's id in a column. */
export function ofProject(column: 'project_id' | 'id' = 'project_id'): RawBuilder<unknown> {
  return sql`${sql.ref(column)} = ${current}`
}

/**
 * Policy for rows that belong to an interaction. The interaction found last is remembered in the transaction, so that a page
 * of events needs one lookup and not one for each event.
 */
export const OF_INTERACTION = sql`current_setting('errand.interaction', true) = interaction_id or errand_has_interaction(interaction_id)`
/** Policy for skill contents, which versions of several projects may share: visible if a visible version has the content. */
export const OF_SKILL_VERSION = sql`errand_has_skill(digest)`

/** Functions for the two policies above. The policies of the tables that they query apply inside them too. */
export function policyFunctions(db: Kysely<Tables>): Query[] {
  return [
    sql`create function errand_has_interaction(wanted text) returns boolean language plpgsql as $$
      begin
        if not exists (select from interactions where id = wanted) then return false; end if;
        perform set_config('errand.interaction', wanted, true);
        return true;
      end $$`,
    sql`create function errand_has_skill(wanted text) returns boolean language plpgsql as $$
      begin
        return exists (select from skill_versions where digest = wanted);
      end $$`,
  ].map((statement) => statement.compile(db))
}

/** Enables row-level security on a table: a project reads and writes the rows that it `owns`, the server all rows. */
export function enableRowSecurity(db: Kysely<Tables>, table: keyof Tables, owns: RawBuilder<unknown>): Query[] {
  const name = sql.table(table)
  return [
    sql`alter table ${name} enable row level security`,
    sql`alter table ${name} force row level security`,
    sql`create policy project on ${name} using (${current} = ${sql.lit(SERVER)} or ${owns})`,
  ].map((statement) => statement.compile(db))
}

/**
 * The same policy written as `case`, for tables whose pages are joined. For the `or` the planner estimates that one row in a
 * hundred passes, and for two tables one in ten thousand; then it reads and sorts all rows to return a page. For a label on
 * 98,000 interactions that took 1.5 s; with `case` it takes half a millisecond.
 */
export function rewritePolicy(db: Kysely<Tables>, table: keyof Tables, owns: RawBuilder<unknown>): Query {
  const rule = sql`case when ${current} = ${sql.lit(SERVER)} then true else ${owns} end`
  return sql`alter policy project on ${sql.table(table)} using (${rule})`.compile(db)
}

/** Lets each project read the operator's rows, whose `project_id` is empty. */
export function allowReadingOperatorRows(db: Kysely<Tables>, table: 'skills' | 'skill_versions'): Query {
  return sql`create policy operators on ${sql.table(table)} for select using (project_id = '' and ${current} is not null)`.compile(
    db,
  )
}

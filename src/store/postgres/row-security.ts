/**
 * The second wall between projects, on Postgres: row-level security on every table that holds a project's rows. The first
 * is the project's id in each query's `where`; a query that forgets it still sees no other project's row.
 *
 * Each transaction says whom it is for (postgres-transaction.ts). One that says nobody sees nothing. The policies are forced
 * on the tables' owner too, since Errand makes its tables itself; superusers and roles with BYPASSRLS alone pass them by.
 *
 * Every statement is planned with its policies anew. So there is no sub-select in them: one that looks for a row's
 * interaction cost an append half of its time again, in a function, which keeps its plan, next to nothing.
 */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Query } from '../port.ts'
import type { Tables } from '../tables.ts'

export const PROJECT_SETTING = 'errand.project'
/** What the setting says where the server works for itself: claims, leases, keys, the reaper. No project has this id. */
export const SERVER = '*'

/** Postgres leaves it empty behind a transaction that set it. */
const current = sql`nullif(current_setting(${sql.lit(PROJECT_SETTING)}, true), '')`

/** Rows that say whose they are. */
export function ofProject(column: 'project_id' | 'id' = 'project_id'): RawBuilder<unknown> {
  return sql`${sql.ref(column)} = ${current}`
}

/**
 * Rows that hang on an interaction. What was found of one is noted for the rest of the transaction: a page of its events is
 * one look, not one for each.
 */
export const OF_INTERACTION = sql`current_setting('errand.interaction', true) = interaction_id or errand_has_interaction(interaction_id)`
/** Contents of skills, which versions of several projects may share: seen where a version is that has it. */
export const OF_SKILL_VERSION = sql`errand_has_skill(digest)`

/** What the two above ask: their looks go by the policies of the tables that they look at. */
export function wallFunctions(db: Kysely<Tables>): Query[] {
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

/** Puts a table behind the wall: a project sees and writes the rows that it `owns`, the server all of them. */
export function wall(db: Kysely<Tables>, table: keyof Tables, owns: RawBuilder<unknown>): Query[] {
  const name = sql.table(table)
  return [
    sql`alter table ${name} enable row level security`,
    sql`alter table ${name} force row level security`,
    sql`create policy project on ${name} using (${current} = ${sql.lit(SERVER)} or ${owns})`,
  ].map((statement) => statement.compile(db))
}

/**
 * The same wall said as `case`, for tables whose pages are joined. Of the `or` the planner takes it that it leaves one row in a
 * hundred, of two tables one in ten thousand; then it fetches and sorts all that there is to show a page. A label of 98,000
 * interactions took 1.5 s, and this way half a millisecond.
 */
export function wallAnew(db: Kysely<Tables>, table: keyof Tables, owns: RawBuilder<unknown>): Query {
  const rule = sql`case when ${current} = ${sql.lit(SERVER)} then true else ${owns} end`
  return sql`alter policy project on ${sql.table(table)} using (${rule})`.compile(db)
}

/** What the operator gave to all projects (`project_id` is empty) each of them may read. */
export function showOperators(db: Kysely<Tables>, table: 'skills' | 'skill_versions'): Query {
  return sql`create policy operators on ${sql.table(table)} for select using (project_id = '' and ${current} is not null)`.compile(
    db,
  )
}

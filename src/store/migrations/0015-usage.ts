/** Usage tables, filled from runs that have already ended; model and indexes for the filters of the interactions list. */
import { type CreateTableBuilder, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Query } from '../port.ts'
import { enableRowSecurity, ofProject } from '../postgres/row-security.ts'
import type { Tables } from '../tables.ts'
import { columnTypes, type Dialect } from './column-types.ts'

export function usage(db: Kysely<Tables>, dialect: Dialect): Query[] {
  const { schema } = db
  const { text, integer } = columnTypes(dialect)
  const figures = <T extends string, C extends string>(table: CreateTableBuilder<T, C>) =>
    table
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('day', text, (c) => c.notNull())
      .addColumn('agent_id', text, (c) => c.notNull())
      .addColumn('model', text, (c) => c.notNull())
      .addColumn('key_id', text, (c) => c.notNull())
      .addColumn('latency_bucket', integer, (c) => c.notNull())
      .addColumn('runs', 'bigint', (c) => c.notNull())
      .addColumn('failed', 'bigint', (c) => c.notNull())
      .addColumn('cancelled', 'bigint', (c) => c.notNull())
      .addColumn('input_tokens', 'bigint', (c) => c.notNull())
      .addColumn('output_tokens', 'bigint', (c) => c.notNull())
      .addColumn('cost_nanos', 'bigint', (c) => c.notNull())
  const group = ['project_id', 'day', 'agent_id', 'model', 'key_id', 'latency_bucket'] as const
  return [
    ...[
      schema.alterTable('interactions').addColumn('model', text),
      schema.createIndex('interactions_by_model').on('interactions').columns(['project_id', 'model', 'id']),
      schema.createIndex('interactions_by_key').on('interactions').columns(['project_id', 'key_id', 'id']),
      figures(schema.createTable('usage')).addPrimaryKeyConstraint('usage_pk', [...group]),
      figures(schema.createTable('usage_ends').addColumn('interaction_id', text, (c) => c.primaryKey())),
    ].map((statement) => statement.compile()),
    ...[fillModels(dialect), fillUsage(dialect)].map((statement) => statement.compile(db)),
    ...(dialect === 'sqlite'
      ? []
      : [...enableRowSecurity(db, 'usage', ofProject()), ...enableRowSecurity(db, 'usage_ends', ofProject())]),
  ]
}

/**
 * A field of a JSON object, as text. Escaped NULs and lone surrogates make Postgres reject the JSON, so every `\u` escape
 * is replaced by a slash first. A slash is valid anywhere in a JSON string, also after a backslash.
 */
function field(dialect: Dialect, column: string, ...path: readonly string[]): RawBuilder<string> {
  return dialect === 'sqlite'
    ? sql<string>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${path.join('.')}`)})`
    : sql<string>`(regexp_replace(${sql.ref(column)}, '\\\\u[0-9a-f]{4}', '/', 'g')::json #>> ${sql.lit(`{${path.join(',')}}`)})`
}

function fillModels(dialect: Dialect): RawBuilder<unknown> {
  const model = field(dialect, 'specs.spec', 'model')
  return sql`update interactions set model = (select ${model} from specs where specs.interaction_id = interactions.id)`
}

/** Counts a run as usageStatement (usage.ts) did when this migration was written. */
function fillUsage(dialect: Dialect): RawBuilder<unknown> {
  const number = (...path: readonly string[]) => sql`coalesce(cast(${field(dialect, 'usage', ...path)} as numeric), 0)`
  const day =
    dialect === 'sqlite'
      ? sql`strftime('%Y-%m-%d', ended_at / 1000, 'unixepoch')`
      : sql`to_char(to_timestamp(ended_at / 1000.0) at time zone 'UTC', 'YYYY-MM-DD')`
  const duration = number('duration_ms')
  const whole = (value: RawBuilder<unknown>) => sql`cast(${value} as bigint)`
  return sql`insert into usage_ends (interaction_id, project_id, day, agent_id, model, key_id, latency_bucket, runs, failed,
      cancelled, input_tokens, output_tokens, cost_nanos)
    select id, project_id, ${day}, coalesce(agent_id, ''), coalesce(model, ''), key_id,
      ${whole(sql`case when ${duration} <= 1 then 0 else ceil(ln(${duration}) / ln(1.2)) end`)}, 1,
      case when status = 'failed' then 1 else 0 end, case when status = 'cancelled' then 1 else 0 end,
      ${whole(number('input_tokens'))}, ${whole(number('output_tokens'))},
      ${whole(sql`round(${number('cost', 'amount')} * 1000000000)`)}
    from interactions where status <> 'running' and usage is not null and ended_at is not null`
}

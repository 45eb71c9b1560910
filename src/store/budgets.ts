/** What a project may spend in a calendar month (UTC), what it has spent of it, and at which parts somebody was told. */
import { sql } from 'kysely'
import type { Database, Statement } from './port.ts'
import { dayOf } from './usage.ts'

export interface Budget {
  /** Billionths of a US dollar. */
  readonly monthlyNanos: bigint
  /** Percents at which it is told; it is always told at 100. */
  readonly alertAt: readonly number[]
  /** Whether nothing runs beyond it. */
  readonly hardStop: boolean
}

export async function readBudget(db: Database, projectId: string): Promise<Budget | undefined> {
  const row = await db.query
    .selectFrom('budgets')
    .select(['monthly_nanos', 'alert_at', 'hard_stop'])
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return (
    row && {
      monthlyNanos: BigInt(row.monthly_nanos),
      alertAt: JSON.parse(row.alert_at) as number[],
      hardStop: Number(row.hard_stop) === 1,
    }
  )
}

/** Sets it, or with undefined takes it away; what was told of the one before is forgotten. */
export function budgetStatements(db: Database, projectId: string, budget: Budget | undefined): Statement[] {
  const forget = (table: 'budgets' | 'budget_alerts') => ({
    query: db.query.deleteFrom(table).where('project_id', '=', projectId).compile(),
  })
  if (!budget) return [forget('budgets'), forget('budget_alerts')]
  const row = {
    monthly_nanos: String(budget.monthlyNanos),
    alert_at: JSON.stringify(budget.alertAt),
    hard_stop: budget.hardStop ? 1 : 0,
  }
  const set = db.query
    .insertInto('budgets')
    .values({ project_id: projectId, ...row })
    .onConflict((conflict) => conflict.column('project_id').doUpdateSet(row))
  return [{ query: set.compile(), rows: 1 }, forget('budget_alerts')]
}

/** `2026-11` */
export function monthOf(at: number): string {
  return dayOf(at).slice(0, 7)
}

/**
 * Billionths of a US dollar: of the runs that ended in that month, and of the finished model calls of those that are not over.
 * One statement, so that a run which ends is seen once.
 */
export async function readSpent(db: Database, projectId: string, month: string): Promise<bigint> {
  const ended = (table: 'usage' | 'usage_ends') =>
    db.query
      .selectFrom(table)
      .select('cost_nanos')
      .where('project_id', '=', projectId)
      .where('day', '>=', `${month}-01`)
      .where('day', '<=', `${month}-31`)
  const running = db.query
    .selectFrom('interactions as i')
    .innerJoin('turns as t', 't.interaction_id', 'i.id')
    .select((s) => s.fn.coalesce('t.cost_nanos', sql<number>`0`).as('cost_nanos'))
    .where('i.project_id', '=', projectId)
    .where('i.status', '=', sql.lit('running'))
  const row = await db.query
    .selectFrom(ended('usage').unionAll(ended('usage_ends')).unionAll(running).as('spent'))
    .select(sql<string | null>`cast(sum(cost_nanos) as text)`.as('nanos'))
    .executeTakeFirst()
  return BigInt(row?.nanos ?? 0)
}

/** That it was told; breaks a unique key where it was already. */
export function alertStatement(db: Database, projectId: string, month: string, percent: number): Statement {
  return {
    query: db.query.insertInto('budget_alerts').values({ project_id: projectId, month, percent }).compile(),
    rows: 1,
  }
}

export async function readAccountOf(db: Database, projectId: string): Promise<string | undefined> {
  const row = await db.query.selectFrom('projects').select('account_id').where('id', '=', projectId).executeTakeFirst()
  return row?.account_id
}

/** Budgets: the amount a project may spend in a calendar month (UTC), its spending, and the alerts already sent. */
import { sql } from 'kysely'
import type { Database, Statement } from './port.ts'
import { dayOf } from './usage.ts'

export interface Budget {
  /** Billionths of a US dollar. */
  readonly monthlyNanos: bigint
  /** Percentages of the budget at which an alert is sent. An alert is always sent at 100. */
  readonly alertAt: readonly number[]
  /** True if no run starts or continues once the budget is spent. */
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

/** Sets the budget, or removes it if undefined. Either way earlier alerts are forgotten, so they are sent again. */
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

/** The UTC month of a time, as `2026-11`. */
export function monthOf(at: number): string {
  return dayOf(at).slice(0, 7)
}

/**
 * The project's spending in a month, in billionths of a US dollar: runs that ended in the month, and finished model calls
 * of runs that are not over. One statement, so that a run that ends meanwhile is counted exactly once.
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

/** Records that an alert was sent. The write fails with `unique` if it was sent before. */
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

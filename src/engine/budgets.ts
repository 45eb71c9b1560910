/**
 * Monthly budgets of projects: refuses new runs, limits running ones, and sends alerts.
 *
 * The spent amount comes from the shared database: ended runs, and finished model calls of running ones (store/budgets.ts).
 * The cost of model calls under way is known only on their own node, and counted there. So each node can exceed a budget by
 * at most one model call, which is cut off within about a second.
 */
import { entryStatement } from '../accounts/account-log.ts'
import { ErrandError } from '../domain/errors.ts'
import { formatNanos } from '../domain/usage.ts'
import {
  alertStatement,
  type Budget,
  budgetStatements,
  monthOf,
  readAccountOf,
  readBudget,
  readSpent,
} from '../store/budgets.ts'
import { assertMade, type Database, wasMade } from '../store/port.ts'
import type { Emit } from '../telemetry/events.ts'
import type { Log } from '../telemetry/log.ts'

/** Maximum age of a cached status. */
const FRESH_MS = 1_000
const NANOS = 1e9

/** A project's budget in the current month. Without a budget, `spentNanos` may be 0 instead of the real amount. */
export interface BudgetStatus {
  readonly budget: Budget | undefined
  readonly spentNanos: bigint
  /** `alert`: the first alert threshold is passed. */
  readonly state: 'none' | 'ok' | 'alert' | 'exceeded'
}

/** A run on this node that spends from the budget. */
export interface Spender {
  /** US dollars that the model call under way has cost so far. */
  readonly underWay: () => number
}

export interface Budgets {
  /** Throws ErrandError `budget_exceeded` if the project may spend no more this month. */
  admit(projectId: string): Promise<void>
  /** US dollars left, by the current database. Infinite without a hard stop. `settled` flushes the run's own cost first. */
  left(projectId: string, settled: () => Promise<void>): Promise<number>
  /** True if calls under way must be cut off, by a status that is at most a second old. */
  isSpent(projectId: string): boolean
  /** Watches the project while the run is on this node. Returns the function that ends it. */
  enter(projectId: string, spender: Spender): () => void
  /** The status by the current database. */
  status(projectId: string): Promise<BudgetStatus>
  /** `actor` is the user for the account's log. */
  set(
    project: { readonly id: string; readonly accountId: string },
    budget: Budget | undefined,
    actor: string,
  ): Promise<void>
  close(): Promise<void>
}

interface BudgetDependencies {
  readonly db: Database
  readonly now: () => number
  readonly log: Log
  readonly emit: Emit
}

export function createBudgets({ db, now, log, emit }: BudgetDependencies): Budgets {
  const known = new Map<string, { readonly at: number; readonly status: Promise<BudgetStatus> }>()
  const latest = new Map<string, BudgetStatus>()
  const spenders = new Map<string, Set<Spender>>()
  /** Projects whose runs left since their status was last read. */
  const leftBehind = new Set<string>()
  const told = new Set<string>()
  const timer = setInterval(lookAtAll, FRESH_MS)

  function lookAtAll(): void {
    for (const projectId of new Set([...spenders.keys(), ...leftBehind])) {
      look(projectId).catch((error) => log.debug({ err: error, projectId }, 'a budget could not be read'))
    }
    leftBehind.clear()
    for (const [projectId, { at }] of known) {
      if (performance.now() - at > FRESH_MS && !spenders.has(projectId)) forget(projectId)
    }
  }

  function forget(projectId: string): void {
    known.delete(projectId)
    latest.delete(projectId)
  }

  function look(projectId: string): Promise<BudgetStatus> {
    const status = readStatus(projectId)
    known.set(projectId, { at: performance.now(), status })
    status.then(
      (read) => latest.set(projectId, read),
      () => forget(projectId),
    )
    return status
  }

  function recent(projectId: string): Promise<BudgetStatus> {
    const found = known.get(projectId)
    return found && performance.now() - found.at < FRESH_MS ? found.status : look(projectId)
  }

  async function readStatus(projectId: string): Promise<BudgetStatus> {
    const seen = db.forProject(projectId)
    const budget = await readBudget(seen, projectId)
    const month = monthOf(now())
    if (!budget) return { budget, spentNanos: 0n, state: 'none' }
    const spentNanos = await readSpent(seen, projectId, month)
    const passed = [...new Set([...budget.alertAt, 100])].filter((percent) => isPassed(budget, spentNanos, percent))
    for (const percent of passed) await tell(projectId, month, percent, budget, spentNanos)
    return { budget, spentNanos, state: passed.includes(100) ? 'exceeded' : passed.length > 0 ? 'alert' : 'ok' }
  }

  /** Sends an alert once, whichever node finds it first. */
  async function tell(
    projectId: string,
    month: string,
    percent: number,
    { monthlyNanos }: Budget,
    spentNanos: bigint,
  ): Promise<void> {
    const name = [projectId, month, percent, monthlyNanos].join(' ')
    if (told.has(name)) return
    told.add(name)
    const accountId = await readAccountOf(db, projectId)
    if (accountId === undefined) return
    const [spent, limit] = [formatNanos(spentNanos), formatNanos(monthlyNanos)]
    const action = percent >= 100 ? 'budget.exceeded' : 'budget.alert'
    const details = { month, percent: String(percent), spent, limit, currency: 'USD' }
    const entry = { accountId, action, actor: undefined, target: projectId, details } as const
    const result = await db.write([alertStatement(db, projectId, month, percent), entryStatement(db, entry, now())])
    if (wasMade(result, 'unique')) emit({ type: 'budget_passed', projectId, month, percent, spent, limit })
  }

  function underWay(projectId: string): number {
    return [...(spenders.get(projectId) ?? [])].reduce((sum, spender) => sum + spender.underWay(), 0)
  }

  function leftOf(projectId: string, { budget, spentNanos }: BudgetStatus): number {
    if (!budget?.hardStop) return Number.POSITIVE_INFINITY
    return Number(budget.monthlyNanos - spentNanos) / NANOS - underWay(projectId)
  }

  return {
    async admit(projectId) {
      if (leftOf(projectId, await recent(projectId)) > 0) return
      throw new ErrandError('budget_exceeded', BUDGET_SPENT)
    },
    async left(projectId, settled) {
      if (!(await recent(projectId)).budget?.hardStop) return Number.POSITIVE_INFINITY
      await settled()
      return leftOf(projectId, await look(projectId))
    },
    isSpent(projectId) {
      const status = latest.get(projectId)
      return status !== undefined && leftOf(projectId, status) <= 0
    },
    enter(projectId, spender) {
      const here = spenders.get(projectId) ?? new Set()
      spenders.set(projectId, here.add(spender))
      return () => {
        here.delete(spender)
        if (here.size === 0) spenders.delete(projectId)
        leftBehind.add(projectId)
      }
    },
    async status(projectId) {
      const status = await look(projectId)
      if (status.budget) return status
      return { ...status, spentNanos: await readSpent(db.forProject(projectId), projectId, monthOf(now())) }
    },
    async set({ id, accountId }, budget, actor) {
      const details: Readonly<Record<string, string>> = budget
        ? {
            monthlyCost: formatNanos(budget.monthlyNanos),
            alertAt: budget.alertAt.join(', '),
            hardStop: String(budget.hardStop),
          }
        : { monthlyCost: 'none' }
      const entry = { accountId, action: 'budget.changed', actor, target: id, details } as const
      assertMade(await db.write([...budgetStatements(db, id, budget), entryStatement(db, entry, now())]))
      forget(id)
    },
    async close() {
      clearInterval(timer)
    },
  }
}

function isPassed({ monthlyNanos }: Budget, spentNanos: bigint, percent: number): boolean {
  return spentNanos * 100n >= monthlyNanos * BigInt(percent)
}

/** Error message for refused requests, and for runs that could not begin. */
export const BUDGET_SPENT =
  'This project has spent its budget for this month. An owner of its account can raise it in the console; otherwise it resets at the start of the next month (UTC).'

/**
 * Budgets of projects: who may begin, what a run may still spend, and who is told.
 *
 * What was spent is read from the database that all nodes share: ended runs, and the finished model calls of running ones
 * (store/budgets.ts). What calls under way have said so far is known on their own node alone, and counted there. So a budget
 * is passed by at most one model call of each node, cut off where it speaks on for a second.
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

/** So old may be what is known of a project. */
const FRESH_MS = 1_000
const NANOS = 1e9

/** How a project stands in this month. Where it has no budget, what it spent is not always asked for. */
export interface BudgetStatus {
  readonly budget: Budget | undefined
  readonly spentNanos: bigint
  /** `alert`: the first of its percents is passed. */
  readonly state: 'none' | 'ok' | 'alert' | 'exceeded'
}

/** A run on this node. */
export interface Spender {
  /** US dollars that the model call under way has cost so far. */
  readonly underWay: () => number
}

export interface Budgets {
  /** Throws ErrandError `budget_exceeded` where the project may spend no more this month. */
  admit(projectId: string): Promise<void>
  /** US dollars that may still be spent, by what is stored now; infinite without a budget that stops. */
  left(projectId: string, settled: () => Promise<void>): Promise<number>
  /** Whether calls under way are to be cut off, by what was known a second ago. */
  isSpent(projectId: string): boolean
  /** While a run is here, its project is watched. Returns how it leaves. */
  enter(projectId: string, spender: Spender): () => void
  /** By what is stored now. */
  status(projectId: string): Promise<BudgetStatus>
  /** `actor`: a user, for the account's log. */
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
  /** Runs left them since they were looked at. */
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

  /** Once for all nodes. */
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

/** For whoever is refused, and for a run that could not begin. */
export const BUDGET_SPENT =
  'This project has spent its budget for this month. An owner of its account can raise it in the console; else it begins anew with the next month, UTC.'

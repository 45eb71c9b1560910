/** A project's monthly budget, and how much of it is spent. */
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { formatNanos, toNanos } from '../../domain/usage.ts'
import type { BudgetStatus } from '../../engine/budgets.ts'
import { forSession } from '../openapi/route-docs.ts'
import { check } from '../request/fields.ts'
import { type ConsoleDependencies, PROJECT, projectFor } from './dependencies.ts'
import { budgetAnswer, newBudget, projectParams } from './schemas.ts'

type OfProject = { Params: z.infer<typeof projectParams> }

const shared = { tag: 'Console', params: projectParams, answer: budgetAnswer, errors: ['not_found'] } as const

export function budgetRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  app.get<OfProject>(
    `${PROJECT}/budget`,
    {
      config: { console: 'session' },
      schema: forSession({
        ...shared,
        id: 'getBudget',
        summary: 'Read a project’s budget',
        description:
          'Includes the amount that was spent this month (UTC), by ended runs and by finished model calls of running ones.',
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'viewer')
      return showBudget(await dependencies.budgets.status(id))
    },
  )

  app.put<OfProject>(
    `${PROJECT}/budget`,
    {
      config: { console: 'session', json: true },
      schema: forSession({
        ...shared,
        id: 'setBudget',
        summary: 'Set a project’s budget',
        description:
          'Requires the role owner. Takes effect within a second on every node. Without `monthlyCost` the budget is removed. Alerts that were sent for the previous budget are sent again.',
        body: newBudget,
      }),
    },
    async (request) => {
      const project = await projectFor(dependencies, request, request.params.projectId, 'owner')
      const { monthlyCost, alertAt = [], hardStop = false } = check(newBudget, request.body)
      const budget = monthlyCost === null ? undefined : { monthlyNanos: toNanos(monthlyCost), alertAt, hardStop }
      await dependencies.budgets.set(project, budget, request.visitor.userId)
      return showBudget(await dependencies.budgets.status(project.id))
    },
  )
}

function showBudget({ budget, spentNanos, state }: BudgetStatus): z.infer<typeof budgetAnswer> {
  return {
    monthlyCost: budget ? formatNanos(budget.monthlyNanos) : null,
    alertAt: [...(budget?.alertAt ?? [])],
    hardStop: budget?.hardStop ?? false,
    spent: { amount: formatNanos(spentNanos), currency: 'USD' },
    state,
  }
}

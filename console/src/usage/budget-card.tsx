/** The monthly budget of a project: alerts at percentages, and an optional hard stop. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ask, type Budget, project as projectPath } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'
import { Card } from '../shell/page.tsx'
import { Badge } from '../ui/badge.tsx'
import { Button } from '../ui/button.tsx'
import { Check, Field, Input } from '../ui/field.tsx'
import { cost } from '../ui/format.ts'
import { Failure, Loading } from '../ui/states.tsx'
import { toast } from '../ui/toast.tsx'

const STATES = {
  none: ['plain', 'No budget'],
  ok: ['green', 'Within budget'],
  alert: ['amber', 'Near limit'],
  exceeded: ['red', 'Exceeded'],
} as const

export function BudgetCard({ projectId, owner }: { readonly projectId: string; readonly owner: boolean }) {
  const budget = useQuery({
    queryKey: ['budget', projectId],
    queryFn: () => ask<Budget>('GET', `${projectPath(projectId)}/budget`),
  })
  if (budget.error) return <Failure error={budget.error} retry={() => budget.refetch()} />
  if (!budget.data) {
    return (
      <Card title="Budget">
        <Loading rows={5} />
      </Card>
    )
  }
  const { spent, monthlyCost, state } = budget.data
  const [tone, label] = STATES[state]
  const part =
    monthlyCost === null ? 0 : Math.min(100, (Number(spent.amount) / Math.max(Number(monthlyCost), 0.000001)) * 100)
  return (
    <Card
      title="Budget"
      about="For this project and the calendar month (UTC)."
      actions={<Badge tone={tone}>{label}</Badge>}
    >
      <p className="text-lead font-semibold tabular-nums">
        {cost(spent.amount, spent.currency)}{' '}
        {monthlyCost !== null && <span className="font-normal text-soft">of {cost(monthlyCost, spent.currency)}</span>}
      </p>
      <div aria-hidden="true" className="mt-2 h-1.5 overflow-hidden rounded-full bg-hover">
        <div
          className={state === 'exceeded' ? 'h-full bg-red' : state === 'alert' ? 'h-full bg-amber' : 'h-full bg-green'}
          style={{ width: `${part}%` }}
        />
      </div>
      <BudgetForm key={JSON.stringify(budget.data)} projectId={projectId} budget={budget.data} owner={owner} />
    </Card>
  )
}

function BudgetForm({
  projectId,
  budget,
  owner,
}: {
  readonly projectId: string
  readonly budget: Budget
  readonly owner: boolean
}) {
  const cache = useQueryClient()
  const [amount, setAmount] = useState(budget.monthlyCost ?? '')
  const [alerts, setAlerts] = useState(budget.alertAt.join(', '))
  const [hardStop, setHardStop] = useState(budget.hardStop)
  const save = useMutation({
    mutationFn: () =>
      ask<Budget>('PUT', `${projectPath(projectId)}/budget`, {
        monthlyCost: amount === '' ? null : amount,
        alertAt: alerts
          .split(/[\s,%]+/)
          .filter(Boolean)
          .map(Number),
        hardStop,
      }),
    onSuccess: (saved) => {
      cache.setQueryData(['budget', projectId], saved)
      toast('Saved')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit} className="mt-4">
      <fieldset disabled={!owner} className="grid gap-3">
        <legend className="sr-only">Budget</legend>
        <Field label="Monthly budget in US dollars" error={save.error ? Problem.from(save.error).message : undefined}>
          {(control) => (
            <Input
              {...control}
              type="number"
              min={0}
              step="0.01"
              inputMode="decimal"
              placeholder="No limit"
              value={amount}
              onChange={(event) => setAmount(event.target.value)}
            />
          )}
        </Field>
        <Field label="Alert at" hint="Percentages, separated by commas. There is always an alert at 100.">
          {(control) => (
            <Input
              {...control}
              value={alerts}
              placeholder="50, 80"
              onChange={(event) => setAlerts(event.target.value)}
            />
          )}
        </Field>
        <Check
          label="Stop at the limit"
          hint="Rejects new runs and stops running ones."
          checked={hardStop}
          onChange={(event) => setHardStop(event.target.checked)}
        />
        {owner ? (
          <div>
            <Button type="submit" busy={save.isPending}>
              Save
            </Button>
          </div>
        ) : (
          <p className="text-small text-faint">Only owners can change this.</p>
        )}
      </fieldset>
    </form>
  )
}

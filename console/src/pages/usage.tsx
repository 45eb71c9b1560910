/** The usage page: runs, tokens, cost, errors and duration by day, agent, model, key or project. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type Session, useSession } from '../session/session.ts'
import { Card, Page } from '../shell/page.tsx'
import { Select } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { Empty, Failure, Loading } from '../ui/states.tsx'
import { BreakdownTable } from '../usage/breakdown-table.tsx'
import { BudgetCard } from '../usage/budget-card.tsx'
import { Filters } from '../usage/filters.tsx'
import { Plots } from '../usage/plots.tsx'
import {
  daysBetween,
  filterOf,
  GROUPS,
  type Group,
  type UsageSearch,
  usageAddress,
  usageQuery,
} from '../usage/usage-query.ts'
import { useFilterOptions } from '../usage/use-filter-options.ts'

const route = getRouteApi('/usage')

export default function UsagePage() {
  const session = useSession()
  return session ? <UsageDetails session={session} /> : null
}

function UsageDetails({ session }: { readonly session: Session }) {
  const navigate = useNavigate()
  const search = route.useSearch()
  const accountId = session.account.id
  const filter = filterOf(search, session.project?.id)
  const group: Group = search.by !== undefined && search.by in GROUPS ? (search.by as Group) : 'agent'
  const options = useFilterOptions(accountId, filter)
  const byDay = useQuery(usageQuery(accountId, filter, 'day'))
  const parts = useQuery(usageQuery(accountId, filter, group))
  const set = (changes: UsageSearch) => {
    const next = Object.entries({ ...search, ...changes }).filter(([, value]) => value !== undefined)
    navigate({ to: '/usage', search: Object.fromEntries(next) as UsageSearch, replace: true })
  }
  return (
    <Page
      title="Usage"
      about="Counted on the UTC day on which a run ends. Deleted runs stay counted."
      actions={
        <a
          href={`/console${usageAddress(accountId, filter, group === 'day' ? 'day' : `day,${group}`, 'csv')}`}
          download
          className="inline-flex h-8 items-center gap-2 rounded-md border border-line-strong bg-card px-3 font-medium hover:bg-hover"
        >
          <Icon name="download" />
          Download CSV
        </a>
      }
    >
      <Filters session={session} search={search} filter={filter} options={options} set={set} />
      {byDay.error ? (
        <Failure error={byDay.error} retry={() => byDay.refetch()} />
      ) : byDay.data?.total.runs === 0 ? (
        <div className="rounded-xl border bg-card">
          <Empty icon="chart" title="No runs in this period">
            A run is counted when it completes, fails or is cancelled.
          </Empty>
        </div>
      ) : (
        <>
          <Plots usage={byDay.data} days={daysBetween(filter)} />
          <div className="mt-4">
            <Card
              flush
              title={`By ${GROUPS[group].toLowerCase()}`}
              actions={<By group={group} onSet={(by) => set({ by })} />}
            >
              {parts.error ? (
                <Failure error={parts.error} retry={() => parts.refetch()} />
              ) : parts.data && !parts.isPlaceholderData ? (
                <BreakdownTable usage={parts.data} group={group} agentName={options.agentName} />
              ) : (
                <div className="border-t px-4 py-3">
                  <Loading rows={4} />
                </div>
              )}
            </Card>
          </div>
        </>
      )}
      {filter.projectId && (
        <div className="mt-4 max-w-xl">
          <BudgetCard key={filter.projectId} projectId={filter.projectId} owner={session.role === 'owner'} />
        </div>
      )}
    </Page>
  )
}

function By({ group, onSet }: { readonly group: Group; readonly onSet: (group: string) => void }) {
  return (
    <Select aria-label="Group by" value={group} onChange={(event) => onSet(event.target.value)} className="w-32">
      {Object.entries(GROUPS).map(([name, label]) => (
        <option key={name} value={name}>
          {label}
        </option>
      ))}
    </Select>
  )
}

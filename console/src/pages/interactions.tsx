/** The list of the project's runs. Loads pages while scrolling and renders only visible rows. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useId, useRef } from 'react'
import type { InteractionSummary } from '../api/types.gen.js'
import { agentsQuery, keysQuery, type RunFilters, runsQuery, serverQuery } from '../server/queries.ts'
import { useSession } from '../session/session.ts'
import { Page } from '../shell/page.tsx'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Input, Select } from '../ui/field.tsx'
import { Empty, Failure, Loading } from '../ui/states.tsx'
import { RunRow, RunRowHead, rowHeight } from './run-rows.tsx'

const route = getRouteApi('/interactions')

export default function Interactions() {
  const filters = route.useSearch()
  const runs = useInfiniteQuery({
    ...runsQuery(filters),
    refetchInterval: (query) =>
      query.state.data?.pages[0]?.interactions.some(({ status }) => status === 'running') ? 3_000 : false,
  })
  const rows = runs.data?.pages.flatMap(({ interactions }) => interactions) ?? []
  return (
    <Page
      title="Runs"
      about="All runs of this project."
      actions={
        <ButtonLink to="/playground" look="primary" icon="play">
          New run
        </ButtonLink>
      }
    >
      <Filters filters={filters} />
      <div className="mt-3 overflow-hidden rounded-xl border bg-card">
        <RunRowHead />
        {runs.error ? (
          <Failure error={runs.error} retry={() => runs.refetch()} />
        ) : runs.isPending ? (
          <div className="border-t px-4 py-3">
            <Loading rows={12} />
          </div>
        ) : rows.length === 0 ? (
          <div className="border-t">
            <Nothing filtered={Object.keys(filters).length > 0} />
          </div>
        ) : (
          <Rows
            rows={rows}
            more={runs.hasNextPage}
            fetchMore={() => runs.fetchNextPage()}
            fetching={runs.isFetchingNextPage}
          />
        )}
      </div>
    </Page>
  )
}

interface RowsProps {
  readonly rows: readonly InteractionSummary[]
  readonly more: boolean
  readonly fetching: boolean
  readonly fetchMore: () => void
}

const AHEAD = 20

function Rows({ rows, more, fetching, fetchMore }: RowsProps) {
  const list = useRef<HTMLUListElement>(null)
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight() + 1,
    overscan: 12,
    scrollMargin: list.current?.offsetTop ?? 0,
  })
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (more && !fetching && last > rows.length - AHEAD) fetchMore()
  }, [more, fetching, last, rows.length, fetchMore])
  return (
    <>
      <ul ref={list} aria-label="Runs" className="relative" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, key, start }) => (
          <li
            key={key}
            aria-setsize={more ? -1 : rows.length}
            aria-posinset={index + 1}
            className="absolute inset-x-0 top-0 border-t"
            style={{ transform: `translateY(${start - virtual.options.scrollMargin}px)` }}
          >
            <RunRow run={rows[index]!} />
          </li>
        ))}
      </ul>
      {more && (
        <div className="border-t p-2 text-center">
          <Button look="ghost" size="small" busy={fetching} onClick={fetchMore}>
            Load more
          </Button>
        </div>
      )}
    </>
  )
}

function Nothing({ filtered }: { readonly filtered: boolean }) {
  if (!filtered)
    return (
      <Empty
        icon="list"
        title="No runs yet"
        action={
          <ButtonLink to="/playground" look="primary" icon="play">
            Start a run
          </ButtonLink>
        }
      >
        Runs from the playground and the API appear here.
      </Empty>
    )
  return (
    <Empty icon="search" title="No runs match" action={<ButtonLink to="/interactions">Clear filters</ButtonLink>}>
      No run of this project matches all filters.
    </Empty>
  )
}

function Filters({ filters }: { readonly filters: RunFilters }) {
  const navigate = useNavigate()
  const projectId = useSession()?.project?.id ?? ''
  const keys = useQuery({ ...keysQuery(projectId), enabled: projectId !== '' })
  const agents = useInfiniteQuery(agentsQuery).data?.pages.flatMap((page) => page.agents) ?? []
  const offered = useQuery(serverQuery).data?.models.map(({ name }) => name) ?? []
  // The URL may name a model that the server no longer has.
  const modelNames = [...new Set([...offered, ...(filters.model ? [filters.model] : [])])]
  const set = (changes: Partial<RunFilters>) => {
    const next = Object.fromEntries(
      Object.entries({ ...filters, ...changes }).filter(([, value]) => value),
    ) as RunFilters
    navigate({ to: '/interactions', search: next, replace: true })
  }
  return (
    <search aria-label="Filters" className="grid grid-cols-2 items-center gap-2 sm:flex sm:flex-wrap">
      <Select
        aria-label="Status"
        className="sm:w-36"
        value={filters.status ?? ''}
        onChange={(event) => set({ status: (event.target.value || undefined) as RunFilters['status'] })}
      >
        <option value="">Any status</option>
        <option value="running">Running</option>
        <option value="completed">Completed</option>
        <option value="failed">Failed</option>
        <option value="cancelled">Cancelled</option>
      </Select>
      <FilterText
        name="Agent"
        placeholder="Any agent"
        value={filters.agentId}
        suggestions={agents.map(({ id, displayName }) => [id, displayName ?? id])}
        onSet={(agentId) => set({ agentId })}
      />
      <Select
        aria-label="Model"
        className="sm:w-36"
        value={filters.model ?? ''}
        onChange={(event) => set({ model: event.target.value || undefined })}
      >
        <option value="">Any model</option>
        {modelNames.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Select>
      <FilterText
        name="Label"
        placeholder="Label, such as team=sales"
        value={filters.label}
        onSet={(label) => set({ label })}
      />
      <Select
        aria-label="Key"
        className="sm:w-36"
        value={filters.keyId ?? ''}
        onChange={(event) => set({ keyId: event.target.value || undefined })}
      >
        <option value="">Any key</option>
        {keys.data?.keys.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Time"
        className="sm:w-36"
        value={filters.since ?? ''}
        onChange={(event) => set({ since: event.target.value || undefined })}
      >
        <option value="">Any time</option>
        <option value="1h">Last hour</option>
        <option value="24h">Last 24 hours</option>
        <option value="7d">Last 7 days</option>
        <option value="30d">Last 30 days</option>
      </Select>
      <Select
        aria-label="Order"
        className="sm:w-36"
        value={filters.order ?? ''}
        onChange={(event) => set({ order: (event.target.value || undefined) as 'asc' })}
      >
        <option value="">Newest first</option>
        <option value="asc">Oldest first</option>
      </Select>
    </search>
  )
}

/** A text filter that applies on Enter, on blur, or when a suggestion is chosen. */
function FilterText({
  name,
  value = '',
  placeholder,
  suggestions = [],
  onSet,
}: {
  readonly name: string
  readonly value?: string
  readonly placeholder: string
  readonly suggestions?: readonly (readonly [value: string, name: string])[]
  readonly onSet: (text: string) => void
}) {
  const id = useId()
  return (
    <>
      <Input
        key={value}
        aria-label={name}
        placeholder={placeholder}
        defaultValue={value}
        list={suggestions.length > 0 ? id : undefined}
        className="sm:!w-44"
        onChange={(event) => suggestions.some(([each]) => each === event.target.value) && onSet(event.target.value)}
        onBlur={(event) => event.target.value.trim() !== value && onSet(event.target.value.trim())}
        onKeyDown={(event) => event.key === 'Enter' && onSet(event.currentTarget.value.trim())}
      />
      <datalist id={id}>
        {suggestions.map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </datalist>
    </>
  )
}

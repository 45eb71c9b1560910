/** The filters of the usage page. The options are what was used in the selected period. */
import type { Session } from '../session/session.ts'
import { Input, Select } from '../ui/field.tsx'
import { dayOf, RANGES, type UsageFilter, type UsageSearch } from './usage-query.ts'
import type { FilterOptions } from './use-filter-options.ts'

interface FiltersProps {
  readonly session: Session
  readonly search: UsageSearch
  readonly filter: UsageFilter
  readonly options: FilterOptions
  readonly set: (changes: UsageSearch) => void
}

const OWN = 'own'

export function Filters({ session, search, filter, options, set }: FiltersProps) {
  const own = search.from !== undefined && search.to !== undefined
  const choosePeriod = (days: string) => {
    const { from, to } = filter
    set(
      days === OWN
        ? { days: undefined, from, to }
        : { days: days === '30' ? undefined : days, from: undefined, to: undefined },
    )
  }
  return (
    <search aria-label="Filters" className="mb-4 grid grid-cols-2 items-center gap-2 sm:flex sm:flex-wrap">
      <Select
        aria-label="Period"
        className="sm:w-36"
        value={own ? OWN : (search.days ?? '30')}
        onChange={(event) => choosePeriod(event.target.value)}
      >
        {Object.entries(RANGES).map(([days, label]) => (
          <option key={days} value={days}>
            {label}
          </option>
        ))}
        <option value={OWN}>Custom range</option>
      </Select>
      {own && (
        <>
          <Day name="From" value={filter.from} onSet={(from) => set(inOrder(from, filter.to, from))} />
          <Day name="To" value={filter.to} onSet={(to) => set(inOrder(filter.from, to, to))} />
        </>
      )}
      <Filter
        name="Project"
        value={search.project ?? session.project?.id}
        options={[...session.account.projects.map(({ id, name }) => [id, name] as const), ['all', 'All projects']]}
        onSet={(project) => set({ project: project === session.project?.id ? undefined : project })}
      />
      <Filter
        name="Agent"
        any="Any agent"
        value={search.agent}
        options={options.agents}
        onSet={(agent) => set({ agent })}
      />
      <Filter
        name="Model"
        any="Any model"
        value={search.model}
        options={options.models}
        onSet={(model) => set({ model })}
      />
      <Filter name="Key" any="Any key" value={search.key} options={options.keys} onSet={(key) => set({ key })} />
    </search>
  )
}

/** If the range is reversed, both ends become the chosen day. */
function inOrder(from: string, to: string, chosen: string): UsageSearch {
  return from <= to ? { from, to } : { from: chosen, to: chosen }
}

interface FilterProps {
  readonly name: string
  readonly any?: string
  readonly value: string | undefined
  readonly options: readonly (readonly [value: string, name: string])[]
  readonly onSet: (value: string | undefined) => void
}

function Filter({ name, any, value = '', options, onSet }: FilterProps) {
  // Also shows the URL's value if it was not used in the period.
  const known = value === '' || options.some(([each]) => each === value)
  return (
    <Select
      aria-label={name}
      className="sm:w-36"
      value={value}
      onChange={(event) => onSet(event.target.value || undefined)}
    >
      {any !== undefined && <option value="">{any}</option>}
      {!known && <option value={value}>{value}</option>}
      {options.map(([each, label]) => (
        <option key={each} value={each}>
          {label}
        </option>
      ))}
    </Select>
  )
}

interface DayProps {
  readonly name: string
  readonly value: string
  readonly onSet: (day: string) => void
}

function Day({ name, value, onSet }: DayProps) {
  return (
    <Input
      type="date"
      aria-label={name}
      className="sm:!w-36"
      value={value}
      max={dayOf(Date.now())}
      onChange={(event) => event.target.value !== '' && onSet(event.target.value)}
    />
  )
}

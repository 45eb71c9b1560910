/** Of which days, and of which runs. What can be chosen is what was used in these days. */
import type { Session } from '../session/session.ts'
import { Input, Select } from '../ui/field.tsx'
import { dayOf, RANGES, type UsageFilter, type UsageSearch } from './usage-query.ts'
import type { FilterOptions } from './use-filter-options.ts'

interface FiltersProps {
  readonly session: Session
  readonly search: UsageSearch
  readonly filter: UsageFilter
  readonly choices: FilterOptions
  readonly set: (changes: UsageSearch) => void
}

const OWN = 'own'

export function Filters({ session, search, filter, choices, set }: FiltersProps) {
  const own = search.from !== undefined && search.to !== undefined
  const chooseDays = (days: string) => {
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
        aria-label="Days"
        className="sm:w-36"
        value={own ? OWN : (search.days ?? '30')}
        onChange={(event) => chooseDays(event.target.value)}
      >
        {Object.entries(RANGES).map(([days, words]) => (
          <option key={days} value={days}>
            {words}
          </option>
        ))}
        <option value={OWN}>From … to …</option>
      </Select>
      {own && (
        <>
          <Day name="From" value={filter.from} onSet={(from) => set(inOrder(from, filter.to, from))} />
          <Day name="To" value={filter.to} onSet={(to) => set(inOrder(filter.from, to, to))} />
        </>
      )}
      <Choice
        name="Project"
        value={search.project ?? session.project?.id}
        choices={[...session.account.projects.map(({ id, name }) => [id, name] as const), ['all', 'All projects']]}
        onSet={(project) => set({ project: project === session.project?.id ? undefined : project })}
      />
      <Choice
        name="Agent"
        any="Any agent"
        value={search.agent}
        choices={choices.agents}
        onSet={(agent) => set({ agent })}
      />
      <Choice
        name="Model"
        any="Any model"
        value={search.model}
        choices={choices.models}
        onSet={(model) => set({ model })}
      />
      <Choice name="Key" any="Any key" value={search.key} choices={choices.keys} onSet={(key) => set({ key })} />
    </search>
  )
}

/** Where the days are the wrong way round, both are the one that was chosen. */
function inOrder(from: string, to: string, chosen: string): UsageSearch {
  return from <= to ? { from, to } : { from: chosen, to: chosen }
}

interface ChoiceProps {
  readonly name: string
  readonly any?: string
  readonly value: string | undefined
  readonly choices: readonly (readonly [value: string, name: string])[]
  readonly onSet: (value: string | undefined) => void
}

function Choice({ name, any, value = '', choices, onSet }: ChoiceProps) {
  // What the address asks for stays to be seen, also where nothing of it was used.
  const known = value === '' || choices.some(([each]) => each === value)
  return (
    <Select
      aria-label={name}
      className="sm:w-36"
      value={value}
      onChange={(event) => onSet(event.target.value || undefined)}
    >
      {any !== undefined && <option value="">{any}</option>}
      {!known && <option value={value}>{value}</option>}
      {choices.map(([each, words]) => (
        <option key={each} value={each}>
          {words}
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

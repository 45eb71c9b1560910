/** An agent that is stored, or what is set here. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { agentsQuery } from '../server/queries.ts'
import { Field, Select } from '../ui/field.tsx'

export function AgentPicker({
  value,
  onChange,
}: {
  readonly value: string | undefined
  readonly onChange: (id: string | undefined) => void
}) {
  const agents = useInfiniteQuery(agentsQuery)
  const all = agents.data?.pages.flatMap((page) => page.agents) ?? []
  return (
    <Field label="Agent">
      {(control) => (
        <Select {...control} value={value ?? ''} onChange={(event) => onChange(event.target.value || undefined)}>
          <option value="">None (configure below)</option>
          {value && !all.some(({ id }) => id === value) && <option value={value}>{value}</option>}
          {all.map(({ id, displayName }) => (
            <option key={id} value={id}>
              {displayName ?? id}
            </option>
          ))}
        </Select>
      )}
    </Field>
  )
}

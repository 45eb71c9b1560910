/** The options of the usage filters: agents, models and keys that were used in the period, with their names. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { UsageRow } from '../server/console-api.ts'
import { agentsQuery } from '../server/queries.ts'
import { type UsageFilter, usageQuery } from './usage-query.ts'

export interface FilterOptions {
  readonly agents: readonly (readonly [id: string, name: string])[]
  readonly models: readonly (readonly [id: string, name: string])[]
  readonly keys: readonly (readonly [id: string, name: string])[]
  readonly agentName: (id: string) => string
}

export function useFilterOptions(accountId: string, { from, to, projectId }: UsageFilter): FilterOptions {
  const { data } = useQuery(usageQuery(accountId, { from, to, ...(projectId && { projectId }) }, 'agent,model,key'))
  const stored = useInfiniteQuery(agentsQuery).data?.pages.flatMap(({ agents }) => agents) ?? []
  const names = new Map(stored.map(({ id, displayName }) => [id, displayName]))
  const agentName = (id: string) => names.get(id) || id
  const rows = data?.rows ?? []
  return {
    agents: distinct(
      rows,
      ({ agentId }) => agentId,
      ({ agentId }) => agentName(agentId!),
    ),
    models: distinct(
      rows,
      ({ model }) => model,
      ({ model }) => model!,
    ),
    keys: distinct(rows, ({ keyId }) => keyId, keyLabel),
    agentName,
  }
}

export function keyLabel({ keyId, keyName }: UsageRow): string {
  if (keyName && keyId?.startsWith('usr_')) return `${keyName} (console)`
  return keyName ?? (keyId === 'key_temporary' ? 'Command line' : (keyId ?? ''))
}

function distinct(
  rows: readonly UsageRow[],
  idOf: (row: UsageRow) => string | null | undefined,
  nameOf: (row: UsageRow) => string,
): [string, string][] {
  const names = new Map<string, string>()
  for (const row of rows) {
    const id = idOf(row)
    if (id) names.set(id, nameOf(row))
  }
  return [...names].sort(([, a], [, b]) => a.localeCompare(b))
}

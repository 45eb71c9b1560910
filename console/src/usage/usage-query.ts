/** The query of the usage page: its period and filters, from the URL. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { account as accountPath, ask, type UsageReport } from '../server/console-api.ts'

export const GROUPS = { agent: 'Agent', model: 'Model', key: 'Key', project: 'Project', day: 'Day' } as const
export type Group = keyof typeof GROUPS

export const RANGES: Readonly<Record<string, string>> = {
  '7': 'Last 7 days',
  '30': 'Last 30 days',
  '90': 'Last 90 days',
  '365': 'Last 365 days',
}
const DEFAULT_DAYS = '30'
const DAY_MS = 86_400_000

export interface UsageSearch {
  /** Number of days until today. Default, unless `from` and `to` are set: 30. */
  readonly days?: string
  readonly from?: string
  readonly to?: string
  /** An id or `all`. Default: the current project. */
  readonly project?: string
  readonly agent?: string
  readonly model?: string
  readonly key?: string
  readonly by?: string
}

export interface UsageFilter {
  readonly from: string
  readonly to: string
  readonly projectId?: string
  readonly agentId?: string
  readonly model?: string
  readonly keyId?: string
}

export function filterOf(search: UsageSearch, currentProject: string | undefined): UsageFilter {
  const { project = currentProject, agent, model, key } = search
  const today = dayOf(Date.now())
  const length = Number(RANGES[search.days ?? ''] ? search.days : DEFAULT_DAYS)
  const days =
    search.from && search.to
      ? { from: search.from, to: search.to }
      : { from: dayOf(Date.now() - (length - 1) * DAY_MS), to: today }
  return {
    ...days,
    ...(project !== undefined && project !== 'all' && { projectId: project }),
    ...(agent !== undefined && { agentId: agent }),
    ...(model !== undefined && { model }),
    ...(key !== undefined && { keyId: key }),
  }
}

/** UTC: `2026-11-21`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** All days of the period. */
export function daysBetween({ from, to }: UsageFilter): readonly string[] {
  const length = Math.max(1, Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1)
  return Array.from({ length }, (_, i) => dayOf(Date.parse(from) + i * DAY_MS))
}

export function usageAddress(accountId: string, filter: UsageFilter, group: string, format = 'json'): string {
  return `${accountPath(accountId)}/usage?${new URLSearchParams({ ...filter, group, format })}`
}

export const usageQuery = (accountId: string, filter: UsageFilter, group: string) =>
  queryOptions({
    queryKey: ['usage', accountId, filter, group],
    queryFn: () => ask<UsageReport>('GET', usageAddress(accountId, filter, group)),
    // Keeps the previous data until the next is loaded.
    placeholderData: keepPreviousData,
  })

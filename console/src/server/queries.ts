/** Queries of the pages, with their cache keys. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import {
  getAgent,
  getInteraction,
  getServer,
  getSkill,
  listAgents,
  listAgentVersions,
  listAudit,
  listCredentials,
  listDeliveries,
  listEvents,
  listInteractions,
  listSkills,
  readSkillFile,
} from '../api/sdk.gen.js'
import type { TimedEvent } from '../api/types.gen.js'
import { data } from './client.ts'
import { ask, type Key, project } from './console-api.ts'

const PAGE = 100
const LONG_MS = 5 * 60_000

export const keysQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['keys', projectId],
    queryFn: () => ask<{ keys: Key[] }>('GET', `${project(projectId)}/keys`),
  })

export const serverQuery = queryOptions({ queryKey: ['server'], queryFn: () => data(getServer()), staleTime: LONG_MS })

export const agentsQuery = infiniteQueryOptions({
  queryKey: ['agents', 'list'],
  queryFn: ({ pageParam }) => data(listAgents({ query: { pageSize: PAGE, pageToken: pageParam } })),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (last) => last.nextPageToken,
})

export const agentQuery = (id: string) =>
  queryOptions({ queryKey: ['agents', id], queryFn: () => data(getAgent({ path: { id } })) })

export const agentVersionsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['agents', id, 'versions'],
    queryFn: ({ pageParam }) =>
      data(listAgentVersions({ path: { id }, query: { pageSize: PAGE, pageToken: pageParam } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextPageToken,
  })

/** Periods in hours. */
const SPANS: Readonly<Record<string, number>> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }

export interface RunFilters {
  readonly status?: 'running' | 'completed' | 'failed' | 'cancelled'
  readonly agentId?: string
  readonly model?: string
  /** `key=value`, several separated by commas. */
  readonly label?: string
  readonly keyId?: string
  /** A key of SPANS. */
  readonly since?: string
  readonly order?: 'asc'
}

interface RunsPageParam {
  readonly pageToken: string
  /** The same for all pages, so that they form one list. */
  readonly createdAfter?: string
}

export const runsQuery = ({ label, since, ...filters }: RunFilters) =>
  infiniteQueryOptions({
    queryKey: ['interactions', 'list', { label, since, ...filters }],
    queryFn: async ({ pageParam }) => {
      const { pageToken, createdAfter = startOf(since) } = pageParam ?? {}
      const query = { ...filters, ...labelParameters(label), createdAfter, pageSize: PAGE, pageToken }
      return { ...(await data(listInteractions({ query }))), createdAfter }
    },
    initialPageParam: undefined as RunsPageParam | undefined,
    getNextPageParam: ({ nextPageToken, createdAfter }) =>
      nextPageToken === undefined ? undefined : { pageToken: nextPageToken, createdAfter },
  })

function startOf(since: string | undefined): string | undefined {
  const hours = since === undefined ? undefined : SPANS[since]
  return hours === undefined ? undefined : new Date(Date.now() - hours * 3_600_000).toISOString()
}

function labelParameters(labels = ''): Record<string, string> {
  // A value may contain a comma. Only a comma before `name=` separates labels.
  const each = labels.split(/,\s*(?=[^,=]+=)/).map((label) => [label, label.indexOf('=')] as const)
  return Object.fromEntries(
    each.filter(([, at]) => at > 0).map(([label, at]) => [`label.${label.slice(0, at)}`, label.slice(at + 1)]),
  )
}

export const runQuery = (id: string) =>
  queryOptions({ queryKey: ['interactions', id], queryFn: () => data(getInteraction({ path: { id } })) })

/** All events of a run with their times. */
export const eventsQuery = (id: string) =>
  queryOptions({
    queryKey: ['interactions', id, 'events'],
    queryFn: async () => {
      const events: TimedEvent[] = []
      let pageToken: string | undefined
      do {
        const page = await data(listEvents({ path: { id }, query: { pageSize: PAGE, pageToken } }))
        events.push(...page.events)
        pageToken = page.nextPageToken
      } while (pageToken !== undefined)
      return events
    },
  })

export const auditQuery = (id: string) =>
  queryOptions({
    queryKey: ['interactions', id, 'audit'],
    queryFn: () => data(listAudit({ path: { id }, query: { pageSize: PAGE } })),
  })

export const deliveriesQuery = (id: string) =>
  queryOptions({ queryKey: ['interactions', id, 'deliveries'], queryFn: () => data(listDeliveries({ path: { id } })) })

export const skillsQuery = queryOptions({
  queryKey: ['skills', 'list'],
  queryFn: () => data(listSkills({ query: { pageSize: PAGE } })),
})
export const skillQuery = (name: string) =>
  queryOptions({ queryKey: ['skills', name], queryFn: () => data(getSkill({ path: { name } })) })

export const skillFileQuery = (name: string, path: string) =>
  queryOptions({
    queryKey: ['skills', name, path],
    queryFn: () => data(readSkillFile({ path: { name }, query: { path } })),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const credentialsQuery = queryOptions({
  queryKey: ['credentials', 'list'],
  queryFn: () => data(listCredentials({ query: { pageSize: PAGE } })),
})

/** Filters of the list of interactions, alone and together, as tests of plans and the bench of lists ask for them. */
import type { InteractionFilter } from '../../src/store/list-interactions.ts'

type Filter = Omit<InteractionFilter, 'labels' | 'order'> & Partial<Pick<InteractionFilter, 'labels' | 'order'>>

/** `at`: a time in the middle of what is stored, ms since 1970. `id`: an interaction's of about then. */
export function filtersAround(at: number, id: string): readonly (readonly [name: string, filter: InteractionFilter])[] {
  const team = { labels: { team: 'red' } }
  const filters: Readonly<Record<string, Filter>> = {
    none: {},
    'none, oldest first': { order: 'asc' },
    'none, deep in the list': { after: id },
    status: { status: 'failed' },
    running: { status: 'running' },
    agent: { agentId: 'agent1' },
    model: { model: 'model1' },
    key: { keyId: 'key1' },
    time: { createdAfter: at, createdBefore: at + 3_600_000 },
    label: team,
    'label, deep in the list': { ...team, after: id },
    'two labels': { labels: { team: 'red', stage: 'test' } },
    'status and model': { status: 'failed', model: 'model1' },
    'agent and key': { agentId: 'agent1', keyId: 'key1' },
    'key and time': { keyId: 'key1', createdAfter: at },
    'label and model': { ...team, model: 'model1' },
    'all of them': { ...team, status: 'failed', agentId: 'agent1', model: 'model1', keyId: 'key1', createdAfter: at },
    'a model that there is not': { model: 'none' },
    'two that are common, and never together': { agentId: 'agent1', model: 'model0' },
  }
  return Object.entries(filters).map(([name, filter]) => [name, { labels: {}, order: 'desc', ...filter }])
}

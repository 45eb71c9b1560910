/** The port to stored agents. Each operation is within one project. */
import type { Agent, AgentConfig, Labels } from '../domain/agent.ts'

export interface NewAgent {
  /** Chosen by the caller and already validated. The store makes an id if it is absent. */
  readonly id?: string
  readonly config: AgentConfig
}

export interface AgentQuery {
  readonly model?: string
  /** An agent matches only if it has all of these labels. */
  readonly labels: Labels
  /** Order by creation time. */
  readonly order: 'asc' | 'desc'
  readonly pageSize: number
  /** The `next` of the previous page. Another value is not an error: it returns some page, or an empty one. */
  readonly after?: string
}

export interface AgentPage {
  readonly agents: readonly Agent[]
  /** The `after` of the next page; undefined on the last page. Printable ASCII, at most 200 characters. */
  readonly next: string | undefined
}

export interface AgentStore {
  /** Creates version 1. Throws ErrandError `conflict` if the id is taken. */
  create(projectId: string, agent: NewAgent): Promise<Agent>
  get(projectId: string, id: string): Promise<Agent | undefined>
  list(projectId: string, query: AgentQuery): Promise<AgentPage>
  /**
   * Applies `change` to the newest version and stores the result as the next version, unless it is equal. If another writer
   * was faster, calls `change` again with that writer's version. An error from `change` is rethrown and nothing is written.
   * Throws ErrandError `not_found`.
   */
  update(projectId: string, id: string, change: (agent: Agent) => AgentConfig): Promise<Agent>
  /** Removes the agent with all its versions. Returns false if there is no such agent. */
  remove(projectId: string, id: string): Promise<boolean>
  /** Versions, newest first. Undefined if there is no such agent. */
  versions(
    projectId: string,
    id: string,
    page: { readonly pageSize: number; readonly after?: string },
  ): Promise<AgentPage | undefined>
  /** The agent as it was in that version. Undefined if there is no such agent or version. */
  version(projectId: string, id: string, version: number): Promise<Agent | undefined>
}

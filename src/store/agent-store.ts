/** What the HTTP edge asks of the store about agents: one operation each, every one within a project. */
import type { Agent, AgentConfig, Labels } from '../domain/agent.ts'

export interface NewAgent {
  /** Chosen by the caller, checked; the store makes one where it is absent. */
  readonly id?: string
  readonly config: AgentConfig
}

export interface AgentQuery {
  readonly model?: string
  /** Every one must be there with this value. */
  readonly labels: Labels
  /** By creation time. */
  readonly order: 'asc' | 'desc'
  readonly pageSize: number
  /** The `next` of the page before. What no page gave is no error: it answers some page or none. */
  readonly after?: string
}

export interface AgentPage {
  readonly agents: readonly Agent[]
  /** What `after` takes for the page behind; undefined on the last one. Printable ASCII, at most 200 characters. */
  readonly next: string | undefined
}

export interface AgentStore {
  /** Version 1. Throws ErrandError `conflict` where the id is taken. */
  create(projectId: string, agent: NewAgent): Promise<Agent>
  get(projectId: string, id: string): Promise<Agent | undefined>
  list(projectId: string, query: AgentQuery): Promise<AgentPage>
  /**
   * Writes what `change` makes of the newest version, as the next version where it differs. Where another writer came
   * first, `change` is asked again with what that one wrote; what it throws goes to the caller, and nothing is written.
   * Throws ErrandError `not_found`.
   */
  update(projectId: string, id: string, change: (agent: Agent) => AgentConfig): Promise<Agent>
  /** With all its versions. False where there is none. */
  remove(projectId: string, id: string): Promise<boolean>
  /** Newest first. Undefined where there is no such agent. */
  versions(
    projectId: string,
    id: string,
    page: { readonly pageSize: number; readonly after?: string },
  ): Promise<AgentPage | undefined>
  /** The agent as it was in that version; undefined where there is no such agent or version. */
  version(projectId: string, id: string, version: number): Promise<Agent | undefined>
}

/** Stored agents: create, read, list, update, delete, and their versions. */
import { listCall, objectCall } from './calls.ts'
import type { Agent, AgentList, AgentPatch, AgentVersions, NewAgent } from './generated/types.ts'
import { byLabel, List } from './paging.ts'
import type { RequestOptions, Transport } from './transport.ts'

export interface AgentQuery {
  readonly model?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly order?: 'asc' | 'desc'
  readonly pageSize?: number
  readonly pageToken?: string
}

const LIST = listCall('agents')

export class Agents {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Throws ConflictError if the `id` is in use. */
  create(agent: NewAgent, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json({ ...LIST, method: 'POST', body: agent, repeatable: false }, options)
  }

  async retrieve(id: string, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json(objectCall('agents.retrieve', id), options)
  }

  list({ labels = {}, pageToken, ...query }: AgentQuery = {}, options?: RequestOptions): List<Agent> {
    return new List(pageToken, async (token) => {
      const call = { ...LIST, query: { ...query, ...byLabel(labels), pageToken: token } }
      const { agents, nextPageToken } = await this.#transport.json<AgentList>(call, options)
      return { items: agents, nextPageToken }
    })
  }

  /**
   * Changes the fields in `patch`: `null` clears a field, lists are replaced, `policy` and `labels` are merged key by key. With
   * `etag`, throws PreconditionFailedError if the agent has changed since it was read.
   */
  async update(
    id: string,
    patch: AgentPatch,
    { etag, ...options }: RequestOptions & { etag?: string } = {},
  ): Promise<Agent> {
    const headers = etag === undefined ? undefined : { 'If-Match': etag }
    return this.#transport.json(
      { ...objectCall('agents.update', id), method: 'PATCH', body: patch, headers, repeatable: etag === undefined },
      options,
    )
  }

  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...objectCall('agents.delete', id), method: 'DELETE', repeatable: false }, options)
  }

  /** Lists the versions of an agent, newest first. */
  versions(id: string, { pageToken, ...query }: { pageSize?: number; pageToken?: string } = {}): List<Agent> {
    const call = objectCall('agents.versions', id, '/versions')
    return new List(pageToken, async (token) => {
      const { versions, nextPageToken } = await this.#transport.json<AgentVersions>({
        ...call,
        query: { ...query, pageToken: token },
      })
      return { items: versions, nextPageToken }
    })
  }

  async version(id: string, version: number, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json(objectCall('agents.version', id, `/versions/${version}`), options)
  }
}

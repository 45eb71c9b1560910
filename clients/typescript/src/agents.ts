/** Stored agents. */
import type { Agent, AgentList, AgentPatch, AgentVersions, NewAgent } from './generated/types.ts'
import { byLabel, List } from './paging.ts'
import type { Call, RequestOptions, Transport } from './transport.ts'

export interface AgentQuery {
  readonly model?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly order?: 'asc' | 'desc'
  readonly pageSize?: number
  readonly pageToken?: string
}

export class Agents {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Throws ConflictError where `id` is taken. */
  create(agent: NewAgent, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json({ ...to(), method: 'POST', body: agent, repeatable: false }, options)
  }

  retrieve(id: string, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json(to(id), options)
  }

  list({ labels = {}, pageToken, ...query }: AgentQuery = {}, options?: RequestOptions): List<Agent> {
    return new List(pageToken, async (token) => {
      const call = { ...to(), query: { ...query, ...byLabel(labels), pageToken: token } }
      const { agents, nextPageToken } = await this.#transport.json<AgentList>(call, options)
      return { items: agents, nextPageToken }
    })
  }

  /**
   * Changes what `patch` names: `null` clears a field, lists are replaced, `policy` and `labels` merge key by key. With
   * `etag`, only the agent as it was read: else PreconditionFailedError.
   */
  update(id: string, patch: AgentPatch, { etag, ...options }: RequestOptions & { etag?: string } = {}): Promise<Agent> {
    const headers = etag === undefined ? undefined : { 'If-Match': etag }
    return this.#transport.json(
      { ...to(id), method: 'PATCH', body: patch, headers, repeatable: etag === undefined },
      options,
    )
  }

  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...to(id), method: 'DELETE', repeatable: false }, options)
  }

  /** Newest first. */
  versions(id: string, { pageToken, ...query }: { pageSize?: number; pageToken?: string } = {}): List<Agent> {
    return new List(pageToken, async (token) => {
      const call = { ...to(id, '/versions'), query: { ...query, pageToken: token } }
      const { versions, nextPageToken } = await this.#transport.json<AgentVersions>(call)
      return { items: versions, nextPageToken }
    })
  }

  version(id: string, version: number, options?: RequestOptions): Promise<Agent> {
    return this.#transport.json(to(id, `/versions/${version}`), options)
  }
}

function to(id?: string, rest = ''): Call {
  const path = id === undefined ? '/v1beta/agents' : `/v1beta/agents/${encodeURIComponent(id)}${rest}`
  return { method: 'GET', path, repeatable: true }
}

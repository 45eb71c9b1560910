/** Credentials: secrets that runs can use. The API never returns the secret. */
import { listCall, objectCall } from './calls.ts'
import type { Credential, CredentialList, CredentialPatch, NewCredential } from './generated/types.ts'
import { List } from './paging.ts'
import type { RequestOptions, Transport } from './transport.ts'

const LIST = listCall('credentials')

export class Credentials {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  create(credential: NewCredential, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json({ ...LIST, method: 'POST', body: credential, repeatable: false }, options)
  }

  async retrieve(id: string, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json(objectCall('credentials.retrieve', id), options)
  }

  list(
    { pageToken, ...query }: { order?: 'asc' | 'desc'; pageSize?: number; pageToken?: string } = {},
    options?: RequestOptions,
  ): List<Credential> {
    return new List(pageToken, async (token) => {
      const { credentials, nextPageToken } = await this.#transport.json<CredentialList>(
        { ...LIST, query: { ...query, pageToken: token } },
        options,
      )
      return { items: credentials, nextPageToken }
    })
  }

  /** Changes fields of a credential. A new secret or a new type replaces the previous one. */
  async update(id: string, patch: CredentialPatch, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json({ ...objectCall('credentials.update', id), method: 'PATCH', body: patch }, options)
  }

  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send(
      { ...objectCall('credentials.delete', id), method: 'DELETE', repeatable: false },
      options,
    )
  }
}

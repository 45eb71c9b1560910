/** Secrets that runs sign in with: written, never read back. */
import type { Credential, CredentialList, CredentialPatch, NewCredential } from './generated/types.ts'
import { List } from './paging.ts'
import type { Call, RequestOptions, Transport } from './transport.ts'

export class Credentials {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  create(credential: NewCredential, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json({ ...to(), method: 'POST', body: credential, repeatable: false }, options)
  }

  retrieve(id: string, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json(to(id), options)
  }

  list(
    { pageToken, ...query }: { order?: 'asc' | 'desc'; pageSize?: number; pageToken?: string } = {},
    options?: RequestOptions,
  ): List<Credential> {
    return new List(pageToken, async (token) => {
      const { credentials, nextPageToken } = await this.#transport.json<CredentialList>(
        { ...to(), query: { ...query, pageToken: token } },
        options,
      )
      return { items: credentials, nextPageToken }
    })
  }

  /** Another secret takes the place of the one before, as does another kind of sign-in. */
  update(id: string, patch: CredentialPatch, options?: RequestOptions): Promise<Credential> {
    return this.#transport.json({ ...to(id), method: 'PATCH', body: patch }, options)
  }

  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...to(id), method: 'DELETE', repeatable: false }, options)
  }
}

function to(id?: string): Call {
  const path = id === undefined ? '/v1beta/credentials' : `/v1beta/credentials/${encodeURIComponent(id)}`
  return { method: 'GET', path, repeatable: true }
}

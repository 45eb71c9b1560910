/** A real OpenID Connect provider on loopback. Its sign-in page accepts any name. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export interface IdentityProvider {
  /** The entry for `console.oidc` in errand.yaml. */
  readonly config: Readonly<Record<'issuer' | 'clientId' | 'clientSecret' | 'name', string>>
  /** True to mark e-mail addresses as verified. */
  vouches: boolean
  /** Sets the server that browsers are sent back to. */
  open(publicUrl: string): void
  close(): Promise<void>
}

const TTL_S = 600
const CLIENT = { client_id: 'errand', client_secret: 'the-secret-of-errand-there' }

export async function openIdentityProvider(): Promise<IdentityProvider> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const idp: IdentityProvider = {
    config: { issuer, clientId: CLIENT.client_id, clientSecret: CLIENT.client_secret, name: 'Example ID' },
    vouches: true,
    open(publicUrl) {
      const provider = new Provider(issuer, {
        clients: [{ ...CLIENT, redirect_uris: [`${publicUrl}/console/auth/callback/oidc`] }],
        claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
        conformIdTokenClaims: false,
        ttl: { Interaction: TTL_S, Session: TTL_S, Grant: TTL_S, AccessToken: TTL_S, IdToken: TTL_S },
        features: { devInteractions: { enabled: true } },
        findAccount: (_, id) => ({
          accountId: id,
          claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: idp.vouches, name: id }),
        }),
      })
      server.on('request', provider.callback())
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return idp
}

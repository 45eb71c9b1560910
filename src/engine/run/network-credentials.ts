/** Headers that `network.inject` adds to requests: the project's current credentials, each only for its allowed hosts. */
import type { Credentials } from '../../accounts/credentials.ts'
import { confidential, headersOf, hostAllowed, type Secret } from '../../domain/credential.ts'
import { ErrandError } from '../../domain/errors.ts'
import { type HeaderInjection, injectionsFor, type Network } from '../../domain/network.ts'
import type { CredentialSource } from '../../egress/port.ts'

/** Throws ErrandError `invalid_request` for a credential that does not exist or may not be sent to the host. */
export async function checkInjections(credentials: Credentials, projectId: string, network: Network): Promise<void> {
  if (typeof network === 'string') return
  for (const [i, { host, credentialId }] of (network.inject ?? []).entries()) {
    const param = `network.inject[${i}].credentialId`
    const refuse = (what: string) => {
      throw new ErrandError('invalid_request', `\`${param}\` ${what}.`, { param })
    }
    const found = await credentials.find(projectId, credentialId)
    if (!found) refuse(`is ${JSON.stringify(credentialId)}; there is no such credential`)
    else if (!hostAllowed(found.allowedHosts, new URL(`https://${host}`))) {
      refuse(`is ${JSON.stringify(credentialId)}, which may not be sent to ${host}; its allowedHosts say where it may`)
    }
  }
}

/** Calls `conceal` with each secret before it is used. */
export function createSignIn(
  credentials: Credentials,
  projectId: string,
  network: Network,
  conceal: (secrets: readonly string[]) => void,
): CredentialSource {
  return async function signIn(host, port) {
    const headers: Record<string, string> = {}
    const secrets: string[] = []
    for (const injection of injectionsFor(network, host, port)) {
      const id = JSON.stringify(injection.credentialId)
      const found = await credentials.open(projectId, injection.credentialId)
      if (!found) return `there is no credential ${id} any more`
      if (!hostAllowed(found.credential.allowedHosts, new URL(`https://${host}:${port}`))) {
        return `the credential ${id} may not be sent there`
      }
      const value = headerValue(injection, found.secret)
      if (value === undefined) return `the credential ${id} has nothing for the header ${injection.header}`
      headers[injection.header] = value
      secrets.push(...confidential(found.secret))
    }
    conceal(secrets)
    return { headers, confidential: secrets }
  }
}

/** The header's value; undefined if the credential's type has none. */
function headerValue({ header, format }: HeaderInjection, secret: Secret): string | undefined {
  const name = header.toLowerCase()
  const own = Object.entries(headersOf(secret)).find(([each]) => each.toLowerCase() === name)?.[1]
  if (format === undefined && own !== undefined) return own
  const text = textOf(secret, own)
  return text === undefined ? undefined : (format ?? '{secret}').replaceAll('{secret}', () => text)
}

function textOf(secret: Secret, own: string | undefined): string | undefined {
  switch (secret.type) {
    case 'bearer':
      return secret.token
    case 'basic':
      return secret.password
    case 'oauth2':
      return secret.accessToken
    case 'headers': {
      const values = Object.values(secret.headers)
      return own ?? (values.length === 1 ? values[0] : undefined)
    }
  }
}

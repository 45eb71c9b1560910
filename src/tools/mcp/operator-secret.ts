/** The secret of a registered server, from the environment variables that the operator configured. */
import type { McpAuthentication } from '../../config.ts'
import type { Secret } from '../../domain/credential.ts'
import { SignInRefused } from './sign-in.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Throws SignInRefused if a variable is not set. */
export function operatorSecret(authentication: McpAuthentication, env: Env): Secret {
  switch (authentication.type) {
    case 'bearer':
      return { type: 'bearer', token: required(env, authentication.tokenEnv) }
    case 'headers': {
      const headers = Object.entries(authentication.headersEnv)
      return {
        type: 'headers',
        headers: Object.fromEntries(headers.map(([name, variable]) => [name, required(env, variable)])),
      }
    }
    case 'basic':
      return {
        type: 'basic',
        username: authentication.username,
        password: required(env, authentication.passwordEnv),
      }
    case 'oauth2': {
      const { type, tokenUrl, clientId, scopes, clientSecretEnv, refreshTokenEnv, accessTokenEnv } = authentication
      const optional = (variable: string | undefined) => (variable === undefined ? undefined : required(env, variable))
      return {
        type,
        tokenUrl,
        clientId,
        scopes,
        clientSecret: optional(clientSecretEnv),
        refreshToken: optional(refreshTokenEnv),
        accessToken: optional(accessTokenEnv),
      }
    }
  }
}

function required(env: Env, variable: string): string {
  const value = env[variable]
  if (value !== undefined && value !== '') return value
  throw new SignInRefused(`The operator must set ${variable} in Errand's environment.`)
}

/** `mcp`, the MCP servers of an agent or a run: schemas, decoding, and encoding without secrets. */
import { z } from 'zod'
import type { Authentication, McpServer, RunMcpServer } from '../../../domain/mcp.ts'
import { wrongField } from '../../request/fields.ts'
import type { Body } from '../codec.ts'
import { MAX_NAME_CHARS, MAX_URL_CHARS, text, withoutNulls } from './common-fields.ts'
import { authentication, type SentAuthentication, toSecret } from './secrets.ts'

const MAX_MCP_TOOLS = 128

export const mcpServerAnswer = z
  .looseObject({
    name: z.string(),
    url: z.string().optional(),
    authentication: z
      .looseObject({ type: z.string() })
      .optional()
      .meta({ description: 'Only the type. Secrets are never shown.' }),
    allowedTools: z.array(z.string()).optional(),
    requireApproval: z.unknown().optional(),
  })
  .meta({ title: 'McpServerAnswer', description: 'An MCP server, without secrets.' })

export const mcpServerRequest = z
  .object({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
        error: 'must be 1 to 64 letters, digits, dots, hyphens or underscores, the first one a letter or digit',
      })
      .meta({
        description:
          'The server’s name. The model sees its tools as `name__tool`. Without `url`, the name of a server that the operator registered.',
      }),
    url: text(MAX_URL_CHARS)
      .min(1)
      .nullish()
      .meta({ description: 'URL of a Streamable HTTP endpoint. Private addresses are refused.' }),
    authentication: authentication.nullish().meta({
      description:
        'How to authenticate: `none`, `bearer`, `headers`, `basic`, `oauth2` or `credential`. A string is a bearer token. Write-only. Secrets are sent only to this server’s own origin. A stored agent can use `credential` but not hold a secret. With `oauth2`, access tokens are renewed with `refreshToken` or the client’s own credentials, also during a run; without either, the server is asked for a token, which works if no person has to agree.',
    }),
    allowedTools: z
      .array(text(MAX_NAME_CHARS).min(1))
      .max(MAX_MCP_TOOLS)
      .nullish()
      .meta({ description: 'The server’s tools that the agent may use. Absent: all.' }),
    requireApproval: z
      .union(
        [z.boolean(), z.enum(['always', 'never', 'unless_skill']), z.array(text(MAX_NAME_CHARS)).max(MAX_MCP_TOOLS)],
        { error: 'must be true, false, "always", "never", "unless_skill", or a list of tool names' },
      )
      .nullish()
      .meta({
        description:
          'Whether a person must approve each tool call. A list: only calls of these tools. `unless_skill`: all calls, except of tools that an enabled skill names in its `allowed-tools`.',
      }),
  })
  .meta({ title: 'McpServer', description: 'An MCP server.' })

export type SentMcpServer = z.output<typeof mcpServerRequest>

/** Throws ErrandError `invalid_request` that names the field at or below `mcp[i]`. */
export function decodeMcpServers(servers: readonly SentMcpServer[]): McpServer[] {
  refuseDuplicateNames(servers)
  return servers.map(decodeMcpServer)
}

function decodeMcpServer(sent: SentMcpServer, i: number): McpServer {
  const { authentication, ...server } = withoutNulls(sent)
  checkUrl(server.url, `mcp[${i}].url`)
  if (authentication === undefined) return server
  return { ...server, authentication: decodeAuthentication(authentication, `mcp[${i}].authentication`) }
}

function decodeAuthentication(sent: SentAuthentication, at: string): Authentication {
  if (typeof sent === 'string') return { type: 'bearer', token: sent }
  if (sent.type === 'none') return { type: 'none' }
  return sent.type === 'credential' ? sent : toSecret(sent.type, sent, `${at}.`)
}

/** The model calls a server's tools by the server's name, so each name must be unique. */
function refuseDuplicateNames(servers: readonly SentMcpServer[]): void {
  servers.forEach(({ name }, i) => {
    const first = servers.findIndex((server) => server.name === name)
    if (first !== i) throw wrongField(`mcp[${i}].name`, `is the same as mcp[${first}].name; names must be unique`)
  })
}

function checkUrl(text: string | undefined, param: string): void {
  if (text === undefined) return
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') throw wrongField(param, 'must be an https:// URL')
  if (url.username !== '' || url.password !== '') {
    throw wrongField(param, 'must not contain a user name or password; use `authentication`')
  }
}

/** Everyone in the project can read a stored agent: it may name a credential, but not hold a secret. */
export function refuseStoredSecrets(servers: readonly SentMcpServer[] | null | undefined): void {
  servers?.forEach(({ authentication }, i) => {
    if (authentication === undefined || authentication === null) return
    const type = typeof authentication === 'string' ? 'bearer' : authentication.type
    if (type === 'none' || type === 'credential') return
    throw wrongField(
      `mcp[${i}].authentication`,
      'must not hold a secret in a stored agent; use {"type": "credential", "credentialId": …}',
    )
  })
}

export function encodeMcpServer({ authentication, ...server }: McpServer | RunMcpServer): Body {
  if (authentication === undefined) return { ...server }
  const { type } = authentication
  return {
    ...server,
    authentication:
      authentication.type === 'credential' ? { type, credentialId: authentication.credentialId } : { type },
  }
}

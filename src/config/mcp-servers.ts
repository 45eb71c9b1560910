/** Schema of the `mcp` section: servers that the operator registers by address or as a command. */
import { isAbsolute } from 'node:path'
import * as z from 'zod'
import { networkRules } from './network-rules.ts'

const variable = z
  .string('must be the name of an environment variable')
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable, not the secret itself')

const words = z.string('must be a text').min(1, 'must not be empty')
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https address' })

const authentication = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('bearer'), tokenEnv: variable }),
    z.strictObject({ type: z.literal('headers'), headersEnv: z.record(words, variable) }),
    z.strictObject({ type: z.literal('basic'), username: words, passwordEnv: variable }),
    z.strictObject({
      type: z.literal('oauth2'),
      tokenUrl: httpUrl.optional(),
      clientId: words.optional(),
      clientSecretEnv: variable.optional(),
      refreshTokenEnv: variable.optional(),
      accessTokenEnv: variable.optional(),
      scopes: z.array(words).optional(),
    }),
  ],
  'must have a type: bearer, headers, basic or oauth2',
)

const rules = {
  allowedTools: z.array(words, 'must be a list of tool names').optional(),
  requireApproval: z
    .union([z.boolean(), z.enum(['always', 'never']), z.array(words)], 'must be always, never, or a list of tool names')
    .optional(),
}

const absolute = words.refine((path) => isAbsolute(path) && !path.split('/').includes('..'), 'must be an absolute path')

const remote = z.strictObject({ url: httpUrl, authentication: authentication.optional(), ...rules })

const program = z.strictObject({
  command: z.array(words, 'must be a list: the program and its arguments').min(1, 'must not be empty'),
  env: z.record(variable, z.string('must be a text')).default({}),
  envFrom: z.array(variable, 'must be a list of environment variables').default([]),
  mounts: z.array(z.strictObject({ source: absolute, target: absolute }, 'must be {source, target}')).default([]),
  network: networkRules.default('disabled'),
  limits: z
    .strictObject({
      memoryMiB: z.int('must be a whole number').min(64, 'must be at least 64').optional(),
      cpus: z.number('must be a number').min(0.1, 'must be at least 0.1').optional(),
      pids: z.int('must be a whole number').min(16, 'must be at least 16').optional(),
    })
    .default({}),
  ...rules,
})

export const mcpServers = z.record(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'is no server name: letters, digits and . _ - are allowed'),
  z.union([remote, program], 'must be {url, authentication?} or {command, env?, envFrom?, mounts?, network?, limits?}'),
  'must be a map from names to MCP servers',
)
